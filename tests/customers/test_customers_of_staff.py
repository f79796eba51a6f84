"""Customers as members of staff find, open and note them, and views of what a customer sees."""

import asyncio

import asyncpg
import pytest
from tests.chained import actor_on

from largesse.base.errors import InvalidRequest, NotFound, OperatorError
from largesse.customers import customers
from largesse.customers.customer_store import search_customers
from largesse.customers.customer_views import LASTS, begin_view, end_view, find_view, read_reason
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR, for_customer
from largesse.encryption.vault import Vault
from largesse.ledger.accounts import open_customer

VAULT = Vault((bytes(32),))


async def make(database: Database, *names: str) -> list[int]:
    actor = await actor_on(database, VAULT)
    made = [await customers.create_customer(actor, name, plan="pro", funding="balance", key=None) for name in names]
    return [customer_id for customer_id, _ in made]


async def found(database: Database, search: str, **page: int) -> list[str]:
    async with database.connection(OPERATOR) as connection:
        return [one.name for one in await search_customers(connection, search, **page)]


async def test_customers_are_found_by_the_beginnings_of_words_of_name_and_key(database: Database) -> None:
    ids = await make(database, "Acme Ltd", "Globex", "Ltd O'Hara & Sons", "Société Générale")
    assert await found(database, "") == ["Société Générale", "Ltd O'Hara & Sons", "Globex", "Acme Ltd"]
    for search, names in (
        ("ltd", ["Ltd O'Hara & Sons", "Acme Ltd"]),
        ("LT acm", ["Acme Ltd"]),
        ("hara", ["Ltd O'Hara & Sons"]),
        ("société", ["Société Générale"]),
        ("societe-g", ["Société Générale"]),  # of the key
        ("cme", []),
        ("&", []),
        ("'; DROP TABLE customers", []),
        ("a" * 1000, []),
        ("  ", ["Société Générale", "Ltd O'Hara & Sons", "Globex", "Acme Ltd"]),
    ):
        assert await found(database, search) == names, search
    assert await found(database, "", before=ids[2], limit=1) == ["Globex"]


async def test_two_of_one_name_have_keys_of_their_own(database: Database) -> None:
    actor = await actor_on(database, VAULT)
    keys = [
        (await customers.create_customer(actor, "Acme", plan="pro", funding="balance", key=None))[1] for _ in range(3)
    ]
    assert keys == ["acme", "acme-2", "acme-3"]


async def test_two_of_one_name_are_opened_at_the_same_moment(database: Database) -> None:
    terms = {"plan": "pro", "funding": "balance", "currency": "GBP", "environments": ("production",), "mails": False}
    actors = [await actor_on(database, VAULT) for _ in range(6)]
    await asyncio.gather(
        *(open_customer(one, "Acme", **terms, email=f"ada{at}@acme.example") for at, one in enumerate(actors))
    )
    keys = await database.fetch(OPERATOR, "SELECT key FROM customers ORDER BY key")
    assert [row["key"] for row in keys] == ["acme", *(f"acme-{number}" for number in range(2, 7))]


async def test_a_customer_is_opened_with_accounts_and_its_first_administrator(database: Database) -> None:
    actor = await actor_on(database, VAULT)
    customer_id, invitation = await open_customer(
        actor,
        "Acme",
        plan="pro",
        funding="balance",
        currency="GBP",
        environments=("production", "staging"),
        email="ada@acme.example",
        mails=True,
    )
    assert invitation.email == "ada@acme.example"
    accounts = await database.fetch(
        OPERATOR, "SELECT environment, name, currency FROM accounts WHERE customer_id = $1 ORDER BY 1", customer_id
    )
    assert [tuple(row) for row in accounts] == [("production", "Main", "GBP"), ("staging", "Main", "GBP")]
    assert await database.fetchval(OPERATOR, "SELECT role FROM users WHERE customer_id = $1", customer_id) == "admin"
    assert await database.fetchval(OPERATOR, "SELECT count(*) FROM people_mails WHERE kind = 'invitation'") == 1
    acts = await database.fetch(
        OPERATOR, "SELECT act FROM audit_events WHERE customer_id = $1 ORDER BY id", customer_id
    )
    assert [row["act"] for row in acts] == ["customer.created", "account.created", "account.created", "person.invited"]


async def test_nothing_is_left_of_a_customer_that_cannot_be_opened_whole(database: Database) -> None:
    actor = await actor_on(database, VAULT)
    terms = {"plan": "pro", "environments": ("production",), "email": "ada@acme.example", "mails": False}
    with pytest.raises(InvalidRequest, match="no currency"):
        await open_customer(actor, "Acme", funding="balance", currency="XXX", **terms)
    assert await database.fetchval(OPERATOR, "SELECT count(*) FROM customers") == 0
    customer_id, _ = await open_customer(actor, "Acme", funding="invoiced", currency="XXX", **terms)
    count = "SELECT count(*) FROM accounts WHERE customer_id = $1 AND kind = 'funding'"
    assert await database.fetchval(OPERATOR, count, customer_id) == 0


