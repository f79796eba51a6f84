"""The outbox of mail. A transaction writes mail here with the rest of its work, so that both are committed or neither is.

Orders write jobs, which become messages when they are due. Fulfilment writes notifications, which are messages at once. A cancellation
removes mail that has not been sent. `largesse.mail` sends the messages.
"""

from collections.abc import Sequence
from datetime import datetime

from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection
from largesse.db.statements import Part, insert
from largesse.jobs.notifier import notify

_ADD_NOTIFICATION = """
    INSERT INTO messages
        (customer_id, order_id, environment, kind, edition, email, name, line_numbers, due_at, rank_at, created_at)
    VALUES ($1, $2, $4, $5, $3::int, $6, $7, ARRAY[$3::int], $8, $8, $8) ON CONFLICT DO NOTHING
"""
_ADD_REMINDERS = """
    INSERT INTO messages
        (customer_id, order_id, environment, kind, edition, email, name, line_numbers, due_at, rank_at, created_at)
    SELECT $1, $2, $3, $4, (line_numbers::int[])[1], email, name, line_numbers::int[], $5, $5, $5
    FROM unnest($6::text[], $7::text[], $8::text[]) AS new (email, name, line_numbers)
    ON CONFLICT DO NOTHING
"""
# Mail with no lines left is `cancelled`. The statements join nothing: while a large order is mailed, the planner expects few messages and would look
# through all of them for each one. The mailer checks a message again just before it sends it.
_WITHOUT_LINES = Fragment("""
    line_numbers = CASE WHEN line_numbers <@ $3::int[] THEN line_numbers
                   ELSE ARRAY(SELECT line FROM unnest(line_numbers) AS line WHERE line <> ALL ($3::int[]) ORDER BY line) END,
    state = CASE WHEN line_numbers <@ $3::int[] THEN 'cancelled' ELSE state END,
    finished_at = CASE WHEN line_numbers <@ $3::int[] THEN (SELECT clock_now()) END
    WHERE customer_id = $1 AND order_id = $2 AND state IN ('pending', 'held') AND line_numbers && $3::int[]
""")
_WITHDRAW_REMINDERS = compose(
    "UPDATE messages SET {without_lines} AND kind LIKE 'reminder%'", without_lines=_WITHOUT_LINES
)
_WITHDRAW_PARCEL = """
    UPDATE messages SET state = 'cancelled', finished_at = clock_now()
    WHERE customer_id = $1 AND order_id = $2 AND edition = $3::int AND kind ~ '^(shipped|returned)' AND state IN ('pending', 'held')
"""
_ADD_GIFT = """
    INSERT INTO messages (customer_id, order_id, environment, email, line_numbers, due_at, rank_at, created_at)
    SELECT $1, $2, $4, $5, ARRAY[$3::int], now, now, now FROM (SELECT clock_now()) AS clock (now) ON CONFLICT DO NOTHING
"""
# The edition distinguishes the mails to one address. The negative line number belongs to no line.
_ADD_CAMPAIGN_CODES = """
    INSERT INTO messages (customer_id, order_id, environment, kind, edition, email, line_numbers, due_at, rank_at, created_at)
    SELECT customer_id, order_id, environment, 'campaign_code', -(1 + ask_id % 32767), email, ARRAY[-ask_id],
           (SELECT clock_now()), (SELECT clock_now()), (SELECT clock_now())
    FROM unnest($1::int[], $2::int[], $3::text[], $4::int[], $5::text[]) AS new (customer_id, order_id, environment, ask_id, email)
    ON CONFLICT DO NOTHING
"""
_LOCK_JOB = "SELECT FROM mail_jobs WHERE customer_id = $1 AND order_id = $2 FOR UPDATE"
_RESCHEDULE = "UPDATE mail_jobs SET due_at = $3 WHERE customer_id = $1 AND order_id = $2"
_HOLD_JOB = """
    UPDATE mail_jobs SET fanned_out_at = clock_now()
    WHERE customer_id = $1 AND order_id = $2 AND fanned_out_at IS NULL
    AND (SELECT count(*) FROM lines WHERE customer_id = $1 AND order_id = $2)
      = (SELECT count(*) FROM line_states WHERE customer_id = $1 AND order_id = $2 AND state = 'cancelled')
"""
_CANCELLED_LINES = "SELECT number FROM line_states WHERE customer_id = $1 AND order_id = $2 AND state = 'cancelled'"
# Locks them in the order of their ids, as workers do when they write outcomes.
_LOCK_WAITING = """
    SELECT FROM messages WHERE customer_id = $1 AND order_id = $2 AND state IN ('pending', 'held') ORDER BY id FOR UPDATE
"""
_HOLD_MESSAGES = compose(
    "UPDATE messages SET {without_lines} AND (kind = 'gift' OR kind LIKE 'reminder%')", without_lines=_WITHOUT_LINES
)
_MAIL_USERS = """
    INSERT INTO people_mails (kind, user_id, account_id, credited_minor, request_id, automation_id, content, due_at)
    SELECT $1, unnest($2::int[]), $3, $4, $5, $6, $7, clock_now() + $8::float8 * interval '1 second'
"""
_MAIL_AUTOMATION = """
    INSERT INTO people_mails (kind, user_id, automation_id) SELECT 'automation_asked', unnest($1::int[]), $2
    ON CONFLICT (user_id, automation_id) WHERE kind = 'automation_asked' DO NOTHING
"""
# At most one waits for each order. Notes that come meanwhile go with it. Locks it, so that its worker, which deletes it once it is sent, sees them.
_MAIL_THANK_YOU = """
    INSERT INTO people_mails (kind, user_id, note_order_id, due_at)
    VALUES ('thank_you', $1, $2, clock_now() + $3 * interval '1 second')
    ON CONFLICT (user_id, note_order_id) WHERE kind = 'thank_you' DO UPDATE SET due_at = people_mails.due_at
"""
_FIND_PERSON = "SELECT id FROM people WHERE email_key = $1"
_MAIL_RESET = """
    INSERT INTO people_mails (kind, person_id) SELECT 'reset', $1::int WHERE EXISTS (SELECT FROM memberships($1::int))
"""
_MAIL_PERSON = "INSERT INTO people_mails (kind, person_id, change, address, browser) VALUES ($1, $2, $3, $4, $5)"

