"""Lines in the database: the look-up of a line by its code, the progress of an order's lines, and writing the lines of placed orders.

Lines are written within the statement that writes the orders, or before it for large orders.
"""

import hmac
from collections.abc import Sequence
from datetime import datetime

import msgspec

from largesse.base.confidential import Confidential
from largesse.base.email import email_key, is_erased, masked
from largesse.base.errors import NotFound
from largesse.db.fragments import Fragment, compose, placeholder
from largesse.db.pool import Connection, Row, act_for, is_distributed
from largesse.db.scope import Scope, for_customer, for_customers
from largesse.db.sharding import customers_of_code
from largesse.db.statements import insert
from largesse.encryption.vault import DecryptionFailed, Vault
from largesse.lines.codes import open_code
from largesse.lines.states import LineKey, Progress, State

NO_LINE = LineKey(-1, -1, -1)  # no line has this key
# $1 is the customer: a cluster must find it in each subquery.
_LINE = Fragment("""
    SELECT l.order_id, l.number, l.code_lookup, l.sealed, l.recipient_email, l.recipient_name, o.reference,
           o.environment, o.customer_id, o.gift_selection, o.product_id, o.collection_id, o.country, o.currency,
           o.value_minor, o.wrapping_key, o.from_name,
           CASE WHEN position('{' IN o.message) > 0 THEN coalesce(
               (SELECT m.message FROM line_messages m
                WHERE m.customer_id = $1 AND m.order_id = l.order_id AND m.number = l.number), o.message)
                ELSE o.message END AS message, o.scheduled_for, o.expiry_after_days
    FROM lines l JOIN orders o ON o.customer_id = l.customer_id AND o.id = l.order_id
""")
_FIND_ON_NODE = compose(
    "{line} WHERE l.customer_id = $1 AND l.code_lookup = ANY($2) AND o.environment = $3", line=_LINE
)
_LOCK_ON_NODE = compose("{find} FOR UPDATE OF l", find=_FIND_ON_NODE)
_FIND = "SELECT * FROM lines_of_code($1, $2, $3)"
_PROGRESS = """
        SELECT state, claimed_at, expires_at, product_id FROM line_states
        WHERE customer_id = $1 AND order_id = $2 AND number = $3
        """
# Does not join the states: the planner expects few lines of an order, and would compare each line with all states.
_LINE_RECORDS = """
        SELECT l.number, recipient_email, recipient_name, coalesce((
            SELECT s.state FROM line_states s
            WHERE s.customer_id = l.customer_id AND s.order_id = l.order_id AND s.number = l.number), $3) AS state, e.*
        FROM lines l
        LEFT JOIN LATERAL (
            SELECT max(at) FILTER (WHERE event = 'opened') AS opened_at,
                   max(at) FILTER (WHERE event = 'claimed') AS claimed_at,
                   max(at) FILTER (WHERE event = 'chosen') AS chosen_at,
                   max(at) FILTER (WHERE event = 'fulfilled') AS fulfilled_at,
                   max(at) FILTER (WHERE event = 'expired') AS expired_at,
                   max(at) FILTER (WHERE event = 'cancelled') AS cancelled_at
            FROM line_events
            WHERE line_events.customer_id = l.customer_id AND line_events.order_id = l.order_id
              AND line_events.number = l.number
        ) AS e ON true
        WHERE l.customer_id = $1 AND l.order_id = $2 ORDER BY l.number
        """
_CLAIM_TIMES = """
        SELECT min(at), max(at) FROM line_events WHERE customer_id = $1 AND order_id = $2 AND event = 'claimed'
        """
_READDRESS = """
        UPDATE lines SET recipient_email = $4, was_email = coalesce(was_email, $5)
        WHERE customer_id = $1 AND order_id = $2 AND number = ANY($3::int[])
        """
_RECIPIENTS = "SELECT number, recipient_email FROM lines WHERE customer_id = $1 AND order_id = $2 ORDER BY number"
_ADD_MESSAGES = Fragment("INSERT INTO line_messages (customer_id, order_id, number, message)")


class Line(Confidential, frozen=True):
    """A line with its order's gift. It has no repr, as it names a person."""

    order_id: int
    number: int
    code_lookup: int
    sealed: bytes
    recipient_email: str | None
    recipient_name: str | None
    reference: str
    environment: str
    customer_id: int
    gift_selection: str
    product_id: int | None
    collection_id: int | None
    country: str
    currency: str
    value_minor: int
    wrapping_key: str
    from_name: str | None
    message: str | None
    scheduled_for: datetime | None
    expiry_after_days: int | None

    @property
    def key(self) -> LineKey:
        """The primary key."""
        return LineKey(self.customer_id, self.order_id, self.number)

    @property
    def scope(self) -> Scope:
        """The scope of its customer, which a transaction has after the look-up."""
        return for_customer(self.customer_id, self.environment)

    @property
    def has_email(self) -> bool:
        """Whether it was sent to an address that is not erased."""
        return self.recipient_email is not None and not is_erased(self.recipient_email)

    def is_sent(self, now: datetime) -> bool:
        """Returns whether its code may be known yet: a scheduled line is not sent before its time."""
        return self.scheduled_for is None or self.scheduled_for <= now