async def test_notes_have_limits_and_are_erased(database: Database) -> None:
    acme, globex = await make(database, "Acme", "Globex")
    actor = await actor_on(database, VAULT, acme)
    for note in ("", "  ", "a" * (customers.LONGEST_NOTE + 1), "a\x00b", "a\u202eb"):
        with pytest.raises(InvalidRequest):
            await customers.add_note(actor, note)
    longest = await customers.add_note(actor, "a" * customers.LONGEST_NOTE)
    note = await customers.add_note(actor, " Ask Sam@example.com\nfirst ")
    async with database.connection(OPERATOR) as connection:
        assert [one.note for one in await customers.list_notes(connection, acme)] == [
            "Ask Sam@example.com\nfirst",
            "a" * customers.LONGEST_NOTE,
        ]
        assert await customers.list_notes(connection, globex) == []
    with pytest.raises(NotFound):
        await customers.erase_note(await actor_on(database, VAULT, globex), note)
    await customers.erase_note(actor, longest)
    with pytest.raises(NotFound):
        await customers.erase_note(actor, longest)
    async with database.transaction(OPERATOR) as connection:
        assert len(await customers.notes_mentioning(connection, "SAM@example.com", None)) == 1
        assert await customers.erase_notes_mentioning(connection, "sam@example.com", globex) == 0
        assert await customers.erase_notes_mentioning(connection, "sam@example.com", acme) == 1
    told = await database.fetch(
        OPERATOR, "SELECT act, subject, after FROM audit_events WHERE customer_id = 0 ORDER BY id"
    )
    subject = f"customer {acme}"
    assert [tuple(row) for row in told] == [
        ("customer_note.added", subject, None),
        ("customer_note.added", subject, None),
        ("customer_note.erased", subject, None),
    ]


async def test_a_customer_has_so_many_notes_at_most(database: Database) -> None:
    (acme,) = await make(database, "Acme")
    actor = await actor_on(database, VAULT, acme)
    await database.execute(
        OPERATOR,
        "INSERT INTO customer_notes (customer_id, author, note, written_at) SELECT $1, 'a', 'b', now() FROM generate_series(2, $2)",
        acme,
        customers.MOST_NOTES,
    )
    await customers.add_note(actor, "The last one")
    with pytest.raises(InvalidRequest, match="at most 200 notes"):
        await customers.add_note(actor, "One too many")


@pytest.mark.parametrize("table", ["customer_notes", "customer_views", "privacy_requests"])
async def test_a_serving_process_reads_nothing_of_what_staff_writes_down(database: Database, table: str) -> None:
    (acme,) = await make(database, "Acme")
    async with database.transaction(for_customer(acme, "production")) as connection:
        await connection.execute("SET LOCAL ROLE largesse_app")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.fetchval(f"SELECT count(*) FROM {table}")


@pytest.mark.parametrize("reason", ["", "a" * 9, " a a a a   ", "a" * 201, "ticket 12\u202e345"])
def test_a_reason_has_limits(reason: str) -> None:
    with pytest.raises(InvalidRequest):
        read_reason(reason)


async def test_a_view_ends_after_half_an_hour_or_before(database: Database) -> None:
    acme, globex = await make(database, "Acme", "Globex")
    actor = (await actor_on(database, VAULT)).on_behalf_of(acme, "staging")
    await begin_view(actor, 7, "  Ticket 4711:\n no balance  ")
    async with database.connection(OPERATOR) as connection:
        view = await find_view(connection, 7)
        assert view is not None
        assert (view.customer_id, view.environment) == (acme, "staging")
        assert await find_view(connection, 8) is None
    person = view.session("support@largesse.example", None, None).person
    assert person is not None
    assert (person.role, person.customer_id, person.user_id, person.is_proved) == ("viewer", acme, 0, False)
    told = await database.fetchrow(
        OPERATOR,
        "SELECT customer_id, environment, subject, after->>'reason' AS reason FROM audit_events WHERE act = 'customer.seen_as'",
    )
    assert tuple(told or ()) == (acme, "staging", f"customer {acme}", "Ticket 4711: no balance")
    await begin_view(actor.on_behalf_of(globex, "production"), 7, "Ticket 4712: the other one")
    async with database.connection(OPERATOR) as connection:
        view = await find_view(connection, 7)
        assert view is not None
        assert view.customer_id == globex
    ahead = "UPDATE clock SET ahead_by = ahead_by + $1::interval"
    await database.execute(OPERATOR, ahead, LASTS * 0.99)
    async with database.connection(OPERATOR) as connection:
        assert await find_view(connection, 7) is not None
    await database.execute(OPERATOR, ahead, LASTS * 0.01)
    async with database.connection(OPERATOR) as connection:
        assert await find_view(connection, 7) is None
    await begin_view(actor, 7, "Ticket 4711 again")
    await end_view(actor, 7)
    async with database.connection(OPERATOR) as connection:
        assert await find_view(connection, 7) is None
    with pytest.raises(NotFound):
        await begin_view(actor.on_behalf_of(999_999, "production"), 7, "Nobody at all here")


async def test_a_key_in_use_is_refused(database: Database) -> None:
    await make(database, "Acme")
    with pytest.raises(OperatorError):
        await customers.create_customer(
            await actor_on(database, VAULT), "Other", plan="pro", funding="balance", key="acme"
        )
