"""Finds orders: the newest that pass a filter, from a position on, at a cost that does not depend on their number.

Each list is read from an index in the order of the list. For a filter of groups, the newest order of each group is read first, and then only
the groups with the newest orders. A search for words reads the orders of the rarest word, a bounded number at a time. A caller can continue
from there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta

import msgspec
from msgspec.structs import replace

from largesse.db.fragments import NOTHING, Fragment, compose, join
from largesse.db.pool import Connection, Row
from largesse.reports.filters import OrderFilter, Position, having
from largesse.reports.search import LOOKED_AT, Candidates, Term, read_candidates, read_orders_among, read_terms
from largesse.reports.sums import OrderState, Sums

_PLACE = "SELECT created_at FROM report_orders WHERE customer_id = $1 AND environment = $2 AND order_id = $3::bigint"

_EARLIEST = datetime(1, 1, 1, tzinfo=UTC)
_LATEST = datetime(9999, 1, 1, tzinfo=UTC)


class Found(msgspec.Struct, frozen=True):
    """Orders that pass a filter, newest first. `goes_on` is where to continue in the requested direction.

    A search may have to continue although it has found nothing so far. `sums` are the sums of the found orders, by currency.
    """

    places: list[Position]
    goes_on: Position | None = None
    sums: dict[str, Sums] = {}

    def first(self, limit: int) -> Found:
        """Returns the result of the same search with a lower limit."""
        return Found(self.places[:limit], self.places[limit - 1]) if len(self.places) > limit else self


async def place_of(connection: Connection, wanted: OrderFilter, order_id: int) -> Position | None:
    """Returns the position of an order in lists; None if the customer has no such order in this environment."""
    created_at = await connection.fetchval(_PLACE, wanted.customer_id, wanted.environment, order_id)
    return Position(created_at, order_id) if created_at else None


async def find_orders(
    connection: Connection,
    wanted: OrderFilter,
    limit: int,
    *,
    past: Position | None = None,
    newer: bool = False,
    terms: Sequence[Term] | None = None,
) -> Found:
    """Returns at most `limit` orders that pass the filter: the newest, the next older ones from a position on, or the next `newer` ones.

    `terms` are the terms of the filter's search, if they were read before.
    """
    reach = _Reach(wanted, past, newer=newer)
    if wanted.search.strip():
        if terms is None:
            terms = await read_terms(connection, wanted)
        found = await _search(connection, wanted, terms, limit, reach)
    else:
        said = wanted.group.said
        query = _grouped(wanted, reach) if said else _of_states(reach) if wanted.states else _plain(reach)
        rows = await connection.fetch(
            query,
            wanted.customer_id,
            wanted.environment,
            *reach.arguments,
            limit + 1,
            *((list(wanted.states or OrderState), *said.values()) if said or wanted.states else ()),
        )
        places = [Position(*row) for row in rows]
        found = Found(places[:limit], places[limit - 1] if len(places) > limit else None)
    return replace(found, places=found.places[::-1]) if newer else found


# With a filter, only so many of the newest orders are sorted by total; without one, an index sorts all.
MOST_SORTED = 1_000


class Sorted(msgspec.Struct, frozen=True):
    """Orders sorted by total. `goes_on` is where to continue in the requested direction."""

    places: list[Position]
    goes_on: Position | None
    is_all: bool  # whether all orders that pass the filter were sorted


async def find_by_total(
    connection: Connection, wanted: OrderFilter, limit: int, *, past: int | None, falling: bool, is_back: bool = False
) -> Sorted:
    """Returns at most `limit` orders that pass the filter, by total and id: the first, or those after the order `past`; with `is_back`, those before it.

    Without a filter, an index sorts all orders. With one, only the newest MOST_SORTED orders are sorted.
    """
    falls, is_all = falling is not is_back, True
    if wanted.search.strip() or wanted.group.said or wanted.states or wanted.since or wanted.until:
        newest = await find_orders(connection, wanted, MOST_SORTED)
        rows = await connection.fetch(_TOTALS, wanted.customer_id, [place.order_id for place in newest.places])
        keys = sorted((tuple(row) for row in rows), reverse=falls)
        if past is not None:
            keys = keys[next((at for at, key in enumerate(keys, 1) if key[1] == past), len(keys)) :]
        places = {place.order_id: place for place in newest.places}
        found, is_all = [places[order_id] for _, order_id in keys[: limit + 1]], newest.goes_on is None
    else:
        end = (_HIGHEST if falls else -1, 0)
        if past is not None and (row := await connection.fetchrow(_TOTALS, wanted.customer_id, [past])):
            end = (row["spent_minor"], row["order_id"])
        rows = await connection.fetch(_BY_TOTAL[falls], wanted.customer_id, wanted.environment, *end, limit + 1)
        found = [Position(*row) for row in rows]
    goes_on = found[limit - 1] if len(found) > limit else None
    return Sorted(found[:limit][::-1] if is_back else found[:limit], goes_on, is_all)


_HIGHEST = 2**63 - 1
_TOTALS = "SELECT spent_minor, order_id FROM report_orders WHERE customer_id = $1 AND order_id = ANY($2::int[])"


def _by_total(sign: Fragment, order: Fragment) -> Fragment:
    return compose(
        """
        SELECT created_at, order_id FROM report_orders
        WHERE customer_id = $1 AND environment = $2 AND (spent_minor, order_id) {sign} ($3, $4)
        ORDER BY spent_minor {order}, order_id {order} LIMIT $5
        """,
        sign=sign,
        order=order,
    )


# A customer's orders by total, after one of them. The key says whether totals descend.
_BY_TOTAL = {True: _by_total(Fragment("<"), Fragment("DESC")), False: _by_total(Fragment(">"), Fragment("ASC"))}


# The sort order of a list and its bounds: $3 is the far end, and the row ($4, $5) the near end, at which the index begins.
# The third part compares with the nearer of two far ends, of which the second may be null.
_NEWER = (
    Fragment("created_at, order_id"),
    Fragment("created_at < $3 AND (created_at, order_id) > ($4, $5)"),
    Fragment("<= least"),
)
_OLDER = (
    Fragment("created_at DESC, order_id DESC"),
    Fragment("created_at >= $3 AND (created_at, order_id) < ($4, $5)"),
    Fragment(">= greatest"),
)


class _Reach:
    """The bounds and the direction of a list: conditions on `created_at` and `order_id` as SQL, from $3 to $5."""

    def __init__(self, wanted: OrderFilter, past: Position | None, *, newer: bool) -> None:
        since, until = _instant(wanted.since, _EARLIEST), _instant(_day_after(wanted.until), _LATEST)
        self.order, self.bounds, self.up_to = _NEWER if newer else _OLDER
        if past is None:
            past = Position(_EARLIEST if newer else _LATEST, 0)
        self._newer, self._far = newer, until if newer else since
        self._near = max(past, Position(since, -1)) if newer else min(past, Position(until, -1))
        self.arguments = (self._far, *self._near)

    def candidates(self, places: Iterable[Position]) -> Candidates | None:
        """Returns the `places` that are within the bounds; None if there are none."""
        if self._newer:
            within = sorted(place for place in places if self._near < place and place.created_at < self._far)
        else:
            within = sorted(place for place in places if place < self._near and place.created_at >= self._far)
        if not within:
            return None
        earliest, latest = within[0].created_at, within[-1].created_at
        return Candidates([place.order_id for place in (within if self._newer else within[::-1])], earliest, latest)

    def last(self, candidates: Candidates) -> Position:
        """Returns the position of the last of `candidates`, from which a search goes on."""
        return Position(candidates.latest if self._newer else candidates.earliest, candidates.order_ids[-1])


def _plain(reach: _Reach) -> Fragment:
    return compose(
        """
        SELECT created_at, order_id FROM report_orders
        WHERE customer_id = $1 AND environment = $2 AND {bounds} ORDER BY {order} LIMIT $6
    """,
        bounds=reach.bounds,
        order=reach.order,
    )


def _of_states(reach: _Reach) -> Fragment:
    """Returns SQL for orders with the states $7, without a filter of groups."""
    return compose(
        """
        SELECT o.created_at, o.order_id FROM unnest($7::text[]) AS s (state)
        CROSS JOIN LATERAL (
            SELECT created_at, order_id FROM report_orders
            WHERE customer_id = $1 AND environment = $2 AND state = s.state AND {bounds} ORDER BY {order} LIMIT $6) AS o
        ORDER BY {order} LIMIT $6
    """,
        bounds=reach.bounds,
        order=reach.order,
    )


def _grouped(wanted: OrderFilter, reach: _Reach) -> Fragment:
    """Returns SQL for orders with the states $7 and the values of groups in the following placeholders.

    A few orders of each group show how far back the list goes at most (`cut`). No older orders are read.
    """

    def one(of: Fragment, more: Fragment = NOTHING) -> Fragment:
        return compose(
            """
            SELECT created_at, order_id FROM report_orders
            WHERE customer_id = $1 AND group_id = {of}.id AND state = {state}.state AND {bounds} {more} ORDER BY {order}
            """,
            of=of,
            state=Fragment("s") if of == "g" else of,
            bounds=reach.bounds,
            more=more,
            order=reach.order,
        )

    return compose(
        """
        WITH heads AS MATERIALIZED (
            SELECT g.id, s.state FROM report_groups AS g
            CROSS JOIN unnest($7::text[]) AS s (state)
            CROSS JOIN LATERAL ({of_group} LIMIT 1) AS head
            WHERE g.customer_id = $1 AND g.environment = $2 {having}
            ORDER BY {order} LIMIT $6),
        cut AS MATERIALIZED (
            SELECT o.created_at FROM heads AS h
            CROSS JOIN LATERAL (
                {of_head} LIMIT (SELECT greatest(8, 4 * $6 / greatest(count(*), 1)) FROM heads)) AS o
            ORDER BY {order} OFFSET $6 - 1 LIMIT 1)
        SELECT o.created_at, o.order_id FROM heads AS h
        CROSS JOIN LATERAL (
            {of_head_up_to} LIMIT $6) AS o
        ORDER BY {order} LIMIT $6
        """,
        of_group=one(Fragment("g")),
        of_head=one(Fragment("h")),
        of_head_up_to=one(
            Fragment("h"),
            # Not coalesce(): under row-level security, a condition with it could not use the index.
            compose("AND created_at {up_to}($3, (SELECT created_at FROM cut))", up_to=reach.up_to),
        ),
        having=having(wanted.group.said, 8),
        order=reach.order,
    )


async def _search(
    connection: Connection, wanted: OrderFilter, terms: Sequence[Term], limit: int, reach: _Reach
) -> Found:
    common = [term for term in terms if term.orders is None]
    few = [term.orders for term in terms if term.orders is not None]
    # If nothing else filters the orders, only as many are read as are needed.
    is_all_asked = len(common) == 1 and not (few or wanted.group.said or wanted.states)
    looked_at = min(limit + 1, LOOKED_AT) if is_all_asked else LOOKED_AT
    candidates, end = None, None
    if few:
        candidates = reach.candidates(frozenset.intersection(*few))
    elif common:
        candidates = await read_candidates(
            connection, wanted, common.pop(0), reach.bounds, reach.order, reach.arguments, looked_at
        )
        if candidates is not None and len(candidates.order_ids) == looked_at:
            end = reach.last(candidates)
    if candidates is None:
        return Found([])
    likely, common = await _narrow(connection, wanted, candidates, common)
    passing = await _passing(connection, wanted, likely, common, limit + 1)
    places = [Position(row[0], row[1]) for row in passing[:limit]]
    return Found(places, places[-1] if len(passing) > limit else end, _sums(passing[:limit]))


async def _narrow(
    connection: Connection, wanted: OrderFilter, candidates: Candidates, terms: Sequence[Term]
) -> tuple[list[int], list[Term]]:
    """Returns the ids of candidates that may have a word of each term, and the terms that must still be checked for each candidate.

    To check a term of many words, each word is looked up for each candidate. If few orders of that time have any of the words, reads these
    orders instead.
    """
    order_ids, left = candidates.order_ids, []
    for term in terms:
        known = None
        if len(order_ids) * len(term.words) > LOOKED_AT:
            known = await read_orders_among(connection, wanted, term, candidates)
        if known is None:
            left.append(term)
        else:
            order_ids = [order_id for order_id in order_ids if order_id in known]
    return order_ids, left


_HAS_WORD = """
    AND EXISTS (
        SELECT FROM report_words AS w
        WHERE w.customer_id = $1 AND w.environment = $2 AND w.word = ANY(${at}::text[])
          AND w.created_at = o.created_at AND w.order_id = o.order_id OFFSET 0)
