from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from largesse.base.errors import StartError
from largesse.catalogue import load_snapshot
from largesse.identity import create_key, delete_key
from largesse.identity.secret import secret_hash, well_formed
from largesse.web.api.shapes.catalogue import CatalogueInJson
from largesse.world import LoadedWorld, demo_world, load_world, parse_world

WORLD = """
customers:
  - key: acme
    name: Acme Ltd
    plan: enterprise
    funding: balance
    users:
      - {email: Ada@acme.example, name: Ada, role: admin}
      - {email: bob@acme.example, name: Bob}
    service_accounts:
      - {key: hr-bot, name: HR bot}
      - {key: crm, name: CRM, active: false}
    api_keys:
      - {key: hr-prod, service_account: hr-bot, environment: production}
      - {key: hr-test, service_account: hr-bot, environment: staging}
    funding_accounts:
      - {key: gbp, name: Float, master: true, currency: GBP, balance: 1000.00}
      - {key: team, name: Team, currency: GBP, environment: staging, balance: 0.10, service_accounts: [hr-bot, crm]}
      - {key: empty, name: Empty, currency: JPY}
    templates:
      - {key: welcome, name: Welcome, product: coffee, value: 10, wrapping_key: confetti, from_name: Acme,
         message: Welcome!, expiry_after_days: 90}
      - {key: box, product: hamper, country: IE}
      - {key: thanks, collection: acme-thanks}
  - key: globex
    name: Globex
    plan: pro
    funding: invoiced
    service_accounts:
      - {key: hr-bot, name: Other bot}
    api_keys:
      - {key: globex-prod, service_account: hr-bot, environment: production}
products:
  - {key: coffee, name: Coffee House e-gift, digital: true, currency: gbp, countries: [NO, gb], denominations: [25, 5, 10]}
  - {key: books, name: Bookshop e-gift, digital: true, currency: EUR, countries: [IE, FR], min_amount: 5, max_amount: 200}
  - {key: hamper, name: Autumn hamper, digital: false, currency: GBP, cost: 35.00, markup_percent: 10.5,
     postage: {GB: 4.95, IE: 9.95}, vat_percent: {GB: 20, IE: 13.5}, customers: [acme]}
collections:
  - {key: treats, name: Treats, country: GB, currency: GBP, value_points: [50, 10, 25], products: [coffee, books]}
  - {key: acme-thanks, customer: acme, name: Acme thanks, country: GB, currency: GBP, value: 25, products: [coffee]}
"""

TABLES = [
    "customers",
    "users",
    "service_accounts",
    "api_keys",
    "products",
    "collections",
    "templates",
    "accounts",
    "account_service_accounts",
    "entries",
    "catalogue_version",
]


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


async def load(connection: asyncpg.Connection, text: str) -> LoadedWorld:
    return await load_world(connection, parse_world(text.encode(), "world.yaml"))


async def everything(connection: asyncpg.Connection) -> dict[str, list[str]]:
    """All rows, each with its transaction: a row that was written again differs."""
    return {
        table: [str(row) for row in await connection.fetch(f"SELECT xmin, * FROM {table} ORDER BY 2, 3")]
        for table in TABLES
    }


async def one(connection: asyncpg.Connection, table: str, key: str) -> dict[str, Any]:
    row = await connection.fetchrow(f"SELECT * FROM {table} WHERE key = $1", key)
    assert row is not None
    return dict(row)


async def test_a_customer_and_all_that_is_theirs(connection: asyncpg.Connection) -> None:
    loaded = await load(connection, WORLD)

    acme = await one(connection, "customers", "acme")
    assert (acme["name"], acme["plan"], acme["funding"]) == ("Acme Ltd", "enterprise", "balance")
    users = await connection.fetch("SELECT email, name, role, is_active FROM users ORDER BY id")
    assert [tuple(user) for user in users] == [
        ("Ada@acme.example", "Ada", "admin", True),
        ("bob@acme.example", "Bob", "member", True),
    ]
    assert (await one(connection, "service_accounts", "crm"))["active"] is False
    assert loaded.ids["customers"] == {"acme": acme["id"], "globex": acme["id"] + 1}
    assert set(loaded.ids["service_accounts"]) == {"acme/hr-bot", "globex/hr-bot", "crm"}


