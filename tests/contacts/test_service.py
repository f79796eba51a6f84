"""Contacts made, changed, merged by address and removed, within their customer and environment, and within their limits."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import asyncpg
import pytest
from msgspec.structs import replace
from tests.chained import actor_over
from tests.distributed import IS_DISTRIBUTED, WAITING
from tests.reports.generator import generate
from tests.seed.conftest import load
from tests.seed.worlds import WHOLE
from tests.waiting import until

from largesse.base.errors import NotFound
from largesse.contacts import groups, model, service, store
from largesse.contacts.groups import TooManyGroups, list_fields, list_groups
from largesse.contacts.model import MAX_KEY, Contact, ContactChange
from largesse.contacts.service import (
    ContactFaults,
    TooManyContacts,
    add_past_recipients,
    change_contact,
    create_contact,
    open_address,
    remove_contacts,
    save_contacts,
)
from largesse.contacts.store import Filter
from largesse.customers.actor import Actor
from largesse.encryption.vault import Vault


@pytest.fixture
async def acme(connection: asyncpg.Connection) -> Actor:
    return actor_over(connection, (await load(connection, WHOLE)).ids["customers"]["acme"])


async def listed(connection: asyncpg.Connection, whose: Actor, words: str = "", **shown: object) -> list[Contact]:
    place = whose.customer_id, str(whose.environment)
    return await store.list_contacts(connection, place, Filter(words, **shown), 100)  # type: ignore[arg-type]


async def test_a_contact_is_made_changed_and_removed(connection: asyncpg.Connection, acme: Actor, vault: Vault) -> None:
    field = await groups.create_field(acme, "T-shirt size")
    change = ContactChange(
        email="Ada@Example.com",
        name="Ada Byron",
        birthday=229,
        address="1 High St\nLeeds",
        external_id="7",
        groups=("Sales", "London"),
        fields={field.key: "M"},
    )
    added = await create_contact(acme, vault, change)
    (found,) = await listed(connection, acme)
    assert (found.email, found.birthday, found.groups) == ("Ada@example.com", 229, ("London", "Sales"))
    assert found.own_fields == {"t_shirt_size": "M"}
    place = acme.customer_id, "production"
    sealed = await store.read_sealed_address(connection, place, added)
    assert sealed is not None
    assert b"Leeds" not in sealed
    assert open_address(vault, acme.customer_id, added, sealed) == "1 High St\nLeeds"

    await change_contact(
        acme, vault, added, ContactChange(name=None, groups=("sales", "Choir"), address=None, is_active=False)
    )
    (changed,) = await listed(connection, acme)
    assert (changed.name, changed.groups, changed.has_address) == ("", ("Choir", "Sales"), False)
    assert (changed.is_active, changed.birthday, changed.external_id) == (False, 229, "7")

    assert await remove_contacts(acme, [added]) == 1
    assert await listed(connection, acme) == []
    assert [group.members for group in await list_groups(connection, place)] == [0, 0, 0]
    with pytest.raises(NotFound):
        await remove_contacts(acme, [added])


async def test_several_are_merged_by_address_or_saved_not_at_all(
    connection: asyncpg.Connection, acme: Actor, vault: Vault
) -> None:
    ada = await create_contact(acme, vault, ContactChange(email="ada@example.com", name="Ada", groups=("Sales",)))
    changes = [
        ContactChange(email="ADA@example.com", birthday=314, more_groups=("Choir",)),
        ContactChange(email="bo@example.com", name="Bo"),
        ContactChange(email="Bo@example.com", country="FR"),
    ]
    saved = await save_contacts(acme, vault, changes)
    assert (saved.created, saved.changed, saved.ids[0]) == (1, 1, ada)
    assert saved.ids[1] == saved.ids[2]
    found = {one.id: one for one in await listed(connection, acme)}
    assert (found[ada].name, found[ada].birthday, found[ada].groups) == ("Ada", 314, ("Choir", "Sales"))
    assert (found[saved.ids[1]].name, found[saved.ids[1]].country) == ("Bo", "FR")
    again = await save_contacts(acme, vault, changes)
    assert (again.created, again.ids) == (0, saved.ids)

    with pytest.raises(ContactFaults) as refused:
        await save_contacts(
            acme, vault, [ContactChange(email="new@example.com"), ContactChange(email="no"), ContactChange(birthday=1)]
        )
    assert {at: fault.kind for at, fault in refused.value.faults.items()} == {1: "email_no_at", 2: "birthday_none"}
    assert len(await listed(connection, acme)) == 2


async def test_lists_are_searched_and_paged(connection: asyncpg.Connection, acme: Actor, vault: Vault) -> None:
    people = [("zoe@example.com", "Zoë Å"), ("ada@example.com", "Ada"), ("bo@mail.example", "Bo 100%")]
    await save_contacts(acme, vault, [ContactChange(email=email, name=name) for email, name in people])
    place = acme.customer_id, "production"
    everybody = await listed(connection, acme)
    assert [one.name for one in everybody] == ["Ada", "Bo 100%", "Zoë Å"]
    for words, names in (
        ("zoe", ["Zoë Å"]),
        ("Å, Zoë", ["Zoë Å"]),
        ("EXAMPLE.com a", ["Ada", "Zoë Å"]),
        ("100%", ["Bo 100%"]),
        ("_", []),
    ):
        assert [one.name for one in await listed(connection, acme, words)] == names
    ada, bo, zoe = everybody
    assert await store.list_contacts(connection, place, Filter(), 1, after=ada.id) == [bo]
    assert await store.list_contacts(connection, place, Filter(), 1, before=zoe.id) == [bo]
    await change_contact(acme, vault, bo.id, ContactChange(groups=("Sales",), is_active=False))
    (group,) = await list_groups(connection, place)
    assert [one.id for one in await listed(connection, acme, group_id=group.id)] == [bo.id]
    assert [one.id for one in await listed(connection, acme, is_active=True)] == [ada.id, zoe.id]
    assert await store.count_contacts(connection, place, Filter("example")) == 3


async def test_groups_and_fields_have_limits_and_names_of_their_own(
    connection: asyncpg.Connection, acme: Actor, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = acme.customer_id, "production"
    group = await groups.create_group(acme, " Sales ")
    with pytest.raises(groups.NameTaken):
        await groups.create_group(acme, "SALES")
    await groups.rename_group(acme, group, "sales")
    izmir = await groups.create_group(acme, "Izmir")
    with pytest.raises(groups.NameTaken):  # as the database compares them
        await groups.create_group(acme, "\u0130ZMIR")
    await save_contacts(acme, vault, [ContactChange(email="i@example.com", more_groups=("\u0130zmir", "\u0130ZMIR"))])
    assert [one.members for one in await list_groups(connection, place) if one.id == izmir] == [1]
    await remove_contacts(
        acme, [one.id for one in await store.find_contacts(connection, place, emails=["i@example.com"])]
    )
    await groups.remove_group(acme, group)
    with pytest.raises(NotFound):
        await groups.rename_group(acme, group, "x")

    made = [await groups.create_field(acme, name) for name in ("Name", "Größe", "Grosse", "??")]
    assert [field.key for field in made] == ["name_2", "groe", "grosse", "field"]
    with pytest.raises(groups.NameTaken):
        await groups.rename_field(acme, "grosse", "NAME")
    contact = await create_contact(
        acme, vault, ContactChange(email="a@example.com", fields={"groe": "M", "field": "x"})
    )
    await groups.remove_field(acme, "groe")
    assert (await store.read_contact(connection, place, contact)).own_fields == {"field": "x"}
    for number in range(7):
        await groups.create_field(acme, f"more {number}")
    assert len(await list_fields(connection, place)) == 10
    with pytest.raises(groups.TooManyFields):
        await groups.create_field(acme, "one too many")
    await groups.remove_field(acme, "grosse")
    await groups.remove_field(acme, "name_2")
    keys = [(await groups.create_field(acme, f"{'x' * 59}{number}")).key for number in range(2)]
    assert len(set(keys)) == 2
    assert max(map(len, keys)) <= MAX_KEY

    for module in (model, service):
        monkeypatch.setattr(module, "MOST_GROUPS", 2)
    change = ContactChange(email="a@example.com", more_groups=("Izmir", "Choir"))
    with pytest.raises(TooManyGroups):
        await save_contacts(acme, vault, [replace(change, more_groups=("Choir", "Staff"))])
    await save_contacts(acme, vault, [change])
    with pytest.raises(TooManyGroups):
        await groups.create_group(acme, "Staff")

    monkeypatch.setattr(service, "MOST_AT_ONCE", 2)
    monkeypatch.setattr(service, "MOST_CONTACTS", 2)
    await save_contacts(acme, vault, [ContactChange(email="a@example.com"), ContactChange(email="b@example.com")])
    with pytest.raises(TooManyContacts):
        await create_contact(acme, vault, ContactChange(email="c@example.com"))
    await save_contacts(acme, vault, [ContactChange(email="b@example.com", name="B")])


Rows = set[tuple[Any, ...]]


async def rows(connection: asyncpg.Connection) -> Rows:
    """The groups, members, fields and contacts of everybody."""
    found = []
    for query in (
        "SELECT 'group', customer_id, environment, id, name FROM contact_groups",
        "SELECT 'member', environment, group_id, contact_id FROM contact_members",
        "SELECT 'field', environment, key, name FROM contact_fields",
        "SELECT 'contact', environment, id, own_fields::text, sealed_address IS NOT NULL FROM contacts",
    ):
        found += await connection.fetch(query)
    return {tuple(row) for row in found}


async def test_what_is_done_to_one_is_done_to_no_other(
    connection: asyncpg.Connection, acme: Actor, vault: Vault
) -> None:
    whole = ContactChange(address="1 High St", groups=("Sales", "Choir"), fields={"size": "M", "team": "A"})
    for actor in (actor_over(connection, acme.customer_id, "staging"), acme):
        for name in ("Size", "Team"):
            await groups.create_field(actor, name)
        bo, ada = [
            await create_contact(actor, vault, replace(whole, email=f"{name}@example.com")) for name in ("bo", "ada")
        ]
    choir, sales = [group.id for group in await list_groups(connection, (acme.customer_id, "production"))]

    async def changed(work: Coroutine[Any, Any, Any]) -> Rows:
        before = await rows(connection)
        await work
        return before ^ await rows(connection)

    def contact(id_: int, fields: str, *, has_address: bool = True) -> tuple[Any, ...]:
        return "contact", "production", id_, fields, has_address

    def group(name: str) -> tuple[Any, ...]:
        return "group", acme.customer_id, "production", sales, name

    both, one = '{"size": "M", "team": "A"}', '{"team": "A"}'
    assert await changed(groups.rename_group(acme, sales, "Sellers")) == {group("Sales"), group("Sellers")}
    assert await changed(change_contact(acme, vault, ada, ContactChange(groups=("choir",)))) == {
        ("member", "production", sales, ada)
    }
    assert await changed(change_contact(acme, vault, ada, ContactChange(address=None))) == {
        contact(ada, both),
        contact(ada, both, has_address=False),
    }
    assert await changed(groups.rename_field(acme, "size", "Shirt")) == {
        ("field", "production", "size", "Size"),
        ("field", "production", "size", "Shirt"),
    }
    assert await changed(groups.remove_field(acme, "size")) == {
        ("field", "production", "size", "Shirt"),
        *(contact(bo, fields) for fields in (both, one)),
        *(contact(ada, fields, has_address=False) for fields in (both, one)),
    }
    assert await changed(groups.remove_group(acme, sales)) == {group("Sellers"), ("member", "production", sales, bo)}
    assert await changed(remove_contacts(acme, [ada])) == {
        contact(ada, one, has_address=False),
        ("member", "production", choir, ada),
    }


async def test_erasing_an_address_erases_it_alone(connection: asyncpg.Connection, acme: Actor, vault: Vault) -> None:
    globex = actor_over(connection, (await load(connection, WHOLE)).ids["customers"]["globex"])
    for name in ("Manager", "Size"):
        await groups.create_field(acme, name)
    for name, fields in (
        ("bo", {}),
        ("ada", {"manager": "Bo@example.com", "size": "M"}),
        ("cy", {"manager": "Bob@example.com", "size": "L"}),
    ):
        await create_contact(acme, vault, ContactChange(email=f"{name}@example.com", fields=fields))
    await create_contact(globex, vault, ContactChange(email="bo@example.com"))
    assert await store.count_contacts_with(connection, "BO@example.com", acme.customer_id) == 2
    assert await store.drop_contacts_with(connection, "BO@example.com", acme.customer_id) == 2
    assert {one.email: one.own_fields for one in await listed(connection, acme)} == {
        "ada@example.com": {"size": "M"},
        "cy@example.com": {"manager": "Bob@example.com", "size": "L"},
    }
    assert [one.email for one in await listed(connection, globex)] == ["bo@example.com"]


@pytest.fixture
async def others(database_url: str) -> AsyncIterator[list[asyncpg.Connection]]:
    opened = [await asyncpg.connect(database_url) for _ in range(2)]
    yield opened
    for one in opened:
        await one.close()


async def wait_for_locks(connection: asyncpg.Connection, count: int) -> None:
    """Returns once so many sessions wait for a lock."""
    await until(lambda: connection.fetchval(f"SELECT ({WAITING}) >= $1", count))


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


ORDERS = 5_000
# The person 7 placed the first three orders of customer 1.
_OF_PERSON = """
    UPDATE orders SET user_id = 7, service_account_id = NULL, source = 'web'
    WHERE id IN (SELECT id FROM orders WHERE customer_id = 1 AND environment = 'production' ORDER BY id LIMIT 3);
    INSERT INTO report_groups (customer_id, environment, currency, source, product_id, collection_id, account_id, service_account_id, user_id)
    VALUES (1, 'production', 'GBP', 'web', 1, 0, 0, 0, 7);
    UPDATE report_orders SET group_id = (SELECT id FROM report_groups WHERE user_id = 7)
    WHERE customer_id = 1 AND order_id IN (SELECT id FROM orders WHERE user_id = 7);
    ANALYZE
"""
_READ = """
    SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_xact_user_tables WHERE relname IN ('orders', 'report_orders', 'lines')
"""


@pytest.mark.skipif(IS_DISTRIBUTED, reason="what nodes read is not counted here")
async def test_the_orders_of_others_are_not_read(connection: asyncpg.Connection, vault: Vault) -> None:
    await generate(connection, ORDERS)
    await connection.execute(_OF_PERSON)
    async with connection.transaction():
        before = await connection.fetchval(_READ)
        saved = await add_past_recipients(actor_over(connection, 1), vault, 7)
        read = await connection.fetchval(_READ) - before
    assert saved.created == 3
    assert read < 50


# 3,000 contacts, whose group `small` has the last two, and `large` all but these.
