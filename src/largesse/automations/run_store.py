"""The SQL of placing the gifts of automations: due runs, the facts that decide about them, and their states.

Also the SQL of approvals that end, and of those that nobody may give.
"""

from collections.abc import Collection, Sequence
from datetime import date, datetime

from largesse.automations.days_store import GIFTS, GIFTS_BY_NAME, GIFTS_OF_FEW, IN_TIME, ZONED, zone_columns
from largesse.automations.model import Automation, Days, RunKey
from largesse.customers.roles import RIGHTS, Right
from largesse.db.fragments import compose, each
from largesse.db.pool import Connection, Row
from largesse.db.scope import Place
from largesse.templates.store import TemplateContent

_TAKE = "SELECT * FROM take_automation_runs($1, $2, $3)"
_RUN = """
    SELECT state, reason, send_on, due_at, (SELECT clock_now()) AS now FROM automation_runs
    WHERE customer_id = $1 AND automation_id = $2 AND contact_id = $3 AND on_day = $4 AND state IN ('waiting', 'placing') FOR UPDATE
"""
_CONTACT = """
    SELECT c.email, c.name, c.birthday, c.start_date, c.left_at IS NULL AS is_active, m.joined_on FROM contacts c
    LEFT JOIN contact_members m ON m.customer_id = c.customer_id AND m.contact_id = c.id AND m.group_id = $3
    WHERE c.customer_id = $1 AND c.id = $2
"""
_USED = """
    SELECT count(*) FILTER (WHERE state IN ('placing', 'placed')) AS used,
           count(*) FILTER (WHERE is_before) AS before, min(look_at) FILTER (WHERE is_before AND reason IS NOT NULL) AS again_at
    FROM (SELECT *, state = 'waiting' AND due_at <= (SELECT clock_now()) AND (send_on, on_day, contact_id) < ($3, $4, $5) AS is_before
          FROM automation_runs) AS r
    WHERE customer_id = $1 AND automation_id = $2 AND send_on >= date_trunc('month', $3::date) AND send_on < date_trunc('month', $3::date) + interval '1 month'
        AND (on_day, contact_id) <> ($4, $5)
"""
# The gifts of `a` in a period, saved or not yet, with the decisions made about them. Leaves out those that `PLAN` never plans.
# A Saturday whose gift is sent on the Monday counts as a next day until then.
_DECIDED = """
    SELECT d.contact_id, d.on_day, d.send_on, d.name, d.email, coalesce(r.state, 'waiting') AS state, r.reason, r.due_at
    FROM ({gifts}) AS d LEFT JOIN LATERAL (
        SELECT * FROM automation_runs r WHERE r.customer_id = d.customer_id AND r.automation_id = d.automation_id
            AND r.contact_id = d.contact_id AND r.on_day = d.on_day OFFSET 0) AS r ON true
    WHERE greatest(d.on_day, d.send_on) >= $13 AND (r.state IS NOT NULL OR d.since IS NULL OR {in_time})
"""
# If the group of an automation has few members, they are read; else the contacts of each day, in the order of days, until there are enough. As many
# as all contacts may have the same day, so each has its first by name. Weekends move gifts by two days: the gifts of three days more are read.
_PREVIEW = compose(
    """
    WITH rule AS MATERIALIZED (
        SELECT $3::int AS customer_id, $4::text AS environment, $5::int AS id, $6::text AS occasion, $7::int AS group_id, $8::smallint[] AS years,
               $9::smallint AS days, $10::text AS zone, $11::text AS leap_day, $12::text AS weekend,
               coalesce(own.ahead, interval '0') AS ahead, own.created_at, own.days_changed_at,
               $7 IS NOT NULL AND $6 <> 'joined'
                   AND NOT EXISTS (SELECT FROM contact_members WHERE customer_id = $3 AND group_id = $7 OFFSET {few}) AS has_few
        FROM (VALUES (1)) AS one LEFT JOIN automations own ON own.customer_id = $3 AND own.id = $5
    ), asked AS (
        SELECT rule.*, coalesce(day::date, $13::date - 2) AS first, coalesce(day::date, $14::date) AS last
        FROM rule LEFT JOIN generate_series($13::date - 2, $14::date, interval '1 day') AS day ON NOT has_few
    ), {zoned}, due AS MATERIALIZED (
        (SELECT gift.* FROM (SELECT * FROM zoned WHERE NOT has_few ORDER BY first OFFSET 0) AS a
         CROSS JOIN LATERAL ({of_day} LIMIT $15) AS gift ORDER BY a.first LIMIT 4 * $15)
        UNION ALL SELECT gift.* FROM zoned AS a CROSS JOIN LATERAL ({of_few}) AS gift WHERE a.has_few
    )
    SELECT * FROM due ORDER BY send_on, name, email LIMIT $15
    """,
    zoned=ZONED,
    of_day=compose(_DECIDED, gifts=GIFTS_BY_NAME, in_time=IN_TIME),
    of_few=compose(_DECIDED, gifts=GIFTS_OF_FEW, in_time=IN_TIME),
    few=10_000,  # more of them have enough gifts soon
)
_FIRST_GIFT = """
    SELECT d.send_on FROM ({gifts}) AS d LEFT JOIN automation_runs r ON r.customer_id = d.customer_id AND r.automation_id = d.automation_id
        AND r.contact_id = d.contact_id AND r.on_day = d.on_day
    WHERE greatest(d.on_day, d.send_on) >= (((SELECT clock_now()) + d.ahead) AT TIME ZONE 'UTC')::date
        AND (r.state = 'waiting' OR r.state IS NULL AND {in_time})
    ORDER BY d.on_day LIMIT 1
"""
# The first day of a period that has no decision yet, saved or not. Gifts are sent in the order of their days, so days are read in this order until
# a contact has one; for a group with few members, these are read. Of more members, one has a day soon.
_NEXT = compose(
    """
    WITH asked AS (
        SELECT a.*, (((SELECT clock_now()) + a.ahead) AT TIME ZONE 'UTC')::date + $5::int AS first,
               (((SELECT clock_now()) + a.ahead) AT TIME ZONE 'UTC')::date + $6::int AS last,
               a.group_id IS NOT NULL AND a.occasion <> 'joined'
                   AND NOT EXISTS (SELECT FROM contact_members m WHERE m.customer_id = $3 AND m.group_id = a.group_id OFFSET {few}) AS has_few
        FROM automations a WHERE a.customer_id = $3 AND a.id = ANY($4::int[])
    ), {zoned}
    SELECT a.id AS automation_id, gift.send_on AS next_on FROM zoned AS a CROSS JOIN LATERAL ({first}) AS gift WHERE NOT a.has_few
    UNION ALL SELECT a.id, gift.send_on FROM zoned AS a CROSS JOIN LATERAL ({first_of_few}) AS gift WHERE a.has_few
    """,
    zoned=ZONED,
    first=compose(_FIRST_GIFT, gifts=GIFTS, in_time=IN_TIME),
    first_of_few=compose(_FIRST_GIFT, gifts=GIFTS_OF_FEW, in_time=IN_TIME),
    few=500,
)
_SET = """
    UPDATE automation_runs SET state = $5, reason = $6, order_reference = $7, look_at = coalesce($8, look_at),
        ended_at = CASE WHEN $5 IN ('waiting', 'placing') THEN NULL ELSE (SELECT clock_now()) END
    WHERE customer_id = $1 AND automation_id = $2 AND contact_id = $3 AND on_day = $4
"""
# A gift of an earlier day that is refused after this one is not mailed either.
_MARK_MAILED = """
    UPDATE automations SET mailed_on = greatest($3::date, ((clock_now() + ahead) AT TIME ZONE zone)::date)
    WHERE customer_id = $1 AND id = $2 AND coalesce(mailed_on < $3::date, true) RETURNING user_id
"""
_MAY_MEND = (
    "SELECT id, role FROM users WHERE customer_id = $1 AND is_active AND (id = $2 OR role = 'admin') ORDER BY id"
)
# The days of contacts for which an automation sent a gift, or is sending it. A gift that was cancelled was not given.
# A contact who was deleted and added again is a new one: `gone` finds the gifts of deleted contacts by the addresses of their orders, until these are
# erased. Only the gifts of the last year count, and those that were sent before the contact was added, so it reads little.
_GIVEN = """
    WITH given AS MATERIALIZED (
        SELECT contact_id, on_day, order_reference FROM automation_runs
        WHERE customer_id = $1 AND automation_id = $2 AND contact_id = ANY($3::int[]) AND state IN ('placing', 'placed')
    ), asked AS MATERIALIZED (
        SELECT id, email_key, created_at FROM contacts WHERE customer_id = $1 AND id = ANY($3::int[])
    ), gone AS MATERIALIZED (
        SELECT r.on_day, r.order_reference FROM automation_runs r
        WHERE r.customer_id = $1 AND r.automation_id = $2 AND r.state = 'placed'
            AND r.send_on > (SELECT (clock_now() + ahead)::date FROM automations WHERE customer_id = $1 AND id = $2) - 366
            AND r.send_on <= (SELECT max(created_at) FROM asked)
                + (SELECT ahead FROM automations WHERE customer_id = $1 AND id = $2) + interval '1 day'
            AND NOT EXISTS (SELECT FROM contacts c WHERE c.customer_id = $1 AND c.id = r.contact_id)
    ), orders_of AS MATERIALIZED (
        SELECT o.id, o.reference FROM orders o WHERE o.customer_id = $1
            AND o.reference IN (SELECT order_reference FROM given UNION ALL SELECT order_reference FROM gone)
    ), cancelled AS MATERIALIZED (
        SELECT o.reference FROM orders_of o JOIN line_states s ON s.customer_id = $1 AND s.order_id = o.id AND s.state = 'cancelled'
    ), addresses AS MATERIALIZED (
        SELECT o.reference, lower(l.recipient_email) AS email_key FROM orders_of o JOIN lines l ON l.customer_id = $1 AND l.order_id = o.id
    )
    SELECT contact_id, on_day FROM given WHERE order_reference IS NULL OR order_reference NOT IN (SELECT reference FROM cancelled)
    UNION ALL
    SELECT asked.id, gone.on_day FROM gone JOIN addresses a ON a.reference = gone.order_reference JOIN asked ON asked.email_key = a.email_key
    WHERE gone.order_reference NOT IN (SELECT reference FROM cancelled)
"""
_ORDER = """
    SELECT reference FROM orders
    WHERE customer_id = $1 AND environment = $2 AND external_reference = $3 AND source = 'automation' AND user_id IS NOT NULL
"""
_HOLDER = "SELECT source = 'automation' AND user_id IS NOT NULL FROM orders WHERE customer_id = $1 AND reference = $2"
# The automations that wait for approval, and that nobody may approve.
_STUCK = """
    SELECT a.id, a.name, a.user_id FROM automations a
    WHERE a.customer_id = $1 AND a.environment = $2 AND a.ended_at IS NULL AND a.paused_at IS NULL
        AND a.asks_approval AND a.approved_by IS NULL AND NOT EXISTS (
            SELECT FROM users u WHERE u.customer_id = a.customer_id AND u.is_active AND u.role = 'admin' AND u.id <> a.user_id)
    ORDER BY a.id
"""


