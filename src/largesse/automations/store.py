"""The SQL of automations and their runs."""

from collections.abc import Sequence
from datetime import date, timedelta

from largesse.automations.days_store import GIFTS, IN_TIME, ZONED, zone_columns
from largesse.automations.model import CHOOSES_DAYS, Automation, AutomationRule
from largesse.base.errors import existing
from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection, Row
from largesse.db.scope import Place
from largesse.db.statements import plan_in_order

_RULE = Fragment(
    "name, occasion, group_id, template_id, account_id, zone, years, days, leap_day, weekend, cap, asks_approval"
)
_COLUMNS = Fragment("""
    a.customer_id, a.id, a.environment, a.user_id, a.name, a.occasion, a.group_id, a.template_id, a.account_id, a.zone, a.years, a.days,
    a.leap_day, a.weekend, a.cap, a.asks_approval, a.approved_by, a.approved_minor, a.paused_at, a.ended_at, a.created_at, a.planned_through
""")
# Tables of a node, and tables copied to the nodes, are read in their own parts: an outer join with them crashes a Citus coordinator.
_WITH_NAMES = compose(
    """
    WITH f AS MATERIALIZED (SELECT id, name FROM accounts WHERE customer_id = $1 AND kind = 'funding'),
    u AS MATERIALIZED (SELECT id, name, CASE WHEN is_active THEN role END AS role FROM users WHERE customer_id = $1)
    SELECT {columns}, u.name AS owner, u.role AS owner_role, g.name AS "group", coalesce(nullif(t.name, ''), t.gift_name) AS template, f.name AS account
    FROM automations a LEFT JOIN u ON u.id = a.user_id
    LEFT JOIN contact_groups g ON g.customer_id = a.customer_id AND g.id = a.group_id
    LEFT JOIN templates t ON t.customer_id = a.customer_id AND t.id = a.template_id AND t.removed_at IS NULL
    LEFT JOIN f ON f.id = a.account_id
    WHERE a.customer_id = $1 AND a.environment = $2
    """,
    columns=_COLUMNS,
)
_LIST = compose("{rows} AND a.ended_at IS NULL ORDER BY lower(a.name), a.id", rows=_WITH_NAMES)
_ONE = compose("{rows} AND a.id = $3", rows=_WITH_NAMES)
_LOCK = compose(
    "SELECT {columns} FROM automations a WHERE a.customer_id = $1 AND a.environment = $2 AND a.id = $3 FOR UPDATE",
    columns=_COLUMNS,
)
COUNT = "SELECT count(*) FROM automations WHERE customer_id = $1 AND environment = $2 AND ended_at IS NULL"
# Gifts for days before the automation existed are not sent late.
_ADD = compose(
    """
    INSERT INTO automations ({rule}, customer_id, environment, user_id, planned_through, plan_at)
    VALUES ($4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $1, $2, $3,
            ((SELECT clock_now()) AT TIME ZONE 'UTC')::date - 2, (SELECT clock_now())) RETURNING id
    """,
    rule=_RULE,
)
_CHANGE = compose(
    """
    UPDATE automations SET ({rule}) = ($5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16),
        user_id = $4, approved_by = NULL, approved_at = NULL, approved_minor = NULL, mailed_on = NULL, days_changed_at = CASE WHEN $17 THEN clock_now() ELSE days_changed_at END,
        planned_through = (((SELECT clock_now()) + ahead) AT TIME ZONE 'UTC')::date - 2, plan_at = (SELECT clock_now())
    WHERE customer_id = $1 AND environment = $2 AND id = $3
    """,
    rule=_RULE,
)
_DROP_WAITING = """
    DELETE FROM automation_runs WHERE customer_id = $1 AND automation_id = $2 AND state = 'waiting' AND ($3 OR due_at > (SELECT clock_now()))
"""
_APPROVE = """
    UPDATE automations SET approved_by = $3, approved_at = clock_now(), approved_minor = $4 WHERE customer_id = $1 AND id = $2
"""
# Makes the gifts that waited for approval due now, instead of at their next hourly check.
_LOOK_NOW = """
    UPDATE automation_runs SET look_at = (SELECT clock_now()), reason = NULL
    WHERE customer_id = $1 AND automation_id = $2 AND state = 'waiting' AND reason = 'not_approved'
"""
_PAUSE = "UPDATE automations SET paused_at = CASE WHEN $3 THEN clock_now() END WHERE customer_id = $1 AND id = $2"
_PAUSE_OF = """
    UPDATE automations SET paused_at = clock_now() WHERE customer_id = $1 AND user_id = $2 AND paused_at IS NULL AND ended_at IS NULL
    RETURNING id, environment, name
"""
_END = "UPDATE automations SET ended_at = clock_now() WHERE customer_id = $1 AND id = $2"
_WAITING_FOR_APPROVAL = """
    SELECT a.id, a.name, u.name AS owner FROM automations a
    LEFT JOIN users u ON u.customer_id = a.customer_id AND u.id = a.user_id
    WHERE a.customer_id = $1 AND a.environment = $2 AND a.ended_at IS NULL AND a.paused_at IS NULL
        AND a.asks_approval AND a.approved_by IS NULL AND a.user_id <> $3 ORDER BY a.id
"""
_BLOCKED = """
    SELECT automation_id, count(*) AS gifts, min(due_at) AS due_at FROM (
        SELECT automation_id, due_at FROM automation_runs
        WHERE customer_id = $1 AND environment = $2 AND state = 'waiting' AND reason IS NOT NULL AND reason <> 'not_approved' LIMIT $3
    ) AS blocked GROUP BY automation_id ORDER BY min(due_at)
"""
_LOST = """
    SELECT r.automation_id, count(*) AS gifts FROM automations a
    JOIN automation_runs r ON r.customer_id = a.customer_id AND r.automation_id = a.id
    WHERE a.customer_id = $1 AND a.environment = $2 AND a.ended_at IS NULL AND r.send_on > $3 AND r.state IN ('failed', 'missed')
    GROUP BY r.automation_id ORDER BY r.automation_id
"""
_APPROVERS = "SELECT id FROM users WHERE customer_id = $1 AND is_active AND role = 'admin' AND id <> $2"
_NAMED = """
    SELECT EXISTS (SELECT FROM automations WHERE customer_id = $1 AND environment = $2 AND lower(name) = lower($3)
                   AND ended_at IS NULL AND id IS DISTINCT FROM $4)
"""
_FITTING = """
    SELECT EXISTS (SELECT FROM templates WHERE customer_id = $1 AND id = $3 AND removed_at IS NULL) AS template,
           $4::int IS NULL OR EXISTS (SELECT FROM contact_groups WHERE customer_id = $1 AND environment = $2 AND id = $4) AS "group"
"""
_DAYS = compose(
    "{zoned}, due AS MATERIALIZED (SELECT gift.* FROM zoned AS a CROSS JOIN LATERAL ({gifts}) AS gift)",
    zoned=ZONED,
    gifts=GIFTS,
)
_SHARING = """
    SELECT g.id FROM contact_groups g WHERE g.customer_id = $1 AND g.id = ANY($3::int[]) AND EXISTS (
        SELECT FROM contact_members a JOIN contact_members b ON b.customer_id = a.customer_id AND b.contact_id = a.contact_id
        WHERE a.customer_id = $1 AND a.group_id = $2 AND b.customer_id = $1 AND b.group_id = g.id)
"""
_TAKE_TIME = "SELECT set_config('statement_timeout', $1, true)"
# Plans the automations that are due, some days ahead. Recent days that are over are planned too, including the weekend before a recent Monday:
# their gifts are sent late, or are `missed`.
PLAN = compose(
    """
    WITH turn AS (
        SELECT a.customer_id, a.id FROM automations a WHERE a.ended_at IS NULL AND a.plan_at <= (SELECT clock_now())
        ORDER BY a.plan_at LIMIT $3 FOR UPDATE SKIP LOCKED
    ), asked AS (
        SELECT a.*, greatest(a.planned_through, today + $4::int) AS last, least(a.planned_through + 1, back - CASE
                   WHEN a.weekend = 'after' AND extract(dow FROM back) < 2 THEN extract(dow FROM back)::int + 1 ELSE 0 END) AS first
        FROM turn JOIN automations a USING (customer_id, id)
        CROSS JOIN LATERAL (SELECT (((SELECT clock_now()) + a.ahead) AT TIME ZONE 'UTC')::date AS today) AS now
        CROSS JOIN LATERAL (SELECT today - $5::int AS back) AS late
    ), {days}, planned AS (
        INSERT INTO automation_runs (customer_id, environment, automation_id, contact_id, on_day, send_on, due_at, look_at)
        SELECT customer_id, environment, automation_id, contact_id, on_day, send_on, due_at, due_at FROM due AS d WHERE {in_time}
        ON CONFLICT (customer_id, automation_id, contact_id, on_day) DO NOTHING RETURNING 1
    ), done AS (
        UPDATE automations a SET planned_through = asked.last, plan_at = (SELECT clock_now()) + interval '1 hour'
        FROM asked WHERE a.customer_id = asked.customer_id AND a.id = asked.id RETURNING 1
    )
    SELECT (SELECT count(*) FROM done) AS automations, (SELECT count(*) FROM planned) AS runs
    """,
    days=_DAYS,
    in_time=IN_TIME,
)
# Local tables are joined with orders as CTEs: an outer join of them crashes a Citus coordinator. Contacts are joined with the runs that are shown.
_PAST = """
    WITH newest AS MATERIALIZED (
        SELECT contact_id, on_day, send_on, state, reason, due_at, order_reference FROM automation_runs
        WHERE customer_id = $1 AND automation_id = $2 AND (state NOT IN ('waiting') OR due_at <= (SELECT clock_now()))
        ORDER BY send_on DESC, contact_id DESC LIMIT $3
    ), past AS MATERIALIZED (
        SELECT r.*, c.name, c.email FROM newest r LEFT JOIN contacts c ON c.customer_id = $1 AND c.id = r.contact_id
    ), sent AS MATERIALIZED (
        SELECT reference, user_id FROM orders WHERE customer_id = $1 AND reference IN (SELECT order_reference FROM past))
    SELECT past.*, sent.user_id AS sent_by FROM past LEFT JOIN sent ON sent.reference = past.order_reference
    ORDER BY send_on DESC, contact_id DESC
"""
_COUNTS = """
    SELECT automation_id, count(*) FILTER (WHERE state = 'placed') AS placed, count(*) FILTER (WHERE state = 'failed') AS failed
    FROM automation_runs WHERE customer_id = $1 AND automation_id = ANY($2::int[]) AND send_on > $3 GROUP BY automation_id
"""
_SKIP = """
    INSERT INTO automation_runs AS known
        (customer_id, environment, automation_id, contact_id, on_day, send_on, due_at, look_at, state, reason, ended_at)
    VALUES ($1, $2, $3, $4, $5, $6, (SELECT clock_now()), (SELECT clock_now()), 'skipped', 'person', (SELECT clock_now()))
    ON CONFLICT (customer_id, automation_id, contact_id, on_day)
        DO UPDATE SET state = 'skipped', reason = 'person', ended_at = (SELECT clock_now()) WHERE known.state = 'waiting' RETURNING 1
"""
_UNSKIP = """
    DELETE FROM automation_runs WHERE customer_id = $1 AND automation_id = $2 AND contact_id = $3 AND on_day = $4
        AND state = 'skipped' AND reason = 'person'
        AND send_on >= (SELECT (((SELECT clock_now()) + ahead) AT TIME ZONE 'UTC')::date FROM automations WHERE customer_id = $1 AND id = $2)
    RETURNING 1
"""
_TODAY = "SELECT (((SELECT clock_now()) + ahead) AT TIME ZONE 'UTC')::date FROM automations WHERE customer_id = $1 AND id = $2"
_PLAN_NOW = "UPDATE automations SET plan_at = (SELECT clock_now()) WHERE customer_id = $1 AND id = $2"

