"""The audit log of all customers: pages read their own entries, and a filter a bounded number."""

import html
import re
from typing import Any

import pytest
from tests.distributed import IS_DISTRIBUTED
from tests.plans import rows_read
from tests.web.api.conftest import Service, ServiceFactory, on_database
from tests.web.office.conftest import staff_in

from largesse.audit import service as audit
from largesse.audit import store
from largesse.db.roles import Role

FILL = """
    INSERT INTO audit_events (customer_id, at, actor, actor_name, act, subject, mac)
    SELECT $1, clock_now() - n * interval '1 hour', 'command', 'largesse', 'key.created', 'API key ' || n, '' FROM generate_series($2::int, 1, -1) AS n
"""


@pytest.mark.parametrize("of", ["", "acme", "installation"])
def test_a_filter_looks_at_so_many_entries_at_a_time(
    service: Service, of: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = staff_in(service, "owner")
    for customer_id in (0, service.ids["customers"]["acme"]):
        service.sql(FILL, customer_id, 5)
    monkeypatch.setattr(audit, "LOOKED_AT", 3)
    monkeypatch.setattr(audit, "LOOKED_AT_OF_CUSTOMER", 3)
    page = browser.read(path := f"/office/audit?of={of}&q=API+key+5")
    while "API key 5" not in page:
        assert "entries before this match. Look further back." in page
        [path] = [html.unescape(link) for link in re.findall(r'href="([^"]+)" rel="next"', browser.page.text)]
        page = browser.read(path)
    assert "before=" in path
    assert browser.get("/office/audit?before=1").status_code == 200


@pytest.mark.skipif(IS_DISTRIBUTED, reason="the rows are read on a node")
def test_a_page_reads_no_other_entries(start_service: ServiceFactory) -> None:
    service = start_service()
    service.sql(FILL, 0, 2000)
    service.sql(FILL, 1, 2000)

    async def read(connection: Any) -> list[int]:
        await connection.execute("ANALYZE audit_events")
        at, id_ = await connection.fetchrow(
            "SELECT at, id FROM audit_events WHERE customer_id = 1 ORDER BY id DESC OFFSET 1000 LIMIT 1"
        )
        unfiltered: tuple[Any, ...] = ([], "", [], "", [])
        return [
            await rows_read(connection, Role.OFFICE, "audit_events", statement, *arguments, 51)
            for statement, arguments in (
                (store.NEWEST_OF_ALL, (None, 2**63 - 1, 1_000, [], "", "")),
                (store.NEWEST_OF_ALL, (at, id_, 1_000, [], "", "")),
                (store.NEWEST, (1, id_, 1_000, *unfiltered)),
            )
        ]

    assert on_database(service.database_url, read) == [51, 51, 51]


def test_a_position_is_a_time_and_an_id_and_no_event_is_looked_up_by_its_id(service: Service) -> None:
    """PostgreSQL before 18 reads the index of all events to find one by its id alone."""
    browser = staff_in(service, "owner")
    service.sql(FILL, 0, 5)
    at_us = service.sql("SELECT (extract(epoch FROM clock_now() - interval '150 minutes') * 1000000)::bigint")[0][0]
    page = browser.read(f"/office/audit?before={2**62}&after={at_us}")
    assert re.search(r"API key 3\b", page)
    assert not re.search(r"API key 2\b", page)
