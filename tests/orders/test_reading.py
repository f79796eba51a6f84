"""Looking up callers' references, on tables PostgreSQL knows nothing about yet."""

import asyncpg
import pytest
from tests.closing import closing
from tests.distributed import IS_DISTRIBUTED

from largesse.orders.reading import BEGIN, read_references

ORDERS = """
INSERT INTO orders (id, reference, customer_id, environment, service_account_id, source, external_reference,
    gift_selection, country, currency, value_minor, total_minor, code_count, recipient_count, delivery_mode,
    wrapping_key, created_at)
SELECT n, lpad(n::text, 20, '0'), 1, 'production', 1, 'api', 'order-' || lpad(n::text, 24, '0'), 'gift', 'GB', 'GBP', 1000, 1000, 1, 0,
    'manual', 'default', now()
FROM generate_series($1::int, $2::int) AS n
"""


def reference(number: int) -> str:
    return f"order-{number:024}"


@pytest.mark.skipif(IS_DISTRIBUTED, reason="what a node reads its coordinator does not count")
# Between some and others of these the indexes grow a level, one before the other.
@pytest.mark.parametrize("orders", [0, 20, 100, 150, 200, 250, 300, 350, 400, 500, 1_000])
async def test_a_look_up_reads_no_other_orders_before_the_first_analyze(database_url: str, orders: int) -> None:
    async with closing(asyncpg.connect(database_url)) as connection:
        await connection.execute("ALTER TABLE orders SET (autovacuum_enabled = off)")
        await connection.execute(ORDERS, 1, orders)
        wanted = [(1, "production", reference(7)), (2, "production", reference(7)), (1, "staging", reference(7))]
        await connection.execute(BEGIN)
        await read_references(connection, wanted)  # planned once
        await connection.execute("COMMIT")
        await connection.execute(ORDERS, orders + 1, 5_000)
        rows_read = "SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_xact_user_tables WHERE relname = 'orders'"
        await connection.execute(BEGIN)
        free = [(1, "production", f"free-{n}") for n in range(50)]
        assert await read_references(connection, [*wanted, *free]) == {wanted[0]: "00000000000000000007"}
        assert await connection.fetchval(rows_read) <= 2 * len(wanted)