async def take_runs(connection: Connection, environment: str, most: int, for_s: float) -> list[RunKey]:
    """Takes at most `most` due runs of all customers for `for_s` seconds, and returns them."""
    return [RunKey(*row) for row in await connection.fetch(_TAKE, environment, most, for_s)]


async def lock_run(connection: Connection, key: RunKey) -> Row | None:
    """Returns and locks a run that waits or is being placed."""
    return await connection.fetchrow(_RUN, key.customer_id, key.automation_id, key.contact_id, key.on_day)


async def read_contact(
    connection: Connection, key: RunKey, group_id: int | None
) -> tuple[str, str | None, Days] | None:
    """Returns the address, name and dates of a run's contact; None if the contact was deleted."""
    row = await connection.fetchrow(_CONTACT, key.customer_id, key.contact_id, group_id)
    if row is None:
        return None
    return (
        row["email"],
        row["name"] or None,
        Days(row["birthday"], row["start_date"], row["joined_on"], row["is_active"]),
    )


async def count_used(connection: Connection, key: RunKey, send_on: date) -> tuple[int, int, datetime | None]:
    """Returns how many other gifts of the automation were placed, or are being placed, in a run's month; how many are due before it; and when
    the first of those that were refused is tried again."""
    row = await connection.fetchrow(_USED, key.customer_id, key.automation_id, send_on, key.on_day, key.contact_id)
    assert row is not None, "counts are a row"
    return row["used"], row["before"], row["again_at"]


