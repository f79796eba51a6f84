"""The list of orders with its filters and search, as a page and as a file. The address holds the filter, so that a link shows the same list."""

import re
from collections.abc import AsyncIterator, Sequence
from datetime import date
from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response

from largesse.base import clock
from largesse.base.i18n.languages import text
from largesse.base.money import to_decimal
from largesse.base.text import whole_number
from largesse.customers.roles import Reach, Right
from largesse.db.pool import Connection
from largesse.reports import filters, listing
from largesse.reports.filters import Added, GroupFilter, OrderFilter
from largesse.reports.finder import MOST_SORTED, place_of
from largesse.reports.listing import Choices, ListedOrder, Sort
from largesse.reports.sums import OrderState
from largesse.web.console.context import PageContext, RequestContext
from largesse.web.console.order_words import SOURCES, STATES, headline, source_of, state_of_order
from largesse.web.console.periods import FREE, PERIODS, period_of

_AT_ONCE = 50
_OF_FILE_AT_ONCE = 1_000
MOST_OF_FILE = 100_000
MOST_CHOSEN = 100  # the most orders in a file of selected orders
_COLUMNS = (
    *(text("Reference"), text("Your reference"), text("Placed at (UTC)"), text("Gift"), text("Codes")),
    *(text("Codes claimed"), text("Codes cancelled"), text("Total"), text("Currency"), text("State")),
    *(text("Source"), text("Placed by"), text("Account"), text("First recipient"), text("Recipients")),
)


async def show(context: RequestContext) -> Response:
    """Shows a page of the orders that match the filter, with the sums of all that match."""
    wanted, person, sort = read_filter(context), context.person, read_sort(context)
    if context.query("of") == "chosen":
        said = context.say("Choose the orders to export first, at most %(most)s.", most=MOST_CHOSEN)
        context.form.error("order", said)
    own = person.if_only_own(Right.SEE_ORDERS)
    # A search reads few rows, and plans most statements anew anyway.
    scope = person.scope if wanted.search.strip() else person.list_scope
    async with context.database.connection(scope) as connection:
        page, sums, is_all = await _read(context, connection, wanted, sort)
        choices = await listing.read_choices(connection, context.customer, user_id=own)
        views = await filters.list_views(connection, context.customer, person.user_id)
    query = query_of_view(context)
    file = list_address(context, sort=None).replace("/app/orders", "/app/orders.csv", 1)
    return context.page(
        "orders.html",
        page=page,
        sums=sorted(sums, key=lambda one: one.sums.orders, reverse=True),
        is_all=is_all,
        most_sorted=MOST_SORTED,
        most_of_file=MOST_OF_FILE,
        sorts=_sorts(context, sort),
        chips=chips_of(context, choices),
        headline=lambda order: headline(context, order),
        state_of=lambda order: state_of_order(context, order),
        source_of=lambda source: source_of(context, source),
        query=context.query,
        views=views,
        current=next((view for view in views if view.query == query and not wanted.search), None),
        view_query=query,
        most_name=filters.MAX_NAME,
        list_address=lambda **changes: list_address(context, **changes),
        is_filtered=is_filtered(context),
        may_send=person.may(Right.SEND),
        csv=file if person.may(Right.MOVE_FUNDS) else None,
    )


async def _read(
    context: RequestContext, connection: Connection, wanted: OrderFilter, sort: Sort
) -> tuple[listing.OrderPage, list[Added], bool]:
    """Returns a page of the list, the sums of the orders that match, and whether the sums are complete."""
    before, after = context.parameters.number("before"), context.parameters.number("after")
    is_search = bool(wanted.search.strip())
    if is_search and sort is Sort.NEWEST:
        places = [None if id_ is None else await place_of(connection, wanted, id_) for id_ in (before, after)]
        return await listing.search_page(connection, wanted, _AT_ONCE, before=places[0], after=places[1])
    page = await listing.sorted_page(connection, wanted, sort, _AT_ONCE, before=before, after=after)
    if is_search:
        return page, *await listing.search_sums(connection, wanted)
    added = await filters.add_up(connection, wanted, only=("orders", "spent_minor"))
    return page, [one for one in added if one.sums.orders], True


