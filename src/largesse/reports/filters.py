"""Filters of orders, the sums of the orders that pass one, and the views that people save of them.

Sums come from the read models, so the number of orders does not matter.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from largesse.base import clock
from largesse.base.errors import InvalidRequest, NotFound
from largesse.customers.actor import Actor
from largesse.customers.roles import Right
from largesse.db.fragments import NOTHING, Fragment, compose, each, identifier, join, names
from largesse.db.pool import Connection
from largesse.db.scope import Place
from largesse.db.statements import planned_at_once
from largesse.reports.sums import SUMS, OrderState, Sums


class GroupFilter(msgspec.Struct, frozen=True, kw_only=True):
    """A filter of orders by their group. None matches any value, 0 matches orders without one."""

    currency: str | None = None
    source: str | None = None
    product_id: int | None = None
    collection_id: int | None = None
    account_id: int | None = None
    service_account_id: int | None = None
    user_id: int | None = None

    @property
    def said(self) -> dict[str, str | int]:
        """The values that are not None, by the name of the column in `report_groups`."""
        return {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}


class OrderFilter(msgspec.Struct, frozen=True, kw_only=True):
    """A filter of the orders of a customer and environment. Days are in UTC, the first and the last included."""

    customer_id: int
    environment: str
    group: GroupFilter = GroupFilter()
    states: tuple[OrderState, ...] = ()  # empty for any state
    since: date | None = None
    until: date | None = None
    search: str = ""  # each of its words must be found in the order


class Position(NamedTuple):
    """The position of an order in lists, which are newest first."""

    created_at: datetime
    order_id: int


_FIRST, _LAST = date(1, 1, 1), date(9999, 12, 31)
# The groupings of sums, each with its SQL.
BY = {
    "currency": Fragment("g.currency"),
    "day": Fragment("s.day"),
    "month": Fragment("date_trunc('month', s.day::timestamp)::date"),
    "source": Fragment("g.source"),
    # In the same form as in `listing.Choices`.
    "gift": Fragment(
        "CASE WHEN g.product_id <> 0 THEN 'product-' || g.product_id ELSE 'collection-' || g.collection_id END"
    ),
    "placed_by": Fragment(
        "CASE WHEN g.user_id <> 0 THEN 'person-' || g.user_id ELSE 'key-' || g.service_account_id END"
    ),
    "account": Fragment("g.account_id"),
    "service_account": Fragment("g.service_account_id"),
    "user": Fragment("g.user_id"),
    "state": Fragment("s.state"),
}


class Added(msgspec.Struct, frozen=True):
    """The sums of orders with the same `key` and currency."""

    key: Any
    currency: str
    sums: Sums


async def add_up(
    connection: Connection, wanted: OrderFilter, by: str = "currency", *, only: Sequence[str] = SUMS
) -> list[Added]:
    """Returns the sums of the orders that pass a filter, grouped by one of BY and by currency, in the order of both.

    `only` names the sums to read, which is faster; the others are 0. Claims and cancellations count on the day they happened, even if the order
    is from another day. Does not take a filter with a search.
    """
    assert not wanted.search.strip(), "words have no sums"
    parts = list(_parts(wanted.since or _FIRST, wanted.until or _LAST, by_day=by == "day"))
    said = wanted.group.said
    async with planned_at_once(connection):
        rows = await connection.fetch(
            _statement(by, tuple(only), len(parts), tuple(said)),
            wanted.customer_id,
            wanted.environment,
            list(wanted.states or OrderState),
            *chain.from_iterable(parts),
            *said.values(),
        )
    added = [Added(row["key"], row["currency"], Sums(**{name: row[name] for name in only})) for row in rows]
    return sorted(added, key=lambda one: (one.key, one.currency))


async def read_corrected(connection: Connection, wanted: OrderFilter) -> dict[str, int]:
    """Returns by currency what corrections refunded, in minor units, of orders of some states, of a person or of all. Other filters do not count.

    Corrections refund claimed gifts. So the value of unclaimed gifts is what their orders cost, without the claimed value and the refunds, and
    with this amount.
    """
    customer_id = wanted.customer_id
    refunded = {
        row["order_reference"]: row["minor"]
        for row in await connection.fetch(_REFUNDED, customer_id, wanted.environment)
    }
    if not refunded:
        return {}
    orders = await connection.fetch(_ORDERS, customer_id, list(refunded), wanted.group.user_id)
    in_state = await connection.fetch(_IN_STATE, customer_id, [one["id"] for one in orders], list(wanted.states))
    ids = {row["order_id"] for row in in_state}
    added: dict[str, int] = defaultdict(int)
    for one in orders:
        if one["id"] in ids:
            added[one["currency"]] += refunded[one["reference"]]
    return added


# A cluster does not join its own tables with those on nodes, so these are three statements.
_REFUNDED = """
    SELECT order_reference, sum(amount_minor)::bigint AS minor FROM corrections
    WHERE customer_id = $1 AND environment = $2 AND order_reference IS NOT NULL AND state = 'approved' GROUP BY 1
"""
_ORDERS = """
    SELECT id, reference, currency FROM orders
    WHERE customer_id = $1 AND reference = ANY($2::text[]) AND ($3::int IS NULL OR user_id = $3)
"""
_IN_STATE = """
    SELECT order_id FROM report_orders WHERE customer_id = $1 AND order_id = ANY($2::int[]) AND state = ANY($3::text[])
