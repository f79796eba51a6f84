"""The list of orders with its filters and search, as a page and as a file. The address holds the filter, so that a link shows the same list."""

from collections.abc import AsyncIterator, Sequence

from starlette.responses import Response

from largesse.base.i18n.languages import text
from largesse.base.money import to_decimal
from largesse.base.text import whole_number
from largesse.customers.roles import Right
from largesse.db.pool import Connection
from largesse.reports import filters, listing
from largesse.reports.filters import Added, OrderFilter
from largesse.reports.finder import MOST_SORTED, place_of
from largesse.reports.listing import ListedOrder, Sort
from largesse.web.console import order_filters
from largesse.web.console.context import RequestContext
from largesse.web.console.order_words import headline, source_of, state_of_order

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
    wanted, person, sort = order_filters.read_filter(context), context.person, order_filters.read_sort(context)
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
    query = order_filters.query_of_view(context)
    file = order_filters.list_address(context, sort=None).replace("/app/orders", "/app/orders.csv", 1)
    return context.page(
        "orders.html",
        page=page,
        sums=sums,
        is_all=is_all,
        most_sorted=MOST_SORTED,
        most_of_file=MOST_OF_FILE,
        sorts=_sorts(context, sort),
        chips=order_filters.chips_of(context, choices),
        headline=lambda order: headline(context, order),
        state_of=lambda order: state_of_order(context, order),
        source_of=lambda source: source_of(context, source),
        query=context.query,
        views=views,
        current=next((view for view in views if view.query == query and not wanted.search), None),
        view_query=query,
        most_name=filters.MAX_NAME,
        list_address=lambda **changes: order_filters.list_address(context, **changes),
        is_filtered=order_filters.is_filtered(context),
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
        sorts[column] = (said, order_filters.list_address(context, sort=None if to is Sort.NEWEST else to))
    return sorts


async def save(context: RequestContext) -> Response:
    """Saves the filters and the sort order in the address as a view of the person."""
    name, query = context.form.text("name", filters.MAX_NAME), order_filters.query_of_view(context)
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
    wanted, chosen = order_filters.read_filter(context), context.parameters.texts("order")
    if context.query("of") == "chosen" and not 0 < len(chosen) <= MOST_CHOSEN:
        return context.see(f"/app/orders?{order_filters.query_of_filter(context, of='chosen')}")
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
