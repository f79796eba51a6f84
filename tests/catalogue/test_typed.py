"""Products and collections as people type them: each rule on both sides of its edge, and CSV files."""

import csv
import io
from collections.abc import AsyncIterator, Callable
from decimal import Decimal

import asyncpg
import pytest
from tests.chained import acting_on

from largesse.base.text import csv_file
from largesse.catalogue import content as faults
from largesse.catalogue import sheet, store
from largesse.catalogue.content import CollectionContent, Faulty, ProductContent
from largesse.catalogue.editing import import_drafts, publish_many
from largesse.catalogue.sheet import MOST_ROWS, Sheet, read_sheet, write_rows
from largesse.catalogue.typed import Names, read_collection, read_product, typed_collection, typed_product
from largesse.customers.actor import command_actor
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.encryption.vault import Vault
from largesse.suppliers.model import Offer
from largesse.suppliers.service import import_offers

COFFEE = {"name": "Coffee", "active": "yes", "countries": "GB", "denominations": "5"}
HAMPER = {"name": "Hamper", "active": "yes", "cost": "30", "postage": "GB 4.95", "vat_percent": "GB 20%"}
TREATS = {"name": "Treats", "active": "yes", "country": "GB", "value_points": "10", "products": "coffee"}
NAMES = Names({"acme": 7}, {"coffee": (1, "GBP"), "livre": (2, "EUR")})


def digital(**typed: str) -> ProductContent:
    return read_product({**COFFEE, **typed}, NAMES, is_digital=True, currency="GBP")


def physical(**typed: str) -> ProductContent:
    return read_product({**HAMPER, **typed}, NAMES, is_digital=False, currency="GBP")


def treats(**typed: str) -> CollectionContent:
    return read_collection({**TREATS, **typed}, NAMES, currency="GBP")


def faults_of(read: Callable[..., object], **typed: str) -> list[tuple[str, str]]:
    """The fields that are refused, and what is said of each."""
    with pytest.raises(Faulty) as caught:
        read(**typed)
    assert "%(" not in caught.value.detail
    return [(fault.field, fault.said) for fault in caught.value.faults]


def test_a_product_is_typed_and_read_back() -> None:
    coffee = digital(customers="acme", suppliers="tango, stock", terms="One.\r\nTwo.", countries="gb, IE")
    assert coffee.denominations_minor == (500,)
    assert coffee.customer_ids == (7,)
    assert coffee.countries == ("GB", "IE")
    assert coffee.terms == "One.\nTwo."
    assert read_product(typed_product(coffee, {7: "acme"}), NAMES, is_digital=True, currency="GBP") == coffee
    hamper = physical(markup_percent="10.5", postage="GB 4.95; IE 0", vat_percent="GB 20, IE 13.5")
    assert (hamper.postage_minor, hamper.vat_percent) == ({"GB": 495, "IE": 0}, {"GB": 20, "IE": Decimal("13.5")})
    assert read_product(typed_product(hamper, {}), NAMES, is_digital=False, currency="GBP") == hamper
    choice = treats(value_points="50 10", allow_custom_value="yes")
    assert choice.value_points_minor == (1000, 5000)
    assert read_collection(typed_collection(choice, {1: "coffee"}), NAMES, currency="GBP") == choice


