"""Marks of line events, which show whether somebody reset a line directly in the database.

A worker adds the marks when it processes a changed order. The code that moves a line does not, so that claims do not wait for the chain.
There is one chain, and one worker at a time adds to it. `largesse verify` compares the marks with `line_events`.
See docs/decisions/0031-marks-of-orders-and-lines.md.
"""

from collections.abc import Sequence

import structlog

from largesse.audit.service import INSTALLATION, Acting
from largesse.db.fragments import grouped
from largesse.db.pool import Connection, Row, commit_as_one
from largesse.db.shard_groups import Customers
from largesse.db.sharding import arguments
from largesse.encryption.chain import Chain, content, micros

BEGUN = "claims.chained"  # the audit log has this act once: a second start means a reset chain

log = structlog.get_logger(__name__)
_LOCK_HEAD = "SELECT number, head FROM line_event_head FOR NO KEY UPDATE"
_HAS_BEGUN = "SELECT EXISTS (SELECT FROM audit_events WHERE customer_id = $1 AND act = $2)"


def event_content(number: int, customer_id: int, order_id: int, line: int, event: str, at_us: int) -> bytes:
    """Returns the content that the mark of an event is computed from."""
    return content(number, customer_id, order_id, line, event, at_us)


async def mark_events(
    connection: Connection, acting: Acting, orders: Sequence[tuple[int, int]], customers: Customers = None
) -> None:
    """Marks the unmarked events of the lines of those orders (customer and id).

    Call it late in a transaction, and in one transaction at a time. If the chain was reset, it marks nothing, so that `verify` still reports that.
    """
    columns = [customer_id for customer_id, _ in orders], [order_id for _, order_id in orders]
    events = await connection.fetch(_EVENTS.of(customers), *columns, *arguments(customers))
    if not events:
        return
    marked = {tuple(row) for row in await connection.fetch(_MARKED, *columns)}
    if not (new := [row for row in events if tuple(row)[:4] not in marked]):
        return
    head = await connection.fetchrow(_LOCK_HEAD)
    if head is None or not (head["number"] or await _begin(connection, acting)):
        log.error("claims.not_marked", reason="the chain of line events was reset: run `largesse verify`")
        return
    await commit_as_one(connection)
    await _add(connection, acting.chains.moves, head, new)


async def has_begun(connection: Connection) -> bool:
    """Returns whether the audit log says that events of lines are marked."""
    return bool(await connection.fetchval(_HAS_BEGUN, INSTALLATION, BEGUN))


async def _begin(connection: Connection, acting: Acting) -> bool:
    """Records in the audit log that the chain begins. Returns False if it has begun before."""
    if await has_begun(connection):
        return False
    await acting.record(connection, BEGUN, "line events")
    return True


async def _add(connection: Connection, chain: Chain, end: Row, events: Sequence[Row]) -> None:
    number, head = end["number"], end["head"]
    added = []
    for customer_id, order_id, line, event, at, at_us in events:
        number += 1
        mac, head = chain.add(head, event_content(number, customer_id, order_id, line, event, at_us))
        added.append((number, customer_id, order_id, line, event, at, mac))
    await connection.execute(_ADD, *map(list, zip(*added, strict=True)), number, head)


_EVENTS = grouped(
    """
    SELECT e.customer_id, e.order_id, e.number, e.event, e.at, {at_us} AS at_us
    FROM unnest($1::int[], $2::int[]) AS wanted (customer_id, order_id)
    JOIN line_events AS e ON e.customer_id = wanted.customer_id AND e.order_id = wanted.order_id
        AND e.event <> 'opened' {within e.customer_id}
    ORDER BY e.at, e.customer_id, e.order_id, e.number, e.event
    """,
    "$3",
    at_us=micros("e.at"),
)
_MARKED = """
    SELECT m.customer_id, m.order_id, m.line, m.event
    FROM unnest($1::int[], $2::int[]) AS wanted (customer_id, order_id)
    JOIN line_event_marks AS m ON m.customer_id = wanted.customer_id AND m.order_id = wanted.order_id
"""
_ADD = """
    WITH added AS (
        INSERT INTO line_event_marks (number, customer_id, order_id, line, event, at, mac)
        SELECT * FROM unnest($1::bigint[], $2::int[], $3::int[], $4::int[], $5::text[], $6::timestamptz[], $7::bytea[]))
    UPDATE line_event_head SET number = $8, head = $9
"""
