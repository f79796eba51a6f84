"""The stock as who looks after it sees it: levels, days that are over, warnings, and who has which number."""

from datetime import UTC, datetime, timedelta

import asyncpg
import pytest
from prometheus_client import REGISTRY
from tests.chained import actor_on
from tests.distributed import IS_DISTRIBUTED
from tests.fulfilment.test_inventory import database
from tests.plans import rows_read

from largesse.base.errors import FileRefused, InvalidRequest, NotFound
from largesse.db.pool import Database
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR, WORKER
from largesse.encryption.vault import Vault
from largesse.fulfilment import stock, stock_store, store
from largesse.fulfilment.inventory import Imported, Upload, find_inventory_product, import_vouchers, read_rows
from largesse.fulfilment.tasks import measure_inventory

__all__ = ["database"]

VAULT = Vault((b"k" * 32,))
ONE, MANY, RANGE, BOX = 1, 2, 3, 4
TODAY = datetime.now(UTC).date()


async def bring(
    database: Database, product: str, text: str, most: int | None = None, encoding: str = "utf-8"
) -> Imported:
    async with database.connection(OPERATOR) as connection:
        stocked = await find_inventory_product(connection, product)
    file = Upload("numbers.csv", text.encode(encoding))
    return await import_vouchers(await actor_on(database, VAULT), VAULT, stocked, file, most=most)


async def seen(
    database: Database, words: str = "", after: int | None = None, most: int = 50
) -> list[stock.StockedProduct]:
    async with database.connection(OPERATOR) as connection:
        return await stock.list_stock(connection, words, after, most)


async def take(database: Database, product_id: int, value_minor: int, number: int) -> int | None:
    """Hands a number to a line of an order that is not there."""
    async with database.transaction(OPERATOR) as connection:
        await connection.execute("SET LOCAL session_replication_role = replica")
        taken: int | None = await connection.fetchval(
            store.ALLOCATE, product_id, value_minor, 1, 1, number, datetime.now(UTC)
        )
        return taken


def days(ahead: int) -> str:
    return (TODAY + timedelta(days=ahead)).isoformat()


async def test_levels_say_what_is_left_and_what_expires(database: Database) -> None:
    text = f"number,use_by\nA,{days(0)}\nB,{days(29)}\nC,{days(30)}\nD,\n"
    assert (await bring(database, "one", text)).added == 4
    await bring(database, "range", "number,value\nX,500\nY,900\n")
    await database.execute(
        OPERATOR, "UPDATE vouchers SET use_by = $1 WHERE use_by = $2", TODAY - timedelta(days=1), TODAY
    )
    many, one, range_ = await seen(database)
    assert [level.value_minor for level in many.levels] == [500, 1000], "also those without a number"
    assert one.levels == (stock.StockLevel(1000, 3, 1, 1, 0),)
    assert range_.levels == (stock.StockLevel(None, 2, 0, 0, 0),)
    assert [one.key for one in await seen(database, "THING")] == ["many"]
    assert [one.key for one in await seen(database, after=MANY, most=1)] == ["one"]
    async with database.connection(OPERATOR) as connection:
        with pytest.raises(NotFound):
            await stock.find_stocked(connection, BOX)


async def test_the_number_whose_day_comes_first_goes_first_and_none_whose_day_is_over(database: Database) -> None:
    await bring(database, "one", f"number,use_by\nA,\nB,{days(9)}\nC,{days(3)}\nD,{days(5)}\nE,{days(0)}\n")
    await database.execute(
        OPERATOR,
        "UPDATE vouchers SET use_by = $1 WHERE use_by = $2",
        TODAY - timedelta(days=1),
        TODAY + timedelta(days=5),
    )
    async with database.transaction(OPERATOR) as connection:
        waiting_get = await connection.fetch(store.LOCK_FREE, ONE, 1000, 5)
    assert [row["id"] for row in waiting_get] == [5, 3, 2, 1]
    assert [await take(database, ONE, 1000, number) for number in (1, 2, 3, 4, 5)] == [5, 3, 2, 1, None]
    async with database.connection(OPERATOR) as connection:
        taken = await connection.fetchval("SELECT count(*) FROM vouchers WHERE order_id IS NOT NULL")
        assert await stock.count_taken(connection, ONE) == taken == 4


