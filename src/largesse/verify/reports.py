"""Checks that the read models match the orders. An order with a change that no worker has applied yet may differ."""

from largesse.db.fragments import Fragment, compose, each, names
from largesse.verify.check import Check

_SUMS = (
    "orders", "codes", "spent_minor", "claimed", "claimed_minor", "cancelled", "refunded_minor",
    "within_hour", "within_day", "within_week", "within_month", "later",
)  # fmt: skip
# Orders with changes that are not applied yet. Checks leave them out.
_WAITING = Fragment("""
    waiting AS MATERIALIZED (
        SELECT order_id FROM order_changes UNION SELECT order_id FROM events WHERE fanned_out_at IS NULL AND order_id IS NOT NULL)
""")
# Not `NOT IN`: after an upgrade, all orders may wait. A list that is too large for memory would be scanned for each order.
_TAKEN_IN = Fragment("NOT EXISTS (SELECT FROM waiting WHERE waiting.order_id = o.id)")

REPORTS = (
    Check(
        "orders-are-reported",
        "Every order is among those that people list, as what it is and as it stands, unless its last change waits for a worker.",
        compose(
            """
        WITH {waiting}, moves AS (
            SELECT customer_id, order_id, count(*) FILTER (WHERE event = 'claimed') AS claimed,
                   count(*) FILTER (WHERE event = 'fulfilled') AS fulfilled,
                   count(*) FILTER (WHERE event = 'expired') AS expired,
                   count(*) FILTER (WHERE event = 'cancelled') AS cancelled
            FROM line_events GROUP BY customer_id, order_id), refunds AS (
            SELECT customer_id, order_reference, sum(amount_minor) AS minor FROM corrections
            WHERE kind = 'refund' AND state = 'approved' GROUP BY customer_id, order_reference)
        SELECT o.id FROM orders o
        LEFT JOIN report_orders r ON r.customer_id = o.customer_id AND r.order_id = o.id
        LEFT JOIN report_groups g ON g.customer_id = r.customer_id AND g.id = r.group_id
        LEFT JOIN moves m ON m.customer_id = o.customer_id AND m.order_id = o.id
        LEFT JOIN refunds ON refunds.customer_id = o.customer_id AND refunds.order_reference = o.reference
        WHERE {taken_in} AND (
            (r.environment, r.created_at, r.codes, r.spent_minor, r.template_id)
                = (o.environment, o.created_at, o.code_count, o.total_minor, coalesce(o.template_id, 0))
            AND (g.environment, g.currency, g.source) = (o.environment, o.currency, o.source)
            AND (g.product_id, g.collection_id, g.account_id, g.service_account_id, g.user_id)
                = (coalesce(o.product_id, 0), coalesce(o.collection_id, 0), coalesce(o.account_id, 0),
                   coalesce(o.service_account_id, 0), coalesce(o.user_id, 0))
            AND (r.claimed, r.fulfilled, r.expired, r.cancelled)
                = (coalesce(m.claimed, 0), coalesce(m.fulfilled, 0), coalesce(m.expired, 0), coalesce(m.cancelled, 0))
            AND coalesce((SELECT sum(minor) FROM unnest(r.refund_amounts) AS minor), 0) = coalesce(refunds.minor, 0)
            AND (r.state = 'cancelled') = (r.cancelled = r.codes)
            AND (r.state IN ('cancelled', 'claimed')) = (r.claimed + r.cancelled = r.codes)
            AND (r.erasable_since IS NOT NULL) = (o.erased_at IS NULL AND r.fulfilled + r.expired + r.cancelled = r.codes)
        ) IS NOT TRUE
        """,
            waiting=_WAITING,
            taken_in=_TAKEN_IN,
        ),
        of="order",
    ),
    Check(
        "reports-have-orders",
        "What people list are orders that exist.",
        """
        SELECT order_id FROM (
            SELECT customer_id, order_id FROM report_orders EXCEPT SELECT customer_id, id FROM orders) AS missing
        """,
        of="order",
    ),
    Check(
        "report-days-fit",
        "An order's claims and cancellations by day, and its claims by age, add up to all of them.",
        """
        SELECT r.order_id FROM report_orders r
        WHERE r.claimed <> coalesce((SELECT sum(n) FROM unnest(r.claim_counts) AS n), 0)
           OR r.claimed <> coalesce((SELECT sum(n) FROM unnest(r.ages) AS n), 0)
           OR r.cancelled <> coalesce((SELECT sum(n) FROM unnest(r.cancel_counts) AS n), 0)
        """,
        of="order",
    ),
    Check(
        "sums-follow-orders",
        "The sums by day and by month are those of the orders that people list.",
        compose(
            """
        WITH parts AS (
            SELECT customer_id, (created_at AT TIME ZONE 'UTC')::date AS day, group_id, state, 1 AS orders, codes, spent_minor,
                   0 AS claimed, 0 AS claimed_minor, 0 AS cancelled, 0 AS refunded_minor, coalesce(ages[1], 0) AS within_hour,
                   coalesce(ages[2], 0) AS within_day, coalesce(ages[3], 0) AS within_week,
                   coalesce(ages[4], 0) AS within_month, coalesce(ages[5], 0) AS later
            FROM report_orders
            UNION ALL
            SELECT customer_id, day, group_id, state, 0, 0, 0, count, count * (spent_minor / codes), 0, 0, 0, 0, 0, 0, 0
            FROM report_orders, unnest(claim_days, claim_counts) AS claimed (day, count)
            UNION ALL
            SELECT customer_id, day, group_id, state, 0, 0, 0, 0, 0, count, count * (spent_minor / codes), 0, 0, 0, 0, 0
            FROM report_orders, unnest(cancel_days, cancel_counts) AS cancelled (day, count)
            UNION ALL
            SELECT customer_id, day, group_id, state, 0, 0, 0, 0, 0, 0, minor, 0, 0, 0, 0, 0
            FROM report_orders, unnest(refund_days, refund_amounts) AS refunded (day, minor)
        ), expected AS (
            SELECT customer_id, grain, day, group_id, state, {totals}
            FROM (SELECT 'day' AS grain, * FROM parts
                  UNION ALL
                  SELECT 'month', customer_id, date_trunc('month', day)::date, group_id, state, {sums} FROM parts
            ) AS grained
            GROUP BY 1, 2, 3, 4, 5)
        SELECT DISTINCT 'customer ' || customer_id || ' ' || grain || ' ' || day FROM (
            SELECT customer_id, grain, day, group_id, state, {sums} FROM expected
            UNION ALL
            SELECT customer_id, grain, day, group_id, state, {negated} FROM report_sums
        ) AS difference
        GROUP BY customer_id, grain, day, group_id, state
        HAVING {differ}
        """,
            totals=each("sum({name}) AS {name}", _SUMS),
            sums=names(_SUMS),
            negated=each("-{name}", _SUMS),
            differ=each("sum({name}) <> 0", _SUMS, " OR "),
        ),
    ),
    # Databases split texts of other alphabets into words in different ways, so only plain addresses are checked.
    Check(
        "recipients-are-found",
        "An order is found by the address of each of its recipients, unless its last change waits for a worker.",
        compose(
            """
        WITH {waiting}
        SELECT DISTINCT id FROM (
            SELECT o.customer_id, o.environment, o.created_at, o.id, lower(l.recipient_email COLLATE "C") AS word
            FROM orders o JOIN lines l ON l.customer_id = o.customer_id AND l.order_id = o.id
            WHERE l.recipient_email ~ '^[!-~]+$' AND {taken_in}
            EXCEPT SELECT customer_id, environment, created_at, order_id, word FROM report_words) AS missing
        """,
            waiting=_WAITING,
            taken_in=_TAKEN_IN,
        ),
        of="order",
    ),
    Check(
        "words-have-orders",
        "What is found by a word is an order that exists, where and when it was placed.",
        """
        SELECT DISTINCT order_id FROM (
            SELECT order_id, customer_id, environment, created_at FROM report_words
            EXCEPT SELECT id, customer_id, environment, created_at FROM orders) AS missing
        """,
        of="order",
    ),
)
