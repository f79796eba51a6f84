"""Writes mails to people who sign in, and queues those about low balances."""

from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP, SMTPUTF8
from email.utils import format_datetime, parseaddr
from functools import cache, partial
from pathlib import Path
from zoneinfo import ZoneInfo

import jinja2
import msgspec
from babel.dates import format_datetime as format_for_readers

from largesse.approvals.model import APPROVED, WAITING, WITHDRAWN
from largesse.approvals.store import read_for_mail
from largesse.base.confidential import Confidential
from largesse.base.email import to_dial
from largesse.base.i18n.languages import DEFAULT, LANGUAGES, Language
from largesse.base.i18n.templates import template_environment, translations
from largesse.base.text import browser_and_system, cleaned
from largesse.customers.roles import RIGHTS, Right
from largesse.db.pool import Connection, commit_as_one
from largesse.db.shard_groups import Customers
from largesse.encryption.vault import Vault
from largesse.jobs.outbox import mail_low_balance
from largesse.ledger.low_balance_store import NOTIFIED_ROLES, mark_low_balances
from largesse.mail import store
from largesse.mail.people.automation_words import CATALOGUES, why
from largesse.mail.rendering import UNBRANDED, render, theme
from largesse.notes.model import Note
from largesse.notes.service import read_row
from largesse.notes.store import take_for_mail
from largesse.orders.options import DEFAULT_WRAPPING


class LowBalance(msgspec.Struct, frozen=True):
    """An account with a low balance, as it is now. Amounts are in minor units."""

    account: str
    environment: str
    currency: str
    balance_minor: int
    below_minor: int


class Credited(msgspec.Struct, frozen=True):
    """An account to which money was credited, with its balance now. Amounts are in minor units."""

    account: str
    environment: str
    currency: str
    balance_minor: int
    credited_minor: int


class AskedApproval(msgspec.Struct, frozen=True):
    """A request for approval, as it is now. Amounts are in minor units."""

    id: str
    environment: str
    state: str
    total_minor: int
    currency: str
    gift_name: str
    code_count: int
    expires_at: datetime
    requester: str
    is_sent: bool


class AskedAutomation(msgspec.Struct, frozen=True):
    """An automation that waits for approval."""

    id: int
    name: str
    environment: str
    requester: str


class RefusedGifts(msgspec.Struct, frozen=True):
    """Gifts of an automation that were refused for one reason, or missed. `until` is the last day of further attempts, None if there are none."""

    reason: str | None
    is_failed: bool
    count: int
    until: datetime | None


class RefusingAutomation(msgspec.Struct, frozen=True):
    """An automation with gifts that were refused or missed. `count` is the number of all of them."""

    name: str
    environment: str
    count: int
    gifts: list[RefusedGifts]


class ThankYou(msgspec.Struct, frozen=True):
    """The notes of an order that a mail is about."""

    reference: str
    environment: str
    notes: list[Note]


async def read_thank_you(
    connection: Connection, vault: Vault, customer_id: int, order_id: int, user_id: int, mail_id: int
) -> ThankYou | None:
    """Returns the content of the mail to a user about the notes of an order; None if there are no notes left. Call it inside a transaction."""
    await commit_as_one(connection)
    rows = await take_for_mail(connection, customer_id, order_id, user_id, mail_id)
    if not rows:
        return None
    return ThankYou(rows[0]["reference"], rows[0]["environment"], [read_row(vault, row) for row in rows])


async def read_approval(
    connection: Connection, customer_id: int, user_id: int, kind: str, request_id: str
) -> AskedApproval | None:
    """Returns the content of the mail to a user about a request.

    Returns None if it or the person is gone, or if it has been decided, withdrawn, or sent without an approval.
    """
    row = await read_for_mail(connection, customer_id, user_id, request_id)
    if row is None or row["state"] == WITHDRAWN or (row["state"] == WAITING) != (kind == "approval_asked"):
        return None
    if row["is_sent"] and row["state"] != APPROVED:
        return None
    return AskedApproval(**row)


async def read_automation(connection: Connection, user_id: int, automation_id: int) -> AskedAutomation | None:
    """Returns the content of the mail to a user about an automation; None if they no longer have to decide."""
    row = await connection.fetchrow(store.ASKED_AUTOMATION, user_id, automation_id)
    return None if row is None else AskedAutomation(**row)


async def read_refused_gifts(
    connection: Connection, customer_id: int, user_id: int, automation_id: int, since: datetime
) -> RefusingAutomation | None:
    """Returns the content of the mail, queued at `since`, to a user about refused and missed gifts of an automation.

    Returns None if the user can no longer mend it, or if the gifts were sent meanwhile.
    """
    row = await connection.fetchrow(store.REFUSING_AUTOMATION, user_id, automation_id, list(RIGHTS[Right.SEND]))
    gifts = await connection.fetch(store.REFUSED_GIFTS, customer_id, automation_id, since)
    if row is None or not gifts:
        return None
    zone = ZoneInfo(row["zone"])
    found = [
        RefusedGifts(one["reason"], one["is_failed"], one["gifts"], one["until"] and one["until"].astimezone(zone))
        for one in gifts
    ]
    return RefusingAutomation(row["name"], row["environment"], gifts[0]["all_gifts"], found)