def _sorts(context: RequestContext, sort: Sort) -> dict[str, tuple[str, str]]:
    """Returns for each sortable column its value of `aria-sort`, and the address that reverses the order."""
    columns = {"total": (Sort.HIGHEST, Sort.LOWEST), "placed": (Sort.NEWEST, Sort.OLDEST)}
    sorts = {}
    for column, (falling, rising) in columns.items():
        to = rising if sort is falling else falling
        said = {falling: "descending", rising: "ascending"}.get(sort, "none")
        sorts[column] = (said, list_address(context, sort=None if to is Sort.NEWEST else to))
    return sorts


async def save(context: RequestContext) -> Response:
    """Saves the filters and the sort order in the address as a view of the person."""
    name, query = context.form.text("name", filters.MAX_NAME), query_of_view(context)
    if not query:
        context.form.error("name", context.say("Choose a filter or an order to save first."))
    if not context.form.errors:
        try:
            await filters.save_view(context.actor, name, query)
        except filters.TooManyViews:
            said = context.say("You have %(most)s saved views. Remove one first.", most=filters.MOST_VIEWS)
            context.form.error("name", said)
    if context.form.errors:
        return await show(context)
    return context.see(f"/app/orders?{query}", context.say("Saved as %(name)s.", name=name))


async def remove(context: RequestContext) -> Response:
    """Removes a saved view of the person. Raises NotFound."""
    await filters.remove_view(context.actor, context.number("view"))
    return context.see("/app/orders", context.say("The view is removed."))


async def download(context: RequestContext) -> Response:
    """Sends the selected orders, or all that match the filter, newest first, at most `MOST_OF_FILE`, as a CSV file."""
    wanted, chosen = read_filter(context), context.parameters.texts("order")
    if context.query("of") == "chosen" and not 0 < len(chosen) <= MOST_CHOSEN:
        return context.see(f"/app/orders?{query_of_filter(context, of='chosen')}")
    rows = _chosen(context, wanted, chosen) if chosen else _rows(context, wanted)
    return await context.csv("orders.csv", [context.say(one) for one in _COLUMNS], rows)


async def _chosen(
    context: RequestContext, wanted: OrderFilter, references: Sequence[str]
) -> AsyncIterator[Sequence[object]]:
    for order in await context.read(listing.list_selected, wanted, references):
        yield _row(context, order)


async def _rows(context: RequestContext, wanted: OrderFilter) -> AsyncIterator[Sequence[object]]:
    before, left = None, MOST_OF_FILE
    while left > 0:
        async with context.database.connection(context.person.list_scope) as connection:
            page = await listing.list_page(connection, wanted, min(_OF_FILE_AT_ONCE, left), before=before)
            before = None if page.next is None else await place_of(connection, wanted, page.next)
        for order in page.orders:
            yield _row(context, order)
        left -= len(page.orders) or 1
        if before is None:
            return


def _row(context: RequestContext, order: ListedOrder) -> Sequence[object]:
    return (
        order.reference,
        whole_number(order.external_reference),
        f"{order.created_at:%Y-%m-%d %H:%M:%S}",
        order.gift,
        order.codes,
        order.claimed,
        order.cancelled,
        to_decimal(order.spent_minor, order.currency),
        order.currency,
        state_of_order(context, order).word,
        order.source,
        order.placed_by,
        order.account,
        order.recipient,
        order.recipients,
    )


_ID = re.compile(r"(product|collection|key|person)-([0-9]{1,9})")
_FILTERED_BY = {
    "product": "product_id",
    "collection": "collection_id",
    "key": "service_account_id",
    "person": "user_id",
}
# The columns that a chip filters by.
_COLUMNS_OF = {
    "gift": ("product_id", "collection_id"),
    "source": ("source",),
    "account": ("account_id",),
    "by": ("service_account_id", "user_id"),
}
NO_DAY = text("Type a date, such as 2026-11-30.")
# The parameters that select and sort orders. A saved view holds them, except the search.
FILTERS = ("q", "state", "gift", "source", "account", "by", "period", "since", "until", "sort")