"""


async def _passing(
    connection: Connection, wanted: OrderFilter, order_ids: list[int], terms: Sequence[Term], limit: int
) -> Sequence[Row]:
    """Returns the first `limit` of these orders that pass the filter and have a word of each term, with their values for the sums."""
    said = wanted.group.said
    # OFFSET makes the planner look up each candidate separately. Otherwise it would read all orders of a word or group: it expects few.
    found_by = [compose(_HAS_WORD, at=at) for at, _ in enumerate(terms, 6 + len(said))]
    return await connection.fetch(
        compose(
            """
        SELECT o.created_at, o.order_id, o.codes, o.spent_minor, g.currency
        FROM unnest($3::int[]) WITH ORDINALITY AS candidate (order_id, at)
        CROSS JOIN LATERAL (
            SELECT * FROM report_orders WHERE customer_id = $1 AND order_id = candidate.order_id OFFSET 0) AS o
        CROSS JOIN LATERAL (
            SELECT * FROM report_groups WHERE customer_id = $1 AND id = o.group_id OFFSET 0) AS g
        WHERE o.environment = $2 AND o.state = ANY($4::text[]) {having} {found_by}
        ORDER BY candidate.at LIMIT $5
        """,
            having=having(wanted.group.said, 6),
            found_by=join(NOTHING, found_by),
        ),
        wanted.customer_id,
        wanted.environment,
        order_ids,
        list(wanted.states or OrderState),
        limit,
        *said.values(),
        *(term.words for term in terms),
    )


def _sums(passing: Iterable[Row]) -> dict[str, Sums]:
    sums: dict[str, Sums] = defaultdict(Sums)
    for _, _, codes, spent_minor, currency in passing:
        of_currency = sums[currency]
        of_currency.orders += 1
        of_currency.codes += codes
        of_currency.spent_minor += spent_minor
    return sums


def _instant(day: date | None, otherwise: datetime) -> datetime:
    return otherwise if day is None else datetime.combine(day, time(), UTC)


def _day_after(day: date | None) -> date | None:
    return None if day is None or day == date.max else day + timedelta(days=1)
