"""Orders in lists, the values of their filters, and the recipients that a search finds among its newest orders."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import StrEnum

import msgspec

from largesse.base.email import is_erased
from largesse.base.text import like_containing, search_words
from largesse.db.pool import Connection, Row
from largesse.db.scope import Place
from largesse.reports.facts import Facts, read_facts
from largesse.reports.filters import Added, OrderFilter, Position
from largesse.reports.finder import Found, find_by_total, find_orders, place_of
from largesse.reports.search import LOOKED_AT, MAX_TERMS, read_terms, words_of
from largesse.reports.sums import Moves, OrderState, state_of

_SELECTED = """
    SELECT created_at, id FROM orders
    WHERE customer_id = $1 AND environment = $2 AND reference = ANY($3::text[]) AND ($4::int IS NULL OR user_id = $4)
    ORDER BY created_at DESC, id DESC
"""

_FRESH_AT_ONCE = 50  # only lists up to this length show the current state of orders; longer ones are exports
MAX_CHOICES = 5_000  # the newest groups, whose names are offered as values of filters


class ListedOrder(msgspec.Struct, frozen=True):
    """An order in a list: its gift, its state, and who placed it. Amounts are in minor units."""

    order_id: int
    reference: str
    external_reference: str | None
    recipient: str | None  # the name or else the address of the first recipient; None in a code batch, and once erased
    campaign: str | None  # the name of the campaign whose gifts it has
    gift: str
    gift_id: int
    picture: str | None  # the name of the gift's picture; None if it has none
    value_minor: int  # the face value of a code
    created_at: datetime
    scheduled_for: datetime | None
    state: str
    mail: str | None  # `held` or `pending` while some of its mail has not left
    codes: int
    claimed: int
    cancelled: int
    bounced: int
    recipients: int
    is_batch: bool
    spent_minor: int
    currency: str
    source: str
    placed_by: str  # a person or a service account
    account: str | None  # the account that paid; None if invoiced

    @property
    def others(self) -> int:
        """How many recipients there are besides the first."""
        return max(self.recipients - 1, 0)

    @property
    def is_open(self) -> bool:
        """Whether codes of it are unclaimed."""
        return self.claimed + self.cancelled < self.codes


class OrderPage(msgspec.Struct, frozen=True):
    """A part of a list, in its order. `next` and `previous` are ids of orders to continue from; None if there are no more.

    `is_all` is False if only the newest orders that pass the filter were sorted.
    """

    orders: list[ListedOrder]
    next: int | None
    previous: int | None
    is_all: bool = True


async def list_page(
    connection: Connection, wanted: OrderFilter, limit: int, *, before: Position | None = None
) -> OrderPage:
    """Returns at most `limit` orders that pass the filter: the newest, or those before a position."""
    found = await find_orders(connection, wanted, limit, past=before)
    return await _page(connection, wanted, found, before, None)


class Sort(StrEnum):
    """The order of a list."""

    NEWEST = "newest"
    OLDEST = "oldest"
    HIGHEST = "highest"
    """By total, the highest first."""

    LOWEST = "lowest"


async def sorted_page(
    connection: Connection,
    wanted: OrderFilter,
    sort: Sort,
    limit: int,
    *,
    before: int | None = None,
    after: int | None = None,
) -> OrderPage:
    """Returns a sorted page of orders that pass the filter: the first ones, those that follow the order `before`, or those that precede `after`."""
    is_back = after is not None
    if sort in {Sort.HIGHEST, Sort.LOWEST}:
        falling = sort is Sort.HIGHEST
        found = await find_by_total(connection, wanted, limit, past=after or before, falling=falling, is_back=is_back)
        places, goes_on, is_all = found.places, found.goes_on, found.is_all
    else:
        past = await place_of(connection, wanted, after or before or 0)
        rises = (sort is Sort.OLDEST) is not is_back
        newest = await find_orders(connection, wanted, limit, past=past, newer=rises)
        places = newest.places[::-1] if sort is Sort.OLDEST else newest.places
        goes_on, is_all = newest.goes_on, True
    orders = await read_listed(connection, wanted.customer_id, places)
    on = None if goes_on is None else goes_on.order_id
    if is_back:
        return OrderPage(orders, orders[-1].order_id if orders else None, on, is_all)
    return OrderPage(orders, on, orders[0].order_id if orders and before is not None else None, is_all)


async def search_page(
    connection: Connection,
    wanted: OrderFilter,
    limit: int,
    *,
    before: Position | None = None,
    after: Position | None = None,
) -> tuple[OrderPage, list[Added], bool]:
    """Returns a page of a search, the sums of its orders by currency, and whether they are complete: only the newest LOOKED_AT are added up."""
    terms = await read_terms(connection, wanted)
    newest = await find_orders(connection, wanted, LOOKED_AT, terms=terms)
    found = newest.first(limit)
    if before or after:
        found = await find_orders(connection, wanted, limit, past=after or before, newer=after is not None, terms=terms)
    page = await _page(connection, wanted, found, before, after)
    return page, _sums(newest), newest.goes_on is None


async def search_sums(connection: Connection, wanted: OrderFilter) -> tuple[list[Added], bool]:
    """Returns the sums of the orders of a search, by currency, and whether they are complete: only the newest LOOKED_AT are added up."""
    newest = await find_orders(connection, wanted, LOOKED_AT)
    return _sums(newest), newest.goes_on is None


def _sums(found: Found) -> list[Added]:
    return [Added(currency, currency, found.sums[currency]) for currency in sorted(found.sums)]


async def _page(
    connection: Connection, wanted: OrderFilter, found: Found, before: Position | None, after: Position | None
) -> OrderPage:
    orders = await read_listed(connection, wanted.customer_id, found.places)
    goes_on = None if found.goes_on is None else found.goes_on.order_id
    if after is not None:
        return OrderPage(orders, found.places[-1].order_id if found.places else None, goes_on)
    first = found.places[0].order_id if found.places else None
    return OrderPage(orders, goes_on, first if before is not None else None)


async def read_listed(connection: Connection, customer_id: int, places: Sequence[Position]) -> list[ListedOrder]:
    """Returns the orders of a customer at these positions, in the order of the positions."""
    rows = await connection.fetch(_LISTED, customer_id, [place.order_id for place in places])
    by_id = {row["order_id"]: row for row in rows}
    orders = [_listed(by_id[place.order_id]) for place in places if place.order_id in by_id]
    if len(orders) > _FRESH_AT_ONCE:
        return orders
    new = {row["order_id"] for row in rows if row["state"] is None}
    return await _as_they_stand(connection, customer_id, orders, new)


async def list_selected(connection: Connection, wanted: OrderFilter, references: Sequence[str]) -> list[ListedOrder]:
    """Returns the orders of these references that pass the filter's customer, environment and person, the newest first."""
    rows = await connection.fetch(
        _SELECTED, wanted.customer_id, wanted.environment, list(references), wanted.group.user_id
    )
    return await read_listed(connection, wanted.customer_id, [Position(*row) for row in rows])