async def find_line(
    connection: Connection,
    vault: Vault,
    code: bytes,
    environment: str,
    customer_id: int | None = None,
    *,
    lock: bool = False,
) -> Line | None:
    """Returns the line of a code in this environment, of any customer. The transaction then goes on in the line's `scope`.

    With `lock`, its row is locked until the transaction ends. Read its progress afterwards, by `read_progress`: this statement may see
    rows as they were before the lock. With distributed customers, it queries the customer's node. If the link did not name the customer
    (`customer_id`), it queries all nodes for the customer first.
    """
    lookups = vault.codes.lookups(code)
    if is_distributed(connection):
        rows = await _ask_node(connection, lookups, environment, customer_id, lock=lock)
    else:
        rows = await connection.fetch(_FIND, lookups, environment, lock)
    lines = [Line(*row) for row in rows]
    # Codes of two customers may have the same look-up number. Then it decrypts both to find the right one.
    return next((line for line in lines if len(lines) == 1 or _has_code(vault, line, code)), None)


async def _ask_node(
    connection: Connection, lookups: list[int], environment: str, customer_id: int | None, *, lock: bool
) -> list[Row]:
    """Returns the lines found by those numbers. The transaction goes on for their customers.

    An unknown code queries a dummy customer, so that it takes as long as any other.
    """
    customers = {customer_id} if customer_id is not None else await customers_of_code(connection, lookups)
    customers = customers or {NO_LINE.customer_id}
    await act_for(connection, for_customers((one, environment) for one in customers))
    sql = _LOCK_ON_NODE if lock else _FIND_ON_NODE
    return [row for one in sorted(customers) for row in await connection.fetch(sql, one, lookups, environment)]


def _has_code(vault: Vault, line: Line, code: bytes) -> bool:
    try:
        return hmac.compare_digest(open_code(vault, line.sealed, line.reference, line.number).code, code)
    except DecryptionFailed:  # `largesse verify` reports such a line
        return False


async def read_line(connection: Connection, key: LineKey, environment: str, *, lock: bool = False) -> Line | None:
    """Returns the line of a key in this environment; `lock` as for `find_line`. Its customer must be in the scope."""
    row = await connection.fetchrow(
        _LINE
        + "WHERE l.customer_id = $1 AND l.order_id = $2 AND l.number = $3 AND o.environment = $4"
        + (" FOR UPDATE OF l" if lock else ""),
        *key,
        environment,
    )
    return None if row is None else Line(*row)


async def read_progress(connection: Connection, key: LineKey) -> Progress:
    """Returns the progress of a line."""
    row = await connection.fetchrow(_PROGRESS, *key)
    return progress_from_row(row)


class Deadline(msgspec.Struct, frozen=True):
    """Until when a line can be claimed, None without a limit; and whether it has `lapsed`: it was cancelled as nobody claimed it in time."""

    claim_by: datetime | None = None
    lapsed: bool = False


_DEADLINE = """
    SELECT claim_by, EXISTS (
        SELECT FROM line_events e
        WHERE e.customer_id = $1 AND e.order_id = $2 AND e.number = $3 AND e.event = 'lapsed') AS lapsed
    FROM follow_ups f WHERE customer_id = $1 AND order_id = $2
"""


async def read_deadline(connection: Connection, key: LineKey) -> Deadline:
    """Returns until when a line can be claimed."""
    row = await connection.fetchrow(_DEADLINE, *key)
    return Deadline() if row is None else Deadline(row["claim_by"], row["lapsed"])


def progress_from_row(row: Row | None) -> Progress:
    """Returns the progress in a row of `line_states`. A line without one is issued."""
    if row is None or row["state"] is None:
        return Progress()
    return Progress(State(row["state"]), row["claimed_at"], row["expires_at"], row["product_id"])


class LineRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a line and the time of each event, which is None if it has not happened."""

    number: int  # counts the order's lines from 1
    state: str
    opened_at: datetime | None  # when a person first did something with its link
    claimed_at: datetime | None
    chosen_at: datetime | None
    fulfilled_at: datetime | None
    expired_at: datetime | None
    cancelled_at: datetime | None


async def read_line_records(
    connection: Connection, customer_id: int, order_id: int
) -> list[tuple[str | None, str | None, LineRecord]]:
    """Returns each line of the order by number, with the address and name of its recipient, which are None in a code batch."""
    rows = await connection.fetch(_LINE_RECORDS, customer_id, order_id, State.ISSUED)
    return [
        (
            row["recipient_email"],
            row["recipient_name"],
            LineRecord(**{name: row[name] for name in LineRecord.__struct_fields__}),
        )
        for row in rows
    ]


async def read_claim_times(
    connection: Connection, customer_id: int, order_id: int
) -> tuple[datetime | None, datetime | None]:
    """Returns when the first and the last line of an order were claimed; None and None if none was."""
    row = await connection.fetchrow(_CLAIM_TIMES, customer_id, order_id)
    assert row is not None, "an aggregate has a row"
    return row[0], row[1]


# Customer and order by id, number, the recipient's address and name, the code's look-up number, code and PIN encrypted.
LineColumns = tuple[int, int, int, str | None, str | None, int, bytes]


class LineRow(msgspec.Struct, gc=False):
    """A row of `lines`. `place` is the position of its order in the batch, as the order has no id yet."""

    customer_id: int
    place: int
    number: int
    recipient_email: str | None
    recipient_name: str | None
    code_lookup: int
    sealed: bytes


_INTO = Fragment(
    "INSERT INTO lines (customer_id, order_id, number, recipient_email, recipient_name, code_lookup, sealed)"
)
_WRITE_COLUMNS = compose(
    """
    {into}
    SELECT * FROM unnest($1::int[], $2::int[], $3::int[], $4::text[], $5::text[], $6::bigint[], $7::bytea[])