@pytest.mark.parametrize(
    ("field", "fits", "wrong", "said"),
    [
        ("name", "n" * 200, "n" * 201, faults.TOO_LONG),
        ("name", "n", "", faults.REQUIRED),
        ("name", "n", "n\u202e", faults.UNFIT),
        ("countries", "GB", "", faults.NO_COUNTRY),
        ("countries", "NO", "XX", faults.UNKNOWN_COUNTRY),
        ("countries", "NO", "EU", faults.UNKNOWN_COUNTRY),
        ("countries", "GB IE", "GB gb", faults.TWICE),
        ("denominations", "0.01", "0", faults.ZERO),
        ("denominations", "0.01", "0.001", faults.NO_AMOUNT),
        ("denominations", "1000000000", "1000000000.01", faults.TOO_MUCH),
        ("denominations", "5", "-5", faults.ZERO),
        ("denominations", "5", "five", faults.NO_AMOUNT),
        ("denominations", "5", "", faults.NO_AMOUNTS),
        ("denominations", "5", "NaN", faults.NO_AMOUNT),
        ("denominations", "5", "1e2", faults.NO_AMOUNT),
        ("denominations", "5, 50", "5,50", faults.NO_AMOUNT),
        ("denominations", "1000.00", "1.000", faults.NO_AMOUNT),
        ("denominations", "12; 500", "12,500", faults.NO_AMOUNT),
        ("denominations", "5,10,25", "1,000.50", faults.NO_AMOUNT),
        ("denominations", " ".join(map(str, range(1, 201))), " ".join(map(str, range(1, 202))), faults.TOO_MANY),
        ("description", "d" * 500, "d" * 501, faults.TOO_LONG),
        ("how_to_redeem", "d" * 1000, "d" * 1001, faults.TOO_LONG),
        ("terms", "d" * 4000, "d" * 4001, faults.TOO_LONG),
        ("customers", "acme", "globex", faults.UNKNOWN_CUSTOMER),
        ("suppliers", "tango", "Tango!", faults.UNKNOWN_SUPPLIER),
        ("suppliers", ",".join("abcdefghij"), ",".join("abcdefghijk"), faults.TOO_MANY),
        ("active", "no", "maybe", faults.NOT_YES),
    ],
)
def test_the_edges_of_a_digital_gift(field: str, fits: str, wrong: str, said: str) -> None:
    digital(**{field: fits})
    assert faults_of(digital, **{field: wrong}) == [(field, said)]


@pytest.mark.parametrize(
    ("field", "fits", "wrong", "said"),
    [
        ("cost", "0.01", "0", faults.ZERO),
        ("cost", "0.01", "", faults.REQUIRED),
        ("cost", "£ 4.95", "€ 4.95", faults.NO_AMOUNT),
        ("cost", "4.95 GBP", "4.95 EUR", faults.NO_AMOUNT),
        ("cost", "4,95", "1,000", faults.NO_AMOUNT),
        ("cost", "1.000,50", "1.000", faults.NO_AMOUNT),
        ("cost", "1,000,000", "1,00,000", faults.NO_AMOUNT),
        ("cost", "700000000", "999999999", faults.TOO_EXPENSIVE),
        ("postage", "GB 0", "GB -1", faults.NO_PAIRS),
        ("postage", "GB 0", "", faults.NO_COUNTRY),
        ("postage", "GB 0, IE 1", "GB 0, GB 1", faults.TWICE),
        ("postage", "GB 4.95", "GB 4,95", faults.NO_PAIRS),
        pytest.param("postage", "GB : 0", "GB" + " " * 60_000 + "!", faults.NO_PAIRS, id="blanks"),
        ("vat_percent", "GB 1000", "GB 1000.0001", faults.NO_PERCENT),
        ("vat_percent", "GB 0.0001", "GB 0.00001", faults.NO_PERCENT),
        ("markup_percent", "1000", "-1", faults.NO_PERCENT),
        ("markup_percent", "12,5 %", "12,500", faults.NO_PERCENT),
    ],
)
def test_the_edges_of_a_physical_gift(field: str, fits: str, wrong: str, said: str) -> None:
    physical(**{field: fits})
    assert faults_of(physical, **{field: wrong}) == [(field, said)]


def test_a_single_amount_has_the_decimal_mark_of_any_language() -> None:
    hamper = physical(cost="1.000,50", markup_percent="12,5")
    assert (hamper.cost_minor, hamper.markup_percent) == (100_050, Decimal("12.5"))


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"denominations": "5", "min_amount": "1"}, faults.BOTH_AMOUNTS),
        ({"denominations": "", "min_amount": "1"}, faults.NO_RANGE),
        ({"denominations": "", "max_amount": "1"}, faults.NO_RANGE),
        ({"denominations": "", "min_amount": "2", "max_amount": "1"}, faults.WRONG_RANGE),
    ],
)
def test_amounts_or_a_range(typed: dict[str, str], said: str) -> None:
    assert digital(denominations="", min_amount="1", max_amount="1").min_amount_minor == 100
    assert [fault for _, fault in faults_of(digital, **typed)] == [said]


