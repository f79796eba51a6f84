"""A catalogue of 50,000 products: its list, its search and publishing take less than 300 ms in 19 of 20 cases, also while gifts are ordered."""

import asyncio
import time
from collections.abc import Callable
from statistics import median

import pytest
from tests.web.api.conftest import Service, on_database
from tests.web.console.conftest import Browser
from tests.web.office.conftest import staff_in
from tests.web.office.test_catalogue import TYPED, started

PRODUCTS, TRIES, MOST_MS = 50_000, 20, 300
MOST_OF_PROCESSOR_MS = 50
ADD = """
    INSERT INTO products (key, name, is_digital, currency, countries, denominations_minor)
    SELECT 'many-' || n, (ARRAY['Coffee', 'Cinema', 'Garden', 'Picnic'])[1 + n % 4] || ' gift ' || n, true, 'GBP', '{GB}', '{500,1000}'
    FROM generate_series(1, $1::int) n
"""


def slowest_but_one(work: Callable[[int], None]) -> float:
    """The 95th percentile of how long it takes, the first time left out."""
    work(0)
    taken = []
    for number in range(1, TRIES + 1):
        began = time.perf_counter()
        work(number)
        taken.append(time.perf_counter() - began)
    return sorted(taken)[-2]


class Manager:
    """A catalogue manager, who opens, searches, renames and publishes products."""

    def __init__(self, service: Service, browser: Browser) -> None:
        self._browser = browser
        rows = service.sql("SELECT id FROM products WHERE key LIKE 'many-1__' ORDER BY id")
        self._paths = [f"/office/catalogue/{row['id']}" for row in rows]
        self._forms: dict[int, dict[str, str]] = {}

    def list(self, number: int) -> None:
        self._shown(f"/office/catalogue?after=many-{number}0")

    def search(self, number: int) -> None:
        self._shown(f"/office/catalogue?q=garden+{4 * number + 2}")

    def search_a_common_word(self, _: int) -> None:
        self._shown("/office/catalogue?q=coff")

    def open(self, number: int) -> None:
        self._shown(self._paths[number])

    def save(self, number: int) -> None:
        hidden = started(self._browser, self._paths[number])
        typed = {**TYPED, **hidden, "name": f"Renamed {time.monotonic_ns()}"}
        assert self._browser.post(self._paths[number], **typed).status_code == 303
        seen = started(self._browser, self._paths[number])["seen"]
        self._forms[number] = {"seen": seen, "token": self._browser.token}

    def publish(self, number: int) -> None:
        answer = self._browser.post(f"{self._paths[number]}/publish", **self._forms[number])
        assert answer.status_code == 303

    def _shown(self, path: str) -> None:
        answer = self._browser.get(path)
        assert answer.status_code == 200
        assert "/office/catalogue/" in answer.text


@pytest.fixture(scope="module")
def manager(service: Service) -> Manager:
    on_database(service.database_url, lambda connection: connection.execute(ADD, PRODUCTS))
    on_database(service.database_url, lambda connection: connection.execute("ANALYZE products"))
    return Manager(service, staff_in(service, "catalogue"))


@pytest.mark.long
@pytest.mark.timeout(300)
def test_pages_of_many_products_are_quick(manager: Manager) -> None:
    for number in range(TRIES + 1):
        manager.save(number)
    acts = (manager.list, manager.search, manager.search_a_common_word, manager.open, manager.publish)
    measured = {act.__name__: round(1_000 * slowest_but_one(act)) for act in acts}
    print(measured, "ms")  # noqa: T201 - for the report
    assert max(measured.values()) < MOST_MS, measured


@pytest.mark.long
@pytest.mark.timeout(300)
def test_work_on_many_products_leaves_the_processor_to_orders(service: Service, manager: Manager) -> None:
    """In processor time of the thread that serves, which other programs do not lengthen: the act, and the order that follows it."""

    async def read_clock() -> float:
        return time.thread_time()

    def clock_s() -> float:
        return asyncio.run_coroutine_threadsafe(read_clock(), loop).result()

    def order() -> None:
        assert service.send("gift", "coffee", value=5).status_code == 200

    order()
    loading = service.app.services.catalogue._loading
    assert loading is not None
    loop = loading.get_loop()
    spent_ms: dict[str, list[float]] = {}
    for number in range(21, 21 + TRIES):
        for act in (manager.list, manager.search, manager.save, manager.publish):
            began_s = clock_s()
            act(number)
            order()
            spent_ms.setdefault(act.__name__, []).append(1_000 * (clock_s() - began_s))
    measured = {name: round(median(spent), 1) for name, spent in spent_ms.items()}
    print(measured, "ms of the processor")  # noqa: T201 - for the report
    assert max(measured.values()) < MOST_OF_PROCESSOR_MS, measured