def read_filter(context: RequestContext) -> OrderFilter:
    """Returns the filter in the page's address. Members get only their own orders. Adds an error to the form for a wrong day."""
    person = context.person
    said: dict[str, Any] = {}  # the filter's values by the names of its fields
    for name in ("gift", "by"):
        if found := _ID.fullmatch(context.query(name)):
            said[_FILTERED_BY[found[1]]] = int(found[2])
    if context.query("source"):
        said["source"] = context.query("source")
    if (account_id := context.parameters.number("account")) is not None:
        said["account_id"] = account_id
    if person.reach(Right.SEE_ORDERS) is Reach.OWN:
        said["user_id"] = person.user_id
        said.pop("service_account_id", None)
    state = context.query("state")
    since, until = read_day(context, "since"), read_day(context, "until")
    if context.query("period") in PERIODS and context.query("period") != FREE:
        period = period_of(context.query("period"), clock.now().date())
        since, until = period.since, period.until
    return OrderFilter(
        customer_id=person.customer_id,
        environment=person.environment,
        group=GroupFilter(**said),
        states=(OrderState(state),) if state in set(OrderState) else (),
        since=since,
        until=until,
        search=context.query("q"),
    )


def read_sort(context: RequestContext) -> Sort:
    """Returns the sort order in the page's address; newest first by default."""
    said = context.query("sort")
    return Sort(said) if said in set(Sort) else Sort.NEWEST


def read_day(context: PageContext, name: str) -> date | None:
    """Returns the day of a parameter; None if it is missing or wrong. Adds an error to the form for a wrong one."""
    if not context.parameters.is_wrong(name):
        return context.parameters.day(name)
    typed = context.form_of_address
    day = typed.day(name)
    context.form.errors = typed.errors | context.form.errors
    return day


class Chip(msgspec.Struct, frozen=True):
    """A filter on the page. `value` is the text of its current choice; empty if it is not set."""

    name: str
    label: str
    value: str
    choices: Sequence[tuple[str, str]]
    without: str  # the address of the list without this filter


def chips_of(context: RequestContext, choices: Choices) -> list[Chip]:
    """Returns the filters of the list: the period, and those with the values that the customer's orders have."""
    sources = [(value, context.say(SOURCES.get(value, value))) for value, _ in choices.sources]
    offered = [
        ("state", context.say("State"), [(state.value, context.say(word)) for state, word in STATES.items()]),
        ("gift", context.say("Gift"), choices.gifts),
        ("source", context.say("Source"), sources),
        ("account", context.say("Account"), choices.accounts),
    ]
    if context.person.reach(Right.SEE_ORDERS) is Reach.ALL:
        offered.append(("by", context.say("Placed by"), choices.placed_by))
    filtered = set(read_filter(context).group.said)
    return [_period(context), *(_chip(context, filtered, *one) for one in offered)]


def _chip(
    context: RequestContext, filtered: set[str], name: str, label: str, choices: Sequence[tuple[str, str]]
) -> Chip:
    value = dict(choices).get(context.query(name), "")
    if not value and not filtered.isdisjoint(_COLUMNS_OF.get(name, ())):
        # for example, an account that has paid none of this person's orders
        value = context.say("Not in this list")
    return Chip(name, label, value, choices, list_address(context, **{name: None}))


def _period(context: RequestContext) -> Chip:
    choices = [(name, context.say(word)) for name, word in PERIODS.items() if name != FREE]
    value = dict(choices).get(context.query("period"), "")
    since, until = read_day(context, "since"), read_day(context, "until")
    if not value and (since or until):
        value = " \N{EN DASH} ".join(context.language.short_day(day) if day else "…" for day in (since, until))
    without = list_address(context, period=None, since=None, until=None)
    return Chip("period", context.say("Period"), value, choices, without)


def is_filtered(context: RequestContext) -> bool:
    """Returns whether the page's address filters the orders."""
    return any(context.query(name) for name in FILTERS if name != "sort")


def list_address(context: RequestContext, **changes: str | int | None) -> str:
    """Returns the address of the first page of the list, with those parameters changed."""
    return context.here(**{"before": None, "after": None, "of": None, **changes})


def query_of_filter(context: RequestContext, **more: str) -> str:
    """Returns the parameters that select and sort orders, and `more`, encoded for an address."""
    return urlencode({name: context.query(name) for name in FILTERS if context.query(name)} | more)


def query_of_view(context: RequestContext) -> str:
    """Returns the parameters that a saved view holds, encoded: the filters and the sort order, without the search."""
    return urlencode({name: context.query(name) for name in FILTERS if name != "q" and context.query(name)})
