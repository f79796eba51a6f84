"""The read models of what bench/fill.py wrote, made by SQL of its own: `largesse verify` holds both ways of making them together.

What the product's worker keeps order by order takes far longer for millions at once than a benchmark may. The words that orders are
found by are written beside them (bench/history.py).
"""

from largesse.reports.sums import AGE_SUMS, AGES_S, SUMS

TABLES = ("report_orders", "report_words")

_GROUPS = """
    INSERT INTO report_groups (customer_id, environment, currency, source, product_id, collection_id, account_id,
        service_account_id, user_id)
    SELECT DISTINCT customer_id, environment, currency, source, coalesce(product_id, 0), coalesce(collection_id, 0), account_id,
        coalesce(service_account_id, 0), coalesce(user_id, 0)
    FROM orders
"""
# Of two codes both were claimed or cancelled, or neither.
_ORDERS = f"""
    INSERT INTO report_orders (customer_id, order_id, environment, group_id, state, created_at, codes, spent_minor, claimed,
        fulfilled, expired, cancelled, bounced, claim_days, claim_counts, cancel_days, cancel_counts, ages, erasable_since)
    SELECT o.customer_id, o.id, o.environment, g.id,
           coalesce(e.event, CASE WHEN o.scheduled_for IS NOT NULL THEN 'scheduled' WHEN m.bounced > 0 THEN 'bounced' ELSE 'waiting' END),
           o.created_at, o.code_count, o.total_minor, claimed, 0, 0, cancelled, coalesce(m.bounced, 0),
           CASE WHEN claimed > 0 THEN ARRAY[day] ELSE '{{}}' END, CASE WHEN claimed > 0 THEN ARRAY[claimed] ELSE '{{}}' END,
           CASE WHEN cancelled > 0 THEN ARRAY[day] ELSE '{{}}' END, CASE WHEN cancelled > 0 THEN ARRAY[cancelled] ELSE '{{}}' END,
           ARRAY[{", ".join(f"CASE WHEN age = {age} THEN claimed ELSE 0 END" for age, _ in enumerate(AGE_SUMS))}],
           CASE WHEN cancelled > 0 THEN e.at END
    FROM orders AS o
    JOIN report_groups AS g
        ON (g.customer_id, g.environment, g.currency, g.source, g.product_id, g.collection_id, g.account_id, g.service_account_id, g.user_id)
        = (o.customer_id, o.environment, o.currency, o.source, coalesce(o.product_id, 0), coalesce(o.collection_id, 0), o.account_id,
           coalesce(o.service_account_id, 0), coalesce(o.user_id, 0))
    LEFT JOIN line_events AS e ON e.order_id = o.id AND e.number = 1 AND e.event IN ('claimed', 'cancelled')
    LEFT JOIN (SELECT order_id, count(*) AS bounced FROM messages GROUP BY order_id) AS m ON m.order_id = o.id,
    LATERAL (SELECT CASE WHEN e.event = 'claimed' THEN o.code_count ELSE 0 END AS claimed,
        CASE WHEN e.event = 'cancelled' THEN o.code_count ELSE 0 END AS cancelled, (e.at AT TIME ZONE 'UTC')::date AS day,
        width_bucket(extract(epoch FROM e.at - o.created_at)::float8, ARRAY{list(AGES_S)}::float8[]) AS age) AS became
"""
# In the order of their days, as a worker writes them.
_SUMS = f"""
    INSERT INTO report_sums
    SELECT customer_id, grain, day, group_id, state, {", ".join(f"sum({name})" for name in SUMS)} FROM (
        SELECT customer_id, (created_at AT TIME ZONE 'UTC')::date, group_id, state, 1, codes, spent_minor, 0, 0, 0, 0,
               {", ".join(f"ages[{at}]" for at, _ in enumerate(AGE_SUMS, 1))}
        FROM report_orders
        UNION ALL
        SELECT customer_id, coalesce(claim_days[1], cancel_days[1]), group_id, state, 0, 0, 0, claimed, claimed * (spent_minor / codes),
               cancelled, cancelled * (spent_minor / codes), {", ".join("0" for _ in AGE_SUMS)}
        FROM report_orders WHERE claimed + cancelled > 0
    ) AS part (customer_id, on_day, group_id, state, {", ".join(SUMS)}),
    LATERAL (VALUES ('day', on_day), ('month', date_trunc('month', on_day)::date)) AS each (grain, day)
    GROUP BY 1, 2, 3, 4, 5 ORDER BY day, grain
"""
STATEMENTS = (_GROUPS, _ORDERS, _SUMS, "VACUUM ANALYZE report_groups", "VACUUM ANALYZE report_sums")
