"""`python -m largesse_client.mcp` is `largesse-mcp`."""

from largesse_client.mcp.command import main

main()
