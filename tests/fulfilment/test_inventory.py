"""The stock from an operator's file, and what the worker keeps in order."""

import asyncio
from datetime import date
from pathlib import Path

import pytest
from prometheus_client import REGISTRY
from tests.chained import actor_on
from tests.distributed import WAITING
from tests.waiting import until

from largesse.base.errors import OperatorError
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR, WORKER
from largesse.encryption.vault import Vault
from largesse.fulfilment import inventory
from largesse.fulfilment.store import ADD_VOUCHERS
from largesse.fulfilment.tasks import expire_late, measure_inventory
from largesse.fulfilment.vouchers import NO_DATE, Voucher, open_voucher, seal_voucher
from largesse.lines.attempts import prune_guesses

OLD, NEW = bytes(range(32)), bytes(range(32, 64))
VAULT = Vault((OLD,))


@pytest.fixture
async def database(database: Database) -> Database:
    await database.execute(
        OPERATOR,
        """
        INSERT INTO products (key, name, is_digital, currency, countries, denominations_minor, min_amount_minor, max_amount_minor)
        VALUES ('one', 'One', true, 'GBP', '{GB}', '{1000}', NULL, NULL), ('many', 'Many Things', true, 'GBP', '{GB}', '{500,1000}', NULL, NULL),
               ('range', 'Range', true, 'JPY', '{JP}', '{}', 500, 3000)
        """,
    )
    await database.execute(
        OPERATOR,
        "INSERT INTO products (key, name, is_digital, currency, cost_minor) VALUES ('box', 'Box', false, 'GBP', 1)",
    )
    return database


def write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


async def stocked(database: Database, product: str) -> inventory.InventoryProduct:
    async with database.connection(OPERATOR) as connection:
        return await inventory.find_inventory_product(connection, product)


async def bring(
    database: Database, product: str, path: Path, text: str, value: str | None = None, vault: Vault = VAULT
) -> inventory.Imported:
    write(path, text)
    actor = await actor_on(database, VAULT)
    return await inventory.import_vouchers(actor, vault, await stocked(database, product), path, value=value)


@pytest.mark.parametrize(
    "text",
    [
        "A1\nB2\nC3\n",
        "number\nA1\nB2\nC3",
        "\n , \nnumber,pin\nA1,\nB2,\nC3,",
        "\n\nnumber\nA1\nB2\nC3",
        "\n\nA1\nB2\nC3",
        "\ufeffNumber\r\nA1\r\n\r\nB2\r\nC3\r\n",
        '"number";"pin"\nA1;1\n"B2";\nC3;2\n',
        "pin\tnumber\tnote\n1\tA1\tx\n2\tB2\ty\n3\tC3\tz\n",
        "A1\nB2\nA1\nC3\n",
    ],
)
async def test_a_file_as_shops_send_it(database: Database, tmp_path: Path, text: str) -> None:
    assert (await bring(database, "one", tmp_path / "f.csv", text)).added == 3
    rows = await database.fetch(OPERATOR, "SELECT product_id, value_minor, sealed FROM vouchers ORDER BY id")
    assert [open_voucher(VAULT, row["sealed"], row["product_id"]).number for row in rows] == ["A1", "B2", "C3"]
    assert {row["value_minor"] for row in rows} == {1000}


async def test_value_pin_and_date_come_with_the_number_and_rest_sealed(database: Database, tmp_path: Path) -> None:
    text = "number,value,pin,use_by\nSECRET-1,5,4711,2030-12-31\nSECRET-2,10.00,,\n"
    await bring(database, "many", tmp_path / "f.csv", text)
    first, second = await database.fetch(OPERATOR, "SELECT * FROM vouchers ORDER BY value_minor")
    assert open_voucher(VAULT, first["sealed"], first["product_id"]) == Voucher("SECRET-1", "4711", date(2030, 12, 31))
    assert open_voucher(VAULT, second["sealed"], second["product_id"]) == Voucher("SECRET-2")
    assert "SECRET" not in str(first)
    assert b"SECRET" not in first["sealed"]
    assert "SECRET" not in repr(Voucher("SECRET-1"))


