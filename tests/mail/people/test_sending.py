"""Mail to people who sign in: over real SMTP, each with a link that lets in, and again when the server was away."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.message import EmailMessage
from typing import Any

import pytest
from tests.mail.conftest import PostOffice, text_of

from largesse.base import clock
from largesse.customers.members import add_user, bind_user
from largesse.customers.sign_in_links import find_link
from largesse.customers.sign_in_store import add_person, set_preferences
from largesse.db.pool import Database
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR, WORKER
from largesse.encryption.master_keys import prove_master_key
from largesse.encryption.vault import Vault
from largesse.jobs import outbox
from largesse.mail import store
from largesse.mail.people.sending import MOST_ATTEMPTS, PeopleMailer
from largesse.mail.people.writing import PeopleMail, queue_low_balances, write
from largesse.mail.server import MailServer
from largesse.mail.smtp import SmtpTransport

VAULT = Vault((bytes(range(32)),))
PUBLIC_URL = "https://gifts.example"


@pytest.fixture
async def database(module_database_url: str) -> AsyncIterator[Database]:
    database = await Database.connect(module_database_url)
    await database.execute(
        OPERATOR,
        "INSERT INTO customers (key, name, plan, funding) VALUES ('acme', 'Acme Ltd', 'pro', 'balance') ON CONFLICT DO NOTHING",
    )
    await database.execute(OPERATOR, "DELETE FROM people_mails")
    yield database
    await database.close()


@pytest.fixture
async def worker(database: Database, module_database_url: str) -> AsyncIterator[Database]:
    """As a worker has it, with a worker's rights."""
    worker = await Database.connect(module_database_url, role=Role.WORKER)
    async with database.connection(OPERATOR) as connection:
        await prove_master_key(connection, VAULT, keep=True)
    worker.credentials_key = VAULT.credentials_key
    yield worker
    await worker.close()


@pytest.fixture
async def mailer(worker: Database, mail_server: PostOffice) -> AsyncIterator[PeopleMailer]:
    transport = SmtpTransport(MailServer.from_url(mail_server.url))
    mailer = PeopleMailer(
        worker, Vault((bytes(32),)), transport, public_url=PUBLIC_URL, mail_from="Largesse <gifts@example.com>"
    )
    yield mailer
    await mailer.close()


@dataclass
class People:
    """The database, the mailer and the mail server that it sends by."""

    database: Database
    mailer: PeopleMailer
    server: PostOffice

    async def queue(self, mail: Callable[..., Awaitable[object]], *about: Any, **more: Any) -> None:
        async with self.database.transaction(OPERATOR) as connection:
            await mail(connection, *about, **more)

    async def sent(self, mail: Callable[..., Awaitable[object]], *about: Any, **more: Any) -> EmailMessage:
        """The one message that comes of a mail which is queued and sent."""
        await self.queue(mail, *about, **more)
        assert await self.mailer.step()
        [message] = self.server.messages()
        return message


@pytest.fixture
def people(database: Database, mailer: PeopleMailer, mail_server: PostOffice) -> People:
    return People(database, mailer, mail_server)


async def somebody(database: Database, email: str) -> tuple[int, int]:
    """The ids of a user of Acme and of the person, who has taken an invitation up."""
    async with database.transaction(OPERATOR) as connection:
        customer_id = await connection.fetchval("SELECT id FROM customers WHERE key = 'acme'")
        user_id = await add_user(connection, customer_id, email, "Somebody", "member")
        person_id = await add_person(connection, email)
        await bind_user(connection, user_id, person_id)
    return user_id, person_id


async def set_automation(database: Database, user_id: int, *, asks_approval: bool = False) -> int:
    """The id of an automation that sends as a user."""
    return await database.fetchval(
        OPERATOR,
        """
        INSERT INTO automations (customer_id, environment, name, user_id, occasion, template_id, zone, leap_day, weekend, asks_approval,
                                 planned_through, plan_at)
        SELECT customer_id, 'production', 'Birthdays', id, 'birthday', 1, 'UTC', 'before', 'keep', $2, current_date, now()
        FROM users WHERE id = $1 RETURNING id
        """,
        user_id,
        asks_approval,
    )


async def waiting(database: Database) -> int:
    return await database.fetchval(OPERATOR, "SELECT count(*) FROM people_mails")


def secret_in(text: str) -> str:
    [secret] = re.findall(rf"{PUBLIC_URL}/app/link/([\w-]{{43}})$", text.replace("\r\n", "\n"), re.MULTILINE)
    return secret


