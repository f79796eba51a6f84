"""The seed file that `largesse export` writes, and who manages what."""

from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest
from tests.chained import CHAIN, actor_over
from tests.conftest import CloneFactory
from tests.seed.conftest import everything, load, one, refusal
from tests.seed.worlds import WHOLE

from largesse.audit.service import INSTALLATION
from largesse.seed.document import SeedFile
from largesse.seed.export import Exported, _Exporter, _read, _text, _write, export_seed
from largesse.seed.load import load_seed
from largesse.seed.reading import demo_seed, parse_seed, read_seed

ONE = """
customers:
  - {key: acme, name: Acme, plan: pro, funding: balance, %s users: [{email: ada@acme.example, name: Ada}],
     service_accounts: [{key: bot, name: Bot}], funding_accounts: [{key: gbp, name: Float, currency: GBP, service_accounts: []}]}
products:
  - {key: coffee, name: Coffee, digital: true, currency: GBP, countries: [GB], denominations: [5], %s active: true}
collections:
  - {key: treats, name: Treats, country: GB, currency: GBP, value_points: [5], %s products: [coffee]}
"""


async def exported(connection: asyncpg.Connection) -> Exported:
    async with connection.transaction():
        return _Exporter(*await _read(connection)).export()


@pytest.fixture
async def other(clone_database: CloneFactory) -> AsyncIterator[asyncpg.Connection]:
    """A connection to another empty database."""
    connection = await asyncpg.connect(clone_database())
    yield connection
    await connection.close()


async def round_trip(connection: asyncpg.Connection, other: asyncpg.Connection, seed: SeedFile, folder: Path) -> str:
    """Loads, exports, loads that into an empty database and exports again; returns the file, which is the same both times."""
    await load_seed(connection, CHAIN, seed)
    first = await exported(connection)
    await _write(connection, first, folder / "world.yaml")
    await load_seed(other, CHAIN, read_seed(folder / "world.yaml"))
    second = await exported(other)
    assert second == first
    assert first.left_out == []
    return first.content


async def test_the_demo_world_comes_back_as_it_was(
    connection: asyncpg.Connection, other: asyncpg.Connection, tmp_path: Path
) -> None:
    seed = demo_seed()

    await round_trip(connection, other, seed, tmp_path)

    back = read_seed(tmp_path / "world.yaml")
    assert (back.customers, back.products, back.collections) == (seed.customers, seed.products, seed.collections)


async def test_every_field_comes_back(
    connection: asyncpg.Connection, other: asyncpg.Connection, tmp_path: Path
) -> None:
    seed = parse_seed(WHOLE.encode(), "world.yaml")

    content = await round_trip(connection, other, seed, tmp_path)

    back = read_seed(tmp_path / "world.yaml")
    assert (back.customers, back.products, back.collections) == (seed.customers, seed.products, seed.collections)
    assert "{key: hr-prod, service_account: hr-bot, environment: production}" in content


async def test_who_manages_comes_back_and_an_account_that_is_open_to_none(
    connection: asyncpg.Connection, other: asyncpg.Connection, tmp_path: Path
) -> None:
    seed = parse_seed((ONE % (("managed: office, ",) * 3)).encode(), "world.yaml")

    content = await round_trip(connection, other, seed, tmp_path)

    assert content.count("managed: office") == 3
    assert "service_accounts: []" in content


async def test_no_secret_is_in_it(connection: asyncpg.Connection) -> None:
    loaded = await load(connection, WHOLE)

    content = (await exported(connection)).content

    assert loaded.api_keys
    assert not any(secret in content for secret in loaded.api_keys.values())
    assert "hash" not in content
    assert "lgs_" not in content


@pytest.mark.parametrize(
    "text",
    ["null", "no", "12", "a: b", "- a", "#x", "'", '"', "\\", "a\nb", "a b", "\u2028", "\U0001f381", "\x85", "{", "é"],
)
def test_any_text_is_read_back(text: str) -> None:
    file = f"customers:\n  - key: k\n    plan: pro\n    funding: balance\n    name: {_text(f'x{text}x')}\n"

    if text in {"\n", "a\nb", "\u2028", "\x85"}:
        assert "must not contain" in refusal(file)
    else:
        assert parse_seed(file.encode(), "world.yaml").customers[0].name == f"x{text}x"


async def test_a_template_that_cannot_be_sent_any_more_is_left_out(connection: asyncpg.Connection) -> None:
    await load(connection, WHOLE)
    await connection.execute("UPDATE products SET denominations_minor = '{500}' WHERE key = 'coffee'")

    written = await exported(connection)

    assert written.left_out == ["the template 'welcome' of 'acme': its gift is no longer sold like this"]
    parse_seed(written.content.encode(), "world.yaml")


async def test_what_people_made_is_left_out(connection: asyncpg.Connection) -> None:
    await load(connection, WHOLE)
    await connection.execute("UPDATE collections SET key = 'app/1', of_people = true WHERE key = 'acme-thanks'")

    written = await exported(connection)

    assert "1 templates and collections that people made" in written.left_out[-1]
    parse_seed(written.content.encode(), "world.yaml")


