"""The SQL of mail: jobs, messages and their outcomes, mail that is sent again, the captured mailbox, and mail to people who sign in."""

from largesse.db.fragments import NOTHING, Fragment, compose, grouped, identifier, join
from largesse.events.kinds import GIFT_BOUNCED, GIFT_SENT
from largesse.events.store import new_line_events
from largesse.lines.tasks import may_be

# The messages of a large order get ranks with gaps: this many messages, then a gap, in which other orders fit. The 5,000 of the largest
# order cover six hours, so that many such orders at once do not hold up others for long, even at a slow mail server. Nothing waits for its rank.
RANKED_TOGETHER = 10
RANK_GAP_S = 43.2

TAKE_JOBS = grouped(
    """
    SELECT customer_id, order_id, environment, due_at, (
        SELECT ARRAY[code_count, (scheduled_for IS NOT NULL)::int] FROM orders o
        WHERE o.customer_id = mail_jobs.customer_id AND o.id = mail_jobs.order_id
          {within o.customer_id}) AS codes_and_scheduled
    FROM mail_jobs
    WHERE fanned_out_at IS NULL AND due_at <= (SELECT clock_now()) {within customer_id}
    ORDER BY due_at LIMIT $1 FOR UPDATE OF mail_jobs SKIP LOCKED
""",
    "$2",
)
MARK_FANNED_OUT = grouped(
    """
    UPDATE mail_jobs SET fanned_out_at = (SELECT clock_now())
    FROM unnest($1::int[], $2::int[]) AS taken (customer_id, order_id)
    WHERE mail_jobs.customer_id = taken.customer_id AND mail_jobs.order_id = taken.order_id
      {within mail_jobs.customer_id}
""",
    "$3",
)
LINES_TO_MAIL = grouped(
    """
    SELECT customer_id, order_id, number, recipient_email, recipient_name
    FROM unnest($1::int[], $2::int[]) AS due (customer_id, order_id) JOIN lines USING (customer_id, order_id)
    WHERE recipient_email IS NOT NULL {within lines.customer_id} AND NOT EXISTS (
        SELECT FROM line_states AS states
        WHERE states.customer_id = lines.customer_id AND states.order_id = lines.order_id
          AND states.number = lines.number AND states.state = 'cancelled' {within states.customer_id})
    ORDER BY order_id, number
""",
    "$3",
)
INSERT_MESSAGES = """
    INSERT INTO messages (customer_id, order_id, environment, email, name, line_numbers, due_at, rank_at, created_at)
    SELECT customer_id, order_id, environment, email, name, line_numbers::int[], due_at,
           due_at + (row_number() OVER (PARTITION BY order_id ORDER BY place) / $8::int) * $9::float8 * interval '1 second',
           (SELECT clock_now())
    FROM unnest($1::int[], $2::int[], $3::text[], $4::timestamptz[], $5::text[], $6::text[], $7::text[]) WITH ORDINALITY
            AS new (customer_id, order_id, environment, due_at, email, name, line_numbers, place)
    ORDER BY place
    ON CONFLICT DO NOTHING
"""

# The captured mailbox.
NEXT_CAPTURED_NUMBER = "SELECT -nextval('captured_mail_id_seq')"
CAPTURED_PAGE = "SELECT id, recipient, subject, captured_at FROM captured_page($1, $2, $3)"
CAPTURED_MESSAGE = "SELECT message_id, sealed, captured_at FROM captured_message($1, $2)"

