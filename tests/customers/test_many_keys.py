"""Lists of a customer's API keys read its own, also those that were deleted, among the keys of many customers."""

from typing import Any

import asyncpg
import pytest
from tests.distributed import IS_DISTRIBUTED
from tests.plans import rows_read
from tests.seed.conftest import load
from tests.seed.worlds import WHOLE

from largesse.customers import customer_store, key_store
from largesse.db.roles import Role
from largesse.reports import names

KEYS = 3_000
# Keys of other customers, and three deleted ones of customer 1.
_KEYS = """
    INSERT INTO api_keys (customer_id, service_account_id, key, environment, deleted_at)
    SELECT CASE WHEN n <= 3 THEN 1 ELSE 1000 + n END, (SELECT min(id) FROM service_accounts), 'old ' || n, 'production', clock_now()
    FROM generate_series(1, $1::int) AS n
"""


@pytest.mark.skipif(IS_DISTRIBUTED, reason="what is read of a copied table is not counted under its name")
@pytest.mark.parametrize(
    ("role", "statement", "arguments"),
    [
        (Role.OFFICE, customer_store._ONE, (1,)),
        (Role.APP, key_store._LIST, (None, 1, True, None, None)),
        (Role.APP, names._FOUND, (1, "old", 100)),
    ],
    ids=["a customer's page", "the requests of a customer", "a search of the audit log"],
)
async def test_a_customer_s_keys_are_found_by_an_index(
    connection: asyncpg.Connection, role: Role, statement: str, arguments: tuple[Any, ...]
) -> None:
    await load(connection, WHOLE)
    await connection.execute("SET session_replication_role = replica")  # the other customers are not needed
    await connection.execute(_KEYS, KEYS)
    await connection.execute("ANALYZE api_keys")
    own = await connection.fetchval("SELECT count(*) FROM api_keys WHERE customer_id = 1")
    assert await rows_read(connection, role, "api_keys", statement, *arguments) == own >= 3


@pytest.mark.skipif(IS_DISTRIBUTED, reason="what is read of a copied table is not counted under its name")
async def test_a_list_of_customers_reads_each_key_once(connection: asyncpg.Connection) -> None:
    await load(connection, WHOLE)
    await connection.execute("SET session_replication_role = replica")
    await connection.execute(_KEYS, KEYS)
    await connection.execute(
        "INSERT INTO customers (key, name, plan, funding) SELECT 'c' || n, 'C', 'pro', 'balance' FROM generate_series(1, 500) AS n"
    )
    await connection.execute("ANALYZE")
    assert await rows_read(connection, Role.OPERATOR, "api_keys", customer_store._LIST) <= KEYS + 100
