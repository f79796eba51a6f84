"""The SQL of members of staff: their sessions, links and second steps, and the data of the first page, which comes from tables of other packages."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import NamedTuple

import msgspec

from largesse.customers.sign_in_store import PEOPLE
from largesse.customers.staff_roles import STAFF_RIGHTS, StaffRight
from largesse.db.pool import Connection, Row

# Locks session $1 and its member until the end of the transaction.
HOLD = """
    SELECT m.id, m.role FROM staff_sessions s JOIN staff m ON m.id = s.staff_id
    WHERE s.id = $1 AND s.ended_at IS NULL AND NOT s.awaits_second_step AND s.ends_at > clock_now() AND m.is_active
    FOR SHARE
"""
# Locks member $1 until the end of the transaction, if they are active.
HOLD_MEMBER = "SELECT role FROM staff WHERE id = $1 AND is_active FOR SHARE"
# Operations that change owners or end sessions run one at a time.
LOCK_ALL = "SELECT pg_advisory_xact_lock(hashtext('largesse.staff'))"
IS_OPEN = "SELECT EXISTS (SELECT FROM staff)"
FIND_SESSION = """
    SELECT s.id, s.notice, s.seen_at < clock_now() - interval '1 minute' AS is_unseen, s.awaits_second_step,
           s.proved_at > clock_now() - $3::interval AS is_proved, m.id AS person_id, m.email, m.name, m.role, m.language, m.zone,
           m.has_password, m.has_app, EXISTS (SELECT FROM staff_passkeys k WHERE k.staff_id = m.id) AS has_passkey
    FROM staff_sessions s JOIN staff m ON m.id = s.staff_id
    WHERE s.hash = $1 AND s.ended_at IS NULL AND s.ends_at > clock_now() AND s.seen_at > clock_now() - $2::interval
      AND m.is_active
"""
BEGIN_SESSION = """
    INSERT INTO staff_sessions (hash, staff_id, address, browser, device, awaits_second_step, ends_at)
    VALUES ($1, $2, $3, $4, $5, $6, clock_now() + $7)
"""
NOTE_SIGNED_IN = "UPDATE staff SET last_signed_in_at = clock_now() WHERE id = $1"
FIND_BY_EMAIL = """
    SELECT id, email, staff_password_of($2, id) AS password, has_password, true AS is_member, true AS is_confirmed
    FROM staff WHERE email_key = $1 AND is_active
"""
NEW_LINK = "INSERT INTO staff_links (hash, kind, staff_id, ends_at) VALUES ($1, $2, $3, clock_now() + $4)"
END_LINKS = "UPDATE staff_links SET used_at = clock_now() WHERE staff_id = $1 AND used_at IS NULL"
FIND_LINK = """
    SELECT l.hash, l.kind, m.id AS staff_id, m.email
    FROM staff_links l JOIN staff m ON m.id = l.staff_id
    WHERE l.hash = $1 AND l.used_at IS NULL AND l.ends_at > clock_now() AND m.is_active
"""
USE_LINK = """
    UPDATE staff_links SET used_at = clock_now() WHERE hash = $1 AND used_at IS NULL AND ends_at > clock_now()
    RETURNING true
"""
INVITE = """
    INSERT INTO staff (email, email_key, name, role) VALUES ($1, $2, $3, $4)
    ON CONFLICT (email_key) DO UPDATE SET name = excluded.name, role = excluded.role, is_active = true
    RETURNING id
"""
PLACE = """
    SELECT (SELECT count(*) FROM staff WHERE is_active) AS people, m.name, m.role, m.is_active, m.has_password
    FROM (VALUES (1)) AS one LEFT JOIN staff m ON m.email_key = $1
"""
SET_ROLE = "UPDATE staff SET role = $2 WHERE id = $1"
DEACTIVATE = "UPDATE staff SET is_active = false, password = NULL WHERE id = $1"
# Replaces a chosen password by a hash that no password has.
LOCK_OUT = "UPDATE staff SET password = $2 WHERE id = $1 AND has_password"
COUNT_OTHER_OWNERS = "SELECT count(*) FROM staff WHERE is_active AND role = 'owner' AND id <> $1"
# Active members first, then by name.
LIST = """
    SELECT m.id, m.email, m.name, m.role, m.is_active, m.has_password AS has_signed_in,
           m.has_app OR EXISTS (SELECT FROM staff_passkeys k WHERE k.staff_id = m.id) AS has_second_step,
           (SELECT max(l.ends_at) FROM staff_links l WHERE l.staff_id = m.id AND l.kind = 'invitation'
            AND l.used_at IS NULL AND l.ends_at > clock_now()) AS invited_until,
           m.last_signed_in_at
    FROM staff m ORDER BY m.is_active DESC, m.name, m.id