# The data that a message needs when it is sent.
ORDERS_OF_MESSAGES = grouped(
    """
    SELECT taken.id, orders.reference, orders.from_name,
           -- A message with placeholders was filled in for each line.
           CASE WHEN position('{' IN orders.message) > 0 THEN coalesce(
               (SELECT own.message FROM line_messages AS own
                WHERE own.customer_id = orders.customer_id AND own.order_id = orders.id
                AND own.number = ANY(taken.numbers::int[]) {within own.customer_id}
                ORDER BY own.number LIMIT 1), orders.message) ELSE orders.message END AS message,
           orders.wrapping_key, orders.value_minor,
           orders.currency, orders.country, orders.expiry_after_days, orders.recipient_count,
           orders.product_id, orders.collection_id, CASE WHEN orders.source = 'campaign' THEN orders.reference END AS campaign_order,
           notified.product_id AS settled_id,
           (SELECT claim_by FROM follow_ups
            WHERE follow_ups.customer_id = orders.customer_id AND follow_ups.order_id = orders.id
            {within follow_ups.customer_id}) AS claim_by,
           -- Whoever claimed a gift has chosen a language.
           (SELECT language FROM line_states AS claimed
            WHERE claimed.customer_id = orders.customer_id AND claimed.order_id = orders.id
            AND claimed.number = ANY(taken.numbers::int[]) AND language IS NOT NULL
            {within claimed.customer_id}
            ORDER BY claimed_at DESC LIMIT 1) AS language,
           ARRAY(SELECT lines.number FROM lines
            WHERE lines.customer_id = orders.customer_id AND lines.order_id = orders.id
            AND lines.number = ANY(taken.numbers::int[]) {within lines.customer_id} ORDER BY lines.number) AS numbers,
           ARRAY(SELECT lines.sealed FROM lines
            WHERE lines.customer_id = orders.customer_id AND lines.order_id = orders.id
            AND lines.number = ANY(taken.numbers::int[]) {within lines.customer_id} ORDER BY lines.number) AS sealed
    FROM unnest($1::int[], $2::bigint[], $3::int[], $4::text[], $5::int[])
        AS taken (customer_id, id, order_id, numbers, notified)
    JOIN orders ON orders.customer_id = taken.customer_id AND orders.id = taken.order_id
        {within orders.customer_id}
    -- A notification is of one line, whose number is its edition.
    LEFT JOIN line_states AS notified ON notified.customer_id = orders.customer_id
        AND notified.order_id = orders.id AND notified.number = taken.notified
        {within notified.customer_id}
""",
    "$6",
)
NAMES_OF_MESSAGES = """
    SELECT taken.id, extract(epoch FROM clock_now() - taken.since)::float8 AS age_s,
           products.name AS product, products.is_digital, collections.name AS collection,
           settled.name AS settled, carrier, tracking_number, coalesce(settled.picture, products.picture) AS picture,
           coalesce(settled.description, products.description) AS description,
           coalesce(settled.how_to_redeem, products.how_to_redeem) AS how_to_redeem,
           coalesce(settled.terms, products.terms) AS terms, asks.language,
           coalesce(visitors.language, contacts.language) AS known_language
    FROM unnest($1::bigint[], $2::timestamptz[], $3::int[], $4::int[], $5::int[], $6::int[], $7::int[], $8::int[], $9::int[],
            $10::text[], $11::text[], $12::text[], $13::int[])
        AS taken (id, since, product_id, collection_id, settled_id, customer_id, order_id, shipped, asked, environment, email_key,
                  campaign_order, number)
    LEFT JOIN products ON products.id = taken.product_id
    LEFT JOIN collections ON collections.id = taken.collection_id
    LEFT JOIN products AS settled ON settled.id = taken.settled_id
    LEFT JOIN shipments ON shipments.customer_id = taken.customer_id
        AND shipments.order_id = taken.order_id AND shipments.number = taken.shipped
    LEFT JOIN campaign_asks AS asks ON asks.customer_id = taken.customer_id AND asks.id = taken.asked
    LEFT JOIN campaigns ON campaigns.customer_id = taken.customer_id AND campaigns.order_reference = taken.campaign_order
    LEFT JOIN campaign_people AS visitors ON visitors.customer_id = taken.customer_id AND visitors.campaign_id = campaigns.id
        AND visitors.number = taken.number
    LEFT JOIN contacts ON contacts.customer_id = taken.customer_id AND contacts.environment = taken.environment
        AND contacts.email_key = taken.email_key
"""
STILL_STANDS = """
    SELECT fence = $3 AND state = 'pending' AND line_numbers = $4 FROM messages WHERE customer_id = $1 AND id = $2
"""
PUT_BACK = """
    UPDATE messages SET leased_until = '-infinity', reason = $4, fault = 'server'
    FROM unnest($1::int[], $2::bigint[], $3::bigint[]) AS held (held_by, held_id, held_fence)
    WHERE customer_id = held_by AND id = held_id AND fence = held_fence AND state = 'pending'
"""
# Frees messages that could not be written, such as one whose code cannot be decrypted, and tries them again after $5 seconds.
POSTPONE = """
    UPDATE messages SET leased_until = '-infinity', reason = $4, fault = 'service', attempts = attempts + 1,
        due_at = (SELECT clock_now()) + $5::float8 * interval '1 second',
        rank_at = (SELECT clock_now()) + ($5::float8 + $6::float8) * interval '1 second'
    FROM unnest($1::int[], $2::bigint[], $3::bigint[]) AS held (held_by, held_id, held_fence)
    WHERE customer_id = held_by AND id = held_id AND fence = held_fence AND state = 'pending'
"""

