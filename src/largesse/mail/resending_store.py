"""The SQL of mail that is sent again, and of addresses that are corrected."""

from largesse.base.email import ERASED_DOMAIN
from largesse.db.fragments import Fragment, compose, grouped, identifier

# Mail that was not delivered, and is sent again.
RELEASE = """
    WITH waiting AS (
        SELECT count(*) FROM (
            SELECT FROM messages WHERE state = 'pending' AND rank_at <= (SELECT clock_now() + $2 * interval '1 second') LIMIT $1) AS due)
    UPDATE messages SET state = 'pending', reason = NULL, trying_since = (SELECT clock_now())
    WHERE (customer_id, id) IN (
        SELECT customer_id, id FROM messages WHERE state = 'held'
        ORDER BY rank_at LIMIT $1 - (SELECT count FROM waiting) FOR UPDATE SKIP LOCKED)
"""
NOTE_REQUEUED = "UPDATE mail_requeues SET messages = $2 WHERE id = $1"
LOCK_JOBS = grouped(
    """
    SELECT FROM mail_jobs JOIN unnest($1::int[], $2::int[]) AS wanted (customer_id, order_id)
        USING (customer_id, order_id)
    WHERE true {within mail_jobs.customer_id} ORDER BY order_id FOR UPDATE OF mail_jobs
""",
    "$3",
)
CANCELLED_LINES = """
    SELECT DISTINCT customer_id, order_id, number
    FROM unnest($1::int[], $2::int[]) AS wanted (customer_id, order_id) JOIN line_states USING (customer_id, order_id)
    WHERE state = 'cancelled'
"""
# Only the last mail of its kind is sent again: of an order's mail the last edition, and of mail about a parcel the last message.
# While a parcel is back, no mail says that it is on its way. (The edition of a notification is the number of its line.)
_IS_LAST = compose(
    """
    email NOT LIKE '%@{erased_domain}'
      AND NOT (kind = 'gift' AND EXISTS (
        SELECT FROM messages AS later
        WHERE later.customer_id = messages.customer_id AND later.order_id = messages.order_id AND later.email = messages.email AND later.kind = 'gift'
          AND later.edition > messages.edition))
      AND NOT (kind ~ '^(shipped|returned)' AND EXISTS (
        SELECT FROM messages AS later
        WHERE later.customer_id = messages.customer_id AND later.order_id = messages.order_id AND later.email = messages.email
          AND later.kind ~ '^(shipped|returned)' AND later.edition = messages.edition AND later.id > messages.id))
      AND NOT (kind LIKE 'shipped%' AND EXISTS (
        SELECT FROM shipments AS parcel
        WHERE parcel.customer_id = messages.customer_id AND parcel.order_id = messages.order_id AND parcel.number = messages.edition
          AND (parcel.returned_at >= parcel.shipped_at OR parcel.again_at IS NOT NULL)))
""",
    erased_domain=identifier(ERASED_DOMAIN),
)
# As the indexes of such mail have it. What a worker sends right now is shown, but not made due.
_UNDELIVERED = Fragment("(state IN ('bounced', 'exhausted', 'held') OR state = 'pending' AND fault IS NOT NULL)")
_IS_FREE = Fragment("leased_until <= (SELECT clock_now())")
_WANTED = compose(
    """
    state = ANY({states}) AND {undelivered} AND (state = 'pending' OR kind NOT LIKE 'reminder%' AND kind <> 'campaign_code')
      AND ({reason} IS NULL OR position(lower({reason}) IN lower(reason)) > 0) AND {is_last}
""",
    states=Fragment("$1::text[]"),
    reason=Fragment("$2::text"),
    undelivered=_UNDELIVERED,
    is_last=_IS_LAST,
)
# Checks again which mail is the last: mail may have been sent again while this waited for the locks.
MAKE_DUE = compose(
    """
    UPDATE messages SET
        state = 'pending', attempts = 0, fault = NULL, finished_at = NULL, trying_since = (SELECT clock_now()), due_at = at,
        rank_at = at + $7::float8 * interval '1 second', line_numbers = standing::int[]
    FROM unnest($1::int[], $2::bigint[], $3::text[]) WITH ORDINALITY AS wanted (wanted_of, wanted_id, standing, place),
        LATERAL (SELECT (SELECT clock_now()) + ((place + $4) / $5::int) * $6::float8 * interval '1 second') AS turn (at)
    WHERE customer_id = wanted_of AND id = wanted_id AND {undelivered} AND {is_free} AND {is_last}
""",
    undelivered=_UNDELIVERED,
    is_free=_IS_FREE,
    is_last=_IS_LAST,
)


