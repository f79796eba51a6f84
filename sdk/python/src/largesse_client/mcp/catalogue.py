"""Tools that read what can be sent, and the accounts that pay."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from pydantic import Field

from largesse_client import AsyncLargesse
from largesse_client.mcp.answers import LOOKS, Answer, plain, with_readable_errors

_MOST = 200

Country = Annotated[str, Field(description="ISO 3166-1 alpha-2 country the gift is sent to")]
Currency = Annotated[str | None, Field(description="ISO currency code: only what is priced in it")]
Amount = Annotated[Decimal | None, Field(description="Only what can be sent for this or less")]


def add_catalogue(server: MCPServer[Any], largesse: AsyncLargesse) -> None:
    """Adds the tools that read what can be sent, and the accounts that pay."""

    @server.tool(annotations=LOOKS)
    @with_readable_errors
    async def list_products(
        country: Country = "GB",
        keyword: Annotated[str | None, Field(description="Words of the name, in any order")] = None,
        currency: Currency = None,
        amount: Amount = None,
    ) -> Answer:
        """Single products that can be sent, at most 200. `requiresAmount` says whether a value has to be given, and which."""
        found = largesse.products.list(country=country, keyword=keyword, currency=currency, amount=amount)
        return {"products": await _first(found)}

    @server.tool(annotations=LOOKS)
    @with_readable_errors
    async def list_collections(
        country: Annotated[str | None, Field(description="ISO 3166-1 alpha-2 country")] = None,
        currency: Currency = None,
        amount: Amount = None,
    ) -> Answer:
        """Collections that recipients choose from. `requiresValue` says whether a value has to be given, and which."""
        found = largesse.collections.list(country=country, currency=currency, amount=amount)
        return {"collections": await _first(found)}

    @server.tool(annotations=LOOKS)
    @with_readable_errors
    async def list_templates() -> Answer:
        """Saved presets of gifts, newest first."""
        return {"templates": await _first(largesse.templates.list())}

    @server.tool(annotations=LOOKS)
    @with_readable_errors
    async def list_wrappings() -> Answer:
        """The wrappings of gifts."""
        return {"wrappings": await _first(largesse.wrappings.list())}

    @server.tool(annotations=LOOKS)
    @with_readable_errors
    async def list_funding_accounts() -> Answer:
        """Accounts that orders are paid from, with their balances; none if the customer is invoiced."""
        return {"fundingAccounts": await _first(largesse.funding_accounts.list())}


async def _first(items: Any) -> list[Any]:
    found = []
    async for item in items:
        found.append(plain(item))
        if len(found) == _MOST:
            break
    return found