# The state of an order's mail.
LATEST_OF_ORDER = """
    WITH latest AS (
        SELECT DISTINCT ON (email) *, max(edition) OVER (PARTITION BY email) AS resends,
               min(line_numbers[1]) OVER (PARTITION BY email) AS place
        FROM messages WHERE customer_id = $1 AND order_id = $2 AND kind = 'gift' ORDER BY email, edition DESC)
    SELECT email, name, cardinality(line_numbers) AS code_count, state, reason, fault, due_at,
           CASE WHEN state IN ('sent', 'captured') THEN finished_at END AS sent_at, attempts, resends
    FROM latest ORDER BY place OFFSET $3 LIMIT $4
"""
JOB_OF_ORDER = (
    "SELECT due_at, due_at > clock_now() AS scheduled FROM mail_jobs WHERE customer_id = $1 AND order_id = $2"
)

# The outcomes of messages that were captured.
CAPTURE_ALL = """
    INSERT INTO captured_mail (customer_id, message_id, environment, recipient, subject, sealed, claims, captured_at)
    SELECT *, (SELECT clock_now()) FROM unnest($1::int[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bytea[], $7::bool[])
    ON CONFLICT DO NOTHING
"""
# Captured mail whose recipients claim their gifts.
CLAIMING = """
    SELECT c.customer_id, c.id, m.order_id, m.line_numbers
    FROM (SELECT * FROM captured_mail WHERE claims ORDER BY id LIMIT $1) AS c
    JOIN messages m ON m.customer_id = c.customer_id AND m.id = c.message_id ORDER BY c.id
"""
END_CLAIMING = "UPDATE captured_mail SET claims = false WHERE customer_id = $1 AND id = $2"

# Mail to people who sign in. What only workers of the next release can write, while it is rolled out, is left to them.
TAKE_PEOPLE_MAILS = """
    SELECT m.id, m.kind, m.user_id, m.person_id, m.attempts + 1 AS attempts, host(m.address) AS address, m.browser,
           m.created_at, clock_now() - m.created_at > interval '3 days' AS is_old, m.account_id, m.credited_minor, m.content, m.change, m.request_id, m.note_order_id, m.automation_id
    FROM people_mails m
    WHERE m.due_at <= clock_now()
        AND m.kind IN ('invitation', 'reset', 'new_device', 'second_step', 'low_balance', 'credited', 'approval_asked', 'approval_ended',
                       'automation_asked', 'automation_refused', 'thank_you', 'test')
        AND coalesce(m.change, 'app_on') IN ('app_on', 'app_off', 'passkey_added', 'passkey_removed', 'recovery_codes', 'forgotten',
                                           'wrong_codes')
    ORDER BY m.due_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
"""
RETRY_PEOPLE_MAIL = (
    "UPDATE people_mails SET attempts = $2, due_at = clock_now() + $3::float8 * interval '1 second' WHERE id = $1"
)
ADDRESSEE = """
    SELECT coalesce(u.email, p.email) AS email, p.language, c.name AS customer_name, c.id AS customer_id,
           u.id IS NOT NULL AND NOT u.is_active AS is_removed
    FROM (VALUES ($1::int, $2::int)) AS of (user_id, person_id)
    LEFT JOIN users u ON u.id = of.user_id LEFT JOIN customers c ON c.id = u.customer_id
    LEFT JOIN people p ON p.id = coalesce(of.person_id, u.person_id)
"""
DELETE_PEOPLE_MAIL = "DELETE FROM people_mails WHERE id = $1"