async def queue_low_balances(connection: Connection, customers: Customers = None) -> int:
    """Queues mails about accounts that fell below their limit, of some customers or of all. Returns the number of mails. Call it inside a transaction."""
    mails = 0
    await commit_as_one(connection)
    for _, account_id, user_ids in await mark_low_balances(connection, customers):
        await mail_low_balance(connection, account_id, user_ids)
        mails += len(user_ids)
    return mails


async def read_low_balance(connection: Connection, user_id: int, account_id: int) -> LowBalance | None:
    """Returns the content of the mail to a user about an account; None if the mail is no longer due, or the balance has risen."""
    row = await connection.fetchrow(store.LOW_BALANCE, user_id, account_id, list(NOTIFIED_ROLES))
    return None if row is None else LowBalance(**row)


async def read_credited(connection: Connection, user_id: int, account_id: int, credited_minor: int) -> Credited | None:
    """Returns the content of the mail to a user about money that arrived; None if the user can no longer see the account."""
    row = await connection.fetchrow(store.CREDITED, user_id, account_id, list(RIGHTS[Right.MOVE_FUNDS]))
    return None if row is None else Credited(**row, credited_minor=credited_minor)


TEMPLATES = Path(__file__).parent / "templates"


class PeopleMail(Confidential, frozen=True):
    """A due mail. It has no repr, as its link gives access."""

    id: int
    kind: str  # invitation, reset, new_device, second_step, low_balance, credited, approval_asked, approval_ended, automation_asked, automation_refused, thank_you or test
    email: str
    language: str | None
    customer_name: str | None
    address: str | None
    browser: str | None
    created_at: datetime
    attempts: int
    link: str | None
    low: LowBalance | None = None  # only for low_balance
    content: bytes | None = None  # the whole message, if it was written before
    change: str | None = None  # the change, only for second_step
    approval: AskedApproval | None = None  # only for approval_asked and approval_ended
    thanks: ThankYou | None = None  # only for thank_you
    automation: AskedAutomation | None = None  # only for automation_asked
    refused: RefusingAutomation | None = None  # only for automation_refused
    credited: Credited | None = None  # only for credited


def write(mail: PeopleMail, mail_from: str, at: datetime) -> bytes:
    """Returns the message, as text and as HTML."""
    subject, text, html = show(mail)
    to = to_dial(mail.email)
    message = EmailMessage(policy=SMTP if to.isascii() else SMTPUTF8)
    message["From"] = mail_from
    message["To"] = to
    message["Subject"] = subject
    # The time tells it from a mail of another installation with the same domain: mailboxes show only one of two mails with the same id.
    since = f"{mail.created_at:%Y%m%d%H%M%S%f}"
    message["Message-ID"] = f"<people-{mail.id}-{since}@{parseaddr(mail_from)[1].rpartition('@')[2]}>"
    message["Date"] = format_datetime(at)
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(text, cte="quoted-printable")
    message.add_alternative(html, subtype="html", cte="quoted-printable")
    return message.as_bytes()


def show(mail: PeopleMail) -> tuple[str, str, str]:
    """Returns the subject, the text and the HTML. The template has the subject, the label of the button, and the text."""
    language = LANGUAGES.get(mail.language or "", DEFAULT)
    since = language.as_written(format_for_readers(mail.created_at, "long", locale=language.locale))
    said = (
        _templates(language.tag)
        .get_template("mail.txt")
        .render(
            mail=mail,
            since=since,
            browser=browser_and_system(mail.browser or ""),
            amount=language.amount,
            day=language.day,
            why=partial(_why, language),
        )
    )
    subject, label, text = said.split("\n", 2)
    subject, text = cleaned(subject, " "), text.strip()
    values = {
        "subject": subject,
        "label": label,
        "said": [part.strip() for part in text.split("\n\n") if part.strip()],
        "link": mail.link,
        "theme": theme(DEFAULT_WRAPPING),
        "environment": "production",
        "is_test": False,
        **UNBRANDED,
    }
    return subject, f"{text}\n", render("notice.html", language, values)


def _why(language: Language, gifts: RefusedGifts) -> str:
    """Returns why gifts were refused, in the words of the automation's page."""
    texts = translations(language.tag, CATALOGUES)
    return why(gifts.reason or "", lambda english, **values: texts.gettext(english) % values, language, gifts.is_failed)


@cache
def _templates(tag: str) -> jinja2.Environment:
    return template_environment(TEMPLATES, tag, CATALOGUES)
