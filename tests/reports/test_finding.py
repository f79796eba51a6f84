"""Orders are found as a plain query would find them, whatever the filter, from wherever on; and added up likewise."""

import random
import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from tests.closing import closing
from tests.distributed import IS_DISTRIBUTED
from tests.plans import ROUNDED, rows_read
from tests.reports.generator import MESSAGES, SOURCES, generate

from largesse.base import clock
from largesse.db.pool import Database
from largesse.db.roles import Role
from largesse.db.scope import for_customer
from largesse.reports.filters import GroupFilter, OrderFilter, Position, _parts, add_up, together
from largesse.reports.finder import find_orders, place_of
from largesse.reports.listing import _LISTED, read_listed
from largesse.reports.search import LOOKED_AT, MAX_MEANT, read_terms
from largesse.reports.store import REMOVE_WORDS
from largesse.reports.sums import SUMS, OrderState, Sums
from largesse.reports.usage import FIRST_STEPS
from largesse.verify.audit import _run
from largesse.verify.reports import REPORTS

GROUPS = 1_000
SUMS_OF_MANY_GROUPS = f"""
    INSERT INTO report_groups (customer_id, environment, currency, source, product_id, collection_id, account_id, service_account_id, user_id)
    SELECT 1, 'production', 'GBP', 'source ' || n, 0, 0, 0, 0, 0 FROM generate_series(1, {GROUPS}) AS n;
    INSERT INTO report_sums
    SELECT 1, grain, current_date - n, id, 'waiting', 1, {", ".join("0" for _ in SUMS[1:])} FROM report_groups, generate_series(0, 99) AS n, unnest(ARRAY['day', 'month']) AS grain
    WHERE source LIKE 'source %'
"""
NAIVE = """
    SELECT o.created_at, o.id FROM orders o
    JOIN lines l ON l.customer_id = o.customer_id AND l.order_id = o.id
    JOIN report_orders r ON r.customer_id = o.customer_id AND r.order_id = o.id
    WHERE o.customer_id = $1 AND o.environment = $2
"""


def wanted(**members: Any) -> OrderFilter:
    return OrderFilter(customer_id=1, environment="production", **members)


async def naive(connection: asyncpg.Connection, filter_: OrderFilter) -> list[Position]:
    """The same by conditions that no index serves."""
    query, arguments = NAIVE, [filter_.customer_id, filter_.environment]

    def where(condition: str, value: Any) -> None:
        nonlocal query
        arguments.append(value)
        query += f" AND {condition.replace('?', f'${len(arguments)}')}"

    for name, value in filter_.group.said.items():
        where(f"coalesce(o.{name}, {'0' if isinstance(value, int) else chr(39) * 2}) = ?", value)
    if filter_.states:
        where("r.state = ANY(?)", list(filter_.states))
    if filter_.since:
        where("(o.created_at AT TIME ZONE 'UTC')::date >= ?", filter_.since)
    if filter_.until:
        where("(o.created_at AT TIME ZONE 'UTC')::date <= ?", filter_.until)
    for word in filter_.search.lower().split():
        where(
            "concat_ws(' ', '', l.recipient_email, l.recipient_name, o.external_reference, o.from_name, o.message)"
            " ~* ('[^a-z0-9@.-]' || ?)",
            word,
        )
    rows = await connection.fetch(query + " ORDER BY o.created_at DESC, o.id DESC", *arguments)
    return [Position(*row) for row in rows]


def random_filter(random_: random.Random) -> OrderFilter:
    day = date.today() - timedelta(days=random_.randrange(0, 365))  # noqa: DTZ011
    group = GroupFilter(
        source=random_.choice([None, None, *SOURCES, "unheard-of"]),
        product_id=random_.choice([None, None, None, 1, 3, 20]),
        account_id=random_.choice([None, None, 0, 2]),
        service_account_id=random_.choice([None, None, None, 1, 6]),
    )
    return wanted(
        group=group,
        states=random_.choice([(), (), (OrderState.WAITING,), (OrderState.CLAIMED, OrderState.BOUNCED)]),
        since=random_.choice([None, None, day]),
        until=random_.choice([None, None, day + timedelta(days=random_.randrange(0, 100))]),
        search=random_.choice(
            [
                "",
                "",
                "",
                "ada",
                "guest12",
                "name17 ben",
                "po-42",
                "team message7",
                "thank",
                "guest5@example.com",
                "nobody",
            ]
        ),
    )


