"""What contacts for past recipients cost where a person placed few of a customer's many orders."""

import asyncpg
import pytest
from tests.chained import actor_over
from tests.distributed import IS_DISTRIBUTED
from tests.reports.generator import generate

from largesse.contacts.service import add_past_recipients
from largesse.encryption.vault import Vault

ORDERS = 5_000
# The person 7 placed the first three orders of customer 1.
_OF_PERSON = """
    UPDATE orders SET user_id = 7, service_account_id = NULL, source = 'web'
    WHERE id IN (SELECT id FROM orders WHERE customer_id = 1 AND environment = 'production' ORDER BY id LIMIT 3);
    INSERT INTO report_groups (customer_id, environment, currency, source, product_id, collection_id, account_id, service_account_id, user_id)
    VALUES (1, 'production', 'GBP', 'web', 1, 0, 0, 0, 7);
    UPDATE report_orders SET group_id = (SELECT id FROM report_groups WHERE user_id = 7)
    WHERE customer_id = 1 AND order_id IN (SELECT id FROM orders WHERE user_id = 7);
    ANALYZE
"""
_READ = """
    SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_xact_user_tables WHERE relname IN ('orders', 'report_orders', 'lines')
"""


@pytest.mark.skipif(IS_DISTRIBUTED, reason="what nodes read is not counted here")
async def test_the_orders_of_others_are_not_read(connection: asyncpg.Connection, vault: Vault) -> None:
    await generate(connection, ORDERS)
    await connection.execute(_OF_PERSON)
    async with connection.transaction():
        before = await connection.fetchval(_READ)
        saved = await add_past_recipients(actor_over(connection, 1), vault, 7)
        read = await connection.fetchval(_READ) - before
    assert saved.created == 3
    assert read < 50
