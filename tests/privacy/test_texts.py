"""An address is found in each text of an order, whichever other texts the order has."""

import asyncpg
import pytest
from tests.reports.generator import generate

from largesse.orders.erasing import _TEXTS, find_orders_mentioning


@pytest.mark.parametrize("column", _TEXTS)
async def test_an_address_is_found_in_each_text(connection: asyncpg.Connection, column: str) -> None:
    await generate(connection, 20)
    await connection.execute(f"UPDATE orders SET {', '.join(f'{name} = NULL' for name in _TEXTS)}")
    order = await connection.fetchrow("SELECT customer_id, id FROM orders ORDER BY id DESC LIMIT 1")
    await connection.execute(f"UPDATE orders SET {column} = 'Ask Ada@Example.com!' WHERE id = $1", order["id"])
    assert await find_orders_mentioning(connection, "ada@example.com", None) == [tuple(order)]
    assert await find_orders_mentioning(connection, "ada@example.com", order["customer_id"] + 1) == []
    assert await find_orders_mentioning(connection, "da@example.com", None) == []
