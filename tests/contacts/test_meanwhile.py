"""Contacts that are deleted or erased while others change them."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest
from tests.chained import actor_over
from tests.contacts.test_service import acme, listed
from tests.distributed import WAITING
from tests.seed.conftest import connection

from largesse.base.errors import NotFound
from largesse.contacts import groups, store
from largesse.contacts.model import ContactChange
from largesse.contacts.service import change_contact, create_contact, remove_contacts
from largesse.customers.actor import Actor
from largesse.encryption.vault import Vault

__all__ = ["acme", "connection"]


@pytest.fixture
async def others(database_url: str) -> AsyncIterator[list[asyncpg.Connection]]:
    opened = [await asyncpg.connect(database_url) for _ in range(2)]
    yield opened
    for one in opened:
        await one.close()


async def wait_for_locks(connection: asyncpg.Connection, count: int) -> None:
    """Returns once so many sessions wait for a lock."""
    async with asyncio.timeout(10):
        while await connection.fetchval(WAITING) < count:  # noqa: ASYNC110 - another session's lock has no event
            await asyncio.sleep(0.02)


async def test_a_contact_is_deleted_while_it_joins_a_group(
    connection: asyncpg.Connection, acme: Actor, vault: Vault, others: list[asyncpg.Connection]
) -> None:
    ada = await create_contact(acme, vault, ContactChange(email="ada@example.com"))
    one, another = (actor_over(other, acme.customer_id) for other in others)
    async with connection.transaction():
        await connection.execute("LOCK TABLE audit_events IN SHARE MODE")
        removing = asyncio.create_task(remove_contacts(one, [ada]))
        await wait_for_locks(connection, 1)
        joining = asyncio.create_task(change_contact(another, vault, ada, ContactChange(groups=("Sales",))))
        await wait_for_locks(connection, 2)
    assert await removing == 1
    with pytest.raises(NotFound):
        await joining


async def test_a_change_does_not_bring_an_erased_address_back(
    connection: asyncpg.Connection, acme: Actor, vault: Vault, others: list[asyncpg.Connection]
) -> None:
    manager, size = await groups.create_field(acme, "Manager"), await groups.create_field(acme, "Size")
    ada = await create_contact(
        acme, vault, ContactChange(email="ada@example.com", fields={manager.key: "Bob@example.com"})
    )
    one = actor_over(others[0], acme.customer_id)
    async with connection.transaction():
        assert await store.drop_contacts_with(connection, "bob@example.com", None) == 1
        changing = asyncio.create_task(change_contact(one, vault, ada, ContactChange(fields={size.key: "M"})))
        await wait_for_locks(connection, 1)
    await changing
    (found,) = await listed(connection, acme)
    assert found.own_fields == {size.key: "M"}
