import asyncio
import json

import asyncpg
import pytest
from tests.chained import CHAIN
from tests.seed.conftest import everything, load, one
from tests.seed.worlds import WHOLE

from largesse.base.errors import OperatorError
from largesse.catalogue.cache import load_snapshot
from largesse.seed.load import load_seed
from largesse.seed.reading import demo_seed
from largesse.web.api.shapes import CatalogueInJson


async def test_a_customer_and_all_that_is_theirs(connection: asyncpg.Connection) -> None:
    loaded = await load(connection, WHOLE)

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
    loaded = await load(connection, WHOLE)

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
    loaded = await load(connection, WHOLE)

    welcome = await one(connection, "templates", "welcome")
    assert welcome["id"] == loaded.ids["templates"]["welcome"]
    assert (welcome["gift_name"], welcome["value_minor"], welcome["currency"]) == ("Coffee House e-gift", 1000, "GBP")
    assert (welcome["country"], welcome["wrapping_key"], welcome["expiry_after_days"]) == ("GB", "confetti", 90)
    box = await one(connection, "templates", "box")
    assert (box["name"], box["country"], box["value_minor"]) == (None, "IE", 3868)  # 35.00 and 10.5 %, half up
    thanks = await one(connection, "templates", "thanks")
    assert (thanks["product_id"], thanks["collection_id"]) == (None, loaded.ids["collections"]["acme-thanks"])
    assert (thanks["value_minor"], thanks["gift_name"]) == (2500, "Acme thanks")


async def test_balances_are_opened_through_the_ledger(connection: asyncpg.Connection) -> None:
    loaded = await load(connection, WHOLE)

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
    assert [tuple(entry) for entry in entries] == [(ids["gbp"], "top_up", 100000), (ids["team"], "top_up", 10)]
    assert await connection.fetchval("SELECT sum(amount_minor) FROM entries") == 0
    assigned = await connection.fetch(
        "SELECT account_id, service_account_id FROM account_service_accounts ORDER BY service_account_id"
    )
    bots = loaded.ids["service_accounts"]
    assert [tuple(row) for row in assigned] == [(ids["team"], bots["acme/hr-bot"]), (ids["team"], bots["crm"])]


async def test_a_second_load_changes_nothing(connection: asyncpg.Connection) -> None:
    first = await load(connection, WHOLE)
    before = await everything(connection)

    second = await load(connection, WHOLE)

    assert await everything(connection) == before
    assert second.ids == first.ids
    assert second.api_keys == {}


