"""The SQL of claim-by dates and reminders."""

from datetime import datetime

from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection, Row
from largesse.orders.order import ALL_COLUMNS

# Orders that are due, the oldest first. They are locked one by one.
DUE = "SELECT customer_id, order_id FROM follow_ups WHERE due_at <= (SELECT clock_now()) ORDER BY due_at LIMIT $1"
# Locks one of them, unless another worker has it.
LOCK_DUE = """
    SELECT claim_by, sent_at, reminder_days, reminded, reminded_last FROM follow_ups
    WHERE customer_id = $1 AND order_id = $2 AND due_at <= (SELECT clock_now()) FOR UPDATE SKIP LOCKED
"""
ORDER = compose("SELECT {all_columns} FROM orders WHERE customer_id = $1 AND id = $2", all_columns=ALL_COLUMNS)
GO_ON = """
    UPDATE follow_ups SET reminded = $3, reminded_last = $4, due_at = $5 WHERE customer_id = $1 AND order_id = $2
"""
# For due rows in staging that no worker has processed yet: their days count from an earlier time, too, after the test clock moved.
COUNT_FROM_EARLIER = """
    UPDATE follow_ups SET sent_at = (sent_at AT TIME ZONE 'UTC' - $2::interval) AT TIME ZONE 'UTC'
    WHERE customer_id = $1 AND environment = 'staging' AND due_at <= (SELECT clock_now())
"""
PUT_OFF = "UPDATE follow_ups SET due_at = $3 WHERE customer_id = $1 AND order_id = $2 AND due_at < $3"
# Lines that nobody has claimed and whose recipient has not stopped the reminders.
TO_REMIND = """
    SELECT number, recipient_email AS email, recipient_name AS name FROM lines
    WHERE customer_id = $1 AND order_id = $2 AND recipient_email IS NOT NULL
      AND number NOT IN (SELECT number FROM line_states WHERE customer_id = $1 AND order_id = $2)
      AND number NOT IN (SELECT number FROM reminder_stops WHERE customer_id = $1 AND order_id = $2)
    ORDER BY number
"""
STOPPED = "SELECT number FROM reminder_stops WHERE customer_id = $1 AND order_id = $2"
# Addresses without a reminder now: the gift's mail has not arrived, a mail was refused, or the last mail left less than $3 ago.
NOT_NOW = """
    SELECT email FROM (
        SELECT DISTINCT ON (email) email, state FROM messages
        WHERE customer_id = $1 AND order_id = $2 AND kind = 'gift' ORDER BY email, edition DESC) AS latest
    WHERE state NOT IN ('sent', 'captured')
    UNION
    SELECT email FROM messages
    WHERE customer_id = $1 AND order_id = $2 AND (kind = 'gift' OR kind LIKE 'reminder%')
      AND (finished_at > clock_now() - $3::interval OR (kind <> 'gift' AND state IN ('bounced', 'exhausted', 'pending', 'held')))
"""
MAILED = "SELECT DISTINCT email FROM messages WHERE customer_id = $1 AND order_id = $2 AND kind = 'gift'"
UNCLAIMED = """
    SELECT number FROM lines WHERE customer_id = $1 AND order_id = $2
      AND number NOT IN (SELECT number FROM line_states WHERE customer_id = $1 AND order_id = $2)
    ORDER BY number LIMIT $3
"""
END = "UPDATE follow_ups SET due_at = NULL WHERE customer_id = $1 AND order_id = $2"
_READ = Fragment("SELECT claim_by, due_at FROM follow_ups WHERE customer_id = $1 AND order_id = $2")
_LOCK = compose("{read} FOR UPDATE", read=_READ)
# The worker processes the order at once, and sets its next time.
_MOVE = """
    UPDATE follow_ups SET claim_by = $3, due_at = clock_now() WHERE customer_id = $1 AND order_id = $2
"""
_RESCHEDULE = """
    UPDATE follow_ups SET sent_at = $3, due_at = clock_now() WHERE customer_id = $1 AND order_id = $2 AND due_at IS NOT NULL
"""
# When the first reminder of each kind left, and how many of the kind did.
_REMINDED = """
    SELECT kind, min(finished_at) AS at, count(*)::int AS mails FROM messages
    WHERE customer_id = $1 AND order_id = $2 AND state IN ('sent', 'captured')
        AND kind IN ('reminder_1', 'reminder_2', 'reminder_3', 'reminder_last')
    GROUP BY kind ORDER BY 2
"""
_REMINDER_DAYS = "SELECT reminder_days FROM follow_ups WHERE customer_id = $1 AND order_id = $2"
# Codes that lapsed at the same time, the earliest first.
_LAPSES = """
    SELECT at, count(*)::int AS codes FROM line_events
    WHERE customer_id = $1 AND order_id = $2 AND event = 'lapsed' GROUP BY at ORDER BY at
"""
_LIST = """
    SELECT c.key AS customer, o.reference, f.environment, f.claim_by, count(l.number)::int AS codes,
           count(s.number) FILTER (WHERE s.state <> 'cancelled')::int AS claimed,
           count(s.number) FILTER (WHERE s.state = 'cancelled')::int AS cancelled
    FROM (
        SELECT * FROM follow_ups
        WHERE due_at IS NOT NULL AND claim_by IS NOT NULL AND ($1::int IS NULL OR customer_id = $1)
        ORDER BY claim_by LIMIT $2) AS f
    JOIN orders AS o ON o.customer_id = f.customer_id AND o.id = f.order_id
    JOIN customers AS c ON c.id = f.customer_id
    JOIN lines AS l ON l.customer_id = f.customer_id AND l.order_id = f.order_id
    LEFT JOIN line_states AS s ON s.customer_id = l.customer_id AND s.order_id = l.order_id AND s.number = l.number
    GROUP BY 1, 2, 3, 4 ORDER BY f.claim_by
"""