def _listed(row: Row) -> ListedOrder:
    columns = dict(row)
    name, email = columns.pop("recipient_name"), columns.pop("recipient_email")
    columns["recipient"] = None if email is None or is_erased(email) else name or email
    columns["state"] = columns["state"] or OrderState.WAITING
    return ListedOrder(**columns)


# A join with the ids would read all orders of the customer: a plan for any customer expects each to have few.
# Rows that may be on a node are read in their own part of the statement. Mail counts as pending from the moment it is due.
_LISTED = """
    WITH o AS MATERIALIZED (
        SELECT o.id, o.reference, nullif(o.external_reference, o.reference) AS external_reference, o.product_id, o.collection_id,
               o.recipient_count AS recipients, o.delivery_mode = 'manual' AS is_batch, o.currency, o.source,
               coalesce(u.name, s.name, '') AS placed_by, a.name AS account, o.created_at, o.scheduled_for, o.code_count,
               o.value_minor, o.total_minor, l.recipient_email, l.recipient_name,
               j.fanned_out_at IS NULL AND j.due_at <= (SELECT clock_now()) AS is_mail_due
        FROM orders AS o
        LEFT JOIN lines AS l ON l.customer_id = $1 AND l.order_id = o.id AND l.number = 1
        LEFT JOIN mail_jobs AS j ON j.customer_id = $1 AND j.order_id = o.id
        LEFT JOIN service_accounts AS s ON s.id = o.service_account_id
        LEFT JOIN users AS u ON u.id = o.user_id
        LEFT JOIN accounts AS a ON a.customer_id = $1 AND a.id = o.account_id
        WHERE o.customer_id = $1 AND o.id = ANY($2::int[]))
    SELECT o.id AS order_id, o.reference, o.external_reference, o.recipient_email, o.recipient_name,
           coalesce(p.name, c.name, '') AS gift, coalesce(o.product_id, o.collection_id) AS gift_id, p.picture,
           o.value_minor, o.created_at, o.scheduled_for, r.state,
           CASE WHEN o.is_mail_due THEN 'pending' ELSE (
               SELECT m.state FROM messages AS m
               WHERE m.customer_id = $1 AND m.order_id = o.id AND m.state IN ('pending', 'held')
               ORDER BY m.state LIMIT 1) END AS mail,
           o.code_count AS codes,
           coalesce(r.claimed, 0) AS claimed, coalesce(r.cancelled, 0) AS cancelled, coalesce(r.bounced, 0) AS bounced,
           o.recipients, o.is_batch, o.total_minor AS spent_minor, o.currency, o.source, o.placed_by, o.account,
           k.name AS campaign
    FROM o LEFT JOIN report_orders AS r ON r.customer_id = $1 AND r.order_id = o.id
    LEFT JOIN products AS p ON p.id = o.product_id
    LEFT JOIN collections AS c ON c.id = o.collection_id
    LEFT JOIN campaigns AS k ON o.source = 'campaign' AND k.customer_id = $1 AND k.order_reference = o.reference
"""


