"""By which words an order is found. A search reads what its page shows and no more; its sums come of the same look."""

import os
import random
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date, timedelta
from typing import Any

import asyncpg
import pytest
from tests.closing import closing
from tests.distributed import IS_DISTRIBUTED
from tests.reports.generator import SOURCES, generate
from tests.reports.test_finding import random_filter, wanted

from largesse.db.pool import Connection, Database
from largesse.db.roles import Role
from largesse.db.scope import for_customer
from largesse.reports.filters import GroupFilter, Position, add_up
from largesse.reports.finder import find_orders
from largesse.reports.listing import read_choices, search_page
from largesse.reports.search import (
    LOOKED_AT,
    MAX_MEANT,
    MAX_WORD,
    read_terms,
    words_of,
    words_of_order,
    words_of_recipient,
)
from largesse.reports.sums import OrderState


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, set()),
        ("", set()),
        ("Thank you, Zoë!", {"thank", "you", "zoe"}),
        ("ÅNGSTRÖM straße", {"angstrom", "strasse"}),
        ("O'Brien-Smith", {"brien", "smith"}),
        ("a b_c d2", {"d2"}),
        ("日本 語", {"日本"}),
        ("x" * 200, {"x" * MAX_WORD}),
    ],
)
def test_a_text_is_taken_apart_without_regard_to_case_and_accents(text: str | None, words: set[str]) -> None:
    assert words_of(text) == words


def test_a_recipient_is_found_by_address_and_name() -> None:
    words = set(words_of_recipient("Ada.Lovelace@Acme.example", "Ada King"))
    assert words == {"ada.lovelace@acme.example", "ada", "lovelace", "king"}
    assert set(words_of_recipient(None, None)) == set()


def test_an_order_is_found_by_its_own_reference_whole_and_in_parts() -> None:
    assert words_of_order(" PO-2030/17 ", ["Acme"], [("ben@acme.example", None)]) == {
        "po-2030/17",
        "po",
        "2030",
        "17",
        "acme",
        "ben@acme.example",
        "ben",
    }


@asynccontextmanager
async def serving(url: str) -> AsyncIterator[Connection]:
    """A transaction as the serving process has it, whose scans and rows are counted from nothing on."""
    async with (
        closing(Database.connect(url, role=Role.APP)) as database,
        database.connection(for_customer(1, "production")) as connection,
    ):
        yield connection


async def scans(connection: Connection, index: str) -> int:
    return int(await connection.fetchval("SELECT pg_stat_get_xact_numscans($1::regclass)", index))


async def entries(connection: Connection, index: str) -> int:
    return int(await connection.fetchval("SELECT pg_stat_get_xact_tuples_returned($1::regclass)", index))


@pytest.mark.parametrize("search", ["thank", "ada", "guest7@example.com", "team message7", "nobody"])
@pytest.mark.parametrize("states", [(), (OrderState.WAITING,)])
async def test_a_page_of_a_search_comes_with_the_sums_of_the_newest(
    connection: asyncpg.Connection, search: str, states: tuple[OrderState, ...]
) -> None:
    filter_ = wanted(search=search, states=states)
    newest = await find_orders(connection, filter_, LOOKED_AT)
    pages = []
    for limit in (50, 5_000):
        first = await find_orders(connection, filter_, limit)
        page, sums, is_all = await search_page(connection, filter_, limit)
        assert [one.order_id for one in page.orders] == [place.order_id for place in first.places]
        assert page.next == (first.goes_on and first.goes_on.order_id)
        assert page.previous is None
        assert is_all == (newest.goes_on is None)
        spent = await connection.fetchval(
            "SELECT sum(spent_minor)::bigint FROM report_orders WHERE order_id = ANY($1::int[])",
            [place.order_id for place in newest.places],
        )
        assert [(one.key, one.sums.orders, one.sums.codes, one.sums.spent_minor) for one in sums] == (
            [("GBP", len(newest.places), len(newest.places), spent)] if newest.places else []
        )
        pages.append((first, page))
    (first, page), _ = pages
    if first.goes_on is not None:
        second = await find_orders(connection, filter_, 50, past=first.goes_on)
        older, again, _ = await search_page(connection, filter_, 50, before=first.goes_on)
        assert [one.order_id for one in older.orders] == [place.order_id for place in second.places]
        assert again == sums
        back, _, _ = await search_page(connection, filter_, 50, after=second.places[0])
        assert back.orders == page.orders


async def test_a_search_finds_its_first_page_and_its_sums_at_once(filled_url: str) -> None:
    async with serving(filled_url) as connection:
        page, (sums,), is_all = await search_page(connection, wanted(search="thank"), 50)
        looked_up = await scans(connection, "report_orders_pkey")
    assert (len(page.orders), sums.sums.orders, is_all) == (50, LOOKED_AT, False)
    assert looked_up <= LOOKED_AT + len(page.orders)