@pytest.mark.sampled(7)
@pytest.mark.parametrize("seed", range(60))
async def test_what_is_found_is_what_a_plain_query_finds(connection: asyncpg.Connection, seed: int) -> None:
    filter_ = random_filter(random.Random(seed))
    expected = await naive(connection, filter_)
    found: list[Position] = []
    page = await find_orders(connection, filter_, 300)
    while True:
        assert len(page.places) <= 300
        found += page.places
        if page.goes_on is None:
            break
        page = await find_orders(connection, filter_, 300, past=page.goes_on)
    assert found == expected, filter_


async def test_pages_lead_back_the_way_they_came(connection: asyncpg.Connection) -> None:
    for filter_ in (wanted(), wanted(states=(OrderState.WAITING,)), wanted(search="ada")):
        first = await find_orders(connection, filter_, 20)
        assert first.goes_on is not None
        second = await find_orders(connection, filter_, 20, past=first.goes_on)
        back = await find_orders(connection, filter_, 20, past=second.places[0], newer=True)
        assert back.places == first.places
        assert back.goes_on is None
        middle = await find_orders(connection, filter_, 5, past=second.places[0], newer=True)
        assert middle.places == first.places[-5:]
        assert middle.goes_on == first.places[-5]


async def test_a_place_is_that_of_ones_own_order(connection: asyncpg.Connection) -> None:
    newest = (await find_orders(connection, wanted(), 1)).places[0]
    assert await place_of(connection, wanted(), newest.order_id) == newest
    other = OrderFilter(customer_id=2, environment="production")
    assert await place_of(connection, other, newest.order_id) is None
    staging = OrderFilter(customer_id=1, environment="staging")
    assert await place_of(connection, staging, newest.order_id) is None


async def test_customers_and_environments_are_kept_apart(connection: asyncpg.Connection) -> None:
    own = await find_orders(connection, OrderFilter(customer_id=2, environment="staging", search="ada"), 1_000)
    rows = await connection.fetch(
        "SELECT DISTINCT customer_id, environment FROM orders WHERE id = ANY($1::int[])",
        [place.order_id for place in own.places],
    )
    assert [tuple(row) for row in rows] in ([], [(2, "staging")])


async def test_a_common_word_is_gone_through_in_parts(connection: asyncpg.Connection) -> None:
    """Nothing is found among the first so many, and the list says where to go on."""
    filter_ = wanted(search="thank", until=None, group=GroupFilter(source="unheard-of"))
    page, parts = await find_orders(connection, filter_, 50), 1
    while page.goes_on is not None:
        assert page.places == []
        page, parts = await find_orders(connection, filter_, 50, past=page.goes_on), parts + 1
    assert parts == len(await naive(connection, wanted())) // LOOKED_AT + 1


async def test_few_orders_are_known_and_of_many_the_words(connection: asyncpg.Connection) -> None:
    few, many = await read_terms(connection, wanted(search="guest7@example.com TEAM"))
    assert few.orders is not None
    assert len(few.orders) <= 3
    assert (many.orders, many.words, many.is_cut) == (None, ["team"], False)
    (beginning,) = await read_terms(connection, wanted(search="mess"))
    assert (len(beginning.words), beginning.is_cut) == (MAX_MEANT, MESSAGES > MAX_MEANT)
    (part, other) = await read_terms(connection, wanted(search="po-team"))
    assert (part.words[:1], other.words) == (["po"], ["team"])
    assert await read_terms(connection, wanted(search=" ")) == []
    assert await read_terms(connection, wanted(search="x")) == []
    assert (await find_orders(connection, wanted(search="x"), 10)).places == []


async def test_initials_and_signs_beside_words_are_not_searched_for(connection: asyncpg.Connection) -> None:
    found = await find_orders(connection, wanted(search="guest7@example.com team"), 10)
    assert found.places
    assert await find_orders(connection, wanted(search="M. guest7@example.com & team"), 10) == found


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "by", ["currency", "source", "gift", "account", "service_account", "placed_by", "state", "day", "month"]
)
@pytest.mark.parametrize("seed", range(4))
async def test_sums_are_those_of_the_orders(connection: asyncpg.Connection, by: str, seed: int) -> None:
    random_ = random.Random(seed)
    since = date.today() - timedelta(days=random_.randrange(0, 365))  # noqa: DTZ011
    filter_ = wanted(
        group=GroupFilter(source=random_.choice([None, "crm"])),
        since=random_.choice([None, since]),
        until=random_.choice([None, since + timedelta(days=random_.randrange(0, 200))]),
    )
    expression = {
        "currency": "o.currency",
        "source": "o.source",
        "gift": "'product-' || o.product_id",
        "placed_by": "'key-' || o.service_account_id",
        "account": "coalesce(o.account_id, 0)",
        "service_account": "o.service_account_id",
        "state": "r.state",
        "day": "(o.created_at AT TIME ZONE 'UTC')::date",
        "month": "date_trunc('month', o.created_at AT TIME ZONE 'UTC')::date",
    }[by]
    places = await naive(connection, filter_)
    rows = await connection.fetch(
        f"""
        SELECT {expression}, count(*), sum(o.total_minor)::bigint FROM orders o JOIN report_orders r ON r.customer_id = o.customer_id AND r.order_id = o.id
        WHERE o.id = ANY($1::int[]) GROUP BY 1 ORDER BY 1
        """,
        [place.order_id for place in places],
    )
    added = await add_up(connection, filter_, by)
    assert [(one.key, one.sums.orders, one.sums.spent_minor) for one in added if one.sums.orders] == [
        tuple(row) for row in rows
    ]
    assert {one.currency for one in added} <= {"GBP"}


