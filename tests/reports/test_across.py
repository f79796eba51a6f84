"""Finding gifts of all customers: each way finds what it should, of whichever customer, and nothing that begins alike."""

from collections.abc import Callable
from typing import Any

import asyncpg
import pytest
from tests.closing import closing
from tests.distributed import IS_DISTRIBUTED
from tests.plans import rows_read
from tests.reports.conftest import Pooled

from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection, Database
from largesse.db.roles import Role
from largesse.db.scope import OFFICE, OPERATOR
from largesse.encryption.vault import Vault
from largesse.lines.codes import draw_codes, open_code
from largesse.reports import across

SAM, ALEX = "Sam.Across@example.com", "alex.across@example.com"


@pytest.fixture
def placed(service: Any, follow: Callable[[], None]) -> dict[str, str]:
    """Orders of two customers to Sam, second on the first one's list; their references."""
    recipients = [{"email": ALEX, "name": "Alex"}, {"email": SAM, "name": "Sam"}]
    gift = {"value": 5, "externalReference": f"T-{service.sql('SELECT count(*) FROM orders')[0][0]}"}
    acme = service.send("gift", "coffee", recipients=recipients, **gift)
    globex = service.send("gift", "coffee", key="globex", account="globex-gbp", recipients=recipients[1:], **gift)
    follow()
    return {"acme": acme.json()["reference"], "globex": globex.json()["reference"], "own": gift["externalReference"]}


def found(pooled: Pooled[Any], look: Callable[[Connection], Any]) -> dict[str, across.FoundOrder]:
    async def work(database: Database) -> list[across.FoundOrder]:
        async with database.connection(OPERATOR) as connection:
            return await look(connection)  # type: ignore[no-any-return]

    orders = pooled(work)
    by_reference = {one.reference: one for one in orders}
    assert len(orders) == len(by_reference)
    return by_reference


def test_an_order_is_found_by_its_reference_and_by_its_customers(placed: dict[str, str], pooled: Pooled[Any]) -> None:
    (one,) = found(pooled, lambda c: across.find_by_reference(c, placed["acme"].lower())).values()
    assert (one.customer, one.reference, one.number, one.code_count) == ("Acme Ltd", placed["acme"], None, 2)
    own = found(pooled, lambda c: across.find_by_reference(c, placed["own"]))
    assert set(own) == {placed["acme"], placed["globex"]}
    assert found(pooled, lambda c: across.find_by_reference(c, placed["acme"][:-1])) == {}


def test_the_order_of_a_campaign_is_found_once(service: Any, placed: dict[str, str], pooled: Pooled[Any]) -> None:
    service.sql("UPDATE orders SET external_reference = reference WHERE reference = $1", placed["acme"])
    assert set(found(pooled, lambda c: across.find_by_reference(c, placed["acme"]))) == {placed["acme"]}


def test_gifts_are_found_by_the_address_in_any_case(placed: dict[str, str], pooled: Pooled[Any]) -> None:
    by_address = found(pooled, lambda c: across.find_by_address(c, f" {SAM.upper()} "))
    assert by_address[placed["acme"]].number == 2
    assert by_address[placed["globex"]].number == 1
    assert placed["globex"] not in found(pooled, lambda c: across.find_by_address(c, ALEX))
    for other in (SAM[:-1], SAM.partition("@")[0], "%", ""):
        assert found(pooled, lambda c, other=other: across.find_by_address(c, other)).keys().isdisjoint(placed.values())


def test_a_gift_is_found_by_its_code_and_by_no_other(service: Any, placed: dict[str, str], pooled: Pooled[Any]) -> None:
    vault = Vault(service.settings.master_keys)
    rows = service.of_order(placed["acme"], "number, sealed", "lines", "ORDER BY 1")
    for number, sealed in rows:
        code = open_code(vault, sealed, placed["acme"], number).code
        (one,) = found(pooled, lambda c, code=code: across.find_by_code(c, vault, code)).values()
        assert (one.reference, one.number) == (placed["acme"], number)
    (other,) = draw_codes(1)
    assert found(pooled, lambda c: across.find_by_code(c, vault, other.code)) == {}


def test_a_parcel_is_found_by_its_tracking_number(service: Any, placed: dict[str, str], pooled: Pooled[Any]) -> None:
    service.sql(
        """
        INSERT INTO shipments (customer_id, order_id, number, environment, product_id, country, sealed_address, requested_at, exported_at, shipped_at, sendings, carrier, tracking_number)
        SELECT customer_id, id, 2, environment, product_id, country, 'x', now(), now(), now(), 1, 'Post', 'TRACK' || id FROM orders WHERE reference = $1
        """,
        placed["acme"],
    )
    order_id = service.sql("SELECT id FROM orders WHERE reference = $1", placed["acme"])[0][0]
    (one,) = found(pooled, lambda c: across.find_by_tracking_number(c, f"TRACK{order_id}")).values()
    assert (one.reference, one.number) == (placed["acme"], 2)
    assert found(pooled, lambda c: across.find_by_tracking_number(c, "TRACK")) == {}