async def test_which_line_took_which_is_listed_without_the_number(database: Database) -> None:
    await database.execute(
        OPERATOR, "INSERT INTO customers (key, name, plan, funding) VALUES ('acme', 'Acme', 'pro', 'balance')"
    )
    await bring(database, "one", "SECRET-1\nSECRET-2\nSECRET-3\n")
    for number in (1, 2, 3):
        await take(database, ONE, 1000, number)
    async with database.transaction(OPERATOR) as connection:  # a number that staging made up
        await connection.execute("SET LOCAL session_replication_role = replica")
        await connection.execute(store.INSERT_TEST_VOUCHER, ONE, 1000, 77, b"", 1, 1, 4, datetime.now(UTC))
    async with database.connection(OPERATOR) as connection:
        assert await stock.count_taken(connection, ONE) == 3
        first, second = await stock.list_taken(connection, ONE, None, 2)
        [third] = await stock.list_taken(connection, ONE, second.id, 2)
        assert await stock.list_taken(connection, MANY, None, 2) == []
    assert (first.line, second.line, third.line, first.customer) == (3, 2, 1, "Acme")
    assert "SECRET" not in repr((first, second, third))


async def test_numbers_that_were_there_are_named_by_line_and_why(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    await bring(database, "one", "OLD-1\nSOLD-1\n")
    await take(database, ONE, 1000, 1)
    sold = await database.fetchval(OPERATOR, "SELECT order_id IS NOT NULL FROM vouchers WHERE id = 1")
    assert sold
    imported = await bring(database, "one", "number\nNEW-1\nOLD-1\n\nNEW-1\nSOLD-1\n")
    assert (imported.added, imported.duplicates) == (1, 3)
    assert [(one.line, one.why) for one in imported.refused] == [(3, "sold"), (5, "twice"), (6, "stock")]
    assert "OLD" not in caplog.text + repr(imported)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"number,use_by\nSECRET,{days(-1)}\n", "over"),
        ("number,use_by\nSECRET,soon\n", "use_by"),
        ("number,value\nSECRET,7\n", "other_value"),
        ("number,value\nSECRET,lots\n", "value"),
        ("SECRET,SECRET\n", "no_heading"),
        ("SECRET-1,SECRET-2\n", "no_heading"),
        ("number\n" + "S" * 101 + "\n", "number"),
        ("number\n" + "S" * 501 + "\n", "too_long"),
        ("number\nSECRET,SECRET\n", "too_wide"),
        ("number\n1.23457E+11\n", "shortened"),
        ("number;pin\nSECRET;1,23457e+11\n", "shortened"),
        ("number\n#N/A\n", "formula"),
        ("number,pin\nSECRET,#REF!\n", "formula"),
        ("number\nSECRET\n########\n", "formula"),
        ("number,pin\n,1\n", "empty"),
        ("number,pin,number\nSECRET,1,SECRET\n", "heading_twice"),
        ("number,value\nSECRET,10\nTotal:,10\n", "total"),
        ("number,use_by\nSECRET,31/12/2999\n", "use_by"),
        ("A1\nB2\nC3\n", "too_many_lines"),
    ],
)
async def test_a_file_is_refused_whole_with_a_line_and_without_a_number(
    database: Database, text: str, code: str
) -> None:
    with pytest.raises(FileRefused) as refused:
        await bring(database, "one", text, most=2)
    assert refused.value.code == code
    assert "SECRET" not in str(refused.value) + str(refused.value.values)
    assert await database.fetchval(OPERATOR, "SELECT count(*) FROM vouchers") == 0


async def test_a_file_as_spreadsheets_save_it_again(database: Database) -> None:
    """With a day as in Germany, blank cells at the right, and quotation marks and blanks of a copy."""
    text = "number;use_by;;\n\u200bA1\xa0;31.12.2999;;;\n\u201cA2\u201d;2999-12-31 00:00:00;;\n"
    assert (await bring(database, "one", text)).added == 2
    assert (await bring(database, "one", "number\nA1\nA2\n")).duplicates == 2


async def test_as_many_numbers_as_there_may_be(database: Database) -> None:
    assert (await bring(database, "one", "A1\n" + "S" * 100 + "\n", most=2)).added == 2


