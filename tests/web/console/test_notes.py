"""Thank-you notes in the web application and by mail."""

import asyncio
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from email.message import EmailMessage
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, Envelope, Session
from tests.distributed import IS_DISTRIBUTED, WAITING
from tests.mail.conftest import PostOffice
from tests.plans import rows_read
from tests.waiting import until
from tests.web.api.conftest import Service, on_database
from tests.web.claim.conftest import Recipient, form_of, sent_code
from tests.web.console.conftest import Browser, SignIn
from tests.web.console.sending import WORLD, place, ready

from largesse.db.pool import Database
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR
from largesse.encryption.vault import Vault
from largesse.lines.states import LineKey
from largesse.mail.people.sending import PeopleMailer
from largesse.mail.server import MailServer
from largesse.mail.smtp import SmtpTransport
from largesse.notes.service import NEWEST, note_context, write_note
from largesse.notes.store import _NEWEST, _NEWEST_OF_PERSON

__all__ = ["WORLD"]


@pytest.fixture(autouse=True)
def as_before(service: Service) -> Iterator[None]:
    yield
    service.sql("DELETE FROM thank_you_notes")
    service.sql("DELETE FROM people_mails")
    service.sql("UPDATE customers SET takes_notes = true")


def sent(browser: Browser, service: Service) -> str:
    """The reference of an order to Zoë and Bo that was placed by its person."""
    return place(browser, ready(browser, service))


def thank(service: Service, reference: str, number: int, note: str) -> None:
    """What a recipient does."""
    recipient = Recipient(service)
    gift = recipient.gift(sent_code(service, reference, number))
    answer = recipient.post(f"{gift}/thank", key=form_of(recipient.get(gift))["key"], note=note)
    assert answer.status_code == 303


@dataclass
class BusyOffice(PostOffice):
    """A mail server during whose work something happens, once."""

    happens: Callable[[], None] | None = None

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - aiosmtpd's name
        happens, self.happens = self.happens, None
        if happens is not None:
            await asyncio.to_thread(happens)
        return await super().handle_DATA(server, session, envelope)


def mailed(service: Service, meanwhile: Callable[[], None] | None = None) -> list[EmailMessage]:
    """The mails to people that are due, sent as a worker sends them; `meanwhile` happens while the first is sent."""

    async def send(database: Database, vault: Vault) -> list[EmailMessage]:
        office = BusyOffice(happens=meanwhile)
        await office.start()
        transport = SmtpTransport(MailServer.from_url(office.url))
        mailer = PeopleMailer(
            database, vault, transport, public_url="https://gifts.example", mail_from="Largesse <gifts@example.com>"
        )
        while await mailer.step():
            pass
        await mailer.close()
        await office.close()
        return list(office.messages())

    messages: list[EmailMessage] = service.on_pool(send, role=Role.WORKER)
    return messages


def test_a_note_is_on_the_order_on_its_page_and_in_the_file(service: Service, cem: Browser) -> None:
    reference = sent(cem, service)
    thank(service, reference, 1, "Merci <3\nÀ bientôt")
    cem.get(f"/app/orders/{reference}")
    assert "Merci &lt;3" in (cem.page.text if cem.page else "")
    cem.sees("/app/notes", "Zoë", "À bientôt")
    assert "Merci <3\nÀ bientôt" in cem.get(f"/app/orders/{reference}/recipients.csv").text


def test_people_see_notes_to_the_orders_they_see(service: Service, ada: Browser, cem: Browser, sign_in: SignIn) -> None:
    thank(service, sent(ada, service), 1, "To Ada")
    thank(service, sent(cem, service), 1, "To Cem")
    for email, seen in (("ada", {"To Ada", "To Cem"}), ("fin", {"To Ada", "To Cem"}), ("cem", {"To Cem"})):
        browser = sign_in(f"{email}@acme.example")
        assert {note for note in ("To Ada", "To Cem") if note in browser.read("/app/notes")} == seen
    gil = sign_in("gil@globex.example")
    assert "No recipient has written" in gil.read("/app/notes")