async def test_the_catalogue(connection: asyncpg.Connection) -> None:
    loaded = await load(connection, WORLD)

    coffee = await one(connection, "products", "coffee")
    assert coffee["currency"] == "GBP"
    assert coffee["countries"] == ["NO", "GB"]
    assert coffee["denominations_minor"] == [500, 1000, 2500]
    assert coffee["customer_ids"] is None
    books = await one(connection, "products", "books")
    assert (books["min_amount_minor"], books["max_amount_minor"]) == (500, 20000)
    hamper = await one(connection, "products", "hamper")
    assert (hamper["cost_minor"], str(hamper["markup_percent"])) == (3500, "10.5")
    assert json.loads(hamper["postage_minor"]) == {"GB": 495, "IE": 995}
    assert json.loads(hamper["vat_percent"]) == {"GB": 20, "IE": 13.5}
    assert hamper["customer_ids"] == [loaded.ids["customers"]["acme"]]
    treats = await one(connection, "collections", "treats")
    assert treats["value_points_minor"] == [1000, 2500, 5000]
    assert treats["product_ids"] == [coffee["id"], books["id"]]
    thanks = await one(connection, "collections", "acme-thanks")
    assert (thanks["customer_id"], thanks["value_minor"]) == (loaded.ids["customers"]["acme"], 2500)
    assert loaded.ids["products"] == {"coffee": 1, "books": 2, "hamper": 3}


async def test_templates(connection: asyncpg.Connection) -> None:
    loaded = await load(connection, WORLD)

    welcome = await one(connection, "templates", "welcome")
    assert welcome["id"] == loaded.ids["templates"]["welcome"]
    assert (welcome["gift_name"], welcome["value_minor"], welcome["currency"]) == (
        "Coffee House e-gift",
        1000,
        "GBP",
    )
    assert (welcome["country"], welcome["wrapping_key"], welcome["expiry_after_days"]) == (
        "GB",
        "confetti",
        90,
    )
    box = await one(connection, "templates", "box")
    assert (box["name"], box["country"], box["value_minor"]) == (
        None,
        "IE",
        3868,
    )  # 35.00 and 10.5 %, half up
    thanks = await one(connection, "templates", "thanks")
    assert (thanks["product_id"], thanks["collection_id"]) == (None, loaded.ids["collections"]["acme-thanks"])
    assert (thanks["value_minor"], thanks["gift_name"]) == (2500, "Acme thanks")


async def test_balances_are_opened_through_the_ledger(connection: asyncpg.Connection) -> None:
    loaded = await load(connection, WORLD)

    accounts = await connection.fetch(
        "SELECT key, balance_minor, environment, open_to_all FROM accounts WHERE kind = 'funding' ORDER BY id"
    )
    assert [tuple(account) for account in accounts] == [
        ("gbp", 100000, "production", True),
        ("team", 10, "staging", False),
        ("empty", 0, "production", True),
    ]
    entries = await connection.fetch(
        "SELECT account_id, kind, amount_minor FROM entries WHERE amount_minor > 0 ORDER BY id"
    )
    ids = loaded.ids["funding_accounts"]
    assert [tuple(entry) for entry in entries] == [
        (ids["gbp"], "top_up", 100000),
        (ids["team"], "top_up", 10),
    ]
    assert await connection.fetchval("SELECT sum(amount_minor) FROM entries") == 0
    assigned = await connection.fetch("SELECT * FROM account_service_accounts ORDER BY service_account_id")
    bots = loaded.ids["service_accounts"]
    assert [tuple(row) for row in assigned] == [
        (ids["team"], bots["acme/hr-bot"]),
        (ids["team"], bots["crm"]),
    ]


async def test_the_database_knows_only_the_hashes_of_secrets(connection: asyncpg.Connection) -> None:
    loaded = await load(connection, WORLD)

    assert set(loaded.api_keys) == {"hr-prod", "hr-test", "globex-prod"}
    for key, secret in loaded.api_keys.items():
        row = await one(connection, "api_keys", key)
        assert well_formed(secret)
        assert row["hash"] == secret_hash(secret)
        assert secret.startswith("lgs_test_" if row["environment"] == "staging" else "lgs_live_")
        assert secret not in repr(loaded)
    assert json.loads(loaded.to_json()) == {"ids": loaded.ids, "api_keys": loaded.api_keys}


async def test_a_second_load_changes_nothing(connection: asyncpg.Connection) -> None:
    first = await load(connection, WORLD)
    before = await everything(connection)

    second = await load(connection, WORLD)

    assert await everything(connection) == before
    assert second.ids == first.ids
    assert second.api_keys == {}


