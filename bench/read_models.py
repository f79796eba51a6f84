"""The read models of what bench/fill.py wrote, made by SQL of its own: `largesse verify` holds both ways of making them together.

What the product's worker keeps order by order takes far longer for millions at once than a benchmark may.
"""

from __future__ import annotations

from largesse.reports.standing import AGE_SUMS, SUMS

TABLES = ("report_orders", "report_words")

_GROUPS = """
    INSERT INTO report_groups (customer_id, environment, currency, source, product_id, collection_id, account_id,
        service_account_id, user_id)
    SELECT DISTINCT customer_id, environment, currency, source, product_id, 0, account_id, service_account_id, 0 FROM orders
"""
_ORDERS = """
    INSERT INTO report_orders
    SELECT o.customer_id, o.id, o.environment, g.id, 'waiting', o.created_at, o.code_count, o.total_minor, 0, 0, 0, 0, 0,
           '{}', '{}', '{}', '{}', ARRAY[0, 0, 0, 0, 0]
    FROM orders AS o
    JOIN report_groups AS g ON (g.customer_id, g.environment, g.currency, g.source, g.product_id, g.account_id, g.service_account_id)
        = (o.customer_id, o.environment, o.currency, o.source, o.product_id, o.account_id, o.service_account_id)
"""
# Both recipients of an order stand beside each other, so that no word of it is kept twice.
_WORDS = """
    INSERT INTO report_words (customer_id, environment, word, created_at, order_id)
    SELECT o.customer_id, o.environment, found.word, o.created_at, o.id FROM orders AS o
    JOIN lines AS one ON one.customer_id = o.customer_id AND one.order_id = o.id AND one.number = 1
    JOIN lines AS two ON two.customer_id = o.customer_id AND two.order_id = o.id AND two.number = 2,
    LATERAL (
        SELECT one.recipient_email UNION SELECT two.recipient_email UNION SELECT lower(o.external_reference) UNION
        SELECT regexp_split_to_table(lower(concat_ws(' ', split_part(one.recipient_email, '@', 1), one.recipient_name,
            split_part(two.recipient_email, '@', 1), two.recipient_name, o.external_reference, o.from_name, o.message)),
            '[^a-z0-9]+')
    ) AS found (word)
    WHERE length(found.word) > 1
"""
_SUMS = f"""
    INSERT INTO report_sums
    SELECT customer_id, grain, day, group_id, state, {", ".join(f"sum({name})" for name in SUMS)} FROM (
        SELECT customer_id, (created_at AT TIME ZONE 'UTC')::date, group_id, state, 1, codes, spent_minor, 0, 0, 0, 0,
               {", ".join("0" for _ in AGE_SUMS)}
        FROM report_orders
    ) AS part (customer_id, on_day, group_id, state, {", ".join(SUMS)}),
    LATERAL (VALUES ('day', on_day), ('month', date_trunc('month', on_day)::date)) AS each (grain, day)
    GROUP BY 1, 2, 3, 4, 5
"""
STATEMENTS = ("DELETE FROM order_changes", _GROUPS, _ORDERS, _WORDS, _SUMS)
