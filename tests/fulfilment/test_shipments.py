"""Parcels of many lines: exported once each, in a file that a spreadsheet may open, sent all or none, and sent again."""

import asyncio
import csv
import io
import json

import pytest
from structlog.testing import capture_logs
from tests.chained import actor_on
from tests.distributed import WAITING
from tests.orders.builder import insert_order
from tests.waiting import until

from largesse.base.errors import FileRefused
from largesse.customers.actor import Actor
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.encryption.vault import Vault
from largesse.fulfilment.inventory import Upload
from largesse.fulfilment.notifications import seal_email
from largesse.fulfilment.parcels import (
    NotOnItsWay,
    Parcel,
    ParcelState,
    count_parcels,
    find_tracked,
    list_parcels,
    list_to_pick,
    note_return,
    send_again,
)
from largesse.fulfilment.shipments import address_context, export_shipments, import_shipments
from largesse.fulfilment.tasks import erase_addresses
from largesse.lines.states import LineKey

VAULT = Vault((b"k" * 32,))
HEADING = "shipment,carrier,tracking_number\n"


@pytest.fixture
async def actor(database: Database) -> Actor:
    return await actor_on(database, VAULT)


async def wait_for_parcels(database: Database, count: int, name: str = "Sam") -> list[int]:
    """The numbers of so many parcels of one order that wait to be sent."""
    address = json.dumps({"name": name, "street_address": "1 High Street", "country_code": "GB"}).encode()
    sealed = [VAULT.addresses.seal(address, address_context(LineKey(1, 7, n + 1))) for n in range(count)]
    async with database.transaction(OPERATOR) as connection:
        await connection.execute(
            """
            INSERT INTO customers (id, key, name, plan, funding) OVERRIDING SYSTEM VALUE VALUES (1, 'acme', 'Acme', 'pro', 'invoiced');
            INSERT INTO products (key, name, is_digital, currency, cost_minor) VALUES ('box', 'Box', false, 'GBP', 1);
            """
        )
        await insert_order(connection, 7, "REF", code_count=count)
        await connection.execute(
            "INSERT INTO lines (customer_id, order_id, number, code_lookup, sealed)"
            " SELECT 1, 7, n, n, '' FROM generate_series(1, $1::int) AS n",
            count,
        )
        await connection.execute(
            "INSERT INTO line_states (customer_id, order_id, number, state, claimed_at, product_id)"
            " SELECT 1, 7, n, 'chosen', now(), 1 FROM generate_series(1, $1::int) AS n",
            count,
        )
        rows = await connection.fetch(
            """
            INSERT INTO shipments (customer_id, order_id, number, environment, product_id, country, sealed_address, requested_at)
            SELECT 1, 7, number, 'production', 1, 'GB', sealed, now() FROM unnest($1::bytea[]) WITH ORDINALITY AS new (sealed, number)
            RETURNING id
            """,
            sealed,
        )
    return [row["id"] for row in rows]


async def exported(actor: Actor, *, again: bool = False) -> list[dict[str, str]]:
    file = io.StringIO()
    count = await export_shipments(actor, VAULT, "production", file, again=again)
    rows = list(csv.DictReader(io.StringIO(file.getvalue())))
    assert len(rows) == count
    return rows


async def ship(actor: Actor, text: str, most: int | None = None) -> tuple[int, int]:
    return await import_shipments(actor, VAULT, "production", Upload("f.csv", (HEADING + text).encode()), most=most)


async def listed(database: Database, state: ParcelState, beyond: int | None = None) -> list[Parcel]:
    async with database.connection(OPERATOR) as connection:
        return await list_parcels(connection, "production", state, beyond, 2)


async def test_each_of_many_parcels_is_exported_once(database: Database, actor: Actor) -> None:
    parcels = await wait_for_parcels(database, 1_001)
    for again in (False, True):
        assert [int(row["shipment"]) for row in await exported(actor, again=again)] == parcels
    assert await exported(actor) == []
    await database.execute(OPERATOR, "UPDATE shipments SET sealed_address = NULL WHERE id = $1", parcels[0])
    assert len(await exported(actor, again=True)) == 1_000, "nobody packs a parcel without an address"


