"""Tools to quote and send: an order is placed only as it was quoted."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from largesse_client import AsyncLargesse, Recipient
from largesse_client.errors import Problem, ReferenceUsed
from largesse_client.mcp.answers import ACTS_ONCE, LOOKS, Answer, plain, with_readable_errors, without_pins
from largesse_client.mcp.delivery import Delivery
from largesse_client.mcp.quotes import Quoted, QuoteStore, reference_of
from largesse_client.mcp.spending import CapReached, Spending
from largesse_client.models import Order

SOURCE = "mcp"
_UNCLEAR = (408, 429)


def add_sending(
    server: MCPServer[Any], largesse: AsyncLargesse, quotes: QuoteStore, spending: Spending, *, shows_pins: bool
) -> None:
    """Adds the tools that quote, and the one that sends a quoted order."""

    async def quote(kind: str, gift: dict[str, Any], delivery: Delivery) -> Answer:
        arguments = {name: value for name, value in gift.items() if value is not None} | _order(delivery)
        quoted = await getattr(largesse.quote, kind)(**arguments)
        quotes.add(Quoted(kind, arguments, quoted.total_cost, quoted.currency, quoted.quote))
        return {**plain(quoted), "notSendable": _over(spending, quoted.total_cost, quoted.currency)}

    @server.tool(annotations=LOOKS)
    @with_readable_errors
    async def quote_gift(
        product_id: int,
        delivery: Delivery,
        value: Annotated[Decimal | None, Field(description="Per code, where the product requires it")] = None,
        country: Annotated[str, Field(description="ISO 3166-1 alpha-2 country it is sent to")] = "GB",
    ) -> Answer:
        """Quotes the cost of sending one product. Places nothing. Show the answer to the person before you send."""
        return await quote("gift", {"product_id": product_id, "value": value, "country": country}, delivery)

    @server.tool(annotations=LOOKS)
    @with_readable_errors
    async def quote_collection(
        collection_id: int,
        delivery: Delivery,
        value: Annotated[Decimal | None, Field(description="Per code, of a curated collection")] = None,
    ) -> Answer:
        """Quotes the cost of sending a collection. Places nothing. Show the answer to the person before you send."""
        return await quote("collection", {"collection_id": collection_id, "value": value}, delivery)

    @server.tool(annotations=LOOKS)
    @with_readable_errors
    async def quote_template(template_id: int, delivery: Delivery) -> Answer:
        """Quotes the cost of sending a saved template. Places nothing. Show the answer to the person before you send."""
        return await quote("template", {"template_id": template_id}, delivery)

    @server.tool(annotations=ACTS_ONCE)
    @with_readable_errors
    async def send(
        quote: Annotated[str, Field(description="The `quote` of a quote_… answer that the person agreed to")],
    ) -> Answer:
        """Places the quoted order, and spends the quoted amount. Ask the person first. Repeating the call places no second order."""
        quoted = quotes.find(quote)
        if quoted is None:
            return without_pins(plain(await _placed_before(largesse, quote)), shows_pins=shows_pins)
        is_counted = spending.take(quoted.reference, quoted.cost, quoted.currency)
        try:
            order = await getattr(largesse.send, quoted.kind)(
                **quoted.arguments, quote=quote, external_reference=quoted.reference
            )
        except Problem as problem:
            if is_counted and _is_refusal(problem):
                spending.give_back(quoted.reference)
            raise
        return without_pins(plain(order), shows_pins=shows_pins)


def _order(delivery: Delivery) -> dict[str, Any]:
    """Returns the client's arguments for a delivery."""
    given = {name: value for name, value in delivery if value is not None}
    if delivery.recipients is not None:
        given["recipients"] = [Recipient(**to.model_dump()) for to in delivery.recipients]
    return given | {"source": SOURCE}


async def _placed_before(largesse: AsyncLargesse, quote: str) -> Order:
    """Returns the order of a quote that is not stored here, for example after a restart. Raises ToolError if none was placed with it."""
    for found in await largesse.orders.newest(external_reference=reference_of(quote)):
        return await largesse.orders.get(str(found.reference))
    raise ToolError(
        "Nothing was placed: this `quote` is not stored here. It is more than a day old, from before a restart, or from elsewhere. "
        "Quote the order again, show what it costs to the person, and send with the `quote` of that answer."
    )


def _is_refusal(problem: Problem) -> bool:
    """Returns whether the problem means that nothing was placed. After other problems, an earlier attempt may have placed the order."""
    return 400 <= problem.status < 500 and problem.status not in _UNCLEAR and not isinstance(problem, ReferenceUsed)


def _over(spending: Spending, cost: Decimal, currency: str) -> str | None:
    """Returns why an order of that cost is over a cap; None if it is not."""
    try:
        spending.check(cost, currency)
    except CapReached as reached:
        return str(reached)
    return None