async def test_a_changed_file_updates_what_differs_and_nothing_else(connection: asyncpg.Connection) -> None:
    first = await load(connection, WORLD)
    before = await everything(connection)
    changed = WORLD
    for old, new in [
        ("name: Acme Ltd", "name: Acme plc"),
        ("plan: pro", "plan: starter"),
        (
            "email: Ada@acme.example, name: Ada, role: admin",
            "email: ada@ACME.example, name: Ada, role: member",
        ),
        ("name: HR bot}", "name: HR bot, active: false}"),
        ("name: Coffee House e-gift", "name: Coffee Shop e-gift"),
        ("cost: 35.00", "cost: 36.00"),
        ("value: 25, products: [coffee]", "value: 20, products: [coffee, books]"),
        ("service_accounts: [hr-bot, crm]", "service_accounts: [crm]"),
        ("balance: 1000.00", "balance: 5.00"),
        ("message: Welcome!", "message: Hello!"),
    ]:
        assert old in changed
        changed = changed.replace(old, new, 1)

    second = await load(connection, changed)

    assert second.ids == first.ids
    assert second.api_keys == {}
    assert (await one(connection, "customers", "acme"))["name"] == "Acme plc"
    assert (await one(connection, "customers", "globex"))["plan"] == "starter"
    users = await connection.fetch("SELECT email, role FROM users ORDER BY id")
    assert [tuple(user) for user in users] == [("ada@acme.example", "member"), ("bob@acme.example", "member")]
    assert (await one(connection, "products", "hamper"))["cost_minor"] == 3600
    thanks = await one(connection, "collections", "acme-thanks")
    assert (thanks["value_minor"], thanks["product_ids"]) == (2000, [1, 2])
    assert await connection.fetchval("SELECT count(*) FROM account_service_accounts") == 1
    assert (await one(connection, "accounts", "gbp"))["balance_minor"] == 100000
    welcome = await one(connection, "templates", "welcome")
    assert (welcome["message"], welcome["gift_name"]) == ("Hello!", "Coffee Shop e-gift")
    after = await everything(connection)
    assert after["entries"] == before["entries"]
    assert after["api_keys"] == before["api_keys"]
    assert after["accounts"] == before["accounts"]
    assert [row for row in after["products"] if "books" in row] == [
        row for row in before["products"] if "books" in row
    ]


async def test_renaming_a_gift_alone_leaves_the_name_saved_with_its_templates(
    connection: asyncpg.Connection,
) -> None:
    await load(connection, WORLD)

    await load(connection, WORLD.replace("Coffee House", "Coffee Shop"))

    assert (await one(connection, "templates", "welcome"))["gift_name"] == "Coffee House e-gift"


async def test_the_catalogue_version_grows_only_with_the_catalogue(connection: asyncpg.Connection) -> None:
    async def version() -> int:
        return int(await connection.fetchval("SELECT version FROM catalogue_version"))

    empty = await version()
    await load(connection, WORLD)
    loaded = await version()
    await load(connection, WORLD.replace("name: Acme Ltd", "name: Acme plc"))
    renamed = await version()
    await load(connection, WORLD.replace("Autumn hamper", "Winter hamper"))

    assert empty < loaded == renamed < await version()


async def test_objects_that_left_the_file_stay(connection: asyncpg.Connection) -> None:
    await load(connection, WORLD)
    before = await everything(connection)

    loaded = await load(connection, "customers: []\n")

    assert await everything(connection) == before
    assert loaded.ids["customers"] == {}


async def test_a_deleted_key_is_made_anew_with_another_secret(connection: asyncpg.Connection) -> None:
    first = await load(connection, WORLD)
    await connection.execute("DELETE FROM api_keys WHERE key = 'hr-prod'")

    second = await load(connection, WORLD)

    assert list(second.api_keys) == ["hr-prod"]
    assert second.api_keys["hr-prod"] != first.api_keys["hr-prod"]


async def test_a_key_that_was_deleted_stays_deleted(connection: asyncpg.Connection) -> None:
    await load(connection, WORLD)
    await delete_key(connection, (await one(connection, "api_keys", "hr-prod"))["id"])
    before = await everything(connection)

    again = await load(connection, WORLD)

    line = next(n for n, text in enumerate(WORLD.split("\n"), 1) if "key: hr-prod" in text)
    [warning] = again.warnings
    assert warning.startswith(
        f"world.yaml:{line}: customers[0].api_keys[0].key: the API key 'hr-prod' was deleted on 2"
    )
    assert again.api_keys == {}
    assert json.loads(again.to_json())["warnings"] == [warning]
    assert await everything(connection) == before