@pytest.mark.parametrize(
    ("field", "fits", "wrong", "said"),
    [
        ("products", "coffee", "tea", faults.UNKNOWN_PRODUCT),
        ("products", "coffee", "livre", faults.OTHER_CURRENCY),
        ("products", "coffee", "", faults.NO_PRODUCTS),
        ("value_points", "0.01", "", faults.NO_POINTS),
        ("country", "gb", "", faults.NO_COUNTRY),
        ("country", "gb", "XX", faults.UNKNOWN_COUNTRY),
    ],
)
def test_the_edges_of_a_collection(field: str, fits: str, wrong: str, said: str) -> None:
    treats(**{field: fits})
    assert faults_of(treats, **{field: wrong}) == [(field, said)]


def test_all_that_is_wrong_is_said_at_once() -> None:
    wrong = faults_of(digital, name="", countries="", denominations="0", terms="t" * 4001)
    assert [field for field, _ in wrong] == ["name", "countries", "denominations", "terms"]


@pytest.fixture
async def connection(database: Database) -> AsyncIterator[asyncpg.Connection]:
    async with database.connection(OPERATOR) as connection:
        yield connection


async def loaded(connection: asyncpg.Connection, database: Database, vault: Vault, file: str) -> Sheet:
    """Reads a file, saves its drafts and publishes them."""
    read = await read_sheet(connection, "product", file.encode())
    assert read.faults == []
    actor = command_actor(database, await acting_on(database, vault))
    await import_drafts(actor, "product", read.contents, read.seen, "file products.csv")
    await publish_many(actor, "product", list(read.contents))
    return read


FILE = """key,digital,currency,name,countries,denominations,cost,postage,vat_percent,customers
coffee,yes,GBP,Coffee,"GB, IE","5, 10",,,,c1
hamper,no,GBP,"=Hamper",,,30,"GB 4.95",GB 20,
"""


async def test_what_was_exported_is_imported_and_changes_nothing(
    connection: asyncpg.Connection, database: Database, vault: Vault
) -> None:
    await loaded(connection, database, vault, FILE)

    rows = [row async for row in write_rows(connection, "product")]
    again = await read_sheet(connection, "product", csv_file(rows))

    assert len(rows) == 3
    assert (again.contents, again.faults, again.unchanged) == ({}, [], 2)
    assert (await connection.fetchval("SELECT name FROM products WHERE key = 'hamper'")) == "=Hamper"


async def test_a_file_of_two_columns_changes_these_alone(
    connection: asyncpg.Connection, database: Database, vault: Vault
) -> None:
    await loaded(connection, database, vault, FILE)

    read = await read_sheet(connection, "product", b"\xef\xbb\xbfkey;name\ncoffee;Tea\nhamper;=Hamper\n")

    assert list(read.contents) == ["coffee"]
    assert read.unchanged == 1
    assert read.contents["coffee"].name == "Tea"
    assert read.contents["coffee"].denominations_minor == (500, 1000)


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
async def test_a_file_may_have_the_encoding_of_a_spreadsheet(
    connection: asyncpg.Connection, database: Database, vault: Vault, encoding: str
) -> None:
    await loaded(connection, database, vault, FILE)
    read = await read_sheet(connection, "product", "key\tname\r\ncoffee\tCafé crème\r\n".encode(encoding))
    assert read.contents["coffee"].name == "Café crème"


async def test_all_rows_that_are_wrong_are_named_at_once(
    connection: asyncpg.Connection, database: Database, vault: Vault
) -> None:
    await loaded(connection, database, vault, FILE)
    await connection.execute("UPDATE products SET managed = 'file' WHERE key = 'hamper'")
    file = (
        "key,digital,currency,name,countries,denominations\n"
        "coffee,yes,EUR,Tea,GB,5\n"
        "hamper,no,GBP,Box,,\n"
        ",yes,GBP,Tea,GB,5\n"
        "new,perhaps,GBP,Tea,GB,5\n"
        "new2,yes,XXX,Tea,GB,5\n"
        "new3,yes,GBP,,GB,0\n"
        "new3,yes,GBP,Tea,GB,5\n"
        "a/b,yes,GBP,Tea,GB,5\n"
        "good,yes,GBP,Good,GB,5\n"
    )

    read = await read_sheet(connection, "product", file.encode())

    assert [(one.row, one.fault.field, one.fault.said) for one in read.faults] == [
        (2, "currency", sheet.FIXED),
        (3, "key", sheet.BY_FILE),
        (4, "key", faults.REQUIRED),
        (5, "digital", faults.NOT_YES),
        (6, "currency", sheet.UNKNOWN_CURRENCY),
        (7, "name", faults.REQUIRED),
        (7, "denominations", faults.ZERO),
        (8, "key", faults.TWICE),
        (9, "key", sheet.BAD_KEY),
    ]
    assert list(read.contents) == ["good"]


