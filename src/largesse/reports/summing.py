"""Adding orders up, by what they have in common or by time: from the sums, so that it does not matter how many orders there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import chain
from typing import Any

from largesse.database import Connection
from largesse.reports.filters import OrderFilter
from largesse.reports.finding import find_orders
from largesse.reports.searching import LOOKED_AT
from largesse.reports.standing import SUMS, OrderState, Sums

_FIRST, _LAST = date(1, 1, 1), date(9999, 12, 31)
# What sums may be told apart by, and how.
BY = {
    "currency": "g.currency",
    "day": "s.day",
    "month": "date_trunc('month', s.day)::date",
    "source": "g.source",
    # As `listing.Choices` spells them.
    "gift": "CASE WHEN g.product_id <> 0 THEN 'product-' || g.product_id ELSE 'collection-' || g.collection_id END",
    "placed_by": "CASE WHEN g.user_id <> 0 THEN 'person-' || g.user_id ELSE 'key-' || g.service_account_id END",
    "account": "g.account_id",
    "service_account": "g.service_account_id",
    "user": "g.user_id",
    "state": "s.state",
}


@dataclass(frozen=True, slots=True)
class Added:
    """The sums of what is alike: `key` says in what, and all of it is in one currency."""

    key: Any
    currency: str
    sums: Sums


async def add_up(connection: Connection, wanted: OrderFilter, by: str = "currency") -> list[Added]:
    """The sums of the orders that pass a filter, told apart by one of BY and by currency, in the order of both.

    Claims and cancellations are those of the filter's days, of whatever day their orders are. A filter that searches for words
    cannot be added up.
    """
    assert not wanted.search.strip(), "words have no sums"
    parts = list(_parts(wanted.since or _FIRST, wanted.until or _LAST, by_day=by == "day"))
    read = " UNION ALL ".join(
        _SUMS_OF_PART.format(*range(at, at + 3)) for at in range(4, 4 + 3 * len(parts), 3)
    )
    said = wanted.group.said
    having = "".join(f" AND g.{name} = ${at}" for at, name in enumerate(said, 4 + 3 * len(parts)))
    # Sums and groups are each read once. How few of them policies let through is not known to the planner, which else looks for the sums of
    # one group after another.
    await connection.execute("SET LOCAL enable_nestloop = off")
    rows = await connection.fetch(
        f"""
        SELECT {BY[by]} AS key, g.currency, {", ".join(f"sum(s.{name})::bigint AS {name}" for name in SUMS)}
        FROM ({read}) AS s JOIN report_groups AS g ON g.customer_id = $1 AND g.id = s.group_id
        WHERE g.environment = $2 {having}
        GROUP BY 1, 2 ORDER BY 1, 2
        """,  # noqa: S608 - constants
        wanted.customer_id,
        wanted.environment,
        list(wanted.states or OrderState),
        *chain.from_iterable(parts),
        *said.values(),
    )
    await connection.execute("SET LOCAL enable_nestloop = on")
    return [Added(row["key"], row["currency"], Sums(*(row[name] for name in SUMS))) for row in rows]


# Its grain, and its days from the first to before the last.
_SUMS_OF_PART = f"""
    SELECT group_id, state, day, {", ".join(SUMS)} FROM report_sums
    WHERE customer_id = $1 AND state = ANY($3::text[]) AND grain = ${{}} AND day >= ${{}} AND day < ${{}}
"""  # noqa: S608 - constants


def together(added: Iterable[Added]) -> list[Added]:
    """The same, told apart by currency alone: what `add_up` would give for it, without reading the sums again."""
    sums: dict[str, Sums] = defaultdict(Sums)
    for one in added:
        sums[one.currency].add(one.sums)
    return [Added(currency, currency, sums[currency]) for currency in sorted(sums)]


def _parts(since: date, until: date, *, by_day: bool) -> Iterator[tuple[str, date, date]]:
    """Days from `since` to `until` as whole months and the days around them: grain, first day, day after the last."""
    end = until if until == _LAST else until + timedelta(days=1)
    first_month = since if since.day == 1 else _next_month(since)
    end_months = end.replace(day=1)
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


async def add_up_found(connection: Connection, wanted: OrderFilter) -> tuple[list[Added], bool]:
    """The sums by currency of the orders that a search finds, and whether these are all: of many, the newest are added up."""
    found = await find_orders(connection, wanted, LOOKED_AT)
    rows = await connection.fetch(
        """
        SELECT g.currency, count(*) AS orders, sum(o.codes)::bigint AS codes, sum(o.spent_minor)::bigint AS spent_minor
        FROM unnest($2::int[]) AS found (order_id)
        JOIN report_orders AS o ON o.customer_id = $1 AND o.order_id = found.order_id
        JOIN report_groups AS g ON g.customer_id = $1 AND g.id = o.group_id
        GROUP BY 1 ORDER BY 1
        """,
        wanted.customer_id,
        [place.order_id for place in found.places],
    )
    sums = [Added(row[0], row[0], Sums(orders=row[1], codes=row[2], spent_minor=row[3])) for row in rows]
    return sums, found.goes_on is None
