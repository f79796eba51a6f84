"""The SQL of the request log."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime

from largesse.db.fragments import Fragment, compose, join
from largesse.db.pool import Connection
from largesse.db.scope import Place
from largesse.db.statements import plan_in_order
from largesse.request_log.model import LoggedRequest, RequestFilter

_AT_ONCE = 1_000
INSERT = """
    INSERT INTO api_requests
        (customer_id, environment, at, key_id, method, route, path, status, problem, duration_us, request_id, address)
    SELECT customer_id, environment, (SELECT clock_now()) - ago_s * interval '1 second', key_id, method, route, path, status, problem, duration_us,
           request_id, address::inet
    FROM unnest($1::int[], $2::text[], $3::float8[], $4::int[], $5::text[], $6::text[], $7::text[], $8::smallint[], $9::text[],
                $10::int[], $11::text[], $12::text[])
            AS new (customer_id, environment, ago_s, key_id, method, route, path, status, problem, duration_us, request_id, address)
"""
_COLUMNS = Fragment("""
    c.key AS customer, r.environment, r.id, r.at, r.method, coalesce(r.path, r.route) AS path, r.route, r.status, r.problem,
    r.duration_us / 1000.0::float8 AS duration_ms, r.request_id, r.key_id, k.key, s.name AS service_account, host(r.address) AS address
""")
_NAMED = Fragment("""
    LEFT JOIN customers c ON c.id = r.customer_id
    LEFT JOIN api_keys k ON k.id = r.key_id AND k.customer_id = r.customer_id
    LEFT JOIN service_accounts s ON s.id = k.service_account_id