async def test_an_address_that_cannot_be_decrypted_stops_no_other_parcel(database: Database, actor: Actor) -> None:
    parcels = await wait_for_parcels(database, 1_001)
    broken = {parcels[0], parcels[499], parcels[700]}
    await database.execute(
        OPERATOR, "UPDATE shipments SET sealed_address = '\\x00' WHERE id = ANY($1::bigint[])", broken
    )
    with capture_logs() as logs:
        assert [int(row["shipment"]) for row in await exported(actor)] == [one for one in parcels if one not in broken]
    named = [log for log in logs if log["event"] == "parcel.unreadable"]
    assert [(log["shipment"], log["order"], log["line"]) for log in named] == [
        (parcels[at], "REF", at + 1) for at in (0, 499, 700)
    ]
    row = await database.fetchrow(OPERATOR, "SELECT count(*), count(exported_at) FROM shipments")
    assert row is not None
    assert tuple(row) == (1_001, 998)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        *((name, f"'{name}") for name in ("=1+1", "+1", "-1", "@SUM(A1)", "\uff1d1+1")),
        # A spreadsheet may begin a cell behind these.
        ("\t=1", "'\t'=1"),
        ("\r=1", "'\r'=1"),
    ],
)
async def test_no_address_is_a_formula(database: Database, actor: Actor, name: str, shown: str) -> None:
    await wait_for_parcels(database, 1, name)
    [row] = await exported(actor)
    assert (row["name"], row["street_address"]) == (shown, "1 High Street")


async def test_a_file_of_sent_parcels_has_limits_and_is_taken_whole(database: Database, actor: Actor) -> None:
    one, two, three = await wait_for_parcels(database, 3)
    long = "x" * 100
    for text, code in (
        (f"{one},DHL,1\n{two},DHL,2\n{three},DHL,3\n", "too_many_lines"),
        (f"{one},DHL,1\n{two},{long}x,2\n", "too_long"),
        (f"{one},DHL,1\n{two},DHL,{long}x\n", "too_long"),
        (f"{one},DHL,1\n{one},DHL,2\n", "twice"),
        (f"{one},DHL,1\n0{one},DHL,2\n", "twice"),
        (f"{one},DHL,1\n{three + 1},DHL,2\n", "no_parcel"),
        (f"{one},DHL,1\n\u00b2,DHL,2\n", "no_parcel"),
    ):
        with pytest.raises(FileRefused) as refused:
            await ship(actor, text, most=2)
        assert refused.value.code == code
    assert await listed(database, ParcelState.SENT) == []
    assert await ship(actor, f"{one},{long},{long}\n{two},DHL,\n", most=2) == (2, 0)
    assert await ship(actor, f"{one},UPS,9\n{three},DHL,3\n", most=2) == (1, 1)
    assert [one.carrier for one in await listed(database, ParcelState.SENT, beyond=two)] == [long]


async def test_two_files_with_the_same_parcels_in_another_order_send_each_once(
    database: Database, actor: Actor
) -> None:
    one, two = await wait_for_parcels(database, 2)
    texts = [f"{one},DHL,1\n{two},DHL,2\n", f"{two},DHL,2\n{one},DHL,1\n"]
    async with database.transaction(OPERATOR) as connection:
        # Each file gets as far as it can before it marks its first parcel.
        await connection.execute("SELECT FROM shipments ORDER BY id FOR UPDATE")
        files = []
        for count, text in enumerate(texts, 1):
            files.append(asyncio.create_task(ship(actor, text)))
            await until(lambda count=count: database.fetch(OPERATOR, f"SELECT WHERE ({WAITING}) = {count}"))
    assert await asyncio.gather(*files) == [(2, 0), (0, 2)]
    assert [parcel.id for parcel in await listed(database, ParcelState.SENT)] == [two, one]