async def test_a_draft_is_not_overwritten_and_keeps_no_other_row_out(
    connection: asyncpg.Connection, database: Database, vault: Vault
) -> None:
    await loaded(connection, database, vault, FILE)
    exported = csv_file([row async for row in write_rows(connection, "product")])
    drafted = await read_sheet(connection, "product", b"key,name\ncoffee,Tea\n")
    actor = command_actor(database, await acting_on(database, vault))
    await import_drafts(actor, "product", drafted.contents, drafted.seen, "file")

    as_published = await read_sheet(connection, "product", exported.replace(b"=Hamper", b"Box"))
    as_drafted = await read_sheet(connection, "product", b"key,name\ncoffee,Tea\nhamper,Box\n")
    differs = await read_sheet(connection, "product", b"key,name\ncoffee,Cocoa\nhamper,Box\n")

    for read in (as_published, as_drafted):
        assert (list(read.contents), read.faults, read.unchanged) == (["hamper"], [], 1)
    assert [(one.row, one.key, one.fault.said) for one in differs.faults] == [(2, "coffee", sheet.HAS_DRAFT)]


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (b"", sheet.NO_HEADER),
        (b"name\nCoffee\n", sheet.NO_HEADER),
        (b"key,key\n", faults.TWICE),
        (b"key,colour\n", sheet.UNKNOWN_COLUMN),
        (b"key,name\n", sheet.NO_ROWS),
        (b"key,name\n\n,\n", sheet.NO_ROWS),
        (b"key,name\n\x00\n", sheet.NOT_TEXT),
        (b"key\n" + b"x" * sheet.MOST_BYTES, sheet.TOO_LARGE),
        (b"key\n" + b"x" * 200_000, sheet.NO_HEADER),
    ],
)
async def test_what_is_no_file_of_products(connection: asyncpg.Connection, file: bytes, said: str) -> None:
    read = await read_sheet(connection, "product", file)
    assert [(one.row, one.fault.said) for one in read.faults] == [(0, said)]


async def test_a_row_longer_than_the_heading_is_no_row(connection: asyncpg.Connection) -> None:
    head, row = "key,digital,currency,name,countries,denominations", "tea,yes,GBP,Tea,GB,5"
    read = await read_sheet(connection, "product", f"{head}\n{row},10\ncake,yes,GBP,Cake,GB,5,,\n".encode())
    assert [(one.row, one.fault.field, one.fault.said) for one in read.faults] == [(2, "key", sheet.MORE_VALUES)]
    assert list(read.contents) == ["cake"]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
async def test_empty_columns_at_the_right_are_left_out(connection: asyncpg.Connection, separator: str) -> None:
    rows = ("key,digital,currency,name,countries,denominations,,", "tea,yes,GBP,Tea,GB,5,,", "cake,yes,GBP,Cake,GB,5")
    read = await read_sheet(connection, "product", "\r\n".join(rows).replace(",", separator).encode())
    assert not read.faults
    assert set(read.contents) == {"tea", "cake"}


async def test_the_number_of_rows_is_bounded(connection: asyncpg.Connection) -> None:
    written = io.StringIO()
    csv.writer(written).writerows([["key", "digital", "currency", "name", "countries", "denominations"]])
    rows = [[f"p{n}", "yes", "GBP", f"P {n}", "GB", "5"] for n in range(MOST_ROWS + 1)]
    csv.writer(written).writerows(rows[:-1])
    assert len((await read_sheet(connection, "product", written.getvalue().encode())).contents) == MOST_ROWS
    csv.writer(written).writerows(rows[-1:])
    read = await read_sheet(connection, "product", written.getvalue().encode())
    assert [one.fault.said for one in read.faults] == [sheet.TOO_MANY_ROWS]