async def _as_they_stand(
    connection: Connection, customer_id: int, orders: list[ListedOrder], new: set[int]
) -> list[ListedOrder]:
    """Returns the orders with their current state if the read models are behind, so that people see their own changes at once.

    `new` are the ids of orders that the read models do not have yet.
    """
    listed = [order.order_id for order in orders]
    changed = new | {row["order_id"] for row in await connection.fetch(_CHANGED, customer_id, listed)}
    if not changed:
        return orders
    facts = await read_facts(connection, [(customer_id, one) for one in sorted(changed)], [customer_id])
    return [_as_it_stands(customer_id, order, facts) if order.order_id in changed else order for order in orders]


def _as_it_stands(customer_id: int, order: ListedOrder, facts: Facts) -> ListedOrder:
    moves = facts.moves.get(order.order_id) or Moves()
    claimed, cancelled = sum(moves.claims.values()), sum(moves.cancellations.values())
    bounced = facts.bounced.get(order.order_id, 0)
    state = state_of(
        codes=order.codes,
        claimed=claimed,
        cancelled=cancelled,
        is_scheduled=facts.orders[customer_id, order.order_id]["is_scheduled"],
        bounced=bounced,
    )
    return msgspec.structs.replace(order, state=state, claimed=claimed, cancelled=cancelled, bounced=bounced)


# The orders $2 that are among the customer's newest changes.
_CHANGED = """
    SELECT order_id FROM (
        SELECT order_id FROM order_changes WHERE customer_id = $1 ORDER BY id DESC LIMIT 1000) AS newest
    WHERE order_id = ANY($2::int[])
"""


class Choices(msgspec.Struct, frozen=True):
    """The values of a customer's filters, by name: pairs of a value and its label."""

    sources: list[tuple[str, str]]
    gifts: list[tuple[str, str]]  # `product-7` or `collection-3`
    accounts: list[tuple[str, str]]
    placed_by: list[tuple[str, str]]  # `key-7` for a service account, or `person-3`


