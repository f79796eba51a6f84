"""Looking up callers' references, on tables PostgreSQL knows nothing about yet."""

from __future__ import annotations

import asyncpg

from largesse.orders.reading import read_references

ORDERS = """
INSERT INTO orders (id, reference, customer_id, environment, service_account_id, source, external_reference,
    gift_selection, country, currency, value_minor, total_minor, code_count, recipient_count, delivery_mode,
    wrapping_key, created_at)
SELECT n, lpad(n::text, 20, '0'), 1, 'production', 1, 'api', 'order-' || n, 'gift', 'GB', 'GBP', 1000, 1000, 1, 0,
    'manual', 'default', now()
FROM generate_series($1::int, $2::int) AS n
"""


async def test_a_look_up_reads_no_other_orders_before_the_first_analyze(database_url: str) -> None:
    connection = await asyncpg.connect(
        database_url, server_settings={"plan_cache_mode": "force_generic_plan"}
    )
    try:
        await connection.execute("ALTER TABLE orders SET (autovacuum_enabled = off)")
        await connection.execute(ORDERS, 1, 200)
        wanted = [(1, "production", "order-7"), (2, "production", "order-7"), (1, "staging", "order-7")]
        assert await read_references(connection, wanted) == {wanted[0]: "00000000000000000007"}
        await connection.execute(ORDERS, 201, 5_000)
        rows_read = (
            "SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_xact_user_tables WHERE relname = 'orders'"
        )
        async with connection.transaction():
            free = [(1, "production", f"free-{n}") for n in range(50)]
            assert await read_references(connection, [*wanted, *free]) == {wanted[0]: "00000000000000000007"}
            assert await connection.fetchval(rows_read) <= 2 * len(wanted)
    finally:
        await connection.close()