@pytest.mark.parametrize(
    ("product", "text", "value", "said"),
    [
        ("many", "A1\n", None, "line 1: say what it is worth"),
        ("many", "number,value\nA,7\n", None, "line 2: value must be one that many is sent at: £5.00, £10.00"),
        ("many", "A1\n", "7", "--value must be one that many is sent at"),
        ("range", "number,value\nA,500.5\n", None, "line 2: value: “500.5” has more decimals than JPY allows"),
        ("range", "number,value\nA,x\n", None, "line 2: value: “x” is not an amount"),
        ("range", "number,value\nA,-5\n", None, "line 2: value: “-5” is not above zero"),
        ("one", "number,use_by\nA,soon\n", None, "line 2: use_by must be a date such as 2030-12-31"),
        ("one", "number,pin\n,1\n", None, "line 2: number is empty"),
        ("one", "batch,pin\nA,1\n", None, "line 1 must be a heading, and it lacks number; it may have number, "),
        ("one", "Losnummer\nA1\n", None, "line 1 must be a heading, and it lacks number; it may have number, "),
        ("one", "\n\nA1,1\n", None, "line 3 must be a heading, and it lacks number; it may have number, "),
        ("many", "\n\nA1\n", None, "line 3: say what it is worth"),
        ("one", "number\nA,1\n", None, "line 2: there are 2 fields"),
        ("one", "number" + ",nummer" * 200 + "\nA\n", None, "line 1: there are more than 200 columns"),
        ("one", 'number\n"A\n', None, "is not a CSV file"),
        ("one", f"number\n{'A' * 101}\n", None, "line 2: a number has at most 100"),
    ],
)
async def test_a_file_that_cannot_be_taken_is_refused_whole_with_its_line(
    database: Database, tmp_path: Path, product: str, text: str, value: str | None, said: str
) -> None:
    with pytest.raises(OperatorError) as refused:
        await bring(database, product, tmp_path / "f.csv", text, value)
    assert said in str(refused.value)
    assert await database.fetchval(OPERATOR, "SELECT count(*) FROM vouchers") == 0


async def test_numbers_of_a_former_value_are_taken_while_somebody_waits_for_one(
    database: Database, tmp_path: Path
) -> None:
    """The gift was sold at 7 when it was sent: without the number its recipient would wait for ever."""
    wait = """
        INSERT INTO voucher_waits (product_id, value_minor, customer_id, order_id, number, since, is_test)
        VALUES (2, $1, 1, $2, 1, now(), $3)
    """
    await database.execute(OPERATOR, wait, 700, 1, False)
    await database.execute(OPERATOR, wait, 800, 2, True)
    with pytest.raises(OperatorError, match=r"is sent at: £5\.00, £7\.00, £10\.00"):
        await bring(database, "many", tmp_path / "f.csv", "A1\n", "8")
    assert (await bring(database, "many", tmp_path / "f.csv", "A1\n", "7")).added == 1
    assert (await stocked(database, "one")).waited_minor == ()


async def test_a_bad_row_at_the_end_keeps_the_good_ones_out(database: Database, tmp_path: Path) -> None:
    text = "number,use_by\n" + "".join(f"A{number},\n" for number in range(2_500)) + "B,never\n"
    with pytest.raises(OperatorError, match="line 2502"):
        await bring(database, "one", tmp_path / "f.csv", text)
    assert await database.fetchval(OPERATOR, "SELECT count(*) FROM vouchers") == 0


@pytest.mark.parametrize("product", ["none", "box", "99"])
async def test_only_digital_products_have_stock(database: Database, product: str) -> None:
    with pytest.raises(OperatorError):
        await stocked(database, product)