async def test_an_invitation_and_a_reset_let_in(
    database: Database, mailer: PeopleMailer, mail_server: PostOffice
) -> None:
    user_id, person_id = await somebody(database, "ada@acme.example")
    async with database.transaction(OPERATOR) as connection:
        await outbox.mail_users(connection, "invitation", [user_id])
        await outbox.mail_reset(connection, "ada@acme.example")
        await outbox.mail_reset(connection, "nobody@acme.example")
        await set_preferences(connection, person_id, "de", None)
    assert [await mailer.step() for _ in range(3)] == [True, True, False]
    assert await waiting(database) == 0
    invitation, reset = mail_server.messages()
    assert invitation["Subject"] == "Acme Ltd lädt Sie zu Largesse ein"
    assert reset["Subject"] == "Neues Passwort für Largesse wählen"
    assert {one["To"] for one in (invitation, reset)} == {"ada@acme.example"}
    async with database.connection(OPERATOR) as connection:
        for message, kind in ((invitation, "invitation"), (reset, "reset")):
            link = await find_link(connection, secret_in(text_of(message)))
            assert (link.kind, link.email, link.is_mailed) == (kind, "ada@acme.example", True)


async def test_an_address_of_another_alphabet_gets_its_mail(people: People) -> None:
    user_id, _ = await somebody(people.database, "jörg@münchen.example")
    message = await people.sent(outbox.mail_users, "invitation", [user_id])
    assert secret_in(text_of(message))
    assert message["Message-ID"].startswith("<people-")


async def test_an_address_at_a_domain_of_another_alphabet_needs_no_server_that_takes_others(people: People) -> None:
    people.server.utf8 = False
    user_id, _ = await somebody(people.database, "sam@bücher.example")
    message = await people.sent(outbox.mail_users, "invitation", [user_id])
    assert message["To"] == "sam@xn--bcher-kva.example"
    assert people.server.got[0].original_content.isascii()


async def test_a_new_browser_is_told_with_where_it_is(people: People) -> None:
    _, person_id = await somebody(people.database, "eve@acme.example")
    message = await people.sent(
        outbox.mail_person, "new_device", person_id, None, "203.0.113.9", "Mozilla/5.0\u2028Subject: none"
    )
    assert message["Subject"] == "A new browser signed in to Largesse"
    assert "203.0.113.9" in text_of(message)
    assert secret_in(text_of(message))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("app_on", "You now need a code"),
        ("app_off", "You no longer need a code"),
        ("passkey_added", "A passkey was added"),
        ("passkey_removed", "A passkey was removed"),
        ("recovery_codes", "You have new recovery codes"),
        ("wrong_codes", "Somebody entered several wrong codes"),
    ],
)
async def test_a_change_of_the_second_step_is_told_with_where_it_came_from(
    people: People, change: str, said: str
) -> None:
    _, person_id = await somebody(people.database, f"{change}@acme.example")
    message = await people.sent(outbox.mail_person, "second_step", person_id, change, "203.0.113.9", "Mozilla/5.0")
    subject = "Wrong codes were entered for" if change == "wrong_codes" else "Two-step sign-in changed for"
    assert message["Subject"] == f"{subject} your Largesse account"
    text = text_of(message).replace("\r\n", "\n")
    assert said in text
    assert "From: 203.0.113.9\nBrowser: Mozilla/5.0\n\nIf this was you" in text
    assert secret_in(text)


async def test_a_second_step_that_an_operator_has_forgotten_is_told_as_theirs(people: People) -> None:
    _, person_id = await somebody(people.database, "forgotten@acme.example")
    await people.queue(set_preferences, person_id, "fr", None)
    message = await people.sent(outbox.mail_person, "second_step", person_id, "forgotten")
    assert message["Subject"] == "La connexion en deux étapes de votre compte Largesse a changé"
    assert "exploitant a désactivé" in text_of(message)
    assert "203.0.113" not in text_of(message)


async def test_a_test_goes_as_it_is_to_who_asked_for_it_and_lets_nobody_in(people: People) -> None:
    user_id, _ = await somebody(people.database, "try@acme.example")
    links = await people.database.fetchval(OPERATOR, "SELECT count(*) FROM sign_in_links")
    content = b"Subject: [Test] a gift\r\n\r\nAs they will get it.\r\n"
    await people.sent(outbox.mail_users, "test", [user_id], content=content)
    assert await waiting(people.database) == 0
    assert await people.database.fetchval(OPERATOR, "SELECT count(*) FROM sign_in_links") == links
    [envelope] = people.server.got
    assert (envelope.rcpt_tos, envelope.original_content) == (["try@acme.example"], content)