""",
    into=_INTO,
)


def new_lines(lines: str, *, order_id: Fragment) -> Fragment:
    """Returns SQL that writes lines: a statement, or part of one.

    `lines` is the placeholder of the `LineRow`s as a JSON array; `order_id` is SQL for the id of the order at a `place`.
    """
    return compose(
        """
        {into}
        SELECT customer_id, {order_id}, number, recipient_email, recipient_name, code_lookup, decode(sealed, 'base64')
        FROM json_to_recordset({lines}::json) AS new (
            customer_id integer, place integer, number integer, recipient_email text, recipient_name text, code_lookup bigint,
            sealed text)
    """,
        into=_INTO,
        order_id=order_id,
        lines=placeholder(lines),
    )


async def write_columns(connection: Connection, lines: Sequence[LineColumns]) -> None:
    """Writes lines with their orders' ids from arrays of columns: COPY is refused under row-level security."""
    await connection.execute(_WRITE_COLUMNS, *map(list, zip(*lines, strict=True)))


async def insert_lines(connection: Connection, lines: Sequence[LineColumns]) -> None:
    """Writes lines of one customer with their orders' ids, on the customer's node."""
    await insert(connection, _INTO, lines)


_STOP_REMINDERS = """
    INSERT INTO reminder_stops (customer_id, order_id, number, stopped_at)
    SELECT $1, $2, number, clock_now() FROM unnest($3::int[]) AS own (number) ON CONFLICT DO NOTHING
"""
_HAVE_STOPPED = """
    SELECT count(*) FROM reminder_stops WHERE customer_id = $1 AND order_id = $2 AND number = ANY($3::int[])
"""


async def stop_reminders(connection: Connection, customer_id: int, order_id: int, numbers: Sequence[int]) -> None:
    """Records that the recipient of these lines wants no more reminders."""
    await connection.execute(_STOP_REMINDERS, customer_id, order_id, numbers)


async def have_stopped(connection: Connection, customer_id: int, order_id: int, numbers: Sequence[int]) -> bool:
    """Returns whether the recipient of these lines wants no more reminders."""
    count: int = await connection.fetchval(_HAVE_STOPPED, customer_id, order_id, numbers)
    return count == len(numbers)


async def readdress_lines(
    connection: Connection, customer_id: int, order_id: int, numbers: Sequence[int], was: str, email: str
) -> None:
    """Sets a new address on lines of an order. Stores the first one, `was`, masked, by which callers know their request again.

    Call it inside a transaction that has locked them.
    """
    await connection.execute(_READDRESS, customer_id, order_id, numbers, email, masked(was))


async def find_recipient_lines(connection: Connection, customer_id: int, order_id: int, number: int) -> list[int]:
    """Returns the numbers of all lines of the recipient who has line `number`; in a code batch, only that number. Raises NotFound."""
    rows = await connection.fetch(_RECIPIENTS, customer_id, order_id)
    emails = {row["number"]: row["recipient_email"] for row in rows}
    if number not in emails:
        raise NotFound("There is no such line of the order.")
    if emails[number] is None:
        return [number]
    key = email_key(emails[number])
    return [one for one, email in emails.items() if email is not None and email_key(email) == key]


# Customer and order by id, number, and the message.
LineMessage = tuple[int, int, int, str]


async def insert_line_messages(connection: Connection, messages: Sequence[LineMessage]) -> None:
    """Writes the messages that recipients read instead of the order's message. On a cluster, all must be of one customer."""
    await insert(connection, _ADD_MESSAGES, messages)


async def read_line_messages(connection: Connection, customer_id: int, order_id: int) -> dict[int, str]:
    """Returns the messages of an order's lines by their numbers. Leaves out lines without a message of their own."""
    rows = await connection.fetch(_LINE_MESSAGES, customer_id, order_id)
    return {row["number"]: row["message"] for row in rows}


_LINE_MESSAGES = "SELECT number, message FROM line_messages WHERE customer_id = $1 AND order_id = $2"
_ADDRESS = "UPDATE lines SET recipient_email = $4 WHERE customer_id = $1 AND order_id = $2 AND number = $3"


async def address_line(connection: Connection, line: LineKey, email: str) -> None:
    """Sets the recipient of a line that has none. Call it inside a transaction that has locked it."""
    await connection.execute(_ADDRESS, *line, email)