# Moves the future gifts of a customer in staging to an earlier time.
_AHEAD = """
    UPDATE automations SET ahead = ahead + $2::interval, plan_at = (SELECT clock_now())
    WHERE customer_id = $1 AND environment = 'staging' AND ended_at IS NULL
"""
_PLAN_AHEAD = compose(
    """
    WITH asked AS (
        SELECT a.*, (((SELECT clock_now()) + a.ahead) AT TIME ZONE 'UTC')::date - $4::int AS first,
               (((SELECT clock_now()) + a.ahead + $5::interval) AT TIME ZONE 'UTC')::date + $4::int AS last
        FROM automations a WHERE a.customer_id = $3 AND a.environment = 'staging' AND a.ended_at IS NULL
    ), {days}
    INSERT INTO automation_runs (customer_id, environment, automation_id, contact_id, on_day, send_on, due_at, look_at)
    SELECT customer_id, environment, automation_id, contact_id, on_day, send_on, due_at, due_at FROM due AS d WHERE {in_time}
    ON CONFLICT (customer_id, automation_id, contact_id, on_day) DO NOTHING
    """,
    days=_DAYS,
    in_time=IN_TIME,
)


def _values(rule: AutomationRule) -> tuple[object, ...]:
    return (
        rule.name, rule.occasion, rule.group_id, rule.template_id, rule.account_id, rule.zone, list(rule.years), rule.days,
        rule.leap_day, rule.weekend, rule.cap, rule.asks_approval,
    )  # fmt: skip


