"""`python -m largesse`."""

from largesse.cli import main

main()