async def find_given(
    connection: Connection, customer_id: int, automation_id: int, contact_ids: Sequence[int]
) -> dict[int, list[date]]:
    """Returns by contact the days for which an automation sent a gift that was not cancelled, or is sending it.

    Includes gifts to a deleted contact with the same address.
    """
    given: dict[int, list[date]] = {}
    for row in await connection.fetch(_GIVEN, customer_id, automation_id, contact_ids):
        given.setdefault(row["contact_id"], []).append(row["on_day"])
    return given


async def set_run(
    connection: Connection,
    key: RunKey,
    state: str,
    *,
    reason: str | None = None,
    order_reference: str | None = None,
    look_at: datetime | None = None,
) -> None:
    """Saves the state of a run, and when to look at it next."""
    run = (key.customer_id, key.automation_id, key.contact_id, key.on_day)
    await connection.execute(_SET, *run, state, reason, order_reference, look_at)


async def mark_mailed(connection: Connection, key: RunKey, send_on: date) -> list[int]:
    """Returns the users to mail that a gift was refused or missed: the person its automation sends as, otherwise the administrators.

    Returns nobody if they were mailed about a gift of that day or of a later one. Call it inside a transaction that locked the automation.
    """
    user_id = await connection.fetchval(_MARK_MAILED, key.customer_id, key.automation_id, send_on)
    if user_id is None:
        return []
    roles = {row["id"]: row["role"] for row in await connection.fetch(_MAY_MEND, key.customer_id, user_id)}
    return [user_id] if roles.get(user_id) in RIGHTS[Right.SEND] else [id_ for id_ in roles if id_ != user_id]


