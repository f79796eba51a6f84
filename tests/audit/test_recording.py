"""What the audit log keeps, and that it keeps it with the act or not at all."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import asyncpg
import pytest

from largesse.audit.model import ACTS
from largesse.audit.service import _AT_ONCE, Acting, AuditEvent, by_command, by_key, by_person, by_worker, list_events
from largesse.encryption.chain_keys import open_chains
from largesse.encryption.vault import Vault
from largesse.verify.audit import audit_snapshot
from largesse.verify.check import Progress

VAULT = Vault((b"k" * 32,))


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database_url)
    await connection.execute(
        "INSERT INTO customers (key, name, plan, funding) VALUES ('acme', 'A', 'pro', 'balance'), ('globex', 'G', 'pro', 'balance')"
    )
    yield connection
    await connection.close()


@pytest.fixture
async def acting(connection: asyncpg.Connection) -> Acting:
    return Acting(by_key(3, "HR bot", "192.0.2.7", "r-1"), await open_chains(connection, VAULT, keep=True))


async def events(connection: asyncpg.Connection, **which: Any) -> list[AuditEvent]:
    return [event async for page in list_events(connection, **which) for event in page]


async def whole(connection: asyncpg.Connection) -> bool:
    async with connection.transaction():
        report = await audit_snapshot(connection, VAULT, Progress(io.StringIO()))
    return not report.findings


async def test_an_event_tells_who_did_what_to_what_and_from_where(
    connection: asyncpg.Connection, acting: Acting
) -> None:
    async with connection.transaction():
        now = await connection.fetchval("SELECT clock_now()")
        await acting.record(
            connection,
            "key.deleted",
            "API key 9",
            customer_id=1,
            environment="staging",
            before={"name": "hr", "limit": Decimal("1.50"), "scopes": ["read"]},
            after={"name": None},
        )
    (event,) = await events(connection)
    assert event == AuditEvent(
        id=1,
        at=now,
        customer="acme",
        environment="staging",
        actor="key",
        actor_id=3,
        actor_name="HR bot",
        address="192.0.2.7",
        request_id="r-1",
        act="key.deleted",
        subject="API key 9",
        before=event.before,
        after='{"name":null}',
    )
    assert json.loads(event.before or "") == {"name": "hr", "limit": 1.5, "scopes": ["read"]}
    assert await whole(connection)


async def test_each_kind_of_who(connection: asyncpg.Connection, acting: Acting) -> None:
    for who in (
        by_person(5, "ada@acme.example", "2001:db8::1", "r"),
        by_command("largesse load"),
        by_worker("retention"),
    ):
        async with connection.transaction():
            await Acting(who, acting.chains).record(connection, "world.loaded", "it", customer_id=1)
    told = [(event.actor, event.actor_id, event.actor_name, event.address) for event in await events(connection)]
    assert told[0] == ("person", 5, "ada@acme.example", "2001:db8::1")
    assert told[1][:2] == ("command", None)
    assert told[1][2].startswith("largesse load (")
    assert told[2] == ("worker", None, "retention", None)
    assert await whole(connection)


async def test_an_act_that_is_undone_leaves_no_event(connection: asyncpg.Connection, acting: Acting) -> None:
    undone = connection.transaction()
    await undone.start()
    await acting.record(connection, "key.created", "API key 1", customer_id=1)
    await undone.rollback()
    async with connection.transaction():
        await acting.record(connection, "key.created", "API key 2", customer_id=1)
    assert [event.subject for event in await events(connection)] == ["API key 2"]
    assert await whole(connection)


@pytest.mark.slow
async def test_many_at_once_stand_in_one_chain(database_url: str, acting: Acting) -> None:
    async def act(number: int) -> None:
        connection = await asyncpg.connect(database_url)
        for turn in range(5):
            async with connection.transaction():
                await acting.record(connection, "codes.read", f"order {number}/{turn}", customer_id=(number + turn) % 3)
        await connection.close()

    await asyncio.gather(*(act(number) for number in range(8)))
    connection = await asyncpg.connect(database_url)
    assert len(await events(connection)) == 40
    assert await whole(connection)
    await connection.close()


async def test_what_is_no_act_and_what_looks_like_a_secret_is_refused(
    connection: asyncpg.Connection, acting: Acting
) -> None:
    for act, subject, after, said in (
        ("key.sold", "API key 1", None, "not an act of the audit log"),
        ("key.created", "", None, "1 to 254"),
        ("key.created", "x" * 255, None, "1 to 254"),
        ("key.created", "API key 1", {"secret": "s"}, "must not contain secrets: secret"),
        ("key.created", "API key 1", {"name": "x" * 2**17}, "a change has [0-9]+ bytes"),
    ):
        with pytest.raises(ValueError, match=said):
            await acting.record(connection, act, subject, after=after)
    assert await events(connection) == []


async def test_events_cannot_be_changed_or_removed(connection: asyncpg.Connection, acting: Acting) -> None:
    async with connection.transaction():
        await acting.record(connection, "key.created", "API key 1", customer_id=1)
    for change in ("UPDATE audit_events SET subject = 'other'", "DELETE FROM audit_events", "TRUNCATE audit_events"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="append-only"):
            await connection.execute(change)


async def test_the_log_is_read_by_customer_and_time_in_pages(connection: asyncpg.Connection, acting: Acting) -> None:
    count = _AT_ONCE + 1
    await connection.execute(
        """
        INSERT INTO audit_events (customer_id, at, actor, actor_name, act, subject, mac)
        SELECT n % 2 + 1, '2030-01-01'::timestamptz + (n / 3) * interval '1 second', 'command', 'c', 'key.created', n::text, ''
        FROM generate_series(1, $1) AS n
        """,
        2 * count,
    )
    everything = await events(connection)
    assert [int(event.subject) for event in everything] == list(range(1, 2 * count + 1))
    own = await events(connection, customer_id=2)
    assert {event.customer for event in own} == {"globex"}
    assert len(own) == count
    since = everything[-1].at - timedelta(seconds=1)
    assert [event.subject for event in await events(connection, since=since)] == [
        event.subject for event in everything if event.at >= since
    ]
    assert await events(connection, customer_id=2, since=everything[-1].at + timedelta(seconds=1)) == []


def test_acts_are_named_alike() -> None:
    assert list(ACTS) == sorted(ACTS)
    assert all(act.replace("_", "").replace(".", "", 1).isalpha() and act.islower() for act in ACTS)
