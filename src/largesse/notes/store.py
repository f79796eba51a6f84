"""The SQL of thank-you notes."""

from collections.abc import Sequence

from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection, Row
from largesse.db.scope import Place
from largesse.lines.states import LineKey

_READ = """
    SELECT c.takes_notes, n.sealed FROM customers c
    LEFT JOIN thank_you_notes n ON n.customer_id = c.id AND n.order_id = $2 AND n.number = $3 WHERE c.id = $1
"""
_SENDER = "SELECT user_id, source = 'automation' AS is_automatic FROM orders WHERE customer_id = $1 AND id = $2"
_WAS_MAILED = """
    SELECT EXISTS (SELECT FROM thank_you_notes WHERE customer_id = $1 AND order_id = $2 AND mail_id IS NOT NULL
                   AND written_at > (SELECT clock_now()) - interval '1 hour')
"""
_ADD = """
    INSERT INTO thank_you_notes (customer_id, order_id, number, environment, user_id, sealed, written_at)
    VALUES ($1, $2, $3, $4, $5, $6, clock_now()) ON CONFLICT (customer_id, order_id, number) DO NOTHING RETURNING id
"""
_OF_ORDER = "SELECT number, sealed FROM thank_you_notes WHERE customer_id = $1 AND order_id = $2"
_COLUMNS = Fragment("""
    n.customer_id, n.order_id, n.id, o.reference, o.environment, n.number, l.recipient_name, l.recipient_email, n.sealed, n.written_at
""")
_OF_LINES = Fragment("""
    JOIN orders o ON o.customer_id = n.customer_id AND o.id = n.order_id
    JOIN lines l ON l.customer_id = n.customer_id AND l.order_id = n.order_id AND l.number = n.number
""")
# The planner expects few notes of a customer, and would read and sort them all, with their orders.
# In these forms it reads only the newest notes, from an index: of the customer, or of the orders that a person sent.
_NEWEST = compose(
    """
    SELECT {columns} FROM (
        SELECT * FROM thank_you_notes WHERE customer_id = $1 AND environment >= $2 AND (environment, id) < ($2, $3)
        ORDER BY environment DESC, id DESC LIMIT $4) AS n
    {of_lines} ORDER BY n.id DESC
    """,
    columns=_COLUMNS,
    of_lines=_OF_LINES,
)
_NEWEST_OF_PERSON = compose(
    """
    SELECT {columns} FROM (
        SELECT * FROM thank_you_notes
        WHERE customer_id = $1 AND (environment, user_id) >= ($2, $5) AND (environment, user_id, id) < ($2, $5, $3)
        ORDER BY environment DESC, user_id DESC, id DESC LIMIT $4) AS n
    {of_lines} ORDER BY n.id DESC
    """,
    columns=_COLUMNS,
    of_lines=_OF_LINES,
)
_TAKE = """
    UPDATE thank_you_notes SET mail_id = $4 WHERE customer_id = $1 AND order_id = $2 AND user_id = $3 AND mail_id IS NULL
"""
_IS_UNMAILED = """
    SELECT EXISTS (SELECT FROM thank_you_notes WHERE customer_id = $1 AND order_id = $2 AND user_id = $3 AND mail_id IS NULL)
"""
_OF_MAIL = compose(
    """
    SELECT {columns} FROM thank_you_notes n {of_lines}
    WHERE n.customer_id = $1 AND n.order_id = $2 AND n.mail_id = $3 ORDER BY n.id
    """,
    columns=_COLUMNS,
    of_lines=_OF_LINES,
)
_ERASE = "DELETE FROM thank_you_notes WHERE customer_id = $1 AND order_id = $2 AND number = ANY($3::int[])"


async def read_for_recipient(connection: Connection, line: LineKey) -> tuple[bool, bytes | None]:
    """Returns whether the line's customer accepts notes, and the encrypted note of the line."""
    row = await connection.fetchrow(_READ, *line)
    assert row is not None, "a line has a customer"
    return row["takes_notes"], row["sealed"]


async def read_sender(connection: Connection, line: LineKey) -> tuple[int | None, bool]:
    """Returns the person who sent the line's order, None for an order of an API key, and whether an automation sent it as that person."""
    row = await connection.fetchrow(_SENDER, line.customer_id, line.order_id)
    assert row is not None, "a line has an order"
    return row["user_id"], row["is_automatic"]


async def was_mailed(connection: Connection, line: LineKey) -> bool:
    """Returns whether a note of the line's order that is less than an hour old was mailed."""
    return bool(await connection.fetchval(_WAS_MAILED, line.customer_id, line.order_id))


async def insert_note(
    connection: Connection, line: LineKey, environment: str, user_id: int | None, sealed: bytes
) -> bool:
    """Adds the note of a line. Returns False if there is one already."""
    return await connection.fetchval(_ADD, *line, environment, user_id, sealed) is not None


async def list_of_order(connection: Connection, customer_id: int, order_id: int) -> list[Row]:
    """Returns the notes of an order: `number` and `sealed`."""
    return await connection.fetch(_OF_ORDER, customer_id, order_id)


async def list_newest(
    connection: Connection, place: Place, *, user_id: int | None, before: int, limit: int
) -> list[Row]:
    """Returns the newest notes below an id, of orders that `user_id` sent or of all."""
    page = *place, before, limit
    if user_id is None:
        return await connection.fetch(_NEWEST, *page)
    return await connection.fetch(_NEWEST_OF_PERSON, *page, user_id)


async def take_for_mail(
    connection: Connection, customer_id: int, order_id: int, user_id: int, mail_id: int
) -> list[Row]:
    """Returns the notes that a mail is about: notes that were in no mail yet, and those that were in an earlier attempt of this mail."""
    await connection.execute(_TAKE, customer_id, order_id, user_id, mail_id)
    return await connection.fetch(_OF_MAIL, customer_id, order_id, mail_id)


async def has_unmailed(connection: Connection, customer_id: int, order_id: int, user_id: int) -> bool:
    """Returns whether the person who sent an order has notes of it that were in no mail yet."""
    return bool(await connection.fetchval(_IS_UNMAILED, customer_id, order_id, user_id))


async def erase_notes(connection: Connection, order: tuple[int, int], numbers: Sequence[int]) -> None:
    """Deletes the notes of these lines of an order."""
    await connection.execute(_ERASE, *order, list(numbers))