def _automation(row: Row) -> Automation:
    columns = dict(row)
    return Automation(**{**columns, "years": tuple(columns["years"])})


async def list_automations(connection: Connection, place: Place) -> list[Automation]:
    """Returns the automations of a customer that have not ended, by name."""
    return [_automation(row) for row in await connection.fetch(_LIST, *place)]


async def find_automation(connection: Connection, place: Place, automation_id: int) -> Automation:
    """Returns an automation, also one that has ended. Raises NotFound."""
    return _automation(existing(await connection.fetchrow(_ONE, *place, automation_id), "There is no such automation."))


async def lock_automation(connection: Connection, place: Place, automation_id: int) -> Automation | None:
    """Returns and locks an automation, without names."""
    row = await connection.fetchrow(_LOCK, *place, automation_id)
    return None if row is None else _automation(row)


async def list_approvers(connection: Connection, customer_id: int, user_id: int) -> list[int]:
    """Returns the users who may approve an automation of this user."""
    return [row["id"] for row in await connection.fetch(_APPROVERS, customer_id, user_id)]


async def list_waiting_for_approval(connection: Connection, place: Place, user_id: int) -> list[Row]:
    """Returns the automations that wait for approval, except the user's own."""
    return await connection.fetch(_WAITING_FOR_APPROVAL, *place, user_id)