async def test_what_the_office_manages_stays_and_is_named(connection: asyncpg.Connection) -> None:
    await load(connection, ONE % ("", "", ""))
    for table in ("customers", "products", "collections"):
        await connection.execute(f"UPDATE {table} SET managed = 'office'")
    await connection.execute("UPDATE users SET role = 'viewer'")
    before = await everything(connection)

    loaded = await load(
        connection,
        (ONE % ("", "", ""))
        .replace("name: Acme", "name: Other")
        .replace("Coffee", "Other")
        .replace("Treats", "Other")
        .replace("currency: GBP, countries", "currency: EUR, countries"),
    )

    assert await everything(connection) == before
    assert [warning.split("key: ")[-1].split(" and ")[0] for warning in loaded.warnings[:1]] == [
        "the customer 'acme' is managed in the office"
    ]
    assert any("the person 'ada@acme.example' stays as it is" in warning for warning in loaded.warnings)
    assert any("the product 'coffee' is managed in the office" in warning for warning in loaded.warnings)
    assert any("the collection 'treats'" in warning for warning in loaded.warnings)


async def test_a_file_hands_over_once_and_changes_nothing_after(connection: asyncpg.Connection) -> None:
    await load(connection, ONE % ("", "", ""))

    await load(connection, (ONE % ("", "managed: office, ", "")).replace("Coffee", "Tea"))
    assert (await one(connection, "products", "coffee"))["name"] == "Tea"
    assert (await one(connection, "products", "coffee"))["managed"] == "office"
    again = await load(connection, (ONE % ("", "managed: office, ", "")).replace("Coffee", "Water"))

    assert (await one(connection, "products", "coffee"))["name"] == "Tea"
    assert any("'coffee' is managed in the office" in warning for warning in again.warnings)
    same = await load(connection, (ONE % ("", "managed: office, ", "")).replace("Coffee", "Tea"))
    assert not any("coffee" in warning for warning in same.warnings)


def test_nobody_else_manages() -> None:
    assert "managed: must be one of file, office" in refusal(ONE % ("", "managed: nobody, ", ""))


async def test_a_balance_of_many_top_ups_comes_back(
    connection: asyncpg.Connection, other: asyncpg.Connection, tmp_path: Path
) -> None:
    """Each top-up is at most the largest amount; the sum may be more, as it soon is in rupiah."""
    world = (ONE % ("", "", "")).replace(
        "name: Float, currency: GBP", "name: Float, currency: GBP, balance: 7000000000.05"
    )
    seed = parse_seed(world.encode(), "world.yaml")
    assert "balance: 7000000000.05" in await round_trip(connection, other, seed, tmp_path)
    assert (await one(other, "accounts", "gbp"))["balance_minor"] == 7_000_000_000_05


async def test_the_name_of_an_api_key_that_a_person_gave_comes_back(
    connection: asyncpg.Connection, other: asyncpg.Connection, tmp_path: Path
) -> None:
    await load(connection, WHOLE)
    await connection.execute("UPDATE api_keys SET key = 'prod' WHERE key IN ('hr-prod', 'globex-prod')")
    await connection.execute("UPDATE api_keys SET key = 'globex/prod' WHERE key = 'hr-test'")
    await _write(connection, await exported(connection), tmp_path / "world.yaml")

    loaded = await load_seed(other, CHAIN, read_seed(tmp_path / "world.yaml"))

    assert loaded.api_keys.keys() == {"acme/prod", "globex/prod", "acme/globex/prod"}


async def test_restrictions_that_a_seed_file_cannot_have_are_named(connection: asyncpg.Connection) -> None:
    await load(connection, WHOLE)
    await connection.execute("UPDATE api_keys SET scopes = '{read}' WHERE key = 'hr-test'")
    await connection.execute("UPDATE api_keys SET networks = '{10.0.0.0/8}' WHERE key = 'globex-prod'")
    await connection.execute(
        """UPDATE service_accounts SET limits = '{"GBP": {"daily_minor": 5000}}' WHERE key = 'crm'"""
    )

    written = await exported(connection)

    assert written.left_out == [
        "the limits of the service account 'crm' of 'acme': once loaded, it has none",
        "the scopes and networks of the API key 'hr-test' of 'acme': once loaded, it is for everything and from everywhere",
        "the scopes and networks of the API key 'globex-prod' of 'globex': once loaded, it is for everything and from everywhere",
    ]
    parse_seed(written.content.encode(), "world.yaml")


async def test_the_text_is_made_outside_a_transaction_which_may_not_be_idle_for_long(
    connection: asyncpg.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export, made_within = _Exporter.export, []

    def watched(exporter: _Exporter) -> Exported:
        made_within.append(connection.is_in_transaction())
        return export(exporter)

    monkeypatch.setattr(_Exporter, "export", watched)
    await load(connection, WHOLE)

    whole = await export_seed(actor_over(connection, INSTALLATION), tmp_path / "world.yaml")

    assert made_within == [False]
    assert (tmp_path / "world.yaml").read_text(encoding="utf-8") == whole.content
    recorded = await connection.fetchval("SELECT after FROM audit_events WHERE act = 'world.exported'")
    assert f'"bytes":{len(whole.content)}' in recorded.replace(" ", "")