def test_so_many_are_found_at_most_and_the_newest_first(service: Any, pooled: Pooled[Any], follow: Any) -> None:
    for at in range(across.MOST_FOUND + 1):
        sent = service.send("gift", "coffee", value=5, recipients=[{"email": "many@example.com", "name": f"Many {at}"}])
        assert sent.status_code == 200, sent.text
    follow()
    orders = list(found(pooled, lambda c: across.find_by_address(c, "many@example.com")).values())
    assert len(orders) == across.MOST_FOUND
    times = [one.created_at for one in orders]
    assert times == sorted(times, reverse=True)
    newest = service.sql("SELECT max(created_at) FROM orders")[0][0]
    assert times[0] == newest


@pytest.mark.skipif(IS_DISTRIBUTED, reason="the rows are read on nodes")
async def test_a_search_does_not_look_each_customer_up(database_url: str) -> None:
    """With 100,000 customers, a search by address read 600,000 blocks, and one by reference 300,000."""
    async with closing(asyncpg.connect(database_url)) as connection:
        await connection.execute("SET session_replication_role = replica")
        await connection.execute(
            """
            INSERT INTO customers (id, key, name, plan, funding) OVERRIDING SYSTEM VALUE
            SELECT n, 'more' || n, 'C', 'pro', 'invoiced' FROM generate_series(1000, 3000) AS n;
            INSERT INTO report_words (customer_id, environment, word, created_at, order_id)
            SELECT 1000 + n % 2000, 'production', 'ann' || n % 6000 || '@example.com', clock_now(), n FROM generate_series(1, 12000) AS n;
            INSERT INTO report_words (customer_id, environment, word, created_at, order_id)
            SELECT 1000 + n % 2000, 'production', 'ann' || n % 6000, clock_now(), n FROM generate_series(1, 12000) AS n;
            INSERT INTO orders (id, reference, customer_id, environment, service_account_id, source, gift_selection, country, currency,
                value_minor, total_minor, code_count, recipient_count, delivery_mode, wrapping_key, created_at)
            SELECT 1000000 + n, 'MORE' || n, 1000 + n % 2000, 'production', 1, 'api', 'gift', 'GB', 'GBP', 100, 100, 1, 1, 'send', 'default', clock_now()
            FROM generate_series(1, 12000) AS n;
            ANALYZE customers, report_words, orders
            """
        )
        sought = {across._BY_ADDRESS: "ann3000@example.com", across._BY_REFERENCE: "MORE6000"}
        for statement, one in sought.items():
            parts = {"apart": Fragment("OFFSET 0")} if "{apart}" in statement else {}
            text = compose(statement, columns=across._COLUMNS, **parts)
            for table, most in {"customers": 2, "report_words": 2, "orders": 2}.items():
                assert await rows_read(connection, Role.OFFICE, table, text, one, across.MOST_FOUND) <= most, (
                    one,
                    table,
                )


@pytest.mark.skipif(IS_DISTRIBUTED, reason="the rows are read on nodes")
@pytest.mark.parametrize("customers", [0, 3000])
async def test_a_customers_reference_is_found_without_a_look_up_for_each_of_many(
    database_url: str, customers: int
) -> None:
    """With 100,000 customers of ten orders each, the look-ups read 600,000 blocks. The whole index has 9,000."""
    async with closing(asyncpg.connect(database_url)) as connection:
        await connection.execute("SET session_replication_role = replica")
        await connection.execute(
            f"""
            INSERT INTO customers (id, key, name, plan, funding) OVERRIDING SYSTEM VALUE
            SELECT n, 'more' || n, 'C', 'pro', 'invoiced' FROM generate_series(1000, 1001 + {customers}) AS n;
            INSERT INTO orders (id, reference, external_reference, customer_id, environment, service_account_id, source, gift_selection, country, currency,
                value_minor, total_minor, code_count, recipient_count, delivery_mode, wrapping_key, created_at)
            SELECT 1000000 + n, 'MORE' || n, 'own' || n / 2, 1000 + n % 2, 'production', 1, 'api', 'gift', 'GB', 'GBP', 100, 100, 1, 1, 'send', 'default',
                clock_now() + n * interval '1 second'
            FROM generate_series(1, 6000) AS n;
            ANALYZE customers, orders
            """
        )
    read = "SELECT (seq_tup_read + idx_tup_fetch)::int FROM pg_stat_xact_user_tables WHERE relname = 'customers'"
    async with (
        closing(Database.connect(database_url, role=Role.OFFICE, max_connections=1)) as database,
        database.transaction(OFFICE) as connection,
    ):
        before = await connection.fetchval(read) or 0
        found = await across.find_by_reference(connection, "own2000")
        looked_at = await connection.fetchval(read) - before
    assert [one.reference for one in found] == ["MORE4001", "MORE4000"], "the newest first"
    assert looked_at <= 20