def _given_up(columns: Fragment, more: Fragment) -> tuple[Fragment, Fragment]:
    """Returns SQL for mail that was not delivered, of any customer, and of customer $7."""
    of_all, of_one = (
        compose(
            """
            SELECT {columns} FROM messages
            WHERE {wanted} AND coalesce(finished_at, due_at) >= $3 AND {more} LIMIT $6
        """,
            columns=columns,
            wanted=_WANTED,
            more=compose("{whose} {more}", whose=whose, more=more),
        )
        for whose in (Fragment(""), Fragment("customer_id = $7 AND"))
    )
    return of_all, of_one


CANDIDATES = _given_up(
    Fragment("customer_id, id, order_id, line_numbers, coalesce(finished_at, due_at) AS given_up_at"),
    compose(
        "(coalesce(finished_at, due_at), id) > ($4, $5) AND {is_free} ORDER BY coalesce(finished_at, due_at), id",
        is_free=_IS_FREE,
    ),
)
NEWEST_GIVEN_UP = _given_up(
    Fragment(
        "customer_id, id, order_id, environment, line_numbers, email, name, kind, state, reason, fault, coalesce(finished_at, due_at) AS given_up_at"
    ),
    Fragment("(coalesce(finished_at, due_at), id) < ($4, $5) ORDER BY coalesce(finished_at, due_at) DESC, id DESC"),
)
ORDERS_OF = """
    SELECT o.customer_id, o.id, c.name AS customer, o.reference
    FROM unnest($1::int[], $2::int[]) AS wanted (customer_id, id) JOIN orders o ON o.customer_id = wanted.customer_id AND o.id = wanted.id
    JOIN customers c ON c.id = o.customer_id
"""
NEW_REQUEUE = """
    INSERT INTO mail_requeues (at, since, reason, messages) SELECT clock_now(), $1, $2, 0 RETURNING id
"""
# Mail to recipients that is sent again, and addresses that are corrected.
LINES = "SELECT recipient_email FROM lines WHERE customer_id = $1 AND order_id = $2"
LOCK_LINES = (
    "SELECT number, recipient_email FROM lines WHERE customer_id = $1 AND order_id = $2 ORDER BY number FOR UPDATE"
)
HAS_CLAIMED = """
    SELECT EXISTS (
        SELECT FROM line_states
        WHERE customer_id = $1 AND order_id = $2 AND number = ANY($3::int[]) AND state <> 'cancelled')
"""
LOCK_MESSAGES = """
    SELECT id, email, state IN ('pending', 'held') AS waits, leased_until > clock_now() AS is_leaving
    FROM messages WHERE customer_id = $1 AND order_id = $2 AND kind = 'gift' ORDER BY id FOR UPDATE
"""
# The fence stops a worker that has read the message with the former address.
READDRESS = "UPDATE messages SET email = $3, fence = fence + 1 WHERE customer_id = $1 AND id = ANY($2::bigint[])"
RESEND = """
    INSERT INTO messages
        (customer_id, order_id, environment, edition, email, name, line_numbers, due_at, rank_at, created_at)
    SELECT customer_id, order_id, environment, edition + 1, email, name, standing, now, now, now
    FROM messages, (SELECT clock_now()) AS clock (now), LATERAL (SELECT ARRAY(
        SELECT line FROM unnest(line_numbers) AS line WHERE line <> ALL ($4::int[]) ORDER BY line)) AS uncancelled (standing)
    WHERE customer_id = $1 AND order_id = $2 AND email = $3 AND kind = 'gift' AND standing <> '{}' ORDER BY edition DESC LIMIT 1
    RETURNING id, due_at, edition, cardinality(line_numbers) AS code_count
"""
LOCK_FIRST_MESSAGES = """
    SELECT id, email FROM messages WHERE customer_id = $1 AND order_id = $2 AND kind = 'gift' AND edition = 0
    ORDER BY id FOR UPDATE
"""
# The latest mail to each recipient who has claimed nothing. `standing` has their codes that were not voided.
# `was_resent` says that the mail was sent again recently, and `may_go` that it may be sent again now.
_UNCLAIMED = Fragment("""
    latest AS (
        SELECT DISTINCT ON (email) environment, edition, email, name, state, line_numbers, created_at
        FROM messages WHERE customer_id = $1 AND order_id = $2 AND kind = 'gift' ORDER BY email, edition DESC
    ), standing AS (
        SELECT *, ARRAY(SELECT line FROM unnest(line_numbers) AS line WHERE line <> ALL ($4::int[]) ORDER BY line) AS standing,
               edition > 0 AND created_at > (SELECT clock_now()) - $6 * interval '1 hour' AS was_resent
        FROM latest WHERE NOT line_numbers && $5::int[] AND email NOT LIKE $3
    ), unclaimed AS (
        SELECT *, state NOT IN ('pending', 'held') AND NOT was_resent AS may_go FROM standing
        WHERE cardinality(standing) > 0)
""")

