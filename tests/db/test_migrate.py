"""Migrations: once, by two at a time, and all or nothing."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from pathlib import Path

import asyncpg
import pytest

from largesse.db import migrate
from largesse.db.pool import connect_once
from largesse.db.rights import FUNCTIONS, TABLES
from largesse.db.scope import OPERATOR


@pytest.fixture
async def empty_url(database_url: str) -> str:
    """A database without any schema."""
    connection = await asyncpg.connect(database_url)
    await connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    await connection.close()
    return database_url


async def test_two_at_once_bring_an_empty_database_to_the_head(empty_url: str) -> None:
    connection = await asyncpg.connect(empty_url)
    assert await migrate.current_revision(connection) is None

    reached = await asyncio.gather(migrate.upgrade(empty_url), migrate.upgrade(empty_url))

    assert [done.revision for done in reached] == [migrate.head_revision()] * 2
    assert await migrate.current_revision(connection) == migrate.head_revision()
    await connection.close()


async def test_a_revision_that_fails_leaves_nothing(
    empty_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "0001_x.sql").write_text("CREATE TABLE first (price text DEFAULT '100 % of :it'); SELECT 1")
    (tmp_path / "0002_x.sql").write_text("CREATE TABLE second (id int); SELECT 1 / 0")
    monkeypatch.setattr(migrate, "REVISIONS", tmp_path)

    with pytest.raises(asyncpg.DivisionByZeroError):
        await migrate.upgrade(empty_url)

    connection = await asyncpg.connect(empty_url)
    assert await migrate.current_revision(connection) == "0001"
    assert await connection.fetchval("SELECT to_regclass('first') IS NOT NULL")
    assert await connection.fetchval("SELECT to_regclass('second') IS NULL")
    await connection.close()


async def test_who_has_a_second_step_already_keeps_it(
    empty_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tmp_path / "before"
    newer = shutil.ignore_patterns(*(f"{number:04}_*" for number in range(45, int(migrate.head_revision()) + 1)))
    shutil.copytree(migrate.REVISIONS, before, ignore=newer)
    with monkeypatch.context() as at_0044:
        at_0044.setattr(migrate, "REVISIONS", before)
        # The rights of this release name columns that came later; what gives them is behind the revisions.
        with contextlib.suppress(asyncpg.UndefinedColumnError):
            await migrate.upgrade(empty_url)
    connection = await asyncpg.connect(empty_url)
    await connection.execute(
        """
        INSERT INTO people (email, email_key, totp) VALUES
            ('app@acme.example', 'app@acme.example', 'sealed'), ('key@acme.example', 'key@acme.example', NULL),
            ('none@acme.example', 'none@acme.example', NULL);
        INSERT INTO passkeys (person_id, credential_id, credential, name, sign_count)
            SELECT id, 'a', 'b', 'Phone', 0 FROM people WHERE email_key = 'key@acme.example'
        """
    )
    await migrate.upgrade(empty_url)
    confirmed = await connection.fetch("SELECT email FROM people WHERE confirmed_at IS NOT NULL ORDER BY email")
    assert [row["email"] for row in confirmed] == ["app@acme.example", "key@acme.example"]
    await connection.close()


def test_revisions_are_numbered_without_gaps() -> None:
    names = sorted(path.name for path in migrate.REVISIONS.glob("*.sql"))
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))


async def test_every_table_and_function_is_declared(module_database_url: str) -> None:
    async with connect_once(module_database_url, OPERATOR) as connection:
        tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        functions = await connection.fetch(
            "SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
        )
    assert {name for (name,) in tables} == TABLES.keys(), "say in db/rights.py who writes a new table"
    assert {name for (name,) in functions} == FUNCTIONS.keys(), "say in db/rights.py who calls a function"