async def read_choices(
    connection: Connection, place: Place, *, user_id: int | None = None, is_all: bool = False
) -> Choices:
    """Returns the values that a customer's orders, or those of a user, can be filtered by. They are of the newest groups, or with `is_all` of all."""
    rows = await connection.fetch(_CHOICES, *place, None if is_all else MAX_CHOICES, user_id)
    named: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in rows:
        if row["name"]:
            named[row["of"]].append((row["key"], row["name"]))
    return Choices(*(sorted(named[of], key=_by_name) for of in ("sources", "gifts", "accounts", "placed_by")))


# Reads the groups only once, and each name only once.
_CHOICES = """
    WITH g AS MATERIALIZED (
        SELECT source, product_id, collection_id, account_id, service_account_id, user_id FROM report_groups
        WHERE customer_id = $1 AND environment = $2 AND ($4::int IS NULL OR user_id = $4) ORDER BY id DESC LIMIT $3)
    SELECT DISTINCT 'sources' AS of, source AS key, source AS name FROM g
    UNION ALL
    SELECT 'gifts', 'product-' || id, name FROM products WHERE id IN (SELECT product_id FROM g)
    UNION ALL
    SELECT 'gifts', 'collection-' || id, name FROM collections WHERE id IN (SELECT collection_id FROM g)
    UNION ALL
    SELECT 'accounts', id::text, name FROM accounts WHERE customer_id = $1 AND id IN (SELECT account_id FROM g)
    UNION ALL
    SELECT 'placed_by', 'person-' || id, name FROM users WHERE id IN (SELECT user_id FROM g)
    UNION ALL
    SELECT 'placed_by', 'key-' || id, name FROM service_accounts WHERE id IN (SELECT service_account_id FROM g)
"""


def _by_name(pair: tuple[str, str]) -> tuple[str, str]:
    return pair[1].casefold(), pair[0]


MAX_LINES = 10_000  # lines of the orders that are searched, unless the first order has more

# Compares names and addresses without letter case and accents, as `folded` does with the words of the search.
_FIND = """
    SELECT order_id, recipient_email AS email, recipient_name AS name, min(number) AS number
    FROM lines
    WHERE customer_id = $1 AND order_id = ANY($2::int[]) AND recipient_email IS NOT NULL
      AND replace(lower(regexp_replace(
              normalize(concat_ws(' ', recipient_name, recipient_email), NFKD), '[\u0300-\u036f]', '', 'g')), 'ß', 'ss')
          LIKE ALL($3::text[])
    GROUP BY order_id, recipient_email, recipient_name
    ORDER BY order_id DESC, number LIMIT $4
"""


class FoundRecipient(msgspec.Struct, frozen=True):
    """A recipient of an order."""

    order: ListedOrder
    email: str
    name: str | None


async def find_recipients(
    connection: Connection, customer_id: int, orders: Sequence[ListedOrder], search: str, limit: int
) -> list[FoundRecipient]:
    """Returns recipients of these orders whose name or address contains each word of a search, those of the newest order first.

    `orders` must be newest first. If they have too many lines, only the newest orders are read.
    """
    looked_at = {order.order_id: order for order in _first(orders)}
    patterns = [like_containing(word) for word in search_words(search)[:MAX_TERMS] if words_of(word)]
    if not looked_at or not patterns:
        return []
    rows = await connection.fetch(_FIND, customer_id, list(looked_at), patterns, limit)
    return [
        FoundRecipient(looked_at[row["order_id"]], row["email"], row["name"])
        for row in rows
        if not is_erased(row["email"])
    ]


def _first(orders: Sequence[ListedOrder]) -> Iterator[ListedOrder]:
    lines = 0
    for order in orders:
        lines += order.codes
        if lines > MAX_LINES and lines > order.codes:
            return
        if not order.is_batch:
            yield order
