"""Orders by the million, written by SQL: what an order leaves behind when it is placed, mailed and claimed, and the read models of it.

Nine in ten are of one customer. They are distributed over a year; some gifts, sources and service accounts are common and some rare;
seven in ten codes are claimed. All read models are made from the orders and lines by SQL of this module's own, so `verify` holds two
ways of making them against each other.
"""

import asyncpg

from largesse.reports.sums import AGE_SUMS, SUMS

FIRST_NAMES = [
    "Ada",
    "Ben",
    "Chloe",
    "Dan",
    "Emma",
    "Finn",
    "Grace",
    "Hugo",
    "Iris",
    "Jack",
    "Kim",
    "Liam",
    "Mia",
    "Noah",
    "Olive",
    "Paul",
]
LAST_NAMES = 400
MESSAGES = 50
SOURCES = ("api", "api", "api", "crm", "crm", "onboarding", "birthdays", "survey")
PRODUCTS, ACCOUNTS, SERVICE_ACCOUNTS = 20, 3, 6

_WORLD = f"""
    INSERT INTO customers (key, name, plan, funding)
    SELECT 'c' || n, 'Customer ' || n, 'pro', 'invoiced' FROM generate_series(1, 5) AS n;
    INSERT INTO service_accounts (customer_id, key, name)
    SELECT c.id, 'bot' || n, 'Bot ' || n FROM customers AS c, generate_series(1, {SERVICE_ACCOUNTS}) AS n;
    INSERT INTO products (key, name, is_digital, currency, countries, denominations_minor)
    SELECT 'p' || n, 'Gift ' || n, true, 'GBP', '{{GB}}', '{{500}}' FROM generate_series(1, {PRODUCTS}) AS n
"""
# $1 orders, of which the newest is placed now. `pick` is 0 to 999, the same for the same order.
_ORDERS = """
    INSERT INTO orders (id, reference, customer_id, environment, service_account_id, source, external_reference,
        gift_selection, product_id, country, currency, value_minor, total_minor, code_count, recipient_count,
        delivery_mode, wrapping_key, from_name, message, account_id, created_at)
    SELECT n, lpad(upper(to_hex(n)), 20, '0'), customer_id, CASE WHEN pick % 20 = 19 THEN 'staging' ELSE 'production' END,
           (customer_id - 1) * $6 + 1 + least(pick % 11, $6 - 1), ($2::text[])[1 + pick % cardinality($2::text[])],
           CASE WHEN n % 2 = 0 THEN 'PO-' || n END, 'gift', 1 + least(pick * pick / 40000, $4 - 1), 'GB', 'GBP', 500, 500, 1, 1,
           'send', 'default', 'Team ' || pick % 7, 'Thank you for message' || pick % $3, nullif(pick % ($5 + 1), 0),
           date_trunc('second', now()) - ($1 - n) * (interval '365 days' / $1)
    FROM generate_series(1, $1::int) AS n, LATERAL (SELECT ((n::bigint * 7919 + n / 1000 * 31) % 1000)::int AS pick) AS p,
         LATERAL (SELECT CASE WHEN pick % 10 = 9 THEN 2 + n % 4 ELSE 1 END AS customer_id) AS c
"""
_LINES = """
    INSERT INTO lines (customer_id, order_id, number, recipient_email, recipient_name, code_lookup, sealed)
    SELECT customer_id, id, 1, 'guest' || id % greatest($1::int / 3, 1) || '@example.com',
           ($2::text[])[1 + id % cardinality($2::text[])] || ' Name' || id % $3::int, id, ''
    FROM orders
"""
_CLAIMS = """
    WITH claimed AS (
        SELECT customer_id, id, created_at + (id % 50) * (id % 50) * interval '20 minutes' AS at FROM orders WHERE id % 10 < 7)
    INSERT INTO line_events (customer_id, order_id, number, event, at)
    SELECT customer_id, id, 1, event, at FROM claimed, unnest(ARRAY['opened', 'claimed']) AS event WHERE at < now()
"""
_GROUPS = """
    INSERT INTO report_groups (customer_id, environment, currency, source, product_id, collection_id, account_id,
        service_account_id, user_id)
    SELECT DISTINCT customer_id, environment, currency, source, product_id, 0, coalesce(account_id, 0), service_account_id, 0
    FROM orders
"""
_REPORTED = """
    WITH claimed AS MATERIALIZED (
        SELECT o.*, e.at FROM orders AS o
        LEFT JOIN line_events AS e ON e.customer_id = o.customer_id AND e.order_id = o.id AND e.event = 'claimed')
    INSERT INTO report_orders
    SELECT o.customer_id, o.id, o.environment, g.id, CASE WHEN o.at IS NULL THEN 'waiting' ELSE 'claimed' END, o.created_at,
           1, o.total_minor, (o.at IS NOT NULL)::int, 0, 0, 0, 0,
           CASE WHEN o.at IS NULL THEN '{}' ELSE ARRAY[(o.at AT TIME ZONE 'UTC')::date] END,
           CASE WHEN o.at IS NULL THEN '{}' ELSE ARRAY[1] END, '{}', '{}',
           ARRAY[(age = 0)::int, (age = 1)::int, (age = 2)::int, (age = 3)::int, (age = 4)::int]
    FROM claimed AS o
    JOIN report_groups AS g ON (g.customer_id, g.environment, g.currency, g.source, g.product_id, g.account_id, g.service_account_id)
        = (o.customer_id, o.environment, o.currency, o.source, o.product_id, coalesce(o.account_id, 0), o.service_account_id),
    LATERAL (SELECT coalesce(width_bucket(extract(epoch FROM o.at - o.created_at)::float8,
        ARRAY[3600, 86400, 7 * 86400, 30 * 86400]::float8[]), -1)) AS aged (age)
"""
_WORDS = """
    WITH o AS MATERIALIZED (
        SELECT o.*, l.recipient_email, l.recipient_name
        FROM orders AS o JOIN lines AS l ON l.customer_id = o.customer_id AND l.order_id = o.id)
    INSERT INTO report_words (customer_id, environment, word, created_at, order_id)
    SELECT DISTINCT o.customer_id, o.environment, word, o.created_at, o.id FROM o,
    LATERAL (
        SELECT o.recipient_email UNION ALL SELECT lower(o.external_reference) UNION ALL
        SELECT regexp_split_to_table(lower(concat_ws(' ', split_part(o.recipient_email, '@', 1), o.recipient_name,
            o.external_reference, o.from_name, o.message)), '[^a-z0-9]+')
    ) AS found (word)
    WHERE length(word) > 1
"""
_ADDED = ", ".join(f"sum({name})" for name in SUMS)
_SUMS = f"""
    INSERT INTO report_sums
    SELECT customer_id, grain, day, group_id, state, {_ADDED} FROM (
        SELECT customer_id, (created_at AT TIME ZONE 'UTC')::date, group_id, state, 1, 1, spent_minor, 0, 0, 0, 0,
               {", ".join(f"ages[{at}]" for at, _ in enumerate(AGE_SUMS, 1))}
        FROM report_orders
        UNION ALL
        SELECT customer_id, claim_days[1], group_id, state, 0, 0, 0, claimed, claimed * spent_minor, 0, 0, 0, 0, 0, 0, 0
        FROM report_orders WHERE claimed > 0
    ) AS part (customer_id, on_day, group_id, state, {", ".join(SUMS)}),
    LATERAL (VALUES ('day', on_day), ('month', date_trunc('month', on_day)::date)) AS each (grain, day)
    GROUP BY 1, 2, 3, 4, 5
"""


async def generate(connection: asyncpg.Connection, orders: int) -> None:
    """Fills an empty, migrated database with so many orders and their read models, and has it analysed."""
    long = {"timeout": 3600}
    await connection.execute("SET synchronous_commit = off; SET work_mem = '256MB'; SET maintenance_work_mem = '256MB'")
    await connection.execute(_WORLD)
    await connection.execute(_ORDERS, orders, list(SOURCES), MESSAGES, PRODUCTS, ACCOUNTS, SERVICE_ACCOUNTS, **long)
    await connection.execute(_LINES, orders, FIRST_NAMES, LAST_NAMES, **long)
    for statement in (_CLAIMS, _GROUPS, _REPORTED, _WORDS, _SUMS):
        await connection.execute(statement, **long)
    await connection.execute("SELECT setval('orders_id_seq', $1)", orders)
    await connection.execute("VACUUM ANALYZE", **long)