def test_notes_are_mailed_to_who_sent_the_gift_together_within_an_hour(service: Service, cem: Browser) -> None:
    reference = sent(cem, service)
    service.sql("DELETE FROM people_mails")
    thank(service, reference, 1, "First <b>of all</b>\n\nthank you")
    [message] = mailed(service)
    assert (message["To"], message["Subject"]) == ("cem@acme.example", "Zoë says thank you")
    text, html = (message.get_body((kind,)).get_content() for kind in ("plain", "html"))
    assert "Zoë:" in text
    assert "> First <b>of all</b>" in text
    assert "&lt;b&gt;of all" in html
    assert f"https://gifts.example/app/orders/{reference}" in text
    assert mailed(service) == []
    thank(service, reference, 2, "Second")
    assert mailed(service) == []  # an hour has not passed
    service.sql("UPDATE people_mails SET due_at = now()")
    [message] = mailed(service)
    assert message["Subject"] == "Bo says thank you"
    assert "First" not in message.get_body(("plain",)).get_content()


def test_a_note_that_comes_while_one_is_being_mailed_is_mailed_later(service: Service, cem: Browser) -> None:
    reference = sent(cem, service)
    service.sql("DELETE FROM people_mails")
    thank(service, reference, 1, "First")
    [message] = mailed(service, lambda: thank(service, reference, 2, "Second"))
    assert message["Subject"] == "Zoë says thank you"
    service.sql("UPDATE people_mails SET due_at = now()")
    [message] = mailed(service)
    assert message["Subject"] == "Bo says thank you"
    assert service.sql("SELECT count(*) FROM people_mails")[0][0] == 0


def test_a_note_that_is_being_written_while_one_was_mailed_is_mailed_later(service: Service, cem: Browser) -> None:
    """Its transaction began before the mail was over, and ends after the worker has looked for more notes."""
    reference = sent(cem, service)
    service.sql("DELETE FROM people_mails")
    thank(service, reference, 1, "First")
    recipient = Recipient(service)
    recipient.get(recipient.gift(sent_code(service, reference, 2)))
    key = LineKey(*service.of_order(reference, "customer_id, order_id, number", "lines")[1])

    async def send(database: Database, vault: Vault) -> None:
        office = PostOffice(hangs={"cem@acme.example"})
        await office.start()
        transport = SmtpTransport(MailServer.from_url(office.url))
        mailer = PeopleMailer(
            database, vault, transport, public_url="https://gifts.example", mail_from="Largesse <gifts@example.com>"
        )
        step = asyncio.create_task(mailer.step())
        await office.has_taken.wait()
        async with database.transaction(OPERATOR) as connection:
            assert await write_note(connection, vault, key, "production", "Second")
            office.released.set()
            await until(lambda: step.done() or database.fetchval(OPERATOR, WAITING))
        await step
        await mailer.close()
        await office.close()

    service.on_pool(send)
    assert service.sql("SELECT due_at > now() FROM people_mails") == [(True,)]


def test_a_note_is_not_mailed_to_a_person_who_was_removed(service: Service, ada: Browser, cem: Browser) -> None:
    """They may no longer read what the company's recipients write; who sees the order still does."""
    reference = sent(cem, service)
    service.sql("DELETE FROM people_mails")
    thank(service, reference, 1, "Just before")
    service.sql("UPDATE users SET is_active = false, person_id = NULL WHERE email = 'cem@acme.example'")
    try:
        assert mailed(service) == []
        thank(service, reference, 2, "Just after")
        assert mailed(service) == []
        assert service.sql("SELECT count(*) FROM people_mails")[0][0] == 0
        ada.sees("/app/notes", "Just before", "Just after")
    finally:
        service.sql(
            "UPDATE users SET is_active = true, person_id = (SELECT id FROM people WHERE email = users.email) WHERE email = 'cem@acme.example'"
        )