async def read_claim_by(connection: Connection, order: tuple[int, int], *, lock: bool = False) -> datetime | None:
    """Returns the claim-by date of an order, its customer and id. With `lock`, it is locked until the transaction ends."""
    row = await connection.fetchrow(_LOCK if lock else _READ, *order)
    return None if row is None else row["claim_by"]


async def move_claim_by(connection: Connection, order: tuple[int, int], at: datetime) -> None:
    """Sets another claim-by date for an order that has one. Call it inside a transaction that has locked it."""
    await connection.execute(_MOVE, *order, at)


async def reschedule_reminders(connection: Connection, order: tuple[int, int], sent_at: datetime) -> None:
    """Counts the days of an order's reminders from another time. Call it inside a transaction."""
    await connection.execute(_RESCHEDULE, *order, sent_at)


async def read_reminder_days(connection: Connection, order: tuple[int, int]) -> list[int]:
    """Returns the days after which recipients of an order are reminded; an empty list means no reminders."""
    days: list[int] | None = await connection.fetchval(_REMINDER_DAYS, *order)
    return days or []


async def list_reminded(connection: Connection, order: tuple[int, int]) -> list[tuple[datetime, int]]:
    """Returns when reminders of an order left, the first of each kind, and how many did."""
    return [(row["at"], row["mails"]) for row in await connection.fetch(_REMINDED, *order)]


async def list_lapses(connection: Connection, order: tuple[int, int]) -> list[tuple[datetime, int]]:
    """Returns when codes of an order were cancelled because of its claim-by date, and how many each time."""
    return [(row["at"], row["codes"]) for row in await connection.fetch(_LAPSES, *order)]


async def list_claim_by(connection: Connection, customer_id: int | None, limit: int) -> list[Row]:
    """Returns orders, of a customer or of all, whose claim-by date has not been carried out yet, the next date first."""
    return await connection.fetch(_LIST, customer_id, limit)