async def count_blocked(connection: Connection, place: Place, *, most: int) -> list[Row]:
    """Returns, by automation, how many refused gifts are tried again, at most `most`, and when the first one was due."""
    return await connection.fetch(_BLOCKED, *place, most)


async def count_lost(connection: Connection, place: Place, after: date) -> list[Row]:
    """Returns by automation how many gifts for days after `after` failed or were missed."""
    return await connection.fetch(_LOST, *place, after)


async def is_named(connection: Connection, place: Place, name: str, automation_id: int | None) -> bool:
    """Returns whether another automation has the name."""
    return bool(await connection.fetchval(_NAMED, *place, name, automation_id))


async def find_parts(connection: Connection, place: Place, rule: AutomationRule) -> tuple[bool, bool]:
    """Returns whether the template and the group that a rule names are there."""
    row = await connection.fetchrow(_FITTING, *place, rule.template_id, rule.group_id)
    assert row is not None, "a query without a table has a row"
    return row["template"], row["group"]


async def list_sharing(connection: Connection, customer_id: int, group_id: int, others: Sequence[int]) -> set[int]:
    """Returns the groups of `others` that share a contact with a group."""
    return {row["id"] for row in await connection.fetch(_SHARING, customer_id, group_id, others)}


async def insert_automation(connection: Connection, place: Place, user_id: int, rule: AutomationRule) -> int:
    """Adds an automation and returns its id."""
    return int(await connection.fetchval(_ADD, *place, user_id, *_values(rule)))


async def change_automation(connection: Connection, automation: Automation, user_id: int, rule: AutomationRule) -> None:
    """Changes an automation, which then belongs to the person. Plans it again, and ends its approval."""
    key = (automation.customer_id, automation.environment, automation.id)
    is_same = all(getattr(automation, name) == getattr(rule, name) for name in CHOOSES_DAYS)
    await connection.execute(_CHANGE, *key, user_id, *_values(rule), not is_same)
    # Days before a change of days are not planned again, so their gifts go on waiting.
    await connection.execute(_DROP_WAITING, automation.customer_id, automation.id, is_same)