async def test_a_number_is_taken_once_whatever_key_sealed_it(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    assert await bring(database, "one", path, "A1\nB2\n") == inventory.Imported(2, 0, 0)
    assert await bring(database, "one", path, "B2\nC3\n", vault=Vault((NEW, OLD))) == inventory.Imported(1, 1, 0)
    assert await bring(database, "range", path, "number,value\nA,500\n") == inventory.Imported(1, 0, 0)


async def test_two_imports_of_one_file_at_once_take_each_number_once(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    write(path, "".join(f"N{number}\n" for number in range(3_000)))
    one = await stocked(database, "one")
    actor = await actor_on(database, VAULT)
    first, second = await asyncio.gather(*(inventory.import_vouchers(actor, VAULT, one, path) for _ in range(2)))
    assert first.added + second.added == 3_000
    assert first.duplicates + second.duplicates == 3_000


async def test_two_imports_of_the_same_numbers_in_opposite_order_both_finish(
    database: Database, tmp_path: Path
) -> None:
    one, actor = await stocked(database, "one"), await actor_on(database, VAULT)
    write(tmp_path / "f.csv", "N1\nN2\nN3\n")
    write(tmp_path / "g.csv", "N3\nN2\nN1\n")
    async with database.connection(OPERATOR) as connection:
        held = connection.transaction()
        await held.start()
        lookup = seal_voucher(VAULT, Voucher("N2"), one.id).lookups[0]
        await connection.execute(ADD_VOUCHERS, one.id, [1000], [lookup], [b""], [NO_DATE])
        importing = [
            asyncio.create_task(inventory.import_vouchers(actor, VAULT, one, tmp_path / name))
            for name in ("f.csv", "g.csv")
        ]
        await until(lambda: database.fetch(OPERATOR, f"SELECT WHERE ({WAITING}) = 2"))
        await held.rollback()
        done = await asyncio.gather(*importing)
    assert sorted(imported.added for imported in done) == [0, 3]


async def test_progress_tells_how_many_of_how_many(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    write(path, "".join(f"N{number}\n" for number in range(2_500)))
    heard: list[tuple[int, int]] = []
    await inventory.import_vouchers(
        await actor_on(database, VAULT),
        VAULT,
        await stocked(database, "one"),
        path,
        on_progress=lambda done, total: heard.append((done, total)),
    )
    assert heard == [(1_000, 2_500), (2_000, 2_500), (2_500, 2_500)]


async def test_the_stock_is_listed_and_measured(database: Database, tmp_path: Path) -> None:
    await bring(database, "many", tmp_path / "f.csv", "number,value\nA,5\nB,5\nC,10\n")
    await database.execute(
        OPERATOR,
        """
        INSERT INTO voucher_waits (product_id, value_minor, customer_id, order_id, number, since)
        SELECT id, 1000, 1, 1, 1, now() FROM products WHERE key = 'one'
        """,
    )
    async with database.connection(WORKER) as connection:
        levels = await inventory.list_inventory(connection)
        await measure_inventory(connection)
    assert [(level.product, level.value_minor, level.free, level.waiting) for level in levels] == [
        ("one", 1000, 0, 1),
        ("many", 500, 2, 0),
        ("many", 1000, 1, 0),
    ]
    labels = {"product": "one", "value": "10.00", "currency": "GBP"}
    assert REGISTRY.get_sample_value("largesse_stock_waiting", labels) == 1
    assert REGISTRY.get_sample_value("largesse_stock_free", {**labels, "product": "many", "value": "5.00"}) == 2


async def test_late_gifts_expire_and_those_that_wait_for_us_do_not(database: Database) -> None:
    await database.execute(
        OPERATOR,
        """
        INSERT INTO customers (id, key, name, plan, funding) OVERRIDING SYSTEM VALUE
        VALUES (1, 'late', 'Late', 'pro', 'invoiced') ON CONFLICT DO NOTHING;
        INSERT INTO lines (customer_id, order_id, number, code_lookup, sealed)
        SELECT 1, 1, n, n, '' FROM generate_series(1, 6) AS n;
        INSERT INTO line_states (customer_id, order_id, number, state, claimed_at, expires_at, product_id) VALUES
            (1, 1, 1, 'claimed', now(), now() - interval '1 second', NULL),
            (1, 1, 2, 'claimed', now(), now() + interval '1 hour', NULL),
            (1, 1, 3, 'chosen', now(), now() - interval '1 second', 1),
            (1, 1, 4, 'chosen', now(), now() - interval '1 second', 1),
            (1, 1, 5, 'chosen', now(), now() - interval '1 second', 4),
            (1, 1, 6, 'claimed', now(), NULL, NULL);
        INSERT INTO voucher_waits (product_id, value_minor, customer_id, order_id, number, since)
        VALUES (1, 1000, 1, 1, 4, now());
        INSERT INTO shipments
            (customer_id, order_id, number, environment, product_id, country, sealed_address, requested_at)
        VALUES (1, 1, 5, 'production', 4, 'GB', '', now());
        """,
    )
    async with database.transaction(OPERATOR) as connection:
        assert not await expire_late(connection)
    rows = await database.fetch(OPERATOR, "SELECT number FROM line_states WHERE state = 'expired' ORDER BY number")
    assert [row["number"] for row in rows] == [1, 3]
    events = await database.fetch(OPERATOR, "SELECT number FROM line_events WHERE event = 'expired' ORDER BY number")
    assert [row["number"] for row in events] == [1, 3]


async def test_guesses_are_forgotten(database: Database) -> None:
    await database.execute(
        OPERATOR,
        """
        INSERT INTO claim_addresses (address, allowance, last_at)
        VALUES (1, 0, now() - interval '16 minutes'), (2, 0, now() - interval '14 minutes');
        INSERT INTO pin_failures (decoy, key, failures, pauses, paused_until, last_at)
        VALUES (false, 1, 1, 0, now(), now() - interval '31 days'), (false, 2, 1, 0, now(), now() - interval '29 days');
        """,
    )
    async with database.connection(OPERATOR) as connection:
        await prune_guesses(connection)
    assert [row["address"] for row in await database.fetch(OPERATOR, "SELECT address FROM claim_addresses")] == [2]
    assert [row["key"] for row in await database.fetch(OPERATOR, "SELECT key FROM pin_failures")] == [2]
