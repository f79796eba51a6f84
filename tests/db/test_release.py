"""A database of release 0.1.0, with orders, claims, mail and webhooks in every state, comes through the migrations whole."""

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.db.release_0_1_0.facts import CODE, MASTER_KEY, PIN, REFERENCE

from largesse.db import migrate
from largesse.db.manifest import schema_differences
from largesse.encryption.vault import Vault
from largesse.fulfilment.notifications import open_email
from largesse.fulfilment.shipments import read_address
from largesse.fulfilment.vouchers import open_voucher, seal_voucher
from largesse.lines.codes import open_code
from largesse.lines.states import LineKey
from largesse.mail.mailbox import open_captured
from largesse.webhooks.store import secret_context

DUMP = Path(__file__).with_name("release_0_1_0") / "dump.sql"
# What must not change, whatever is done to the tables around it.
SUMS = {
    "balances": "SELECT sum(balance_minor) FROM accounts WHERE kind = 'funding'",
    "entries": "SELECT sum(amount_minor) FILTER (WHERE amount_minor > 0) FROM entries",
    "charged": "SELECT sum(total_minor) FROM orders",
    "codes": "SELECT sum(code_count) FROM orders",
    "references": "SELECT string_agg(external_reference, ' ' ORDER BY id) FROM orders",
    "lines": "SELECT md5(string_agg(order_id || '/' || number || encode(sealed, 'hex'), ',' ORDER BY order_id, number)) FROM lines",
    "claims": "SELECT string_agg(state::text, ' ' ORDER BY order_id, number) FROM line_states",
    "deliveries": "SELECT string_agg(state, ' ' ORDER BY created_at, id) FROM deliveries",
    "messages": "SELECT string_agg(state || email, ' ' ORDER BY id) FROM messages",
    "scheduled": "SELECT string_agg(scheduled_for::text, ' ' ORDER BY id) FROM orders",
}

# Tables that have had another name since.
RENAMED = {"webhook_lanes": "subscription_queues"}


@pytest.fixture
async def release_url(database_url: str) -> str:
    """The database as the release left it."""
    connection = await asyncpg.connect(database_url)
    await connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    await connection.execute(DUMP.read_text("utf-8"))
    await connection.close()
    return database_url


@pytest.fixture
async def connection(release_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(release_url)
    yield connection
    await connection.close()


async def test_a_database_of_the_release_migrates_and_loses_nothing(
    release_url: str, connection: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await migrate.current_revision(connection) == "0003"
    before = await counted(connection), await summed(connection)
    assert set(before[1]["claims"].split()) == {"claimed", "chosen", "fulfilled", "cancelled"}
    assert set(before[1]["deliveries"].split()) == {"pending", "delivered", "dropped", "cancelled"}
    monkeypatch.setenv("LARGESSE_DATABASE_URL", release_url)
    monkeypatch.setenv("LARGESSE_MASTER_KEY", "7c" * 32)
    # Everything but what the master key is needed for; that it is wrong is said, and again by `verify`.
    assert command("migrate")[0] == 1
    assert await migrate.current_revision(connection) == migrate.head_revision()

    after = await counted(connection), await summed(connection)
    assert {table: after[0].get(RENAMED.get(table, table)) for table in before[0]} == before[0]
    assert after[1] == before[1]
    assert await schema_differences(connection) == []
    code, said = command("verify")
    assert (code, said.startswith("Error: LARGESSE_MASTER_KEY is not the key")) == (1, True)
    monkeypatch.setenv("LARGESSE_MASTER_KEY", MASTER_KEY)
    code, said = command("verify")
    assert (code, "entries-are-chained" in said, said.startswith("1 of ")) == (1, True, True), said
    assert command("top-up", "acme-gbp", "1")[0] == 1
    assert command("migrate")[0] == 0
    code, said = command("verify")
    assert (code, said.startswith("All ")) == (0, True), said
    assert "over 12 orders, 37 lines, 34 entries" in said


async def test_its_codes_open_with_its_key(release_url: str, connection: asyncpg.Connection) -> None:
    await migrate.upgrade(release_url)
    rows = await connection.fetch(
        """
        SELECT l.sealed, l.number FROM lines l JOIN orders o ON o.id = l.order_id
        WHERE o.reference = $1 ORDER BY l.number
        """,
        REFERENCE,
    )
    vault = Vault((bytes.fromhex(MASTER_KEY),))
    opened = open_code(vault, rows[-1]["sealed"], REFERENCE, rows[-1]["number"])
    assert (opened.code_text, opened.pin_text) == (CODE, PIN)


async def test_all_its_other_secrets_open_with_its_key(release_url: str, connection: asyncpg.Connection) -> None:
    await migrate.upgrade(release_url)
    vault = Vault((bytes.fromhex(MASTER_KEY),))
    for row in await connection.fetch("SELECT product_id, lookup, sealed, is_test FROM vouchers"):
        voucher = open_voucher(vault, row["sealed"], row["product_id"])
        assert row["lookup"] in seal_voucher(vault, voucher, row["product_id"]).lookups
    for row in await connection.fetch("SELECT customer_id, order_id, number FROM shipments"):
        address = await read_address(connection, vault, LineKey(*row))
        assert address is not None
        assert "country_code" in address
    for row in await connection.fetch("SELECT id, environment FROM captured_mail"):
        mail = await open_captured(connection, vault, row["environment"], row["id"])
        assert mail is not None
        assert "Your gift" in mail.text or "gift" in mail.subject
    emails = await connection.fetch(
        "SELECT sealed_email, customer_id, order_id, number FROM line_states WHERE sealed_email IS NOT NULL"
    )
    assert all(open_email(vault, sealed, LineKey(*line)).endswith(".example") for sealed, *line in emails)
    secrets = await connection.fetch("SELECT sealed_secret, id FROM webhook_subscriptions")
    assert all(vault.webhooks.open(sealed, secret_context(key)).startswith(b"whsec_") for sealed, key in secrets)
    counted = [
        await connection.fetchval(f"SELECT count(*) FROM {table}")
        for table in ("vouchers", "shipments", "captured_mail")
    ]
    assert all([*counted, emails, secrets]), "the release's database has a secret of each kind"


def command(*arguments: str) -> tuple[int, str]:
    """The exit code of a command, and what it said."""
    done = subprocess.run(
        [sys.executable, "-m", "largesse", *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stdout or done.stderr


async def counted(connection: asyncpg.Connection) -> dict[str, int]:
    tables = await connection.fetch(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version'"
    )
    return {table: await connection.fetchval(f'SELECT count(*) FROM public."{table}"') for (table,) in tables}


async def summed(connection: asyncpg.Connection) -> dict[str, Any]:
    return {name: await connection.fetchval(query) for name, query in SUMS.items()}
