"""An order's event is found by its time among those of all orders."""

import pytest
from tests.distributed import IS_DISTRIBUTED
from tests.plans import rows_read

from largesse.db.pool import Database
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR
from largesse.events import store
from largesse.webhooks import delivery_store

FILL = """
    INSERT INTO events (order_id, customer_id, environment, event, body, created_at, fanned_out_at)
    SELECT n, 1, 'production', 'order.created', '', now() - n * interval '1 second', CASE WHEN n > 10 THEN now() END
    FROM generate_series(1, 20000) AS n
"""


@pytest.mark.skipif(IS_DISTRIBUTED, reason="what a node reads is not among what its coordinator explains")
async def test_the_event_of_an_order_is_found_without_reading_the_others(database: Database) -> None:
    async with database.connection(OPERATOR) as connection:
        await connection.execute(FILL)
        await connection.execute("ANALYZE events")
        at = await connection.fetchval("SELECT created_at FROM events WHERE order_id = 500")
        for role, statement, arguments in (
            (Role.APP, delivery_store._EVENT_OF_ORDER, (1, at, 500)),
            (Role.OPERATOR, store._BODIES, (1, 500, "order.created", at)),
        ):
            assert await rows_read(connection, role, "events", statement, *arguments) <= 11
