"""The worker keeps the read models: orders are in them a moment after they were placed, whoever was killed meanwhile."""

from __future__ import annotations

from tests.worker.conftest import Works, until

from largesse.database import OPERATOR

_TOLD = """
    SELECT (SELECT count(*) FROM report_orders) = $1
       AND (SELECT sum(orders) FROM report_sums WHERE grain = 'day') = $1
       AND NOT EXISTS (SELECT FROM order_changes)
"""


async def test_orders_are_told_and_none_twice_when_workers_are_killed(works: Works) -> None:
    async def told(count: int) -> bool:
        return bool(await works.database.fetchval(OPERATOR, _TOLD, count))

    first = await works.start_worker()
    await works.place(300)
    second = await works.start_worker()
    await works.place(300)
    first.kill()
    await first.wait()
    await works.place(1)
    await until(lambda: told(601))
    assert second.returncode is None
