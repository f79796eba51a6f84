"""The server, with a tool for each thing that an assistant may do."""

from __future__ import annotations

from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import ValidationError

from largesse_client import AsyncLargesse
from largesse_client.mcp.answers import wrong_arguments
from largesse_client.mcp.catalogue import add_catalogue
from largesse_client.mcp.orders import add_orders
from largesse_client.mcp.quotes import QuoteStore
from largesse_client.mcp.sending import add_sending
from largesse_client.mcp.settings import Settings
from largesse_client.mcp.spending import Spending
from largesse_client.version import __version__

INSTRUCTIONS = """\
Sends gifts with Largesse, and spends money. To send something:
1. Find what to send: list_products, list_collections or list_templates. When list_funding_accounts names accounts, one in the gift's
   currency pays, by its account_id; when it names none the customer is invoiced, and account_id is left out.
2. quote_gift, quote_collection or quote_template. Nothing is placed.
3. Show the person what the answer says: what, to whom, what it costs and what is left. Wait for their yes. If `notSendable` is a text, the
   order is over a cap, which the text names, and send refuses it: tell the person, who may have the cap raised or order less.
4. send, with the `quote` of that answer. What is sent is what was quoted. A quote holds for 15 minutes, and it is one order: to repeat
   send with it is harmless, and tells the same order again.
Amounts are decimal numbers in the currency's major unit."""


class _Server(MCPServer[Any]):
    """A server whose tools refuse unknown arguments, so that a misspelt one is not silently ignored, and name the wrong ones."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Calls a tool. Raises ToolError."""
        for tool in await self.list_tools():
            known = tool.input_schema.get("properties", {})
            unknown = arguments.keys() - known.keys()
            if tool.name == name and unknown:
                have = f"It has {', '.join(known)}." if known else "It has none."
                raise ToolError(f"{name} has no argument {', '.join(map(repr, sorted(unknown)))}. {have}")
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                raise ToolError(f"{name}: {wrong_arguments(error.__cause__)}") from error.__cause__
            raise


def build_server(largesse: AsyncLargesse, settings: Settings) -> MCPServer[Any]:
    """Returns the server, whose tools call `largesse`. The caller closes that client."""
    server = _Server(
        "largesse",
        title="Largesse",
        description="Send gifts, at a price that was agreed to before",
        instructions=INSTRUCTIONS,
        version=__version__,
        log_level="WARNING",
    )
    add_catalogue(server, largesse)
    add_sending(server, largesse, QuoteStore(), Spending(settings), shows_pins=settings.shows_pins)
    add_orders(server, largesse, shows_pins=settings.shows_pins)
    return server
