"""Requests about personal data: their deadline, and that an address is gone once a request is done."""

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pytest
from tests.chained import actor_on
from tests.privacy.conftest import ALEX, SAM, Service

from largesse.base.errors import InvalidRequest, NotFound, StateConflict
from largesse.customers.actor import Actor
from largesse.customers.customers import add_note
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.encryption.vault import Vault
from largesse.privacy import requests, store
from largesse.privacy.store import PrivacyRequest

Work = Callable[[Database, Vault, Actor], Any]


def act(service: Service, work: Work) -> Any:
    """What the coroutine function `work` makes of the database, the vault and an operator."""

    async def run(database: Database, vault: Vault) -> Any:
        return await work(database, vault, await actor_on(database, vault))

    return service.on_pool(run)


async def today(database: Database) -> date:
    async with database.connection(OPERATOR) as connection:
        return await store.read_today(connection)


async def find(database: Database, request_id: int) -> PrivacyRequest:
    async with database.connection(OPERATOR) as connection:
        return await store.find_request(connection, request_id)


def test_a_request_is_due_30_days_after_it_was_received(service: Service) -> None:
    async def work(database: Database, vault: Vault, actor: Actor) -> None:
        await database.execute(OPERATOR, "DELETE FROM privacy_requests")
        now = await today(database)
        for day in (now + timedelta(days=1), now - timedelta(days=requests.EARLIEST_DAYS + 1)):
            with pytest.raises(InvalidRequest, match="last 90"):
                await requests.receive(actor, vault, requests.Kind.EXPORT, SAM, day)
        with pytest.raises(NotFound):
            await requests.receive(actor, vault, requests.Kind.EXPORT, SAM, now, 999_999)
        ages = (0, 30 - requests.SOON_DAYS - 1, 30 - requests.SOON_DAYS, 30, 31, requests.EARLIEST_DAYS)
        ids = [
            await requests.receive(actor, vault, requests.Kind.EXPORT, SAM, now - timedelta(days=age)) for age in ages
        ]
        async with database.connection(OPERATOR) as connection:
            counts = await store.count_due(connection, soon_days=requests.SOON_DAYS)
            listed = await store.list_open(connection, limit=50)
        assert (counts.open, counts.overdue, counts.soon) == (6, 2, 2)
        assert [one.id for one in listed] == ids[::-1]
        assert [one.days_left for one in listed] == [30 - age for age in ages[::-1]]
        assert {one.due_on - one.received_on for one in listed} == {timedelta(days=30)}
        assert requests.shown_email(vault, listed[0]) == "S•••@example.com"
        stored = await database.fetch(OPERATOR, "SELECT sealed_email FROM privacy_requests")
        assert all(SAM.encode() not in row["sealed_email"] for row in stored)

    act(service, work)


def test_so_many_requests_are_open_at_most(service: Service) -> None:
    async def work(database: Database, vault: Vault, actor: Actor) -> None:
        await database.execute(OPERATOR, "DELETE FROM privacy_requests")
        now = await today(database)
        await database.execute(
            OPERATOR,
            """
            INSERT INTO privacy_requests (kind, sealed_email, received_on, due_on)
            SELECT 'erase', 'x', $1, $1::date + 30 FROM generate_series(2, $2)
            """,
            now,
            requests.MOST_OPEN,
        )
        await requests.receive(actor, vault, requests.Kind.EXPORT, SAM, now)
        with pytest.raises(InvalidRequest, match="At most 1000"):
            await requests.receive(actor, vault, requests.Kind.EXPORT, SAM, now)
        await database.execute(OPERATOR, "DELETE FROM privacy_requests")

    act(service, work)


def test_an_erasure_finishes_the_request_and_erases_its_address(service: Service, filled: dict[str, str]) -> None:
    async def work(database: Database, vault: Vault, actor: Actor) -> None:
        now, acme = await today(database), service.ids["customers"]["acme"]
        await add_note(actor.on_behalf_of(acme), f"Call {SAM.upper()} back")
        await add_note(actor.on_behalf_of(acme), f"Call {ALEX} back")
        export_id = await requests.receive(actor, vault, requests.Kind.EXPORT, SAM, now, acme)
        erase_id = await requests.receive(actor, vault, requests.Kind.ERASE, SAM, now)
        wanted = await find(database, export_id)
        exported = await requests.export_for(actor, vault, wanted)
        assert {one["customer"] for one in exported["orders"]} == {"acme"}
        assert [one["note"] for one in exported["customer_notes"]] == [f"Call {SAM.upper()} back"]
        with pytest.raises(InvalidRequest, match="export"):
            await requests.erase_for(actor, vault, wanted)
        with pytest.raises(InvalidRequest, match="Erase the data"):
            await requests.finish(actor, erase_id, requests.Outcome.DONE)
        receipt = await requests.erase_for(actor, vault, await find(database, erase_id))
        assert receipt.orders
        assert receipt.customer_notes == 1
        done = await find(database, erase_id)
        assert (done.outcome, done.erasure_id, done.sealed_email) == ("done", receipt.number, None)
        assert requests.shown_email(vault, done) is None
        async with database.connection(OPERATOR) as connection:
            found = await store.find_receipt(connection, receipt.number)
            assert found is not None
            assert found["customer_notes"] == 1
        for refused in (
            requests.erase_for(actor, vault, done),
            requests.finish(actor, erase_id, requests.Outcome.DECLINED),
        ):
            with pytest.raises(StateConflict):
                await refused
        with pytest.raises(NotFound):
            await requests.export_for(actor, vault, wanted)
        await requests.finish(actor, export_id, requests.Outcome.DONE)
        with pytest.raises(StateConflict):
            requests.open_email(vault, await find(database, export_id))
        with pytest.raises(NotFound):
            await requests.finish(actor, 999_999, requests.Outcome.DONE)
        events = await database.fetch(
            OPERATOR, "SELECT act, before::text, after::text FROM audit_events WHERE act LIKE 'privacy%'"
        )
        assert {row["act"] for row in events} >= {"privacy_request.received", "privacy_request.done", "privacy.erased"}
        assert not any(SAM.lower() in str(tuple(row)).lower() for row in events)

    act(service, work)


def test_what_is_encrypted_moves_to_the_newest_key(service: Service) -> None:
    """Opened for its own request alone."""

    async def work(database: Database, vault: Vault, actor: Actor) -> None:
        now = await today(database)
        ids = [await requests.receive(actor, vault, requests.Kind.EXPORT, one, now) for one in (SAM, ALEX)]
        first, second = [await find(database, one) for one in ids]
        assert [requests.open_email(vault, one) for one in (first, second)] == [SAM, ALEX]
        swap = "UPDATE privacy_requests SET sealed_email = $2 WHERE id = $1"
        await database.execute(OPERATOR, swap, first.id, second.sealed_email)
        with pytest.raises(Exception, match="belong elsewhere"):
            requests.open_email(vault, await find(database, first.id))
        await database.execute(OPERATOR, "DELETE FROM privacy_requests")

    act(service, work)
