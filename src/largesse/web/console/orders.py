"""The list of orders with its filters and search, as a page and as a file. The address says which orders: a link to a page is the view it shows."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from datetime import date
from typing import Any

from starlette.responses import Response

from largesse.base.i18n.templates import text
from largesse.base.money import to_decimal
from largesse.customers.roles import Reach, Right
from largesse.db.pool import Connection
from largesse.reports.filters import GroupFilter, OrderFilter, Place, add_up
from largesse.reports.finder import place_of
from largesse.reports.listing import ListedOrder, list_page, read_choices, search_page
from largesse.reports.sums import OrderState
from largesse.web.console.context import RequestContext

STATES = {
    OrderState.SCHEDULED: ("waiting", text("Scheduled")),
    OrderState.BOUNCED: ("bad", text("Mail refused")),
    OrderState.WAITING: ("waiting", text("Unclaimed codes")),
    OrderState.CLAIMED: ("good", text("Claimed")),
    OrderState.CANCELLED: ("still", text("Cancelled")),
}
_ID = re.compile(r"(product|collection|key|person)-([0-9]{1,9})")
_COLUMN = {"product": "product_id", "collection": "collection_id", "key": "service_account_id", "person": "user_id"}
NO_DAY = text("This is not a date, such as 2026-11-30.")


def read_filter(context: RequestContext) -> OrderFilter:
    """Returns the filter in the page's address; for a member, of their own orders. Notes a wrong day in the form."""
    person = context.person
    said: dict[str, Any] = {}  # by the names of the filter's fields
    for name in ("gift", "by"):
        if found := _ID.fullmatch(context.query(name)):
            said[_COLUMN[found[1]]] = int(found[2])
    if context.query("source"):
        said["source"] = context.query("source")
    if (account_id := context.parameters.number("account")) is not None:
        said["account_id"] = account_id
    if person.reach(Right.SEE_ORDERS) is Reach.OWN:
        said["user_id"] = person.user_id
        said.pop("service_account_id", None)
    state = context.query("state")
    return OrderFilter(
        customer_id=person.customer_id,
        environment=person.environment,
        group=GroupFilter(**said),
        states=(OrderState(state),) if state in set(OrderState) else (),
        since=read_day(context, "since"),
        until=read_day(context, "until"),
        search=context.query("q"),
    )


def read_day(context: RequestContext, name: str) -> date | None:
    """Returns the day of a parameter; None if it is missing or wrong, which is noted in the form."""
    if context.parameters.is_wrong(name):
        context.form.error(name, context.say(NO_DAY))
    return context.parameters.day(name)


_AT_ONCE = 50
_OF_FILE_AT_ONCE = 1_000
_MOST_OF_FILE = 100_000
_COLUMNS = (
    *("reference", "own reference", "placed at (UTC)", "gift", "codes", "claimed", "cancelled", "total", "currency"),
    *("state", "source", "placed by", "account"),
)


async def show(context: RequestContext) -> Response:
    """Shows the newest orders that pass the filter, or those from a place on, with the sums of all."""
    wanted, person = read_filter(context), context.person
    async with context.database.connection(person.scope) as connection:
        before, after = (
            await _place(connection, context, wanted, "before"),
            await _place(connection, context, wanted, "after"),
        )
        if wanted.search.strip():
            page, sums, is_all = await search_page(connection, wanted, _AT_ONCE, before=before, after=after)
        else:
            page = await list_page(connection, wanted, _AT_ONCE, before=before, after=after)
            added = await add_up(connection, wanted, only=("orders", "spent_minor"))
            sums, is_all = [one for one in added if one.sums.orders], True
        own = person.user_id if person.reach(Right.SEE_ORDERS) is Reach.OWN else None
        choices = await read_choices(connection, person.customer_id, person.environment, user_id=own)
    is_filtered = any(
        context.query(name) for name in ("q", "state", "since", "until", "gift", "source", "account", "by")
    )
    return context.page(
        "orders.html",
        page=page,
        sums=sums,
        is_all=is_all,
        choices=choices,
        states=STATES,
        query=context.query,
        is_filtered=is_filtered,
        csv=_file_of(context) if person.may(Right.MOVE_FUNDS) else None,
        status=422 if context.form.errors else 200,
    )


async def download(context: RequestContext) -> Response:
    """Returns the orders that pass the filter as CSV, newest first, at most `_MOST_OF_FILE`."""
    return await context.csv("orders.csv", _COLUMNS, _rows(context, read_filter(context)))


def _file_of(context: RequestContext) -> str:
    """Returns the address of the same list as a file."""
    return context.here(before=None, after=None).replace("/app/orders", "/app/orders.csv", 1)


async def _place(connection: Connection, context: RequestContext, wanted: OrderFilter, name: str) -> Place | None:
    order_id = context.parameters.number(name)
    return None if order_id is None else await place_of(connection, wanted, order_id)


async def _rows(context: RequestContext, wanted: OrderFilter) -> AsyncIterator[Sequence[object]]:
    before, left = None, _MOST_OF_FILE
    while left > 0:
        async with context.database.connection(context.person.scope) as connection:
            page = await list_page(connection, wanted, min(_OF_FILE_AT_ONCE, left), before=before)
            before = None if page.older is None else await place_of(connection, wanted, page.older)
        for order in page.orders:
            yield _row(context, order)
        left -= len(page.orders) or 1
        if before is None:
            return


def _row(context: RequestContext, order: ListedOrder) -> Sequence[object]:
    return (
        order.reference,
        order.external_reference,
        f"{order.created_at:%Y-%m-%d %H:%M:%S}",
        order.gift,
        order.codes,
        order.claimed,
        order.cancelled,
        to_decimal(order.spent_minor, order.currency),
        order.currency,
        context.say(STATES[OrderState(order.state)][1]),
        order.source,
        order.placed_by,
        order.account,
    )