@pytest.mark.parametrize("typed", ["…{end}", "…{small}", "{end}"])
async def test_an_order_is_found_by_the_end_of_its_reference(connection: asyncpg.Connection, typed: str) -> None:
    orders = await connection.fetch(
        "SELECT id, right(reference, 6) AS end FROM orders WHERE customer_id = 1 AND environment = 'production' ORDER BY id DESC LIMIT 50"
    )
    of_end = {one["end"]: one["id"] for one in orders if not one["end"].isalpha()}
    assert of_end
    for end, order_id in list(of_end.items())[:5]:
        found = await find_orders(connection, wanted(search=typed.format(end=end, small=end.lower())), 50)
        assert [place.order_id for place in found.places] == [order_id]


@pytest.mark.skipif(IS_DISTRIBUTED, reason="the index is read on a node")
async def test_a_name_is_no_end_of_a_reference(filled_url: str) -> None:
    async with serving(filled_url) as connection:
        await find_orders(connection, wanted(search="Anders ADA7 ABCDEFG7"), 50)
        assert await scans(connection, "orders_newest") == 0
        # Which the planner prefers for a few thousand orders that it has no statistics of.
        await connection.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
        await find_orders(connection, wanted(search="…Anders"), 50)
        assert (await scans(connection, "orders_newest"), await entries(connection, "orders_newest")) == (1, LOOKED_AT)


@pytest.mark.parametrize(("members", "most"), [({}, 51), ({"group": GroupFilter(source="api")}, 400)])
async def test_a_search_looks_up_no_more_orders_than_fill_a_page(
    filled_url: str, members: dict[str, Any], most: int
) -> None:
    async with serving(filled_url) as connection:
        found = await find_orders(connection, wanted(search="thank", **members), 50)
        looked_up = await scans(connection, "report_orders_pkey")
    assert len(found.places) == 50
    assert looked_up <= most


async def test_the_orders_of_many_words_are_read_as_far_as_they_are_wanted(filled_url: str) -> None:
    async with serving(filled_url) as connection:
        terms = await read_terms(connection, wanted(search="mess"))
        before = await entries(connection, "report_words_pkey")
        found = await find_orders(connection, wanted(search="mess"), 50, terms=terms)
        read = await entries(connection, "report_words_pkey") - before
        orders = await connection.fetch(
            "SELECT DISTINCT created_at, order_id FROM report_words WHERE word = ANY($1::text[])"
            " AND customer_id = 1 AND environment = 'production' ORDER BY created_at DESC, order_id DESC LIMIT 50",
            terms[0].words,
        )
    assert len(terms[0].words) == MAX_MEANT
    assert found.places == [Position(*row) for row in orders]
    assert read <= 51 + 2 * MAX_MEANT


async def test_many_words_are_not_each_looked_for_with_each_order(filled_url: str) -> None:
    filter_ = wanted(search="thank mess")
    async with serving(filled_url) as connection:
        terms = await read_terms(connection, filter_)
        assert [len(term.words) for term in terms] == [1, MAX_MEANT]
        before = await scans(connection, "report_words_pkey")
        found = await find_orders(connection, filter_, LOOKED_AT, terms=terms)
        looks = await scans(connection, "report_words_pkey") - before
        newest = await find_orders(connection, wanted(search="thank"), LOOKED_AT)
        rows = await connection.fetch(
            "SELECT DISTINCT created_at, order_id FROM report_words WHERE word = ANY($1::text[])"
            " AND customer_id = 1 AND environment = 'production'",
            terms[1].words,
        )
    having = {Position(*row) for row in rows}
    assert found.places == [place for place in newest.places if place in having] != []
    assert found.goes_on == newest.goes_on
    assert looks <= 2 * MAX_MEANT


async def test_what_is_common_is_counted_and_not_handed_over(filled_url: str) -> None:
    class Counting:
        rows = 0

        def __init__(self, connection: Connection) -> None:
            self._connection = connection

        async def fetch(self, query: str, *arguments: Any) -> list[asyncpg.Record]:
            rows: list[asyncpg.Record] = await self._connection.fetch(query, *arguments)
            self.rows += len(rows)
            return rows

    async with serving(filled_url) as connection:
        counting = Counting(connection)
        (common,) = await read_terms(counting, wanted(search="mess"))  # type: ignore[arg-type]
        assert common.orders is None
        assert counting.rows <= 2 + MAX_MEANT


async def test_what_can_be_chosen_is_what_orders_have(filled_url: str) -> None:
    async with serving(filled_url) as connection:
        choices = await read_choices(connection, (1, "production"))
        known = [
            await connection.fetch(
                f"SELECT '{kind}-' || id, name FROM {table} WHERE id IN (SELECT {column} FROM report_groups"
                " WHERE customer_id = 1 AND environment = 'production') ORDER BY name"
            )
            for kind, table, column in (
                ("product", "products", "product_id"),
                ("key", "service_accounts", "service_account_id"),
            )
        ]
    assert choices.sources == [(name, name) for name in sorted(set(SOURCES))]
    assert [choices.gifts, choices.placed_by] == [[tuple(row) for row in rows] for rows in known]
    assert choices.gifts
    assert choices.accounts == []  # theirs have no row


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