async def test_a_deleted_key_may_be_described_in_any_way(connection: asyncpg.Connection) -> None:
    await load(connection, WORLD)
    await delete_key(connection, (await one(connection, "api_keys", "hr-test"))["id"])

    again = await load(
        connection, WORLD.replace("hr-bot, environment: staging}", "crm, environment: production}")
    )

    assert len(again.warnings) == 1
    assert again.api_keys == {}


UNFUNDED = """
customers:
  - key: acme
    name: Acme
    plan: pro
    funding: balance
    service_accounts:
      - {key: both, name: Both}
      - {key: other, name: Other}
      - {key: keyless, name: Keyless}
      - {key: off, name: Off, active: false}
    api_keys:
      - {key: both-prod, service_account: both, environment: production}
      - {key: both-test, service_account: both, environment: staging}
      - {key: other-prod, service_account: other, environment: production}
      - {key: off-prod, service_account: off, environment: production}
    funding_accounts:
      - {key: gbp, name: Float, currency: GBP, service_accounts: [both]}
"""


@pytest.mark.parametrize(
    ("old", "new", "unfunded"),
    [
        ("", "", {"both": "staging", "other": "production", "keyless": "production or staging"}),
        ("[both]", "all", {"both": "staging"}),
        ("[both]", "[other]", {"both": "production or staging", "keyless": "production or staging"}),
        ("currency: GBP", "currency: GBP, environment: staging", {"both": "production", "other": "production", "keyless": "production or staging"}),
        ("funding: balance", "funding: invoiced", {}),
        ("plan: pro", "plan: starter", {}),
    ],
)  # fmt: skip
async def test_who_can_send_nothing_for_want_of_an_account_is_told(
    connection: asyncpg.Connection, old: str, new: str, unfunded: dict[str, str]
) -> None:
    world = UNFUNDED.replace(old, new, 1)
    lines = {
        key: n for n, text in enumerate(world.split("\n"), 1) for key in unfunded if f"{{key: {key}," in text
    }
    places = {"both": 0, "other": 1, "keyless": 2}

    loaded = await load(connection, world)

    assert loaded.warnings == [
        f"world.yaml:{lines[key]}: customers[0].service_accounts[{places[key]}].key: the customer pays from a balance, but no "
        f"funding account in {where} is open to the service account {key!r}: it cannot send"
        for key, where in unfunded.items()
    ]
    assert (await load(connection, world)).warnings == loaded.warnings


async def test_the_demo_warns_of_nothing(connection: asyncpg.Connection) -> None:
    assert (await load_world(connection, demo_world())).warnings == []


async def test_a_key_made_under_the_name_of_a_deleted_one_is_found(connection: asyncpg.Connection) -> None:
    await load(connection, WORLD)
    await delete_key(connection, (await one(connection, "api_keys", "hr-prod"))["id"])
    await create_key(
        connection, customer="acme", service_account="hr-bot", environment="production", key="hr-prod"
    )
    before = await everything(connection)

    again = await load(connection, WORLD)

    assert (again.api_keys, again.warnings) == ({}, [])
    assert await everything(connection) == before


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("master: true, currency: GBP", "master: true, currency: EUR", "funding_accounts[0].currency: cannot change once it is loaded, and is GBP"),
        ("currency: GBP, environment: staging", "currency: GBP", "funding_accounts[1].environment: cannot change once it is loaded, and is staging"),
        ("environment: staging}", "environment: production}", "api_keys[1].environment: cannot change once it is loaded, and is staging"),
        ("hr-bot, environment: staging}", "crm, environment: staging}", "api_keys[1].service_account: cannot change once it is loaded"),
        ("currency: EUR", "currency: USD", "products[1].currency: cannot change once it is loaded, and is EUR"),
        ("GBP, value_points", "EUR, value_points", "collections[0].currency: cannot change once it is loaded, and is GBP"),
        ("products: [coffee, books]}", "products: [coffee], customer: acme, value: 5}", "collections[0].customer: cannot change once it is loaded"),
        ("currency: EUR", "currency: XXX", "products[1].currency: XXX is no currency in use (ISO 4217)"),
        ("currency: JPY", "currency: DEM", "funding_accounts[2].currency: DEM is no currency in use (ISO 4217)"),
    ],
)  # fmt: skip
async def test_what_cannot_change_is_refused_whole(
    connection: asyncpg.Connection, old: str, new: str, message: str
) -> None:
    await load(connection, WORLD)
    before = await everything(connection)
    changed = WORLD.replace(old, new, 1)
    if "customer: acme, value: 5" in new:
        changed = changed.replace("value_points: [50, 10, 25], ", "")
    changed = changed.replace("name: Acme Ltd", "name: Acme plc")
    line = next(
        n
        for n, (a, b) in enumerate(zip(changed.split("\n"), WORLD.split("\n"), strict=True), 1)
        if a != b and n > 5
    )

    with pytest.raises(StartError) as caught:
        await load(connection, changed)

    assert str(caught.value).startswith(f"world.yaml:{line}: ")
    assert str(caught.value).endswith(message)
    assert await everything(connection) == before