@pytest.mark.parametrize("cell", ['="00123"', "'00123", '"=""00123"""'])
async def test_a_number_is_read_without_what_keeps_its_zeros_in_a_spreadsheet(database: Database, cell: str) -> None:
    await bring(database, "one", "number\n00123\n")
    assert await bring(database, "one", f"number\n{cell}\n") == Imported(0, 1, 0)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
async def test_a_file_may_have_the_encoding_of_a_spreadsheet(database: Database, encoding: str) -> None:
    assert (await bring(database, "one", "Größe\tNumber\r\n1\tA-1\r\n", encoding=encoding)).added == 1


@pytest.mark.parametrize("encoding", ["shift_jis", "euc_jp", "gb18030", "big5", "cp1252"])
async def test_a_number_in_an_unknown_encoding_is_refused_and_not_guessed(database: Database, encoding: str) -> None:
    letters = "\u00e9" if encoding == "cp1252" else "\u30ab"
    for text in (f"number,pin\nA-1,\nA-2,{letters}\n", f"number\nA-1\n{letters}2\n"):
        with pytest.raises(FileRefused, match=r"line 3: .* UTF-8") as refused:
            await bring(database, "one", text, encoding=encoding)
        assert refused.value.code == "encoding"
    assert (await bring(database, "one", f"{letters}2\n")).added == 1


async def test_a_file_may_name_its_separator_as_excel_does(database: Database) -> None:
    assert (await bring(database, "one", "sep=;\r\nnumber;pin\r\nA-1;2\r\n")).added == 1
    assert (await bring(database, "one", "sep=;\r\nB-1\r\n")).added == 1


async def test_a_file_that_is_no_text(database: Database) -> None:
    async with database.connection(OPERATOR) as connection:
        stocked = await find_inventory_product(connection, "one")
    with pytest.raises(FileRefused, match="UTF-8"):
        await import_vouchers(await actor_on(database, VAULT), VAULT, stocked, Upload("f.csv", b"\xff\xfe\x00"))


async def test_a_warning_is_given_below_its_level(database: Database) -> None:
    actor = await actor_on(database, VAULT)
    await bring(database, "many", "number,value\nA,5\nB,5\nC,10\n")
    await stock.warn_below(actor, MANY, 2)
    await stock.warn_below(actor, RANGE, 1)
    async with database.connection(WORKER) as connection:
        low = [
            (one.product, one.value_minor, one.free, one.below) for one in await stock.list_low_stock(connection, 10)
        ]
        assert low == [("range", None, 0, 1), ("many", 1000, 1, 2)]
        await measure_inventory(connection)
        many = await stock.find_stocked(connection, MANY)
        assert [many.is_low(level) for level in many.levels] == [False, True]
    labels = {"product": "many", "value": "10.00", "currency": "GBP"}
    assert REGISTRY.get_sample_value("largesse_stock_low", labels) == 1
    assert REGISTRY.get_sample_value("largesse_stock_low", {**labels, "value": "5.00"}) is None
    for active in (False, True):
        await database.execute(OPERATOR, "UPDATE products SET active = $2 WHERE id = $1", MANY, active)
        async with database.connection(WORKER) as connection:
            await measure_inventory(connection)
            many = await stock.find_stocked(connection, MANY)
            assert ("many" in {one.product for one in await stock.list_low_stock(connection, 10)}) is active
        assert [many.is_low(level) for level in many.levels] == [False, active]
        assert REGISTRY.get_sample_value("largesse_stock_low", labels) == (1 if active else None)
    await stock.warn_below(actor, MANY, None)
    await stock.warn_below(actor, MANY, None)
    await stock.warn_below(actor, RANGE, stock.MOST_BELOW)
    acts = await database.fetch(
        OPERATOR, "SELECT before, after FROM audit_events WHERE act = 'stock.warned' ORDER BY id"
    )
    assert [tuple(row) for row in acts][2:] == [('{"below":2}', '{"below":null}'), ('{"below":1}', '{"below":100000}')]
    async with database.connection(WORKER) as connection:
        await measure_inventory(connection)
    assert REGISTRY.get_sample_value("largesse_stock_low", labels) is None


@pytest.mark.parametrize("below", [0, -1, stock.MOST_BELOW + 1])
async def test_a_warning_has_limits(database: Database, below: int) -> None:
    with pytest.raises(InvalidRequest):
        await stock.warn_below(await actor_on(database, VAULT), MANY, below)


