"""The SQL of the request log."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime

import msgspec

from largesse.db.fragments import Fragment, compose, join
from largesse.db.pool import Connection
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
# Each filter has a condition, and one that is always true, so that statements have the same parameters. An index serves each
# condition, that of the status only where there is no row-level security.
_FILTERS = (
    (Fragment("r.status / 100 = $5::int"), Fragment("$5::int IS NULL")),
    (Fragment("r.method = $6::text"), Fragment("$6::text IS NULL")),
    (Fragment("r.key_id = $7::int"), Fragment("$7::int IS NULL")),
    (Fragment("r.request_id = $8::text"), Fragment("$8::text IS NULL")),
    (Fragment("r.route = $9::text"), Fragment("$9::text IS NULL")),
    (Fragment("r.path = $10::text"), Fragment("$10::text IS NULL")),
)
ONE = compose(
    "SELECT {columns} FROM api_requests r {named} WHERE r.customer_id = $1 AND r.environment = $2 AND r.id = $3",
    columns=_COLUMNS,
    named=_NAMED,
)


# Two forms of the same. The first is for the index of a filter. The second reads the customer's requests in the order of the primary key: under row-level
# security no index serves a condition with a division, as that of the status, and the planner would read the requests of all customers.
_BEFORE = Fragment("r.environment = $2 AND r.id < $3")
_BEFORE_BY_ID = Fragment("r.environment >= $2 AND (r.environment, r.id) < ($2, $3)")


def newest(wanted: RequestFilter) -> Fragment:
    """Returns the statement for the newest $4 requests of customer $1 in environment $2 before the id $3, by a filter, whose values follow."""
    has_index = any(value is not None for value in msgspec.structs.replace(wanted, status_class=None).values)
    return compose(
        """
        SELECT {columns} FROM (
            SELECT * FROM api_requests r
            WHERE r.customer_id = $1 AND {before} AND {filters}
            ORDER BY r.environment DESC, r.id DESC LIMIT $4) AS r
        {named} ORDER BY r.id DESC
        """,
        columns=_COLUMNS,
        named=_NAMED,
        before=_BEFORE if has_index else _BEFORE_BY_ID,
        filters=_conditions(wanted),
    )


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
    connection: Connection, customer_id: int, environment: str, wanted: RequestFilter, *, before: int, limit: int
) -> list[LoggedRequest]:
    """Returns the newest requests before an id, at most `limit`."""
    rows = await connection.fetch(newest(wanted), customer_id, environment, before, limit, *wanted.values)
    return [LoggedRequest(*row) for row in rows]


async def read_request(connection: Connection, customer_id: int, environment: str, id_: int) -> LoggedRequest | None:
    """Returns a request; None if there is none with that id."""
    row = await connection.fetchrow(ONE, customer_id, environment, id_)
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