@pytest.mark.parametrize(("answer", "attempts"), [("451 later", 6), ("550 5.1.1 no such user", 1)])
async def test_what_the_server_does_not_take_is_tried_again_unless_the_address_is_refused(
    people: People, answer: str, attempts: int
) -> None:
    user_id, _ = await somebody(people.database, f"{attempts}@acme.example")
    people.server.says[f"{attempts}@acme.example"] = answer
    await people.queue(outbox.mail_users, "invitation", [user_id])
    assert await people.mailer.step()
    assert not await people.mailer.step(), "not before its time"
    for attempt in range(2, attempts + 1):
        assert await waiting(people.database) == 1, attempt
        await people.database.execute(OPERATOR, "UPDATE people_mails SET due_at = clock_now()")
        assert await people.mailer.step()
    assert await waiting(people.database) == 0
    assert people.server.got == []


@pytest.mark.parametrize(("days", "left"), [(0, 1), (4, 0)])
@pytest.mark.parametrize(
    "answer", [None, "550 5.4.5 Daily user sending limit exceeded", "530 5.7.0 Authentication required"]
)
async def test_a_mail_server_that_is_away_costs_no_mail_for_three_days(
    people: People, answer: str | None, days: int, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A night without a mail server was enough to lose invitations and requests for approval. The worker's clock does not count."""
    ahead = clock.now() + timedelta(days=4 - days)
    monkeypatch.setattr(clock, "now", lambda: ahead)
    user_id, _ = await somebody(people.database, "away@acme.example")
    if answer is None:
        await people.server.close()
    else:
        people.server.says["away@acme.example"] = answer
    await people.queue(outbox.mail_users, "invitation", [user_id])
    for _ in range(MOST_ATTEMPTS + 1):
        await people.mailer.step()
        await people.database.execute(
            OPERATOR,
            "UPDATE people_mails SET due_at = clock_now(), created_at = clock_now() - make_interval(days => $1)",
            days,
        )
    assert await waiting(people.database) == left


async def test_a_mail_that_cannot_be_written_stops_no_other(
    database: Database, mailer: PeopleMailer, mail_server: PostOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried as often as another, and then gone."""

    def fail(mail: PeopleMail, mail_from: str, at: datetime) -> bytes:
        if mail.email == "odd@acme.example":
            raise LookupError
        return write(mail, mail_from, at)

    monkeypatch.setattr("largesse.mail.people.writing.write", fail)
    for email in ("odd@acme.example", "usual@acme.example"):
        user_id, _ = await somebody(database, email)
        async with database.transaction(OPERATOR) as connection:
            await outbox.mail_users(connection, "invitation", [user_id])
    for _ in range(MOST_ATTEMPTS + 1):
        while await mailer.step():
            pass
        await database.execute(OPERATOR, "UPDATE people_mails SET due_at = clock_now()")
    assert [message["To"] for message in mail_server.messages()] == ["usual@acme.example"]
    assert await database.fetchval(OPERATOR, "SELECT count(*) FROM people_mails") == 0


async def test_mail_of_the_next_release_is_left_to_its_workers(database: Database) -> None:
    """This release would write that a new browser signed in, with a link to choose a new password."""
    _, person_id = await somebody(database, "later@acme.example")
    allowed = "SELECT string_agg(pg_get_constraintdef(oid), ' ') FROM pg_constraint WHERE conname = $1"
    taken = []
    async with database.transaction(OPERATOR) as connection:
        kinds, changes = [
            re.findall(r"'(\w+)'", await connection.fetchval(allowed, f"people_mails_{column}_check"))
            for column in ("kind", "change")
        ]
        undone = connection.transaction()
        await undone.start()
        for name in ("kind_check", "change_check", "check"):
            await connection.execute(f"ALTER TABLE people_mails DROP CONSTRAINT people_mails_{name}")
        await outbox.mail_person(connection, "new_device", person_id, None, "203.0.113.9", "Mozilla/5.0")
        known = [(kind, None) for kind in kinds] + [("second_step", change) for change in changes]
        for mail in [*known, ("anniversary", None), ("second_step", "key_added")]:
            await connection.execute("UPDATE people_mails SET kind = $1, change = $2", *mail)
            row = await connection.fetchrow(store.TAKE_PEOPLE_MAILS)
            taken += [row and (row["kind"], row["change"])]
        await undone.rollback()
    assert taken == [*known, None, None]
    assert "invitation" in kinds
    assert "app_on" in changes


async def test_who_watches_an_account_is_told_once_each_time_it_falls(
    database: Database, worker: Database, mailer: PeopleMailer, mail_server: PostOffice
) -> None:
    user_id, _ = await somebody(database, "finn@acme.example")
    await database.execute(OPERATOR, "UPDATE users SET role = 'finance' WHERE id = $1", user_id)
    account = await database.fetchrow(
        OPERATOR,
        """
        INSERT INTO accounts (customer_id, environment, kind, key, name, currency, balance_minor)
        SELECT customer_id, 'production', 'funding', 'float', 'Acme float', 'GBP', 4000 FROM users WHERE id = $1
        RETURNING customer_id, id
        """,
        user_id,
    )
    assert account is not None
    await database.execute(OPERATOR, "INSERT INTO account_watches VALUES ($1, $2, 5000, false)", *account)
    await database.execute(OPERATOR, "INSERT INTO account_watchers VALUES ($1, $2, $3)", *account, user_id)

    async def queued() -> int:
        async with worker.transaction(WORKER) as connection:
            return await queue_low_balances(connection)

    async def set_balance(minor: int) -> None:
        await database.execute(OPERATOR, "UPDATE accounts SET balance_minor = $2 WHERE id = $1", account["id"], minor)

    assert sorted(await asyncio.gather(queued(), queued())) == [0, 1]
    assert await mailer.step()
    [told] = mail_server.messages()
    assert (told["To"], told["Subject"]) == ("finn@acme.example", "Low balance: Acme float has £40.00")
    text = text_of(told)
    assert "fallen below £50.00" in text
    assert f"{PUBLIC_URL}/app/funding?account={account['id']}\n" in text.replace("\r\n", "\n")
    assert "/app/link/" not in text
    await set_balance(10_00)
    assert await queued() == 0, "it was told"
    await set_balance(50_00)
    assert await queued() == 0
    await set_balance(49_99)
    assert await queued() == 1
    await set_balance(60_00)
    assert await mailer.step()
    assert len(mail_server.messages()) == 1, "it has risen before the mail left"
    assert await waiting(database) == 0
    await queued()
    await set_balance(1)
    assert await queued() == 1
    await database.execute(OPERATOR, "UPDATE users SET role = 'member' WHERE id = $1", user_id)
    assert await mailer.step()
    assert len(mail_server.messages()) == 1, "who is no longer of those who may be told"


async def test_money_that_arrived_is_told_to_who_may_still_see_the_account(
    database: Database, mailer: PeopleMailer, mail_server: PostOffice
) -> None:
    users = [(await somebody(database, f"{name}@acme.example"))[0] for name in ("amy", "moe", "vic")]
    await database.execute(OPERATOR, "UPDATE users SET role = 'viewer' WHERE id = $1", users[2])
    async with database.transaction(OPERATOR) as connection:
        account = await connection.fetchval(
            "WITH made AS (INSERT INTO accounts (customer_id, environment, kind, key, name, currency, balance_minor) "
            "SELECT customer_id, 'production', 'funding', 'credited', 'Float', 'GBP', 4000 FROM users WHERE id = $1 RETURNING *), "
            "used AS (INSERT INTO account_users SELECT customer_id, id, $1 FROM made) SELECT id FROM made",
            users[0],
        )
        await outbox.mail_users(connection, "credited", users, account_id=account, credited_minor=2500)
    while await mailer.step():
        pass
    [told] = mail_server.messages()
    assert (told["To"], told["Subject"]) == ("amy@acme.example", "£25.00 arrived in Float")
    assert f"{PUBLIC_URL}/app/funding/{account}\n" in text_of(told).replace("\r\n", "\n")


async def test_an_automation_that_waits_for_approval_is_told_to_administrators(
    database: Database, mailer: PeopleMailer, mail_server: PostOffice
) -> None:
    (setter, _), (eve, _) = await somebody(database, "cem@acme.example"), await somebody(database, "eve@acme.example")
    automation_id = await set_automation(database, setter, asks_approval=True)

    async def is_sent() -> bool:
        async with database.transaction(OPERATOR) as connection:
            for _ in range(2):
                await outbox.mail_automation(connection, [setter, eve], automation_id)
        for _ in range(2):
            await mailer.step()
        assert await waiting(database) == 0
        return bool(mail_server.messages())

    assert not await is_sent(), "neither is an administrator"
    await database.execute(OPERATOR, "UPDATE users SET role = 'admin' WHERE id = ANY($1::int[])", [setter, eve])
    assert await is_sent()
    [told] = mail_server.messages()
    assert (told["To"], told["Subject"]) == ("eve@acme.example", "Somebody asks you to approve an automation")
    assert "“Birthdays”" in text_of(told)
    assert f"{PUBLIC_URL}/app/automations/{automation_id}" in text_of(told)