"""


@lru_cache(maxsize=500)
def _statement(by: str, only: Sequence[str], parts: int, said: Collection[str]) -> Fragment:
    """Returns the SQL that adds up the sums of a period with this number of parts. `said` names the columns that the filter limits."""
    read = join(
        Fragment(" UNION ALL "),
        [
            compose(_SUMS_OF_PART, sums=names(only), grain=at, first=at + 1, end=at + 2)
            for at in range(4, 4 + 3 * parts, 3)
        ],
    )
    if by not in {"day", "month"}:
        columns = names(["group_id", "state"] if by == "state" else ["group_id"])
        read = compose(_OF_GROUPS, columns=columns, sums=each("sum({name})::bigint AS {name}", only), read=read)
    return compose(
        _ADD_UP,
        key=BY[by],
        sums=each("sum(s.{name})::bigint AS {name}", only),
        read=read,
        having=having(said, 4 + 3 * parts),
    )


_ADD_UP = """
    SELECT {key} AS key, g.currency, {sums}
    FROM ({read}) AS s JOIN report_groups AS g ON g.customer_id = $1 AND g.id = s.group_id
    WHERE g.environment = $2 {having}
    GROUP BY 1, 2
"""
# Adds up each group before the join, which takes a third less time. Not by day, which would leave as many rows.
_OF_GROUPS = "SELECT {columns}, {sums} FROM ({read}) AS part GROUP BY {columns}"
# Sums of one grain, from a first day to before another.
_SUMS_OF_PART = """
    SELECT group_id, state, day, {sums} FROM report_sums
    WHERE customer_id = $1 AND state = ANY($3::text[]) AND grain = ${grain} AND day >= ${first} AND day < ${end}
"""


def having(said: Iterable[str], first: int) -> Fragment:
    """Returns SQL for the conditions on columns of groups `g`, to add to other conditions. The values begin at placeholder `first`."""
    conditions = [compose(" AND g.{name} = ${at}", name=identifier(name), at=at) for at, name in enumerate(said, first)]
    return join(NOTHING, conditions)


def together(added: Iterable[Added]) -> list[Added]:
    """Groups sums by currency alone: the same as `add_up` by currency, without reading the sums again."""
    sums: dict[str, Sums] = defaultdict(Sums)
    for one in added:
        sums[one.currency].add(one.sums)
    return [Added(currency, currency, sums[currency]) for currency in sorted(sums)]


def _parts(since: date, until: date, *, by_day: bool) -> Iterator[tuple[str, date, date]]:
    """Splits the days from `since` to `until` into whole months and the days around them: grain, first day, day after the last.

    The current month counts as whole, as later days have no sums.
    """
    if not by_day and (today := clock.now().date()) <= until:
        until = max(until, _next_month(today) - timedelta(days=1))
    end = until if until == _LAST else until + timedelta(days=1)
    end_months = end.replace(day=1)
    first_month = since if since.day == 1 or since >= end_months else _next_month(since)
    if by_day or first_month >= end_months:
        yield "day", since, end
        return
    if since < first_month:
        yield "day", since, first_month
    yield "month", first_month, end_months
    if end_months < end:
        yield "day", end_months, end


def _next_month(day: date) -> date:
    return (day.replace(day=1) + timedelta(days=32)).replace(day=1)


MOST_VIEWS = 20  # saved views of a person
MAX_NAME = 60  # characters of a view's name
MAX_QUERY = 500  # characters of a view's query


class SavedView(msgspec.Struct, frozen=True):
    """A saved view. `query` has the parameters of the list's address."""

    id: int
    name: str
    query: str


class TooManyViews(InvalidRequest, rule=f"A person has at most {MOST_VIEWS} saved views."):
    """The person has the highest number of views."""


async def list_views(connection: Connection, place: Place, user_id: int) -> list[SavedView]:
    """Returns a person's views in an environment, by name."""
    rows = await connection.fetch(_LIST, *place, user_id)
    return [SavedView(**row) for row in rows]


async def save_view(actor: Actor, name: str, query: str) -> None:
    """Saves a view of the person, and replaces one with the same name. Raises TooManyViews, and InvalidRequest if the name or query is too long."""
    if not 0 < len(name) <= MAX_NAME:
        raise InvalidRequest(f"`name` must have 1 to {MAX_NAME} characters.")
    if len(query) > MAX_QUERY:
        raise InvalidRequest(f"`query` must be at most {MAX_QUERY} characters.")
    async with actor.transaction(Right.SEE_ORDERS) as transaction:
        connection, key = transaction.connection, (actor.customer_id, actor.environment, actor.user_id)
        await connection.execute(_LOCK_PERSON, actor.user_id)
        names = [row["name"] for row in await connection.fetch(_LIST, *key)]
        if name not in names and len(names) >= MOST_VIEWS:
            raise TooManyViews
        await connection.execute(_SAVE, *key, name, query)


async def remove_view(actor: Actor, view_id: int) -> None:
    """Removes a view of the person. Raises NotFound."""
    async with actor.transaction(Right.SEE_ORDERS) as transaction:
        removed = await transaction.connection.fetchval(
            _REMOVE, actor.customer_id, view_id, actor.user_id, actor.environment
        )
    if removed is None:
        raise NotFound("There is no such view.")


_LIST = """
    SELECT id, name, query FROM saved_views WHERE customer_id = $1 AND environment = $2 AND user_id = $3 ORDER BY name, id
"""
# Two views of a person that are saved at once are counted one after the other.
_LOCK_PERSON = "SELECT pg_advisory_xact_lock(hashtextextended('saved_views', $1))"
_SAVE = """
    INSERT INTO saved_views (customer_id, environment, user_id, name, query) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (customer_id, environment, user_id, name) DO UPDATE SET query = excluded.query
"""
_REMOVE = (
    "DELETE FROM saved_views WHERE customer_id = $1 AND id = $2 AND user_id = $3 AND environment = $4 RETURNING id"
)