async def test_a_refused_first_load_writes_nothing(connection: asyncpg.Connection) -> None:
    before = await everything(connection)

    with pytest.raises(StartError, match=r"XXX is no currency"):
        await load(connection, WORLD.replace("currency: EUR", "currency: XXX"))

    assert await everything(connection) == before


async def test_two_first_loads_at_once_make_everything_once(database_url: str) -> None:
    first, second = await asyncpg.connect(database_url), await asyncpg.connect(database_url)
    try:
        one_load, other_load = await asyncio.gather(load(first, WORLD), load(second, WORLD))

        assert one_load.ids == other_load.ids
        assert sorted([len(one_load.api_keys), len(other_load.api_keys)]) == [0, 3]
        assert (
            await first.fetchval("SELECT sum(balance_minor) FROM accounts WHERE kind = 'funding'") == 100010
        )
    finally:
        await first.close()
        await second.close()


async def test_the_catalogue_reads_what_was_loaded(connection: asyncpg.Connection) -> None:
    loaded = await load_world(connection, demo_world())

    snapshot = await load_snapshot(connection, CatalogueInJson())

    hamper = loaded.ids["products"]["autumn-hamper"]
    product = json.loads(snapshot.tell_product(hamper, "GB", loaded.ids["customers"]["acme"]))
    assert product["totalPrice"] == 52.14  # 35.00 and 10 %, postage 4.95, VAT 20 %
    hoodie = loaded.ids["products"]["acme-hoodie"]
    assert snapshot.product(hoodie, "GB", loaded.ids["customers"]["acme"]) is not None
    assert snapshot.product(hoodie, "GB", loaded.ids["customers"]["globex"]) is None
    assert (
        snapshot.product(loaded.ids["products"]["summer-picnic"], "GB", loaded.ids["customers"]["acme"])
        is None
    )


async def test_the_demo_world(connection: asyncpg.Connection) -> None:
    loaded = await load_world(connection, demo_world())

    assert {"acme-production", "acme-staging", "globex-production"} <= set(loaded.api_keys)
    assert set(loaded.ids["customers"]) == {"acme", "globex"}
    assert {"hr-bot", "rewards"} <= set(loaded.ids["service_accounts"])
    account = await one(connection, "accounts", "acme-gbp")
    assert (account["balance_minor"], account["is_master"]) == (100000_00, True)
    assert len(loaded.ids["products"]) >= 40
    before = await everything(connection)
    assert (await load_world(connection, demo_world())).ids == loaded.ids
    assert await everything(connection) == before


async def test_a_large_world_takes_no_more_statements_than_a_small_one(
    connection: asyncpg.Connection,
) -> None:
    lines = ["customers:"]
    for n in range(1000):
        lines += [
            f"  - key: c{n}",
            f"    name: Customer {n}",
            "    plan: pro",
            "    funding: balance",
            f"    users: [{{email: a{n}@c.example, name: A}}, {{email: b{n}@c.example, name: B}}]",
            "    service_accounts: [{key: bot, name: Bot}]",
            "    api_keys: [{key: prod, service_account: bot, environment: production}]",
            "    funding_accounts:",
            "      - {key: gbp, name: Float, currency: GBP, service_accounts: [bot]}",
            f"    templates: [{{key: t, product: p{n}, value: 10}}]",
        ]
    lines.append("products:")
    lines += [
        f"  - {{key: p{n}, name: Gift {n}, digital: true, currency: GBP, countries: [GB, IE], denominations: [5, 10, 25]}}"
        for n in range(10_000)
    ]
    text = "\n".join(lines)
    statements: list[str] = []
    connection.add_query_logger(lambda query: statements.append(query.query))

    loaded = await load(connection, text)

    assert len(loaded.ids["products"]) == 10_000
    assert len(loaded.api_keys) == 1000
    assert "c999/prod" in loaded.api_keys
    assert len(statements) < 50
