"""Lists in another order than the newest first: by time and by total, there and back, with a filter and without."""

import json
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest
from tests.background import run_in_thread
from tests.reports.test_finding import wanted

from largesse.db.roles import Role
from largesse.reports import finder
from largesse.reports.filters import GroupFilter, OrderFilter
from largesse.reports.finder import find_orders
from largesse.reports.listing import Sort, list_selected, sorted_page
from largesse.reports.sums import OrderState

ORDER_BY = {
    Sort.NEWEST: "created_at DESC, order_id DESC",
    Sort.OLDEST: "created_at, order_id",
    Sort.HIGHEST: "spent_minor DESC, order_id DESC",
    Sort.LOWEST: "spent_minor, order_id",
}


@pytest.fixture(autouse=True, scope="module")
def different_totals(filled_url: str) -> None:
    async def give() -> None:
        connection = await asyncpg.connect(filled_url)
        await connection.execute("UPDATE report_orders SET spent_minor = 500 * (order_id::bigint * 7919 % 89)")
        await connection.close()

    run_in_thread(give())


async def all_of(connection: asyncpg.Connection, sort: Sort, condition: str = "true") -> list[int]:
    rows = await connection.fetch(
        f"SELECT order_id FROM report_orders WHERE customer_id = 1 AND environment = 'production' AND {condition} ORDER BY {ORDER_BY[sort]}"
    )
    return [row["order_id"] for row in rows]


@pytest.mark.parametrize("sort", Sort)
@pytest.mark.parametrize(
    ("filter_", "condition"),
    [(wanted(), "true"), (wanted(states=(OrderState.WAITING, OrderState.BOUNCED)), "state IN ('waiting', 'bounced')")],
    ids=["all", "two states"],
)
async def test_pages_lead_there_and_back(
    connection: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch, sort: Sort, filter_: OrderFilter, condition: str
) -> None:
    monkeypatch.setattr(finder, "MOST_SORTED", 10_000)
    expected = await all_of(connection, sort, condition)
    found: list[int] = []
    before = None
    pages = []
    while len(found) < 200:
        page = await sorted_page(connection, filter_, sort, 40, before=before)
        pages.append([order.order_id for order in page.orders])
        found += pages[-1]
        before = page.next
        if before is None:
            break
    assert found == expected[: len(found)]
    assert page.previous == found[-len(pages[-1])]
    back = await sorted_page(connection, filter_, sort, 40, after=page.previous)
    assert [order.order_id for order in back.orders] == pages[-2]
    assert back.next == pages[-2][-1]
    first = await sorted_page(connection, filter_, sort, 40, after=pages[1][0])
    assert ([order.order_id for order in first.orders], first.previous) == (pages[0], None)


async def test_of_many_that_match_the_newest_are_sorted(
    connection: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    filter_ = wanted(group=GroupFilter(source="crm"))
    matching = await find_orders(connection, filter_, 100_000)
    for most, is_all in ((len(matching.places), True), (len(matching.places) - 1, False)):
        monkeypatch.setattr(finder, "MOST_SORTED", most)
        page = await sorted_page(connection, filter_, Sort.HIGHEST, 50)
        assert page.is_all is is_all


async def test_chosen_orders_are_those_that_one_may_see(connection: asyncpg.Connection) -> None:
    rows = await connection.fetch(
        "SELECT reference, customer_id, environment FROM orders ORDER BY created_at DESC, id DESC LIMIT 100"
    )
    own = [row["reference"] for row in rows if tuple(row)[1:] == (1, "production")]
    references = [row["reference"] for row in rows]
    assert 0 < len(own) < len(references)
    found = await list_selected(connection, wanted(), [*references, "nothing"])
    assert [order.reference for order in found] == own
    assert await list_selected(connection, wanted(group=GroupFilter(user_id=1)), references) == []


async def test_each_list_is_read_from_an_index_in_its_order(connection: asyncpg.Connection) -> None:
    """As prepared statements are planned, which know no values."""
    await connection.execute(
        "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; ANALYZE report_orders"
    )
    queries = {
        "report_orders_by_total": (finder._BY_TOTAL[True], "1, 'production', 500, 1, 50"),
        "report_orders_of_state": (
            finder._of_states(finder._Reach(wanted(), None, newer=False)),
            "1, 'production', '-infinity', 'infinity', 1, 50, '{waiting}'",
        ),
    }
    for index, (query, values) in queries.items():
        await connection.execute(f"PREPARE listing AS {query}")
        plan = "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN EXECUTE listing ({values})"))
        await connection.execute("DEALLOCATE listing")
        assert index in plan
        assert "Filter" not in plan, plan


@pytest.mark.parametrize("newer", [False, True])
async def test_the_newest_of_many_groups_are_found_without_reading_as_many_of_each(
    connection: asyncpg.Connection, newer: bool
) -> None:
    filter_ = wanted(group=GroupFilter(source="api"))
    query = finder._grouped(filter_, finder._Reach(filter_, None, newer=newer))
    ends = ("infinity", "-infinity") if newer else ("-infinity", "infinity")
    values = "1, 'production', '{}', '{}', 1, 101, '{{waiting,claimed,bounced,cancelled,scheduled}}', 'api'".format(
        *ends
    )
    [matching] = await connection.fetchrow(
        "SELECT sum(least(n, 101)) FROM (SELECT count(*) AS n FROM report_orders AS o JOIN report_groups AS g ON g.customer_id ="
        " o.customer_id AND g.id = o.group_id WHERE o.customer_id = 1 AND g.environment = 'production' AND g.source = 'api' GROUP BY g.id, o.state) AS one"
    )
    await connection.execute(
        f"SET ROLE {Role.APP}; SET largesse.customers = '{{1}}'; SET largesse.environments = '{{production}}';"
        f"PREPARE listing AS {query}"
    )
    [[plan]] = await connection.fetch(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) EXECUTE listing ({values})")
    read = sum(_rows_read(json.loads(plan)[0]["Plan"]))
    assert matching > 1_000
    assert read < matching / 2, (read, matching)


def _rows_read(plan: dict[str, Any]) -> Iterator[int]:
    """The rows that each scan of orders read, those that a filter removed among them."""
    if plan.get("Relation Name") == "report_orders":
        yield (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
    for part in plan.get("Plans", ()):
        yield from _rows_read(part)