COLLECTIONS = """key,currency,name,country,value_points,products
treats,GBP,Treats,GB,"10, 25",coffee
empty,GBP,Empty,GB,,tea
abroad,XXX,Abroad,IE,10,coffee
treats,GBP,Twice,GB,10,coffee
"""


async def test_collections_are_read_as_products_are(
    connection: asyncpg.Connection, database: Database, vault: Vault
) -> None:
    await loaded(connection, database, vault, FILE)
    actor = command_actor(database, await acting_on(database, vault))

    wrong = await read_sheet(connection, "collection", COLLECTIONS.encode())
    assert [(one.row, one.fault.field, one.fault.said) for one in wrong.faults] == [
        (3, "products", faults.UNKNOWN_PRODUCT),
        (3, "value_points", faults.NO_POINTS),
        (4, "currency", sheet.UNKNOWN_CURRENCY),
        (5, "key", faults.TWICE),
    ]

    await import_drafts(actor, "collection", wrong.contents, wrong.seen, "file collections.csv")
    assert await publish_many(actor, "collection", ["treats"]) == 1
    again = await read_sheet(
        connection, "collection", csv_file([row async for row in write_rows(connection, "collection")])
    )
    assert (again.contents, again.faults, again.unchanged) == ({}, [], 1)

    renamed = await read_sheet(connection, "collection", b"key,name\ntreats,Sweets\n")
    assert (renamed.contents["treats"].name, renamed.seen["treats"] > 0) == ("Sweets", True)
    assert renamed.contents["treats"].value_points_minor == (1000, 2500)
    unknown = await read_sheet(connection, "collection", b"key,terms\ntreats,x\n")
    assert [one.fault.said for one in unknown.faults] == [sheet.UNKNOWN_COLUMN]


async def test_a_suppliers_offers_become_drafts_once(
    connection: asyncpg.Connection, database: Database, vault: Vault
) -> None:
    actor = command_actor(database, await acting_on(database, vault))
    offers = [
        Offer("a/1", "Tango card", "gbp", ("GB",), ("5", "10.00")),
        Offer("b", "No amounts", "GBP", ("GB",), ()),
        Offer("c\x1b[2J", "No currency", "XXX", ("GB",), ("5",)),
        Offer("d", "No country", "GBP", ("Atlantis",), ("5",)),
        Offer("a-1", "The same key as a/1", "GBP", ("GB",), ("5",)),
    ]

    first = await import_offers(actor, connection, "tango", offers)
    second = await import_offers(actor, connection, "tango", offers)

    assert (first.saved, first.known, second.saved, second.known) == (1, 0, 0, 1)
    assert [one.split(":")[0] for one in first.refused] == ["b", "c [2J", "d", "a-1"]
    row = await connection.fetchrow("SELECT key, name, active FROM products")
    assert tuple(row) == ("tango-a-1", "Tango card", False)
    assert await publish_many(actor, "product", ["tango-a-1"]) == 1
    assert await connection.fetchval("SELECT suppliers FROM products") == ["tango"]


@pytest.mark.parametrize("most", [1, 2, 5_000])
async def test_rare_and_common_words_are_found_alike(
    connection: asyncpg.Connection, database: Database, vault: Vault, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(store, "_MOST_FOUND", most)
    rows = "".join(f"gift-{n},yes,{'GBP' if n % 2 else 'EUR'},Gift {n},GB,5\n" for n in range(6))
    await loaded(connection, database, vault, "key,digital,currency,name,countries,denominations\n" + rows)

    async def found(**filters: str) -> list[str]:
        return [row["key"] for row in await store.list_products(connection, most=3, **filters)]

    assert await found(words="gif") == ["gift-0", "gift-1", "gift-2"]
    assert await found(words="gif", after="gift-2") == ["gift-3", "gift-4", "gift-5"]
    assert await found(words="gift 4") == ["gift-4"]
    assert await found(words="gift", currency="GBP") == ["gift-1", "gift-3", "gift-5"]
    assert await found(words="gift", state="inactive") == []
    assert await found(words="gift", state="drafts") == []