async def approve_automation(connection: Connection, automation: Automation, user_id: int, cost_minor: int) -> None:
    """Records who approved an automation, and at which price of a gift. The gifts that waited for the approval are due now."""
    await connection.execute(_APPROVE, automation.customer_id, automation.id, user_id, cost_minor)
    await connection.execute(_LOOK_NOW, automation.customer_id, automation.id)


async def pause_automations_of(connection: Connection, customer_id: int, user_id: int) -> list[Row]:
    """Pauses the automations that send as a person. Returns their ids, environments and names."""
    return await connection.fetch(_PAUSE_OF, customer_id, user_id)


async def pause_automation(connection: Connection, automation: Automation, *, paused: bool) -> None:
    """Pauses or resumes an automation."""
    await connection.execute(_PAUSE, automation.customer_id, automation.id, paused)


async def end_automation(connection: Connection, automation: Automation) -> None:
    """Ends an automation, and deletes its planned gifts."""
    await connection.execute(_END, automation.customer_id, automation.id)
    await connection.execute(_DROP_WAITING, automation.customer_id, automation.id, True)


async def skip_day(
    connection: Connection, automation: Automation, contact_id: int, on_day: date, send_on: date
) -> bool:
    """Skips a gift. Returns False if it is being placed or is already decided."""
    key = (automation.customer_id, automation.environment, automation.id)
    return await connection.fetchval(_SKIP, *key, contact_id, on_day, send_on) is not None


async def unskip_day(connection: Connection, automation: Automation, contact_id: int, on_day: date) -> bool:
    """Undoes the skipping of a gift, unless its day has passed."""
    key = (automation.customer_id, automation.id)
    if await connection.fetchval(_UNSKIP, *key, contact_id, on_day) is None:
        return False
    await connection.execute(_PLAN_NOW, *key)
    return True


async def plan_due(
    connection: Connection,
    zones: Sequence[tuple[str, str]],
    *,
    most: int,
    ahead: int,
    back: int,
    time_s: int | None = None,
) -> tuple[int, int]:
    """Plans the due automations. Returns how many, and how many runs were new. `zones` has the time zones of countries.

    With `time_s`, it may take so many seconds instead of those of the session. Call it inside a transaction then.
    """
    if time_s is not None:
        await connection.execute(_TAKE_TIME, f"{time_s}s")
    timeout_s = None if time_s is None else time_s + 1.0
    row = await connection.fetchrow(PLAN, *await zone_columns(connection, zones), most, ahead, back, timeout=timeout_s)
    assert row is not None, "an aggregate has a row"
    return row["automations"], row["runs"]


async def plan_ahead(
    connection: Connection, zones: Sequence[tuple[str, str]], customer_id: int, *, ahead: int, by: timedelta
) -> None:
    """Plans the automations of a customer in staging `ahead` days beyond a period of `by`, before the test clock skips the period."""
    await connection.execute(_PLAN_AHEAD, *await zone_columns(connection, zones), customer_id, ahead, by)
    await connection.execute(_AHEAD, customer_id, by)


async def read_today(connection: Connection, automation: Automation) -> date:
    """Returns the current day in UTC of an automation. In staging, the test clock moves it."""
    today: date = await connection.fetchval(_TODAY, automation.customer_id, automation.id)
    return today


async def list_past(connection: Connection, customer_id: int, automation_id: int, limit: int) -> list[Row]:
    """Returns the decided runs, newest first."""
    async with connection.transaction():
        await plan_in_order(connection)
        return await connection.fetch(_PAST, customer_id, automation_id, limit)


async def count_runs(
    connection: Connection, customer_id: int, automation_ids: Sequence[int], after: date
) -> dict[int, Row]:
    """Returns, by automation, how many gifts to be sent after the day `after` were placed, and how many failed."""
    rows = await connection.fetch(_COUNTS, customer_id, list(automation_ids), after)
    return {row["automation_id"]: row for row in rows}
