"""Mail that waits is withdrawn by reading the mail of its order once, whatever the planner expects of the table."""

import asyncpg
import pytest
from tests.distributed import IS_DISTRIBUTED
from tests.plans import ROUNDED, rows_read

from largesse.db.roles import Role
from largesse.jobs import outbox

MESSAGES = """
    INSERT INTO messages (customer_id, order_id, environment, kind, email, line_numbers, due_at, rank_at, created_at)
    SELECT 1, $1, 'production', $2, $2 || n || '@example.com', ARRAY[n], now(), now(), now() FROM generate_series($3::int, $4) AS n
"""


@pytest.mark.skipif(IS_DISTRIBUTED, reason="what a node reads its coordinator does not count")
@pytest.mark.parametrize("analysed", [True, False])
@pytest.mark.parametrize("statement", ["_WITHDRAW_REMINDERS", "_HOLD_MESSAGES"])
async def test_mail_of_a_large_order_is_read_once(database_url: str, statement: str, analysed: bool) -> None:
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute("ALTER TABLE messages SET (autovacuum_enabled = off)")
        await connection.execute(MESSAGES, 1, "gift", 1, 100)
        await connection.execute("UPDATE messages SET state = 'sent', finished_at = now()")
        if analysed:
            await connection.execute("ANALYZE messages")
        await connection.execute(MESSAGES, 2, "gift", 1, 2_000)
        await connection.execute(MESSAGES, 2, "reminder_1", 1, 2_000)
        read = await rows_read(connection, Role.APP, "messages", getattr(outbox, statement), 1, 2, [7])
        assert read <= 4_000 + 2 * ROUNDED + 100
    finally:
        await connection.close()