async def test_a_changed_file_updates_what_differs_and_nothing_else(connection: asyncpg.Connection) -> None:
    first = await load(connection, WHOLE)
    before = await everything(connection)
    changed = WHOLE
    for old, new in [
        ("name: Acme Ltd", "name: Acme plc"),
        ("plan: pro", "plan: starter"),
        ("email: Ada@acme.example, name: Ada, role: admin", "email: ada@ACME.example, name: Ada, role: member"),
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
    assert [row for row in after["products"] if "books" in row] == [row for row in before["products"] if "books" in row]


async def test_who_was_removed_and_what_was_switched_off_stays_so(connection: asyncpg.Connection) -> None:
    """In the web application, which a load does not undo: mail about balances would go to who has left."""
    await load(connection, WHOLE)
    await connection.execute("UPDATE users SET is_active = false WHERE email = 'bob@acme.example'")
    await connection.execute("UPDATE service_accounts SET active = false WHERE name = 'HR bot'")
    loaded = await load(connection, WHOLE)
    assert [one.partition(": ")[2] for one in loaded.warnings if "stays so" in one] == [
        "customers[0].users[1].email: 'bob@acme.example' was removed or switched off and stays so: take it out of the file, or write `active: true`",
        "customers[0].service_accounts[0].key: 'hr-bot' was removed or switched off and stays so: take it out of the file, or write `active: true`",
    ]
    assert await connection.fetchval("SELECT active FROM service_accounts WHERE name = 'HR bot'") is False
    is_active = "SELECT is_active FROM users WHERE email = 'bob@acme.example'"
    assert await connection.fetchval(is_active) is False
    await load(connection, WHOLE.replace("name: Bob}", "name: Bob, active: true}"))
    assert await connection.fetchval(is_active) is True


async def test_renaming_a_gift_alone_leaves_the_name_saved_with_its_templates(connection: asyncpg.Connection) -> None:
    await load(connection, WHOLE)

    await load(connection, WHOLE.replace("Coffee House", "Coffee Shop"))

    assert (await one(connection, "templates", "welcome"))["gift_name"] == "Coffee House e-gift"


async def test_the_catalogue_version_grows_only_with_the_catalogue(connection: asyncpg.Connection) -> None:
    async def version() -> int:
        return int(await connection.fetchval("SELECT version FROM catalogue_version"))

    empty = await version()
    await load(connection, WHOLE)
    loaded = await version()
    await load(connection, WHOLE.replace("name: Acme Ltd", "name: Acme plc"))
    renamed = await version()
    await load(connection, WHOLE.replace("Autumn hamper", "Winter hamper"))

    assert empty < loaded == renamed < await version()


async def test_objects_that_left_the_file_stay(connection: asyncpg.Connection) -> None:
    await load(connection, WHOLE)
    before = await everything(connection)

    loaded = await load(connection, "customers: []\n")

    assert await everything(connection) == before
    assert loaded.ids["customers"] == {}


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
    lines = {key: n for n, text in enumerate(world.split("\n"), 1) for key in unfunded if f"{{key: {key}," in text}
    places = {"both": 0, "other": 1, "keyless": 2}

    loaded = await load(connection, world)

    assert loaded.warnings == [
        f"world.yaml:{lines[key]}: customers[0].service_accounts[{places[key]}].key: the customer pays from a balance, but no "
        f"funding account in {where} is open to the service account {key!r}: it cannot send"
        for key, where in unfunded.items()
    ]
    assert (await load(connection, world)).warnings == loaded.warnings


async def test_money_that_an_invoiced_customer_cannot_spend_is_warned_of(connection: asyncpg.Connection) -> None:
    world = UNFUNDED.replace("currency: GBP,", "currency: GBP, balance: 100.00,")
    await load(connection, world)
    invoiced = world.replace("funding: balance", "funding: invoiced")
    said = (
        "world.yaml:3: customers[0].key: the accounts of acme hold £100.00, which its orders do not use while it is invoiced. "
        "The money stays there, and refunds of earlier orders are added to it. `funding: balance` lets it be spent again."
    )
    assert (await load(connection, invoiced)).warnings == [said]
    assert said not in (await load(connection, world)).warnings
    await connection.execute("UPDATE customers SET managed = 'office' WHERE key = 'acme'")
    assert said not in (await load(connection, invoiced)).warnings, "it pays as the office says"


async def test_the_demo_warns_of_nothing(connection: asyncpg.Connection) -> None:
    assert (await load_seed(connection, CHAIN, demo_seed())).warnings == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("master: true, currency: GBP", "master: true, currency: EUR", "funding_accounts[0].currency: cannot change once it is loaded, and is GBP"),
        ("currency: GBP, environment: staging", "currency: GBP", "funding_accounts[1].environment: cannot change once it is loaded, and is staging"),
        ("environment: staging}", "environment: production}", "api_keys[1].environment: cannot change once it is loaded, and is staging"),
        ("hr-bot, environment: staging}", "crm, environment: staging}", "api_keys[1].service_account: cannot change once it is loaded"),
        ("digital: false, currency: GBP, cost: 35.00, markup_percent: 10.5,\n     postage: {GB: 4.95, IE: 9.95}, vat_percent: {GB: 20, IE: 13.5}",
         "digital: true, currency: GBP, countries: [GB, IE], denominations: [40]", "products[2].digital: cannot change once it is loaded"),
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
    await load(connection, WHOLE)
    before = await everything(connection)
    changed = WHOLE.replace(old, new, 1)
    if "customer: acme, value: 5" in new:
        changed = changed.replace("value_points: [50, 10, 25], ", "")
    changed = changed.replace("name: Acme Ltd", "name: Acme plc")
    line = next(
        n for n, (a, b) in enumerate(zip(changed.split("\n"), WHOLE.split("\n"), strict=True), 1) if a != b and n > 5
    )

    with pytest.raises(OperatorError) as caught:
        await load(connection, changed)

    assert str(caught.value).startswith(f"world.yaml:{line}: ")
    assert str(caught.value).endswith(message)
    assert await everything(connection) == before


async def test_a_refused_first_load_writes_nothing(connection: asyncpg.Connection) -> None:
    before = await everything(connection)

    with pytest.raises(OperatorError, match=r"XXX is no currency"):
        await load(connection, WHOLE.replace("currency: EUR", "currency: XXX"))

    assert await everything(connection) == before


async def test_two_first_loads_at_once_make_everything_once(database_url: str) -> None:
    first, second = await asyncpg.connect(database_url), await asyncpg.connect(database_url)
    try:
        one_load, other_load = await asyncio.gather(load(first, WHOLE), load(second, WHOLE))

        assert one_load.ids == other_load.ids
        assert sorted([len(one_load.api_keys), len(other_load.api_keys)]) == [0, 3]
        assert await first.fetchval("SELECT sum(balance_minor) FROM accounts WHERE kind = 'funding'") == 100010
    finally:
        await first.close()
        await second.close()


async def test_the_catalogue_reads_what_was_loaded(connection: asyncpg.Connection) -> None:
    loaded = await load_seed(connection, CHAIN, demo_seed())

    snapshot = await load_snapshot(connection, CatalogueInJson("https://gifts.example"))

    hamper = loaded.ids["products"]["autumn-hamper"]
    product = json.loads(snapshot.serialized_product(hamper, "GB", loaded.ids["customers"]["acme"]))
    assert product["totalPrice"] == 52.14  # 35.00 and 10 %, postage 4.95, VAT 20 %
    hoodie = loaded.ids["products"]["acme-hoodie"]
    assert snapshot.product(hoodie, "GB", loaded.ids["customers"]["acme"]) is not None
    assert snapshot.product(hoodie, "GB", loaded.ids["customers"]["globex"]) is None
    assert snapshot.product(loaded.ids["products"]["summer-picnic"], "GB", loaded.ids["customers"]["acme"]) is None


async def test_the_demo_world(connection: asyncpg.Connection) -> None:
    loaded = await load_seed(connection, CHAIN, demo_seed())

    assert {"acme-production", "acme-staging", "globex-production"} <= set(loaded.api_keys)
    assert set(loaded.ids["customers"]) == {"acme", "globex"}
    assert {"hr-bot", "rewards"} <= set(loaded.ids["service_accounts"])
    account = await one(connection, "accounts", "acme-gbp")
    assert (account["balance_minor"], account["is_master"]) == (100000_00, True)
    assert len(loaded.ids["products"]) >= 40
    before = await everything(connection)
    assert (await load_seed(connection, CHAIN, demo_seed())).ids == loaded.ids
    assert await everything(connection) == before


@pytest.mark.long
async def test_a_large_world_takes_no_more_statements_than_a_small_one(connection: asyncpg.Connection) -> None:
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
