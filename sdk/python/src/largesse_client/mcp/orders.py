"""Tools for placed orders: read them, mail again, cancel."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from pydantic import Field

from largesse_client import AsyncLargesse
from largesse_client.mcp.answers import ACTS, ACTS_ONCE, LOOKS, Answer, plain, with_readable_errors, without_pins

Reference = Annotated[str, Field(description="The `reference` of the order")]
_MOST = 200


def add_orders(server: MCPServer[Any], largesse: AsyncLargesse, *, shows_pins: bool) -> None:
    """Adds the tools for placed orders."""

    @server.tool(annotations=LOOKS)
    @with_readable_errors
    async def list_orders(limit: Annotated[int, Field(ge=1, le=50)] = 10) -> Answer:
        """The newest orders of the customer, newest first."""
        return {"orders": plain(await largesse.orders.newest(limit=limit))}

    @server.tool(annotations=LOOKS)
    @with_readable_errors
    async def get_order(reference: Reference) -> Answer:
        """The request that an order was placed with, without codes."""
        answer: Answer = plain(await largesse.orders.request(reference))
        return answer

    @server.tool(annotations=LOOKS)
    @with_readable_errors
    async def get_codes(reference: Reference) -> Answer:
        """The response to an order again, with the codes of a batch. Each call is recorded."""
        return without_pins(plain(await largesse.orders.get(reference)), shows_pins=shows_pins)

    @server.tool(annotations=LOOKS)
    @with_readable_errors
    async def list_deliveries(reference: Reference) -> Answer:
        """Returns the state of each recipient's mail and codes, for at most 200 recipients."""
        found = []
        async for delivery in largesse.orders.deliveries(reference):
            found.append(plain(delivery))
            if len(found) == _MOST:
                break
        return {"deliveries": found}

    @server.tool(annotations=ACTS)
    @with_readable_errors
    async def resend(
        reference: Reference,
        email: Annotated[str, Field(description="A recipient of that order")],
        resends: Annotated[
            int | None,
            Field(
                ge=0,
                description="The recipient's `resends` in list_deliveries. With it, repeating the call sends no second mail",
            ),
        ] = None,
    ) -> Answer:
        """Mails a recipient's codes once more, at most 5 times in 24 hours. Ask the person first."""
        answer: Answer = plain(await largesse.orders.resend(reference, email, resends=resends))
        return answer

    @server.tool(annotations=ACTS_ONCE)
    @with_readable_errors
    async def cancel(reference: Reference) -> Answer:
        """Voids the codes of an order that nobody has claimed, and refunds them. Ask the person first."""
        answer: Answer = plain(await largesse.orders.cancel(reference))
        return answer