# The content of a mail about a low balance.
LOW_BALANCE = """
    SELECT a.name AS account, a.environment, a.currency, a.balance_minor, w.below_minor
    FROM users u
    JOIN account_watchers x ON x.customer_id = u.customer_id AND x.user_id = u.id
    JOIN account_watches w ON w.customer_id = x.customer_id AND w.account_id = x.account_id
    JOIN accounts a ON a.customer_id = w.customer_id AND a.id = w.account_id
    WHERE u.id = $1 AND a.id = $2 AND u.is_active AND u.role = ANY($3::text[]) AND a.balance_minor < w.below_minor
"""
# The content of a mail about money that arrived, to a user who may see the account's statement: their role shows all accounts ($3), or those
# that they may use ($4).
CREDITED = """
    SELECT a.name AS account, a.environment, a.currency, a.balance_minor
    FROM users u JOIN accounts a ON a.customer_id = u.customer_id AND a.id = $2
    LEFT JOIN account_users x ON x.customer_id = a.customer_id AND x.account_id = a.id AND x.user_id = u.id
    WHERE u.id = $1 AND u.is_active
      AND (u.role = ANY($3::text[]) OR u.role = ANY($4::text[]) AND (a.open_to_all OR x.user_id IS NOT NULL))
"""
# The content of a mail to an administrator about an automation that still waits for approval.
ASKED_AUTOMATION = """
    SELECT a.id, a.name, a.environment, s.name AS requester
    FROM users u
    JOIN automations a ON a.customer_id = u.customer_id AND a.id = $2
    JOIN users s ON s.customer_id = a.customer_id AND s.id = a.user_id
    WHERE u.id = $1 AND u.is_active AND u.role = 'admin' AND u.id <> a.user_id
        AND a.asks_approval AND a.approved_by IS NULL AND a.ended_at IS NULL
"""
# The content of a mail about gifts of an automation that were refused or missed, to a user who can send or is an administrator.
REFUSING_AUTOMATION = """
    SELECT a.name, a.environment, a.zone
    FROM users u JOIN automations a ON a.customer_id = u.customer_id AND a.id = $2
    WHERE u.id = $1 AND u.is_active AND u.role = ANY($3::text[]) AND (u.id = a.user_id OR u.role = 'admin') AND a.ended_at IS NULL
"""
# The gifts that are tried again, and those that were given up lately, by reason.
REFUSED_GIFTS = """
    SELECT reason, state = 'failed' AS is_failed, count(*), sum(count(*)) OVER ()::int AS all_gifts,
           CASE WHEN state = 'waiting' THEN min(due_at) + interval '3 days' END AS until
    FROM automation_runs
    WHERE customer_id = $1 AND automation_id = $2 AND send_on > ($3::timestamptz AT TIME ZONE 'UTC')::date - 14
        AND (state = 'waiting' AND reason <> 'not_approved'
             OR state IN ('failed', 'missed') AND ended_at > $3::timestamptz - interval '1 hour')
    GROUP BY state, reason ORDER BY state DESC, min(due_at) LIMIT 20
"""