_NEW_JOBS = Fragment("INSERT INTO mail_jobs (customer_id, order_id, environment, due_at)")


def new_mail_jobs(orders: Fragment, at: Fragment) -> Fragment:
    """Returns SQL that inserts the mail job of each emailed order in `orders`: a statement, or part of one.

    `orders` have `id`, `customer_id`, `environment`, `delivery_mode` and `scheduled_for`; `at` is a placeholder.
    """
    return compose(
        """
        {new_jobs} SELECT customer_id, id, environment, coalesce(scheduled_for, {at}) FROM {orders} WHERE delivery_mode = 'send'
    """,
        new_jobs=_NEW_JOBS,
        at=at,
        orders=orders,
    )


async def insert_mail_jobs(connection: Connection, jobs: Sequence[tuple[int, int, str, datetime]]) -> None:
    """Inserts mail jobs of one customer on its node. Each has the customer, the order, the environment and the due time."""
    await insert(connection, _NEW_JOBS, jobs)


async def add_notification(
    connection: Connection,
    line: tuple[int, int, int],
    kind: str,
    at: datetime,
    *,
    environment: str,
    email: str,
    name: str | None,
) -> None:
    """Inserts a notification about a line (customer, order and number), once for each kind. Wakes the workers after the commit."""
    await connection.execute(_ADD_NOTIFICATION, *line, environment, kind, email, name, at)
    await notify(connection)


async def withdraw_parcel_mail(connection: Connection, line: tuple[int, int, int]) -> None:
    """Withdraws mail about a line's parcel (customer, order and number) that has not been sent: it is no longer true."""
    await connection.execute(_WITHDRAW_PARCEL, *line)


async def add_reminders(
    connection: Connection,
    order: tuple[int, int],
    kind: str,
    at: datetime,
    *,
    environment: str,
    recipients: Sequence[tuple[str, str | None, Sequence[int]]],
) -> None:
    """Inserts reminders of one kind for recipients of an order (its customer and id): each with address, name and unclaimed lines.

    A recipient gets one of each kind. Call it inside a transaction that has locked the lines. Wakes the workers after the commit.
    """
    numbers = [f"{{{','.join(map(str, lines))}}}" for _, _, lines in recipients]
    emails, names = [email for email, _, _ in recipients], [name for _, name, _ in recipients]
    await connection.execute(_ADD_REMINDERS, *order, environment, kind, at, emails, names, numbers)
    await notify(connection)


