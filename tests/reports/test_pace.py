"""How long lists, searches and sums take with millions of orders: only where REPORT_ORDERS says how many (docs/testing.md)."""

import os
import random
import time
from collections import defaultdict
from datetime import date, timedelta

import asyncpg
import pytest
from tests.reports.generator import generate
from tests.reports.test_finding import random_filter, wanted

from largesse.reports.filters import add_up
from largesse.reports.finder import find_orders

ORDERS = int(os.environ.get("REPORT_ORDERS", "0"))
_P95_S = 0.150


@pytest.mark.long
@pytest.mark.skipif(not ORDERS, reason="REPORT_ORDERS is not set")
@pytest.mark.timeout(7_200)
async def test_lists_searches_and_sums_answer_at_once(module_database_url: str) -> None:
    connection = await asyncpg.connect(module_database_url)
    await generate(connection, ORDERS)
    took: dict[str, list[float]] = defaultdict(list)
    today = date.today()  # noqa: DTZ011
    month = today.replace(day=1)
    for seed in range(300):
        filter_ = random_filter(random.Random(seed))
        began = time.perf_counter()
        page = await find_orders(connection, filter_, 50)
        took["search" if filter_.search else "list"].append(time.perf_counter() - began)
        if page.goes_on:
            began = time.perf_counter()
            await find_orders(connection, filter_, 50, past=page.goes_on)
            took["older"].append(time.perf_counter() - began)
        if not filter_.search:
            began = time.perf_counter()
            await add_up(connection, filter_)
            took["count and sum"].append(time.perf_counter() - began)
    for by, since in (("source", month), ("gift", month - timedelta(days=62)), ("month", month - timedelta(days=340))):
        for _ in range(20):
            began = time.perf_counter()
            await add_up(connection, wanted(since=since.replace(day=1), until=today), by)
            took[f"report by {by}"].append(time.perf_counter() - began)
    await connection.close()
    p95_s = {what: sorted(times)[int(len(times) * 0.95)] for what, times in took.items()}
    for what, seconds in p95_s.items():
        print(f"{what}: p95 {seconds * 1_000:.0f} ms")  # noqa: T201 - what this is for
    assert {what: seconds for what, seconds in p95_s.items() if seconds > _P95_S} == {}
