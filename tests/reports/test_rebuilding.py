"""Making the read models anew beside pages that read them, and with an order whose figures cannot be written."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import structlog
from tests.chained import acting_on
from tests.distributed import IS_DISTRIBUTED, SOMEBODY_WAITS
from tests.waiting import LONGEST_S, wait_until
from tests.web.api.conftest import on_database

from largesse.db.pool import Connection, Database
from largesse.db.roles import Role
from largesse.db.session import COMMANDS
from largesse.encryption.vault import Vault
from largesse.reports.updates import rebuild


@pytest.mark.skipif(IS_DISTRIBUTED, reason="who waits for whom is on the nodes")
def test_a_page_that_reads_one_after_the_other_is_not_ended(service: Any) -> None:
    """A page that holds the sums, and then reads the orders, is as good as in a deadlock with the command, which holds the orders."""
    service.send("gift", "coffee", value=5, codeQuantity=1)
    has_begun, goes_on = threading.Event(), threading.Event()

    async def anew(database: Database, vault: Vault) -> int:
        return await rebuild(database, await acting_on(database, vault), lambda _done, _total: None)

    async def page(connection: Connection) -> None:
        async with connection.transaction():
            await connection.fetch("SELECT FROM report_sums LIMIT 1")
            has_begun.set()
            await asyncio.to_thread(goes_on.wait, LONGEST_S)
            await connection.fetch("SELECT FROM report_orders LIMIT 1")

    with ThreadPoolExecutor(2) as pool:
        reading = pool.submit(on_database, service.database_url, page)
        assert has_begun.wait(LONGEST_S)
        rebuilding = pool.submit(service.on_pool, anew, role=Role.OPERATOR, limits=COMMANDS)
        wait_until(lambda: service.sql(SOMEBODY_WAITS)[0][0])
        goes_on.set()
        reading.result()
        assert rebuilding.result() > 0


_TOLD = "SELECT count(*) FROM report_orders r JOIN orders o ON o.id = r.order_id WHERE o.reference = $1"
_OF_ODD = "WHERE group_id = (SELECT id FROM report_groups WHERE source = 'odd')"


def test_an_order_that_cannot_be_summed_keeps_no_other_out(service: Any, follow: Callable[[], None]) -> None:
    def place(source: str) -> str:
        sent = service.send("gift", "coffee", value=5, codeQuantity=1, source=source)
        return str(sent.json()["reference"])

    place("odd")
    follow()
    # As far as many of the largest orders get, each placed and cancelled again.
    service.sql(f"UPDATE report_sums SET spent_minor = 9223372036854775807 {_OF_ODD}")
    others, odd = [place("other")], place("odd")
    others.append(place("other"))
    with structlog.testing.capture_logs() as logs:
        follow()
    assert [service.sql(_TOLD, one)[0][0] for one in (*others, odd)] == [1, 1, 0]
    left_out = [one["order"] for one in logs if one["event"] == "report.order_left_out"]
    assert left_out == [service.sql("SELECT id FROM orders WHERE reference = $1", odd)[0][0]]
    # Once there is room, the next change of the order is told.
    service.sql(f"UPDATE report_sums SET spent_minor = 500 {_OF_ODD}")
    assert service.client("hr").post(f"/orders/{odd}/cancel").status_code == 200
    follow()
    assert service.sql(_TOLD, odd)[0][0] == 1
    assert service.findings() == []