RESEND_UNCLAIMED = compose(
    """
    WITH {unclaimed}, wanted AS (
        SELECT *, row_number() OVER (ORDER BY line_numbers[1]) - 1 AS place FROM unclaimed WHERE may_go)
    INSERT INTO messages
        (customer_id, order_id, environment, edition, email, name, line_numbers, due_at, rank_at, created_at)
    SELECT $1, $2, environment, edition + 1, email, name, standing, (SELECT clock_now()),
           (SELECT clock_now()) + (place / $7::int) * $8::float8 * interval '1 second', (SELECT clock_now())
    FROM wanted ORDER BY place
    RETURNING id
""",
    unclaimed=_UNCLAIMED,
)
COUNT_UNCLAIMED = compose(
    """
    WITH {unclaimed}
    SELECT count(*) FILTER (WHERE may_go) AS count, count(*) FILTER (WHERE NOT may_go) AS left_out,
           max(created_at) FILTER (WHERE may_go) AS last_at,
           min(created_at) FILTER (WHERE was_resent) + $6 * interval '1 hour' AS again_at
    FROM unclaimed
""",
    unclaimed=_UNCLAIMED,
)
LINE_STATES = "SELECT number, state FROM line_states WHERE customer_id = $1 AND order_id = $2"
FIRST_MESSAGES = """
    SELECT id, email, name FROM messages
    WHERE customer_id = $1 AND order_id = $2 AND kind = 'gift' AND edition = 0
"""
LOCK_MESSAGE = "SELECT FROM messages WHERE customer_id = $1 AND id = $2 FOR UPDATE"
RESENDS = """
    SELECT bool_or(state IN ('pending', 'held')) AS under_way, max(edition) AS edition,
           count(*) FILTER (WHERE edition > 0 AND created_at > now - interval '1 day') AS resends,
           ceil(extract(epoch FROM interval '1 day' + min(created_at)
               FILTER (WHERE edition > 0 AND created_at > now - interval '1 day') - min(now)))::int AS wait_s
    FROM messages, (SELECT clock_now()) AS clock (now)
    WHERE customer_id = $1 AND order_id = $2 AND email = $3 AND kind = 'gift'
"""
# The last mail to a recipient.
LATEST = """
    SELECT email, name, cardinality(line_numbers) AS code_count, state, reason, fault, due_at,
           CASE WHEN state IN ('sent', 'captured') THEN finished_at END AS sent_at, attempts, edition AS resends
    FROM messages WHERE customer_id = $1 AND order_id = $2 AND email = $3 AND kind = 'gift' ORDER BY edition DESC LIMIT 1
"""
IS_SCHEDULED = """
    SELECT EXISTS (SELECT FROM mail_jobs WHERE customer_id = $1 AND order_id = $2 AND fanned_out_at IS NULL)
"""
IS_SCHEDULED_JOB = "SELECT due_at > clock_now() FROM mail_jobs WHERE customer_id = $1 AND order_id = $2"
# The events of the lines of a recipient, with their times.
TIMES_OF_LINES = """
    SELECT number, event, at FROM line_events
    WHERE customer_id = $1 AND order_id = $2 AND number = ANY($3::int[])
"""

RECIPIENTS_CHOSEN = """
    SELECT number, recipient_email FROM lines
    WHERE customer_id = $1 AND order_id = $2 AND number = ANY($3::int[]) AND recipient_email NOT LIKE $4
"""
EDITIONS = """
    SELECT email, max(edition) AS edition FROM messages
    WHERE customer_id = $1 AND order_id = $2 AND kind = 'gift' GROUP BY email
"""
# The latest mail to each of the addresses $3, unless it may not be sent again. `standing` has its codes that were not voided.
RESEND_CHOSEN = """
    WITH latest AS (
        SELECT DISTINCT ON (email) environment, edition, email, name, state, line_numbers,
               count(*) FILTER (WHERE edition > 0 AND created_at > (SELECT clock_now()) - interval '1 day')
                   OVER (PARTITION BY email) AS resends
        FROM messages WHERE customer_id = $1 AND order_id = $2 AND kind = 'gift' AND email = ANY($3::text[])
        ORDER BY email, edition DESC
    ), chosen AS (
        SELECT *, ARRAY(SELECT line FROM unnest(line_numbers) AS line WHERE line <> ALL ($4::int[]) ORDER BY line) AS standing,
               row_number() OVER (ORDER BY line_numbers[1]) - 1 AS place
        FROM latest WHERE state NOT IN ('pending', 'held') AND resends < $6 AND NOT line_numbers <@ $5::int[])
    INSERT INTO messages
        (customer_id, order_id, environment, edition, email, name, line_numbers, due_at, rank_at, created_at)
    SELECT $1, $2, environment, edition + 1, email, name, standing, (SELECT clock_now()),
           (SELECT clock_now()) + (place / $7::int) * $8::float8 * interval '1 second', (SELECT clock_now())
    FROM chosen ORDER BY place
    RETURNING id
"""