@pytest.mark.parametrize("by", ["day", "month", "source"])
async def test_what_is_told_apart_is_all_there_is_together(connection: asyncpg.Connection, by: str) -> None:
    today = date.today()  # noqa: DTZ011
    quarter = wanted(since=today - timedelta(days=80), until=today)
    added = await add_up(connection, quarter, by)
    assert len(added) > 1
    assert together(added) == await add_up(connection, quarter)


@pytest.mark.slow
async def test_sums_are_read_by_their_days_and_not_once_for_each_group(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    await generate(connection, 10)
    await connection.execute(SUMS_OF_MANY_GROUPS)
    await connection.execute("ANALYZE report_groups, report_sums")
    await connection.close()
    async with (
        closing(Database.connect(database_url, role=Role.APP)) as database,
        database.connection(for_customer(1, "production")) as connection,
    ):
        added = await add_up(connection, wanted())
        scans = await connection.fetchval("SELECT pg_stat_get_xact_numscans('report_sums_pkey'::regclass)")
    assert sum(one.sums.orders for one in added) >= 100 * GROUPS
    assert scans < 20


@pytest.mark.parametrize("search", ["thank", "guest1 thank"])
async def test_of_what_a_search_goes_through_each_order_is_looked_up_by_itself(filled_url: str, search: str) -> None:
    async with (
        closing(Database.connect(filled_url, role=Role.APP)) as database,
        database.connection(for_customer(1, "production")) as connection,
    ):
        found = await find_orders(connection, wanted(search=search, group=GroupFilter(source="api")), LOOKED_AT)
        scans = await connection.fetchval(
            "SELECT pg_stat_get_xact_numscans('report_orders_grouped'::regclass)"
            " + pg_stat_get_xact_numscans('report_orders'::regclass)"
        )
    assert found.places
    assert scans == 0


async def test_sums_that_are_not_asked_for_are_not_read(connection: asyncpg.Connection) -> None:
    (all_of_them,) = await add_up(connection, wanted())
    (some,) = await add_up(connection, wanted(), only=("orders", "claimed"))
    assert all_of_them.sums.spent_minor > 0
    assert some.sums == Sums(orders=all_of_them.sums.orders, claimed=all_of_them.sums.claimed)


def test_a_month_that_is_under_way_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: datetime(2030, 3, 15, 12, tzinfo=UTC))
    month, today, next_month = date(2030, 3, 1), date(2030, 3, 15), date(2030, 4, 1)
    assert list(_parts(month, today, by_day=False)) == [("month", month, next_month)]
    assert list(_parts(date(2029, 12, 30), today, by_day=False)) == [
        ("day", date(2029, 12, 30), date(2030, 1, 1)),
        ("month", date(2030, 1, 1), next_month),
    ]
    assert list(_parts(month, today, by_day=True)) == [("day", month, date(2030, 3, 16))]
    yesterday = today - timedelta(days=1)
    assert list(_parts(month, yesterday, by_day=False)) == [("day", month, today)]


async def test_claims_count_on_the_days_they_were_made(connection: asyncpg.Connection) -> None:
    day = date.today() - timedelta(days=30)  # noqa: DTZ011
    (added,) = await add_up(connection, wanted(since=day, until=day))
    claimed = await connection.fetchval(
        """
        SELECT count(*) FROM line_events e JOIN orders o ON o.customer_id = e.customer_id AND o.id = e.order_id
        WHERE e.event = 'claimed' AND (e.at AT TIME ZONE 'UTC')::date = $1 AND o.customer_id = 1
          AND o.environment = 'production'
        """,
        day,
    )
    assert added.sums.claimed == claimed > 0