@pytest.mark.skipif(IS_DISTRIBUTED, reason="the statement is planned anew each time")
async def test_a_later_page_reads_its_own_products_by_a_plan_for_any_arguments(database: Database) -> None:
    await database.execute(
        OPERATOR,
        """
        INSERT INTO products (key, name, is_digital, currency, countries, denominations_minor)
        SELECT 'p' || lpad(n::text, 5, '0'), 'P', true, 'GBP', '{GB}', '{1000}' FROM generate_series(1, 3000) AS n
        """,
    )
    await database.execute(OPERATOR, "ANALYZE products")
    read = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'products'"
    async with database.transaction(OPERATOR) as connection:
        last = await connection.fetchval("SELECT id FROM products WHERE key = 'p02000'")
        await connection.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        before = await connection.fetchval(read)
        assert [one.key for one in await stock.list_stock(connection, "", last, 2)] == ["p02001", "p02002"]
        assert await connection.fetchval(read) - before < 10


async def test_numbers_are_counted_up_to_a_limit_and_to_the_level_of_a_warning(database: Database) -> None:
    """A page of the stock, and each measure, counted all numbers in stock."""
    most = stock.MOST_COUNTED
    async with database.transaction(OPERATOR) as connection:
        await connection.execute("SET LOCAL session_replication_role = replica")
        await connection.execute(
            """
            INSERT INTO vouchers (product_id, value_minor, lookup, sealed, added_at)
            SELECT $1, CASE WHEN n = 1 THEN 500 ELSE 1000 END, n, '', clock_now() FROM generate_series(1, $2::int) AS n
            """,
            MANY,
            3 * most,
        )
        await connection.execute(
            """
            INSERT INTO voucher_waits (product_id, value_minor, customer_id, order_id, number, since)
            SELECT $1, 1000, 1, 1, n, clock_now() FROM generate_series(1, $2::int) AS n
            """,
            MANY,
            2 * most,
        )
    for table in ("vouchers", "voucher_waits"):
        await database.execute(OPERATOR, f"ANALYZE {table}")
    many, *_ = await seen(database)
    assert many.levels == (stock.StockLevel(500, 1, 0, 0, 0), stock.StockLevel(1000, most + 1, 0, 0, most + 1))
    async with database.connection(WORKER) as connection:
        await measure_inventory(connection)
    labels = {"product": "many", "value": "10.00", "currency": "GBP"}
    assert REGISTRY.get_sample_value("largesse_stock_free", labels) == most + 1
    await stock.warn_below(await actor_on(database, VAULT), MANY, 2 * most)
    many, *_ = await seen(database)
    assert [(level.free, many.is_low(level)) for level in many.levels] == [(1, True), (2 * most, False)]
    async with database.connection(OPERATOR) as connection:
        assert [(one.value_minor, one.free) for one in await stock.list_low_stock(connection, 9)] == [(500, 1)]


@pytest.mark.skipif(IS_DISTRIBUTED, reason="a coordinator explains nothing with tables of its own and of nodes")
async def test_the_stock_is_read_up_to_the_limit(connection: asyncpg.Connection) -> None:
    most = stock.MOST_COUNTED
    await connection.execute("SET session_replication_role = replica")
    await connection.execute(
        f"""
        INSERT INTO products (id, key, name, is_digital, currency, countries, denominations_minor) OVERRIDING SYSTEM VALUE
        SELECT n, 'p' || n, 'P', true, 'GBP', '{{GB}}', '{{1000}}' FROM generate_series(1001, 1100) AS n;
        INSERT INTO vouchers (product_id, value_minor, lookup, sealed, added_at)
        SELECT 1000 + greatest(n % 100, 1) * (n % 3 / 2) + 50 * (1 - n % 3 / 2), 1000, -n, '', clock_now() FROM generate_series(1, {9 * most}) AS n;
        INSERT INTO stock_warnings (product_id, below) VALUES (1050, 10);
        ANALYZE products, vouchers, stock_warnings
        """
    )
    for statement, arguments, levels in (
        (stock_store.STOCKED, (1050, "", None, 1, 30), 1),
        (stock_store.NOTE_LOW, (0, 50), 1),
    ):
        read = await rows_read(connection, Role.OFFICE, "vouchers", statement, *arguments)
        assert read <= most + 1 + 305 * levels, statement
    counting = _Counting(connection)
    counted = await stock.count_stock(counting)
    assert [(one.product, one.free) for one in counted if one.product in {"p1001", "p1050"}] == [
        ("p1001", 600),
        ("p1050", most + 1),
    ]
    assert len(counted) == 99
    assert counting.read <= most + 1 + 305 * 100