# The customers among $1 with due mail.
CUSTOMERS_WAITING = """
    SELECT customer_id FROM mail_jobs
    WHERE fanned_out_at IS NULL AND due_at <= (SELECT clock_now()) AND customer_id = ANY($1::int[]) ORDER BY due_at LIMIT 500
"""

# Erasing recipients.
NOTIFIED_LINES = compose(
    """
    SELECT customer_id, order_id, edition::int AS number, email FROM messages
    WHERE kind NOT IN ('gift', 'campaign_code') AND kind NOT LIKE 'reminder%' AND {may_be}
""",
    may_be=may_be("email"),
)
LOCK_MAIL = """
    SELECT id, email, kind, edition FROM messages WHERE customer_id = $1 AND order_id = $2 ORDER BY id FOR UPDATE
"""
# ANY, as a plan for any customer expects each to have few rows, and would read all of a large one.
ERASE_MAIL = """
    UPDATE messages SET email = erased.email, name = NULL, reason = NULL, fence = fence + 1,
        finished_at = CASE WHEN state IN ('pending', 'held') THEN clock_now() ELSE finished_at END,
        state = CASE WHEN state IN ('pending', 'held') THEN 'cancelled' ELSE state END
    FROM unnest($2::bigint[], $3::text[]) AS erased (message_id, email)
    WHERE customer_id = $1 AND id = message_id AND id = ANY($2::bigint[]) RETURNING state
"""
_ERASED_CODE = Fragment("""
    email = 'erased-' || abs(edition) || '@erased.invalid', reason = NULL, fence = fence + 1,
    finished_at = CASE WHEN state IN ('pending', 'held') THEN clock_now() ELSE finished_at END,
    state = CASE WHEN state IN ('pending', 'held') THEN 'cancelled' ELSE state END
""")
ERASE_CODES_OF_ORDER = compose(
    """
    UPDATE messages SET {erased_code}
    WHERE customer_id = $1 AND order_id = $2 AND kind = 'campaign_code' AND email NOT LIKE '%@erased.invalid' RETURNING id
    """,
    erased_code=_ERASED_CODE,
)
# Mail to an address that no line has: codes of campaigns, and reminders that left before the address was corrected.
_ADDRESSED = Fragment("(kind = 'campaign_code' OR kind LIKE 'reminder%')")
ERASE_CODE = compose(
    "UPDATE messages SET {erased_code} WHERE customer_id = $1 AND id = $2 AND {addressed}",
    erased_code=_ERASED_CODE,
    addressed=_ADDRESSED,
)
CODES_TO = compose(
    """
    SELECT customer_id, id, email FROM messages WHERE {addressed} AND ($2::int IS NULL OR customer_id = $2) AND {may_be}
    """,
    addressed=_ADDRESSED,
    may_be=may_be("email"),
)
DELETE_CAPTURED = "DELETE FROM captured_mail WHERE customer_id = $1 AND message_id = ANY($2::bigint[])"
DELETE_CAPTURED_OF_ORDER = """
    DELETE FROM captured_mail WHERE customer_id = $1
    AND message_id IN (SELECT id FROM messages WHERE customer_id = $1 AND order_id = $2)
"""
# After a correction, captured copies and answers of mail servers still have the former address.
COPIES_TO = compose(
    """
    SELECT customer_id, message_id, recipient FROM captured_mail WHERE ($2::int IS NULL OR customer_id = $2) AND {may_be}
    """,
    may_be=may_be("recipient"),
)
ERASE_FROM_REASONS = "UPDATE messages SET reason = NULL WHERE position($1 IN lower(reason)) > 0 AND ($2::int IS NULL OR customer_id = $2)"
ERASE_OLD_REQUEUES = (
    "UPDATE mail_requeues SET reason = NULL WHERE reason IS NOT NULL AND at <= clock_now() - $1 * interval '1 day'"
)
ERASE_FROM_REQUEUES = "UPDATE mail_requeues SET reason = NULL WHERE position($1 IN lower(reason)) > 0"
COUNT_BY_STATE = """
    SELECT state, count(*) FROM messages WHERE customer_id = $1 AND order_id = $2 AND kind = 'gift' GROUP BY state
"""