@pytest.mark.parametrize("check", REPORTS, ids=lambda check: check.name)
async def test_what_was_generated_is_what_the_audit_expects(connection: asyncpg.Connection, check: Any) -> None:
    assert await _run(connection, check) == []


async def test_an_order_is_forgotten_without_reading_others_of_the_same_words(connection: asyncpg.Connection) -> None:
    transaction = connection.transaction()
    await transaction.start()
    try:
        words = [row[0] for row in await connection.fetch("SELECT word FROM report_words WHERE order_id = 77")]
        assert "thank" in words  # as in every order's message
        plan = await connection.fetch(f"EXPLAIN {REMOVE_WORDS}", 1, [77], words)
        conditions = re.findall(r"Index Cond: .*", "\n".join(row[0] for row in plan))
        assert any("word" in one and "created_at" in one and "order_id" in one for one in conditions), plan
        assert await connection.execute(REMOVE_WORDS, 1, [77], words) == f"DELETE {len(words)}"
    finally:
        await transaction.rollback()


@pytest.mark.skipif(IS_DISTRIBUTED, reason="what a node reads is not among what its coordinator explains")
async def test_an_index_tells_that_a_customer_has_no_order_in_an_environment(connection: asyncpg.Connection) -> None:
    async with connection.transaction():
        await connection.execute(f"SET LOCAL plan_cache_mode = force_generic_plan; PREPARE it AS {FIRST_STEPS[False]}")
        plan = await connection.fetch("EXPLAIN EXECUTE it (1, 30, 'staging')")
    assert any("orders_newest" in row[0] for row in plan), plan


async def test_the_names_of_campaigns_are_read_for_the_listed_orders_alone(connection: asyncpg.Connection) -> None:
    transaction = connection.transaction()
    await transaction.start()
    rows = await connection.fetch(
        "UPDATE orders SET source = 'campaign' WHERE customer_id = 1 AND environment = 'production' AND id % 500 = 0 RETURNING id, reference"
    )
    await connection.execute(
        """
        INSERT INTO campaigns (customer_id, environment, name, user_id, token, order_reference, gifts, domains, opens_at, closes_at, due_at)
        SELECT 1, 'production', 'Party', 1, reference, reference, 1, '{a.example}', now(), now(), now()
        FROM unnest($1::text[] || ARRAY(SELECT 'OTHER' || n FROM generate_series(1, 5000) AS n)) AS made (reference)
        """,
        [row["reference"] for row in rows],
    )
    await connection.execute("ANALYZE campaigns")
    other = await connection.fetchval("SELECT max(id) FROM orders WHERE customer_id = 1 AND source <> 'campaign'")
    listed = [rows[0]["id"], rows[1]["id"], other]
    orders = await read_listed(connection, 1, [Position(datetime.now(UTC), order_id) for order_id in listed])
    assert [one.campaign for one in orders] == ["Party", "Party", None]
    if not IS_DISTRIBUTED:  # a cluster explains nothing within a transaction that has read from a node
        read = await rows_read(connection, Role.APP, "campaigns", _LISTED, 1, listed)
        assert read == pytest.approx(2, abs=ROUNDED * len(listed))
    await transaction.rollback()


@pytest.mark.skipif(IS_DISTRIBUTED, reason="the rows are read on a node")
async def test_a_page_of_orders_reads_them_alone_also_by_a_plan_for_any_customer(database_url: str) -> None:
    """Among many customers with few orders, a page of one with 200,000 read all of these, from the sixth page on."""
    async with closing(asyncpg.connect(database_url)) as connection:
        await connection.execute("SET session_replication_role = replica")
        await connection.execute(
            """
            INSERT INTO orders (id, reference, customer_id, environment, service_account_id, source, gift_selection, country, currency,
                value_minor, total_minor, code_count, recipient_count, delivery_mode, wrapping_key, created_at)
            SELECT n, 'R' || n, CASE WHEN n <= 3000 THEN 1 ELSE 10 + n / 20 END, 'production', 1, 'api', 'gift', 'GB', 'GBP', 100, 100, 1, 1, 'send', 'default',
                   clock_now()
            FROM generate_series(1, 9000) AS n;
            ANALYZE orders
            """
        )
        so_far = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'orders'"
        listed = list(range(1000, 1050))
        async with connection.transaction():
            await connection.execute(
                f"SET LOCAL ROLE {Role.APP}; SET LOCAL largesse.customers = '{{1}}'; SET LOCAL largesse.environments = '{{production}}'"
            )
            before = await connection.fetchval(so_far)
            for _ in range(7):
                assert len(await connection.fetch(_LISTED, 1, listed)) == 50
            assert await connection.fetchval(so_far) - before == 7 * 50