async def find_order(connection: Connection, key: RunKey, environment: str) -> str | None:
    """Returns the reference of the order of a run; None if it was not placed."""
    reference: str | None = await connection.fetchval(_ORDER, key.customer_id, environment, key.external_reference)
    return reference


async def is_of_automation(connection: Connection, customer_id: int, reference: str) -> bool:
    """Returns whether an order was placed by an automation."""
    return bool(await connection.fetchval(_HOLDER, customer_id, reference))


async def preview_days(
    connection: Connection,
    zones: Sequence[tuple[str, str]],
    automation: Automation,
    *,
    first: date,
    last: date,
    limit: int,
) -> list[Row]:
    """Returns the days of an automation in a period, each with its decision."""
    rule = automation
    return await connection.fetch(
        _PREVIEW, *await zone_columns(connection, zones), rule.customer_id, rule.environment, rule.id, rule.occasion, rule.group_id, list(rule.years),
        rule.days, rule.zone, rule.leap_day, rule.weekend, first, last, limit,
    )  # fmt: skip


async def find_next_days(
    connection: Connection, zones: Sequence[tuple[str, str]], customer_id: int, automation_ids: Sequence[int], days: int
) -> dict[int, date]:
    """Returns when each automation sends its next gift. Leaves out those that send nothing in the next `days` days.

    Most automations have a gift soon, so it looks at longer and longer periods, each only for the automations that have no gift yet.
    Gifts are sent in the order of their days.
    """
    found: dict[int, date] = {}
    first, last = -2, 0  # a gift for a Saturday may be sent on the Monday
    while first <= days and (ids := [one for one in automation_ids if one not in found]):
        rows = await connection.fetch(
            _NEXT, *await zone_columns(connection, zones), customer_id, ids, first, min(last, days)
        )
        found |= {row["automation_id"]: row["next_on"] for row in rows}
        first, last = last + 1, 2 * last + 3
    return found


LOCK_AUTOMATIONS = "SELECT FROM automations WHERE customer_id = ANY($1::int[]) AND ended_at IS NULL ORDER BY customer_id, id FOR UPDATE"
# What a recipient gets from each approved automation: all of the template except its name and the gift's name.
_SENT = compose(
    """
    SELECT a.customer_id, a.id, a.user_id, ({content})::text AS sent
    FROM automations a JOIN templates t ON t.customer_id = a.customer_id AND t.id = a.template_id
    WHERE a.customer_id = ANY($1::int[]) AND a.ended_at IS NULL AND a.approved_by IS NOT NULL
    """,
    content=each("t.{name}", [name for name in TemplateContent.__struct_fields__ if name not in {"name", "gift_name"}]),
)
# $3: whether the approved price stays, so that the page can say what it was.
_END_APPROVAL = """
    UPDATE automations SET approved_by = NULL, approved_at = NULL, approved_minor = CASE WHEN $3 THEN approved_minor END
    WHERE customer_id = $1 AND id = $2
"""


async def read_approved(connection: Connection, customer_ids: Collection[int]) -> Sequence[Row]:
    """Returns the approved automations of customers, each with its person and what its template sends, as one text."""
    return await connection.fetch(_SENT, list(customer_ids))


async def end_approval(connection: Connection, customer_id: int, automation_id: int, *, keeps_price: bool) -> None:
    """Ends the approval of an automation. With `keeps_price`, the price at which it was approved stays."""
    await connection.execute(_END_APPROVAL, customer_id, automation_id, keeps_price)


async def list_stuck(connection: Connection, place: Place) -> list[Row]:
    """Returns the automations whose approval nobody can give: no administrator is left besides their person."""
    return await connection.fetch(_STUCK, *place)