@pytest.mark.skipif(IS_DISTRIBUTED, reason="a coordinator explains nothing with tables of its own and of nodes")
async def test_pages_count_the_stocks_that_were_noted(connection: asyncpg.Connection) -> None:
    """Each page of the back office counted the stock of each product with a warning, which took seconds with 10,000."""
    await connection.execute(
        """
        INSERT INTO products (id, key, name, is_digital, currency, countries, denominations_minor) OVERRIDING SYSTEM VALUE
        SELECT n, 'p' || n, 'P', true, 'GBP', '{GB}', '{1000}' FROM generate_series(1001, 1600) AS n;
        INSERT INTO stock_warnings (product_id, below) SELECT id, 3 FROM products WHERE id > 1000;
        INSERT INTO vouchers (product_id, value_minor, lookup, sealed, added_at)
        SELECT 1001 + n / 2, 1000, n, '', clock_now() FROM generate_series(0, 1199) AS n
        """
    )
    await stock.note_low_stock(connection)
    assert len(await stock.list_low_stock(connection, 1000)) == 600
    await connection.execute("ANALYZE")
    assert await rows_read(connection, Role.OFFICE, "vouchers", stock_store.LOW, 5) <= 10
    # Numbers that are added count at once.
    await connection.execute(
        "INSERT INTO vouchers (product_id, value_minor, lookup, sealed, added_at) VALUES (1001, 1000, -1, '', clock_now())"
    )
    assert [low.product for low in await stock.list_low_stock(connection, 2)] == ["p1002"]
    await stock.note_low_stock(connection)
    assert [low.product for low in await stock.list_low_stock(connection, 2)] == ["p1002", "p1003"]


class _Counting:
    """A connection that counts the rows that statements say they have read."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection, self.read = connection, 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._connection, name)

    async def fetch(self, statement: str, *arguments: object) -> list[asyncpg.Record]:
        rows = await self._connection.fetch(statement, *arguments)
        self.read += sum(row.get("read", 0) for row in rows)
        return rows


@pytest.mark.parametrize(
    "text",
    [
        "Gutscheinnummer;Betrag;PIN-Code;Gültig bis;Nr.\nS1;25,00;9;31.12.2090;1\n",
        "Code cadeau;Valeur;Code PIN;Valable jusqu\u2019au\nS1;25,00 €;9;2090-12-31\n",
        '\ufeff"Voucher code","Amount","PIN","Expiry date"\n"S1","25.00","9","2090-12-31"\n',
        "\n;;;;\nKartennummer;Nennwert;Geheimzahl;Ablaufdatum;;\nS1;25;9;31.12.2090;;\n",
    ],
)
def test_headings_in_german_and_french_are_read(text: str) -> None:
    [(_, row)] = read_rows(Upload("numbers.csv", text.encode()), ["number"], ["value", "pin", "use_by"])
    assert (row["number"], row["value"][:2], row["pin"]) == ("S1", "25", "9")
    assert row["use_by"] in {"2090-12-31", "31.12.2090"}


def test_the_tracking_numbers_of_a_carrier_are_read_by_their_headings() -> None:
    columns = (["shipment", "carrier"], ["tracking_number"])
    for text in ("Sendung;Versanddienst;Sendungsnummer\n7;DHL;0034\n", "Colis;Transporteur;N° de suivi\n7;DHL;0034\n"):
        [(_, row)] = read_rows(Upload("sent.csv", text.encode()), *columns)
        assert row == {"shipment": "7", "carrier": "DHL", "tracking_number": "0034"}


def test_a_column_with_the_name_of_a_field_wins_and_two_others_for_one_field_are_refused() -> None:
    [(_, row)] = read_rows(Upload("numbers.csv", b"code,number\nX,S1\n"), ["number"])
    assert row == {"number": "S1"}
    with pytest.raises(FileRefused) as refused:
        list(read_rows(Upload("numbers.csv", b"Kartennummer;Code\nX;S1\n"), ["number"]))
    assert refused.value.code == "heading_twice"
