"""The master key: there or not, readable by others or not, and the right one or not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.mail.conftest import Office, PostOffice

from largesse.base.settings import Settings, load_settings
from largesse.db.pool import Database, connect_once
from largesse.db.scope import OPERATOR
from largesse.doctor.checks import Level
from largesse.doctor.database import check_database
from largesse.doctor.machine import check_master_key, check_master_key_fits
from largesse.encryption.master_keys import prove_master_key, retire
from largesse.encryption.vault import Vault, load_vault

EXTERNAL = {"LARGESSE_DATABASE_URL": "postgresql://ada@127.0.0.1/largesse"}
RIGHT, WRONG = "5e" * 32, "5f" * 32
SEALED_UNDER_IT = "The database is encrypted under this key."


def embedded(folder: Path) -> Settings:
    return load_settings({"LARGESSE_DATA_DIR": str(folder)})


def test_a_key_is_not_made_by_looking(tmp_path: Path) -> None:
    [found] = check_master_key(embedded(tmp_path))
    assert found.level is Level.OK
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("mode", "level"), [(0o600, Level.OK), (0o640, Level.WARNING), (0o604, Level.WARNING)])
def test_a_generated_key_is_its_owners_alone(tmp_path: Path, mode: int, level: Level) -> None:
    load_vault(embedded(tmp_path))
    (tmp_path / "master-key").chmod(mode)
    [found] = check_master_key(embedded(tmp_path))
    assert (found.level, found.setting) == (level, "LARGESSE_MASTER_KEY")
    assert ("chmod 600" in found.text) == (level is Level.WARNING)


def test_a_key_that_cannot_be_had(tmp_path: Path) -> None:
    (tmp_path / "master-key").write_text("secret")
    [damaged] = check_master_key(embedded(tmp_path))
    [missing] = check_master_key(load_settings(EXTERNAL))
    for found in (damaged, missing):
        assert (found.level, found.setting) == (Level.ERROR, "LARGESSE_MASTER_KEY")
        assert "secret" not in found.text
        assert "openssl rand -base64 32" in found.text


def test_a_key_that_is_set() -> None:
    [found] = check_master_key(load_settings({**EXTERNAL, "LARGESSE_MASTER_KEY": "5e" * 32}))
    assert found.level is Level.OK


async def fits(url: str, keys: str) -> list[tuple[Level, str]]:
    """What is found about the master key, among all that is found about the database."""
    found = await check_database(load_settings({"LARGESSE_DATABASE_URL": url, "LARGESSE_MASTER_KEY": keys}))
    return [(f.level, f.text) for f in found if f.setting == "LARGESSE_MASTER_KEY"]


async def test_the_key_is_the_one_that_codes_were_sealed_with(database_url: str, tmp_path: Path) -> None:
    assert await fits(database_url, WRONG) == [], "nothing is encrypted yet"
    database = await Database.connect(database_url)
    server = PostOffice()
    await server.start()
    office = Office(database, Vault((bytes.fromhex(RIGHT),)), server)
    await office.open()
    await office.order([("sam@example.com", None, 2)])
    await office.mailer.close()
    await server.close()
    await database.close()
    assert await fits(database_url, RIGHT) == [(Level.OK, SEALED_UNDER_IT)]
    assert await fits(database_url, f"{WRONG},{RIGHT}") == [(Level.OK, SEALED_UNDER_IT)]
    [(level, text)] = await fits(database_url, WRONG)
    assert level is Level.ERROR
    assert "is not the key that this database is encrypted under" in text
    assert WRONG not in text

    async with connect_once(database_url, OPERATOR) as connection:
        [lost] = await check_master_key_fits(connection, embedded(tmp_path))
    assert (lost.level, "missing" in lost.text) == (Level.ERROR, True)
    assert list(tmp_path.iterdir()) == []  # noqa: ASYNC240 - a test's own folder


async def test_the_key_is_told_before_there_is_a_code_and_looking_writes_nothing(database_url: str) -> None:
    async with connect_once(database_url, OPERATOR) as connection:
        await prove_master_key(connection, Vault((bytes.fromhex(RIGHT),)), keep=True)
        kept = await connection.fetchval("SELECT sealed FROM master_keys")
    [(level, _)] = await fits(database_url, WRONG)
    assert level is Level.ERROR
    fitting, rotation = await fits(database_url, f"{WRONG},{RIGHT}")
    assert fitting == (Level.OK, SEALED_UNDER_IT)
    assert rotation[0] is Level.WARNING
    assert "largesse reseal" in rotation[1]
    async with connect_once(database_url, OPERATOR) as connection:
        assert await connection.fetchval("SELECT sealed FROM master_keys") == kept


async def test_what_is_left_to_do_of_a_change_of_keys_is_told(database_url: str) -> None:
    old, both = Vault((bytes.fromhex(RIGHT),)), Vault((bytes.fromhex(WRONG), bytes.fromhex(RIGHT)))
    name = old.key_ids[0].hex()
    async with connect_once(database_url, OPERATOR) as connection:
        await prove_master_key(connection, old, keep=True)
        await prove_master_key(connection, both, keep=True)
        [(level, text)] = await fits(database_url, WRONG)
        assert level is Level.ERROR
        assert f"lacks a key under which something is still encrypted, {name}" in text
        await connection.execute("UPDATE master_keys SET sealing_at = NULL")
        assert [key.name for key in await retire(connection, both)] == [name]
    assert await fits(database_url, WRONG) == [(Level.OK, SEALED_UNDER_IT)]
    assert await fits(database_url, f"{WRONG},{RIGHT}") == [
        (Level.OK, SEALED_UNDER_IT),
        (Level.WARNING, f"Nothing is encrypted under {name} any more: leave it out of the list."),
    ]