def _record(beside: Fragment) -> Fragment:
    """Returns SQL that writes outcomes; `beside` is a part of the statement that reads what is `written`."""
    return compose(
        """
        WITH written AS (
            UPDATE messages SET
                state = new.state,
                attempts = attempts + (new.state <> 'held')::int,
                reason = new.reason,
                fault = new.fault,
                due_at = CASE WHEN new.state = 'pending' THEN (SELECT clock_now()) + new.delay_s * interval '1 second' ELSE due_at END,
                rank_at = CASE WHEN new.state = 'pending' THEN (SELECT clock_now()) + (new.delay_s + $8) * interval '1 second' ELSE rank_at END,
                finished_at = CASE WHEN new.state NOT IN ('pending', 'held') THEN (SELECT clock_now()) END,
                leased_until = '-infinity'
            -- Limited to what there is, for the planner's sake: it expects a row or two whatever the arrays hold, so that one
            -- plan of a connection serves all its batches. Planning each anew took a quarter of what a message
            -- costs the database.
            FROM (SELECT * FROM unnest(
                    $1::int[], $2::bigint[], $3::bigint[], $4::text[], $5::float8[], $6::text[], $7::text[]) LIMIT $13)
                    AS new (customer_id, id, fence, state, delay_s, reason, fault)
            -- What is pending is found by what is leased and has not finished: asked for by state, all that are pending might be
            -- read, by the index of those.
            WHERE messages.customer_id = new.customer_id AND messages.id = new.id AND messages.fence = new.fence
                AND messages.finished_at IS NULL AND leased_until > '-infinity'
            RETURNING messages.id, messages.customer_id, messages.order_id, messages.state, messages.fence, kind, edition, line_numbers
        ) {beside}
        SELECT id, true AS is_written FROM written
        UNION ALL
        SELECT next.id, false
        FROM (SELECT * FROM unnest($9::int[], $10::bigint[], $11::bigint[], $12::text[]) LIMIT $14)
            AS next (customer_id, id, fence, lines)
        WHERE (SELECT fence = next.fence AND state = 'pending' AND line_numbers::text = next.lines
               FROM messages WHERE messages.customer_id = next.customer_id AND messages.id = next.id)
    """,
        beside=beside,
    )


EVENTS = {"sent": GIFT_SENT, "captured": GIFT_SENT, "bounced": GIFT_BOUNCED, "exhausted": GIFT_BOUNCED}
_NAMED = join(
    Fragment(" "),
    [
        compose("WHEN '{state}' THEN '{event}'", state=identifier(state), event=identifier(event.name))
        for state, event in EVENTS.items()
    ],
)
# Looks up each line by its key, so that the planner cannot choose another join.
_EVENTS_OF_WRITTEN = compose(
    """
    SELECT w.customer_id, w.order_id, l.number AS line_number, o.reference, o.environment, l.recipient_email AS recipient,
           w.event, w.event || '/' || w.edition || '/' || w.fence AS occurrence, (SELECT clock_now()) AS at
    FROM (SELECT *, CASE state {named} END AS event FROM written WHERE kind = 'gift') AS w
    CROSS JOIN LATERAL (SELECT * FROM orders WHERE customer_id = w.customer_id AND id = w.order_id OFFSET 0) AS o
    CROSS JOIN LATERAL (
        SELECT * FROM lines
        WHERE customer_id = w.customer_id AND order_id = w.order_id AND number = ANY(w.line_numbers) OFFSET 0) AS l
    WHERE w.event IS NOT NULL ORDER BY w.id, l.number
""",
    named=_NAMED,
)
RECORD = _record(compose(", recorded AS ({events})", events=new_line_events(_EVENTS_OF_WRITTEN)))
RECORD_ON_NODES = _record(NOTHING)