@pytest.mark.parametrize(("minutes", "waits_s"), [(59, 3600), (61, 0)])
def test_a_note_waits_for_an_hour_after_one_that_was_just_written_and_mailed(
    service: Service, cem: Browser, minutes: int, waits_s: int
) -> None:
    reference = sent(cem, service)
    thank(service, reference, 1, "First")
    assert len(mailed(service)) == 1
    service.sql("UPDATE thank_you_notes SET written_at = now() - $1::interval", timedelta(minutes=minutes))
    thank(service, reference, 2, "Second")
    [row] = service.sql(
        "SELECT extract(epoch FROM due_at - now())::float8 AS s FROM people_mails WHERE kind = 'thank_you'"
    )
    assert waits_s - 60 < row["s"] <= waits_s
    assert len(mailed(service)) == (1 if waits_s == 0 else 0)


def test_an_administrator_turns_notes_off(service: Service, ada: Browser, cem: Browser) -> None:
    assert ada.submit("/app/notes").status_code == 303
    assert "Thank-you notes are off" in ada.read("/app/notes")
    assert service.sql("SELECT takes_notes FROM customers WHERE key = 'acme'")[0][0] is False
    assert "changed whether recipients may write thank-you notes" in ada.read("/app/audit")
    cem.get("/app/notes")
    assert "Settings" not in (cem.page.text.partition("<main")[2] if cem.page else "")
    assert ada.submit("/app/notes", accepted="yes").status_code == 303
    assert service.sql("SELECT takes_notes FROM customers WHERE key = 'acme'")[0][0] is True


def test_a_list_of_notes_goes_on_page_by_page(service: Service, ada: Browser) -> None:
    path = ready(ada, service, rows="email\n" + "".join(f"guest{n}@example.com\n" for n in range(51)))
    place(ada, path)
    vault = Vault(service.settings.master_keys)
    lines = service.of_order(path.rpartition("/")[2], "customer_id, order_id, number", "lines")
    for line in lines:
        key = LineKey(*line)
        service.sql(
            "INSERT INTO thank_you_notes (customer_id, order_id, number, environment, sealed, written_at) VALUES ($1, $2, $3, 'production', $4, now())",
            *key,
            vault.notes.seal(f"Note {key.number}.".encode(), note_context(key)),
        )
    assert ada.read("/app/notes").count("Note ") == 50
    [older] = re.findall(r'href="([^"]+)" rel="next"', ada.page.text if ada.page else "")
    assert ada.read(older).count("Note ") == 1
    assert "Newer" in ada.text


@pytest.mark.skipif(IS_DISTRIBUTED, reason="what is read is on the nodes")
def test_a_page_of_notes_reads_no_others(service: Service, ada: Browser) -> None:
    rows = "".join(f"guest{n}@example.com\n" for n in range(300))
    reference = place(ada, ready(ada, service, rows=f"email\n{rows}"))
    service.sql(
        """
        INSERT INTO thank_you_notes (customer_id, environment, order_id, number, user_id, sealed, written_at)
        SELECT l.customer_id, environment, id, number, user_id, '', now() FROM orders o JOIN lines l ON l.order_id = o.id WHERE reference = $1
        """,
        reference,
    )

    user_id = service.sql("SELECT user_id FROM orders WHERE reference = $1", reference)[0][0]

    async def read(connection: Any) -> list[int]:
        await connection.execute("ANALYZE thank_you_notes, orders, lines")
        page = 1, "production", NEWEST, 51
        return [
            await rows_read(connection, Role.APP, "thank_you_notes", _NEWEST, *page),
            await rows_read(connection, Role.APP, "thank_you_notes", _NEWEST_OF_PERSON, *page, user_id),
            await rows_read(connection, Role.APP, "thank_you_notes", _NEWEST_OF_PERSON, *page, user_id + 1),
        ]

    assert on_database(service.database_url, read) == [51, 51, 0]
