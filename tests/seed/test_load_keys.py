"""API keys of a seed file, loaded again and again: what was deleted stays so."""

import json

import asyncpg
from tests.keys import create_key
from tests.seed.conftest import everything, load, one
from tests.seed.worlds import WHOLE

from largesse.customers.authenticator import secret_hash, well_formed
from largesse.customers.key_store import delete_key


async def test_the_database_knows_only_the_hashes_of_secrets(connection: asyncpg.Connection) -> None:
    loaded = await load(connection, WHOLE)

    assert set(loaded.api_keys) == {"hr-prod", "hr-test", "globex-prod"}
    for key, secret in loaded.api_keys.items():
        row = await one(connection, "api_keys", key)
        assert well_formed(secret)
        assert row["hash"] == secret_hash(secret)
        assert secret.startswith("lgs_test_" if row["environment"] == "staging" else "lgs_live_")
        assert secret not in repr(loaded)
    assert json.loads(loaded.to_json()) == {"ids": loaded.ids, "api_keys": loaded.api_keys}


async def test_a_deleted_key_is_made_anew_with_another_secret(connection: asyncpg.Connection) -> None:
    first = await load(connection, WHOLE)
    await connection.execute("DELETE FROM api_keys WHERE key = 'hr-prod'")

    second = await load(connection, WHOLE)

    assert list(second.api_keys) == ["hr-prod"]
    assert second.api_keys["hr-prod"] != first.api_keys["hr-prod"]


async def test_a_key_that_was_deleted_stays_deleted(connection: asyncpg.Connection) -> None:
    await load(connection, WHOLE)
    await delete_key(connection, (await one(connection, "api_keys", "hr-prod"))["id"])
    before = await everything(connection)

    again = await load(connection, WHOLE)

    line = next(n for n, text in enumerate(WHOLE.split("\n"), 1) if "key: hr-prod" in text)
    [warning] = again.warnings
    assert warning.startswith(
        f"world.yaml:{line}: customers[0].api_keys[0].key: the API key 'hr-prod' was deleted on 2"
    )
    assert again.api_keys == {}
    assert json.loads(again.to_json())["warnings"] == [warning]
    assert await everything(connection) == before


async def test_a_deleted_key_may_be_described_in_any_way(connection: asyncpg.Connection) -> None:
    await load(connection, WHOLE)
    await delete_key(connection, (await one(connection, "api_keys", "hr-test"))["id"])

    again = await load(connection, WHOLE.replace("hr-bot, environment: staging}", "crm, environment: production}"))

    assert len(again.warnings) == 1
    assert again.api_keys == {}


async def test_a_key_made_under_the_name_of_a_deleted_one_is_found(connection: asyncpg.Connection) -> None:
    await load(connection, WHOLE)
    await delete_key(connection, (await one(connection, "api_keys", "hr-prod"))["id"])
    await create_key(connection, customer="acme", service_account="hr-bot", environment="production", key="hr-prod")
    before = await everything(connection)

    again = await load(connection, WHOLE)

    assert (again.api_keys, again.warnings) == ({}, [])
    assert await everything(connection) == before