"""


# The statements of signing in.
SIGN_IN = PEOPLE.renamed(
    {
        "people": "staff",
        "person_id": "staff_id",
        "sessions": "staff_sessions",
        "passkeys": "staff_passkeys",
        "recovery_codes": "staff_recovery_codes",
        "form_posts": "staff_form_posts",
        "password_of": "staff_password_of",
        "totp_of": "staff_totp_of",
    },
    totp_context="staff-totp/%d",
)

# Each number is exact below the limit $1, and is counted from an index of waiting rows. Mail with a fault that has not finished is pending.
WAITING = """
    SELECT (SELECT count(*) FROM (SELECT FROM top_ups WHERE state = 'waiting' AND environment = 'production' LIMIT $1) AS w) AS top_ups,
           (SELECT count(*) FROM (SELECT FROM voucher_waits WHERE NOT is_test LIMIT $1) AS w) AS vouchers,
           (SELECT count(*) FROM (SELECT FROM messages WHERE state = 'held' LIMIT $1) AS w) AS held,
           (SELECT count(*) FROM (SELECT FROM subscription_queues WHERE failing LIMIT $1) AS w) AS failing,
           (SELECT count(*) FROM (SELECT FROM messages WHERE finished_at IS NULL AND fault = 'server' LIMIT $1) AS w) AS put_off,
           (SELECT count(*) FROM (SELECT FROM messages WHERE finished_at IS NULL AND fault = 'service' LIMIT $1) AS w) AS unwritten
"""
# The installation is new unless its first customer was opened more than $1 days ago.
FIRST_STEPS = """
    SELECT coalesce((SELECT created_at > clock_now() - $1 * interval '1 day' FROM customers ORDER BY id LIMIT 1), true) AS is_new,
           EXISTS (SELECT FROM products) AS has_product, EXISTS (SELECT FROM customers) AS has_customer,
           (SELECT count(*) > 1 FROM staff WHERE is_active) AS has_colleague
"""
# Sessions of this database, by application name.
SESSIONS = """
    SELECT application_name AS name, count(*) AS sessions FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'largesse%' GROUP BY 1 ORDER BY 1
"""
SERVER = """
    SELECT current_setting('server_version') AS version, pg_database_size(current_database()) AS size_bytes,
           (SELECT max(version_num) FROM alembic_version) AS revision
"""
# Days in UTC, by currency, of production only.
DAYS = """
    SELECT s.day, g.currency, sum(s.orders)::bigint AS orders, sum(s.claimed)::bigint AS claimed, sum(s.spent_minor)::bigint AS spent_minor
    FROM report_sums s JOIN report_groups g ON g.customer_id = s.customer_id AND g.id = s.group_id
    WHERE s.grain = 'day' AND s.day = ANY($1::date[]) AND g.environment = 'production'
    GROUP BY 1, 2 ORDER BY 2, 1
"""
TODAY = "SELECT (clock_now() AT TIME ZONE 'UTC')::date"


MOST_COUNTED = 1_000


class Waiting(NamedTuple):
    """The number of open tasks of each kind, at most MOST_COUNTED."""

    top_ups: int
    vouchers: int
    held: int
    failing: int
    put_off: int  # mail that waits because the mail server fails
    unwritten: int  # mail that could not be written


class FirstSteps(NamedTuple):
    """What the staff of an installation have done so far."""

    is_new: bool
    has_product: bool
    has_customer: bool
    has_colleague: bool


class Server(NamedTuple):
    """The database server."""

    version: str
    size_bytes: int
    revision: str


class Day(msgspec.Struct, frozen=True):
    """The orders and claims of a day, and the amount spent, by currency, in minor units."""

    orders: int
    claimed: int
    spent: Mapping[str, int]


class Days(NamedTuple):
    """Today, and the same day a week ago."""

    today: date
    now: Day
    before: Day


async def hold_right(connection: Connection, staff_id: int, right: StaffRight) -> bool:
    """Returns whether a member is active and has that right, which they keep until the end of the transaction."""
    return await connection.fetchval(HOLD_MEMBER, staff_id) in STAFF_RIGHTS[right]


async def read_waiting(connection: Connection) -> Waiting:
    """Returns the number of open tasks."""
    row = await connection.fetchrow(WAITING, MOST_COUNTED)
    assert row is not None, "a query of one row"
    return Waiting(*row)


async def read_first_steps(connection: Connection, new_days: int) -> FirstSteps:
    """Returns what the staff have done so far. An installation is new until its first customer is `new_days` old."""
    row = await connection.fetchrow(FIRST_STEPS, new_days)
    assert row is not None, "a query of one row"
    return FirstSteps(*row)


async def read_sessions(connection: Connection) -> list[tuple[str, int]]:
    """Returns the names of processes that are connected to the database, with the number of sessions."""
    return [(row["name"], row["sessions"]) for row in await connection.fetch(SESSIONS)]


async def read_server(connection: Connection) -> Server:
    """Returns the version and size of the database, and the revision of its schema."""
    row = await connection.fetchrow(SERVER)
    assert row is not None, "a query of one row"
    return Server(*row)


async def read_days(connection: Connection) -> Days:
    """Returns today, in UTC, and the same day a week ago."""
    today: date = await connection.fetchval(TODAY)
    ago = today - timedelta(days=7)
    rows = await connection.fetch(DAYS, [today, ago])
    return Days(
        today, _day([row for row in rows if row["day"] == today]), _day([row for row in rows if row["day"] == ago])
    )


def _day(rows: Sequence[Row]) -> Day:
    return Day(
        sum(row["orders"] for row in rows),
        sum(row["claimed"] for row in rows),
        {row["currency"]: row["spent_minor"] for row in rows},
    )