async def test_two_people_who_note_one_return_mail_its_recipient_once(database: Database, actor: Actor) -> None:
    known, unknown, erased = await wait_for_parcels(database, 3)
    await ship(actor, "".join(f"{one},DHL,\n" for one in (known, unknown, erased)))
    left = [seal_email(VAULT, "sam@example.com", LineKey(1, 7, number)) for number in (1, 3)]
    await database.execute(
        OPERATOR,
        "UPDATE line_states SET sealed_email = CASE number WHEN 1 THEN $1::bytea WHEN 3 THEN $2::bytea END",
        *left,
    )
    await database.execute(OPERATOR, "UPDATE shipments SET sealed_address = NULL WHERE id = $1", erased)
    both = [note_return(actor, VAULT, "production", known, reason) for reason in ("address", "refused")]
    first, second = sorted(await asyncio.gather(*both, return_exceptions=True), key=lambda one: isinstance(one, Parcel))
    assert isinstance(first, NotOnItsWay)
    assert isinstance(second, Parcel)
    for parcel in (unknown, erased):
        await note_return(actor, VAULT, "production", parcel, "address")
    mails = await database.fetch(OPERATOR, "SELECT kind, edition, email FROM messages")
    assert [tuple(one) for one in mails] == [("returned", 1, "sam@example.com")]


async def test_who_is_erased_while_their_parcel_comes_back_gets_no_mail(database: Database, actor: Actor) -> None:
    [parcel] = await wait_for_parcels(database, 1)
    await ship(actor, f"{parcel},DHL,\n")
    sealed = seal_email(VAULT, "sam@example.com", LineKey(1, 7, 1))
    await database.execute(OPERATOR, "UPDATE line_states SET sealed_email = $1", sealed)
    async with database.transaction(OPERATOR) as connection:
        await connection.execute("SELECT FROM lines WHERE customer_id = 1 FOR UPDATE")  # as erasing does first
        noted = asyncio.create_task(note_return(actor, VAULT, "production", parcel, "address"))
        await until(lambda: database.fetch(OPERATOR, f"SELECT WHERE ({WAITING}) = 1"))
        await connection.execute("UPDATE line_states SET sealed_email = NULL WHERE customer_id = 1")
        await erase_addresses(connection, (1, 7), [1])
    assert (await noted).state is ParcelState.BACK
    assert await database.fetch(OPERATOR, "SELECT FROM messages") == []


async def test_a_parcel_that_goes_again_is_packed_again_and_in_no_other_list(database: Database, actor: Actor) -> None:
    parcel, other = await wait_for_parcels(database, 2)
    await exported(actor)
    await ship(actor, f"{parcel},DHL,D1\n")
    await note_return(actor, VAULT, "production", parcel, "address")
    assert [[one.id for one in await listed(database, state)] for state in ParcelState] == [[other], [], [parcel]]
    await send_again(actor, "production", parcel)
    assert [[one.id for one in await listed(database, state)] for state in ParcelState] == [[parcel, other], [], []]
    async with database.connection(OPERATOR) as connection:
        assert await count_parcels(connection, "production") == {ParcelState.WAITING: 2, ParcelState.BACK: 0}
        assert [one.parcels for one in await list_to_pick(connection, "production")] == [2]
        assert [one.id for one in await find_tracked(connection, "production", "D1")] == [parcel]
        assert [one.id for one in await find_tracked(connection, "production", "d 1")] == [parcel]
        assert await find_tracked(connection, "staging", "D1") == []
    assert [int(row["shipment"]) for row in await exported(actor)] == [parcel]
    assert await ship(actor, f"{parcel},DHL,D1\n") == (0, 1), "the file of the first sending, imported again"
    assert [[one.id for one in await listed(database, state)] for state in ParcelState] == [[parcel, other], [], []]
    assert await ship(actor, f"{parcel},DHL,D2\n") == (1, 0)
    assert [[one.id for one in await listed(database, state)] for state in ParcelState] == [[other], [parcel], []]
