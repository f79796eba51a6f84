"""The outbox of mail: what a transaction hands over with the rest of its work, so that all of it exists or none does.

Orders hand over jobs, from which their messages are made when they are due, and fulfilment hands over notifications, which are messages
at once; a cancellation takes back what has not left. `delivery.mail` sends what is here. Mail to people who sign in, `delivery.people` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from largesse.db.pool import Connection
from largesse.db.statements import insert
from largesse.jobs.notifier import notify

_NEW_JOBS = "INSERT INTO mail_jobs (customer_id, order_id, environment, due_at)"


def new_mail_jobs(orders: str, at: str) -> str:
    """SQL that makes the mail job of each of `orders` that is emailed: a statement, or part of one.

    `orders` have `id`, `customer_id`, `environment`, `delivery_mode` and `scheduled_for`; `at` is a placeholder.
    """
    return f"""
        {_NEW_JOBS} SELECT customer_id, id, environment, coalesce(scheduled_for, {at}) FROM {orders} WHERE delivery_mode = 'send'
    """  # noqa: S608 - placeholders


async def insert_mail_jobs(connection: Connection, jobs: Sequence[tuple[int, int, str, datetime]]) -> None:
    """Makes mail jobs of one customer on its node: of each the customer, the order, the environment, and when it is due."""
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
    """Makes a notification of a line, its customer, order and number, due, once for each kind, and wakes the workers after the commit."""
    await connection.execute(
        """
        INSERT INTO messages
            (customer_id, order_id, environment, kind, edition, email, name, line_numbers, due_at, rank_at, created_at)
        VALUES ($1, $2, $4, $5, $3::int, $6, $7, ARRAY[$3::int], $8, $8, $8) ON CONFLICT DO NOTHING
        """,
        *line,
        environment,
        kind,
        email,
        name,
        at,
    )
    await notify(connection)


async def lock_mail_job(connection: Connection, order: tuple[int, int]) -> None:
    """Locks the mail job of an order, its customer and id, for who changes what its mail says: lines are locked before it, messages after it.

    A fan-out holds the job while it makes messages of what the lines say: it is waited for, or sees what the caller has changed.
    """
    await connection.execute("SELECT FROM mail_jobs WHERE customer_id = $1 AND order_id = $2 FOR UPDATE", *order)


async def hold_mail_back(connection: Connection, customer_id: int, order_id: int) -> None:
    """Takes the cancelled lines of an order out of its mail that has not left; a job or message without any lines left ends here."""
    order = (customer_id, order_id)
    await lock_mail_job(connection, order)
    await connection.execute(
        """
        UPDATE mail_jobs SET fanned_out_at = clock_now()
        WHERE customer_id = $1 AND order_id = $2 AND fanned_out_at IS NULL
        AND NOT EXISTS (SELECT FROM lines l WHERE l.customer_id = $1 AND l.order_id = $2 AND NOT EXISTS (
            SELECT FROM line_states s
            WHERE s.customer_id = $1 AND s.order_id = $2 AND s.number = l.number AND s.state = 'cancelled'))
        """,
        *order,
    )
    cancelled = await connection.fetch(
        "SELECT number FROM line_states WHERE customer_id = $1 AND order_id = $2 AND state = 'cancelled'", *order
    )
    await connection.execute(
        """
        WITH rest AS (
            SELECT m.id, ARRAY(
                SELECT line FROM unnest(m.line_numbers) AS line WHERE line <> ALL ($3::int[]) ORDER BY line) AS numbers
            FROM messages m WHERE m.customer_id = $1 AND m.order_id = $2 AND m.kind = 'gift' AND m.state IN ('pending', 'held'))
        UPDATE messages SET
            line_numbers = CASE WHEN numbers = '{}' THEN line_numbers ELSE numbers END,
            state = CASE WHEN numbers = '{}' THEN 'cancelled' ELSE state END,
            finished_at = CASE WHEN numbers = '{}' THEN clock_now() END
        FROM rest
        WHERE messages.customer_id = $1 AND messages.id = rest.id AND messages.state IN ('pending', 'held')
        """,
        *order,
        [row["number"] for row in cancelled],
    )


async def mail_invitation(connection: Connection, user_id: int) -> None:
    """Has an invitation mailed to a user."""
    await connection.execute("INSERT INTO people_mails (kind, user_id) VALUES ('invitation', $1)", user_id)


async def mail_low_balance(connection: Connection, account_id: int, user_ids: Sequence[int]) -> None:
    """Sends users a mail about a low balance."""
    await connection.execute(
        "INSERT INTO people_mails (kind, user_id, account_id) SELECT 'low_balance', unnest($1::int[]), $2",
        user_ids,
        account_id,
    )


async def mail_test(connection: Connection, user_id: int, content: bytes) -> None:
    """Has a message mailed to a user as it is: what those they are about to send a gift will get."""
    await connection.execute(
        "INSERT INTO people_mails (kind, user_id, content) VALUES ('test', $1, $2)", user_id, content
    )


async def mail_reset(connection: Connection, email_key: str) -> None:
    """Has a link for a new password mailed to who signs in by that address; to nobody where nobody does.

    Two statements, for nobody too: of people who are copied to every node the engine refuses a sub-select about each.
    """
    person_id = await connection.fetchval("SELECT id FROM people WHERE email_key = $1", email_key)
    await connection.execute(
        """
        INSERT INTO people_mails (kind, person_id) SELECT 'reset', $1::int WHERE EXISTS (SELECT FROM memberships($1::int))
        """,
        person_id,
    )


async def mail_new_device(connection: Connection, person_id: int, address: str | None, browser: str) -> None:
    """Sends a person a mail that a browser signed in as them which had not done so before."""
    await connection.execute(
        "INSERT INTO people_mails (kind, person_id, address, browser) VALUES ('new_device', $1, $2, $3)",
        person_id,
        address,
        browser,
    )


async def mail_second_step(
    connection: Connection, person_id: int, change: str, address: str | None = None, browser: str | None = None
) -> None:
    """Sends a person a mail about a change of their second step, one of the table's changes, and from where."""
    await connection.execute(
        "INSERT INTO people_mails (kind, person_id, change, address, browser) VALUES ('second_step', $1, $2, $3, $4)",
        person_id,
        change,
        address,
        browser,
    )
