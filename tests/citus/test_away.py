"""A node that is away: its customers are told to come back, and those on others notice nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.background import Statements
from tests.citus.conftest import CUSTOMERS, NODES
from tests.citus.world import world_of
from tests.web.api.conftest import Service, service, start_service
from tests.web.claim.conftest import Recipient, link

from largesse.db import sharding
from largesse.lines.codes import draw_codes

__all__ = ["service", "start_service"]

WORLD = world_of(range(1, CUSTOMERS + 1))


@contextmanager
def away(node: str, database_url: str) -> Iterator[None]:
    """Has a node let nobody in to the database, and sends away who is there: to a coordinator it is not to be reached."""
    name = urlsplit(database_url).path[1:]
    (url,) = (url for url in NODES if urlsplit(url).netloc.endswith(node))
    server = Statements(url)
    try:
        server.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        server.fetch("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1", name)
        yield
    finally:
        server.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
        server.close()


def send(service: Service, customer: int, reference: str) -> Any:
    return service.send("gift", "coffee", key=f"key{customer}", account=None, value=1, externalReference=reference)


def require_away(answer: Any) -> None:
    assert answer.status_code == 503, answer.text
    assert int(answer.headers["Retry-After"]) > 0


@pytest.fixture
def homes(service: Service) -> dict[int, str]:
    """The node of each customer, by the number in its key."""
    ids = [service.ids["customers"][f"c{number}"] for number in range(1, CUSTOMERS + 1)]
    found = service.run(lambda session: sharding.node_names(session, ids))
    return {number: found[customer_id] for number, customer_id in enumerate(ids, 1)}


def test_a_node_goes_and_comes_back(service: Service, homes: dict[int, str]) -> None:
    gone = homes[1]
    lost = [number for number, home in homes.items() if home == gone]
    well = [number for number, home in homes.items() if home != gone]
    assert well
    code_of = {number: send(service, number, "before").json()["codes"][0] for number in homes}
    with away(gone, service.database_url):
        for number in lost:
            require_away(send(service, number, "meanwhile"))
            require_away(service.client(f"key{number}").get("/orders"))
            require_away(Recipient(service).get(link(code_of[number])))
            require_away(Recipient(service).claim(code_of[number]))
            require_away(Recipient(service).post("/claim", **typed(code_of[number])))
        for number in well:
            assert send(service, number, "meanwhile").status_code == 200
            assert len(service.client(f"key{number}").get("/orders").json()) == 2
            assert Recipient(service).get(link(code_of[number])).status_code == 200
            assert Recipient(service).post("/claim", **typed(code_of[number])).status_code == 303
        (unknown,) = draw_codes(1)  # it may be one of the node's that is away
        require_away(Recipient(service).post("/claim", code=unknown.code_text, pin=unknown.pin_text))
    for number in lost:
        assert send(service, number, "meanwhile").status_code == 200
        assert len(service.client(f"key{number}").get("/orders").json()) == 2
        assert Recipient(service).claim(code_of[number]).status_code == 303


def typed(code: dict[str, str]) -> dict[str, str]:
    return {"code": code["code"], "pin": code["pin"]}