async def add_gift_mail(connection: Connection, line: tuple[int, int, int], environment: str, email: str) -> None:
    """Inserts the mail of a gift (its customer, order and number) whose recipient was added after the order was placed."""
    await connection.execute(_ADD_GIFT, *line, environment, email)


async def add_campaign_codes(connection: Connection, codes: Sequence[tuple[int, int, str, int, str]]) -> None:
    """Inserts mails with a visitor's code: customer, order, environment, number of the code request, and address."""
    await connection.execute(_ADD_CAMPAIGN_CODES, *map(list, zip(*codes, strict=True)))


def withdrawn_reminders(customer_id: int, order_id: int, numbers: Sequence[int]) -> Part:
    """Returns the statement of `withdraw_reminders` as a part for `fetch_together`. Run it in a transaction that has locked the lines."""
    return Part(_WITHDRAW_REMINDERS, customer_id, order_id, list(numbers))


async def withdraw_reminders(connection: Connection, order: tuple[int, int], numbers: Sequence[int]) -> None:
    """Removes lines of an order from reminders that have not been sent. Call it inside a transaction that has locked the lines."""
    await connection.execute(_WITHDRAW_REMINDERS, *order, list(numbers))


async def lock_mail_job(connection: Connection, order: tuple[int, int]) -> None:
    """Locks the mail job of an order (its customer and id) before its mail changes. Lock lines before it, and messages after it.

    A fan-out locks the job while it makes messages from the lines. So this waits for it, or the fan-out sees the change.
    """
    await connection.execute(_LOCK_JOB, *order)


async def reschedule_mail(connection: Connection, order: tuple[int, int], due_at: datetime) -> None:
    """Reschedules the mail of an order (its customer and id). Call it inside a transaction that has locked its mail job."""
    await connection.execute(_RESCHEDULE, *order, due_at)
    await notify(connection)


async def hold_mail_back(connection: Connection, customer_id: int, order_id: int) -> None:
    """Removes the cancelled lines of an order from mail that has not been sent. Ends jobs and messages that have no lines left."""
    order = (customer_id, order_id)
    await lock_mail_job(connection, order)
    await connection.execute(_HOLD_JOB, *order)
    cancelled = await connection.fetch(_CANCELLED_LINES, *order)
    await connection.execute(_LOCK_WAITING, *order)
    await connection.execute(_HOLD_MESSAGES, *order, [row["number"] for row in cancelled])


async def mail_users(  # noqa: PLR0913 - what a mail is about, each by its name
    connection: Connection,
    kind: str,
    user_ids: Sequence[int],
    *,
    account_id: int | None = None,
    credited_minor: int | None = None,
    request_id: str | None = None,
    automation_id: int | None = None,
    content: bytes | None = None,
    delay_s: float = 0.0,
) -> None:
    """Mails users about an account, a request or an automation, or an invitation or a test. Call it inside the transaction that it is about."""
    about = account_id, credited_minor, request_id, automation_id, content
    await connection.execute(_MAIL_USERS, kind, user_ids, *about, delay_s)


async def mail_automation(connection: Connection, user_ids: Sequence[int], automation_id: int) -> None:
    """Notifies users by mail that an automation waits for their approval, unless such a mail waits already."""
    await connection.execute(_MAIL_AUTOMATION, user_ids, automation_id)


async def mail_thank_you(connection: Connection, user_id: int, order_id: int, delay_s: float) -> None:
    """Mails the thank-you notes of an order to a user, including those that arrive before the mail is sent."""
    await connection.execute(_MAIL_THANK_YOU, user_id, order_id, delay_s)


async def mail_reset(connection: Connection, email_key: str) -> None:
    """Mails a link for a new password to the person who signs in with that address, if there is one.

    Always runs two statements, as Citus refuses a sub-select over people, who are copied to every node.
    """
    person_id = await connection.fetchval(_FIND_PERSON, email_key)
    await connection.execute(_MAIL_RESET, person_id)


async def mail_person(
    connection: Connection,
    kind: str,
    person_id: int,
    change: str | None = None,
    address: str | None = None,
    browser: str | None = None,
) -> None:
    """Mails a person: `new_device` signed in as them, or their `second_step` changed, or wrong ones were shown, and from where."""
    await connection.execute(_MAIL_PERSON, kind, person_id, change, address, browser)