""")
# The condition for each filter, and one for no filter, so that all statements have the same parameters.
# Each condition has an index, except the one of the status: under row-level security, a division can use no index.
_FILTERS = (
    (Fragment("r.status / 100 = $5::int"), Fragment("$5::int IS NULL")),
    (Fragment("r.method = $6::text"), Fragment("$6::text IS NULL")),
    (Fragment("r.key_id = $7::int"), Fragment("$7::int IS NULL")),
    (Fragment("r.request_id = $8::text"), Fragment("$8::text IS NULL")),
    (Fragment("r.route = $9::text"), Fragment("$9::text IS NULL")),
    (Fragment("r.path = $10::text"), Fragment("$10::text IS NULL")),
)
_RAREST_FIRST = (3, 5, 4, 2, 1)  # the filters with an index
# Requests that are read for a page with several filters, or with one of the status.
LOOKED_AT = 100_000
ONE = compose(
    "SELECT {columns} FROM api_requests r {named} WHERE r.customer_id = $1 AND r.environment = $2 AND r.id = $3",
    columns=_COLUMNS,
    named=_NAMED,
)


# Two forms of the same condition. The first is for the index of a filter. The second makes the planner use the primary key.
_BEFORE, _ORDER = Fragment("r.environment = $2 AND r.id < $3"), Fragment("r.id DESC")
_BEFORE_BY_ID = Fragment("r.environment >= $2 AND (r.environment, r.id) < ($2, $3)")
_ORDER_BY_ID = Fragment("r.environment DESC, r.id DESC")


def newest(wanted: RequestFilter) -> Fragment:
    """Returns the statement for the newest $4 requests of customer $1 in environment $2 before the id $3, by a filter.

    The values of the filter are the next parameters. Looks at the newest $11 requests that pass the rarest of the conditions with an index.
    """
    return compose(
        """
        SELECT {columns} FROM (
            SELECT * FROM ({looked_at} LIMIT $11) AS r WHERE {filters} ORDER BY {order} LIMIT $4) AS r
        {named} ORDER BY {order}
        """,
        columns=_COLUMNS,
        named=_NAMED,
        looked_at=_looked_at(wanted),
        order=_ORDER_BY_ID if _rarest(wanted) is None else _ORDER,
        filters=_conditions(wanted),
    )


def last(wanted: RequestFilter) -> Fragment:
    """Returns the statement for the id of the last request that `newest` looks at; null if there are no more requests."""
    return compose(
        "SELECT id FROM ({looked_at} OFFSET $11 - 1 LIMIT 1) AS r WHERE $4::int > 0 AND {named}",
        looked_at=_looked_at(wanted),
        # Always true, so that both statements have the same parameters.
        named=join(Fragment(" AND "), [compose("({without} OR true)", without=without) for _, without in _FILTERS]),
    )


def _looked_at(wanted: RequestFilter) -> Fragment:
    first = _rarest(wanted)
    return compose(
        "SELECT * FROM api_requests r WHERE r.customer_id = $1 AND {before} AND {condition} ORDER BY {order}",
        before=_BEFORE_BY_ID if first is None else _BEFORE,
        condition=Fragment("true") if first is None else _FILTERS[first][0],
        order=_ORDER_BY_ID if first is None else _ORDER,
    )


def _rarest(wanted: RequestFilter) -> int | None:
    return next((at for at in _RAREST_FIRST if wanted.values[at] is not None), None)


def since(wanted: RequestFilter, *, of_customer: bool) -> Fragment:
    """Returns the statement for the next $4 requests after the instant $1 and the id $2, of customer $3 or of all, by a filter."""
    return compose(
        """
        SELECT {columns} FROM (
            SELECT * FROM api_requests r WHERE (r.at, r.id) > ($1, $2) AND {customer} AND {filters}
            ORDER BY r.at, r.id LIMIT $4) AS r
        {named} ORDER BY r.at, r.id
        """,
        columns=_COLUMNS,
        named=_NAMED,
        customer=Fragment("r.customer_id = $3::int") if of_customer else Fragment("$3::int IS NULL"),
        filters=_conditions(wanted),
    )


def _conditions(wanted: RequestFilter) -> Fragment:
    pairs = zip(_FILTERS, wanted.values, strict=True)
    return join(Fragment(" AND "), [without if value is None else given for (given, without), value in pairs])


async def list_newest(
    connection: Connection, place: Place, wanted: RequestFilter, *, before: int, limit: int
) -> tuple[list[LoggedRequest], int | None]:
    """Returns the newest requests before an id, at most `limit`, and the id where the next page begins.

    With several filters, or one of the status, it looks at `LOOKED_AT` requests, so a page may be empty although later pages are not.
    """
    arguments = *place, before, limit + 1, *wanted.values, LOOKED_AT
    async with connection.transaction():
        await plan_in_order(connection)
        requests = [LoggedRequest(*row) for row in await connection.fetch(newest(wanted), *arguments)]
        if len(requests) > limit:
            return requests[:limit], requests[limit - 1].id
        return requests, await connection.fetchval(last(wanted), *arguments) if _may_pass_over(wanted) else None


def _may_pass_over(wanted: RequestFilter) -> bool:
    """Returns whether a request that is looked at may fail the filter: no index serves all of it."""
    return wanted.status_class is not None or sum(value is not None for value in wanted.values) > 1


async def read_request(connection: Connection, place: Place, id_: int) -> LoggedRequest | None:
    """Returns a request; None if there is none with that id."""
    row = await connection.fetchrow(ONE, *place, id_)
    return None if row is None else LoggedRequest(*row)


async def list_since(
    connection: Connection, start: datetime, customer_id: int | None, wanted: RequestFilter
) -> AsyncIterator[list[LoggedRequest]]:
    """Yields the requests from an instant on, of one customer or of all, the oldest first, in pieces."""
    query = since(wanted, of_customer=customer_id is not None)
    at, id_ = start, 0
    while True:
        rows = await connection.fetch(query, at, id_, customer_id, _AT_ONCE, *wanted.values)
        if rows:
            yield [LoggedRequest(*row) for row in rows]
            at, id_ = rows[-1]["at"], rows[-1]["id"]
        if len(rows) < _AT_ONCE:
            return


async def insert(connection: Connection, columns: Sequence[Sequence[object]]) -> None:
    """Writes requests, given in columns."""
    await connection.execute(INSERT, *columns)
