"""Writes mails to people who sign in, and queues those about low balances."""

from collections.abc import Mapping
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP, SMTPUTF8
from email.utils import format_datetime, parseaddr
from functools import cache, partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import jinja2
from babel.dates import format_datetime as format_for_readers

from largesse.approvals.model import APPROVED, WAITING, WITHDRAWN, may_decide
from largesse.approvals.store import find_rules, read_for_mail
from largesse.base.confidential import Confidential
from largesse.base.email import to_dial
from largesse.base.i18n.languages import DEFAULT, LANGUAGES, Language
from largesse.base.i18n.templates import template_environment, translations
from largesse.base.text import browser_and_system, cleaned
from largesse.customers.roles import RIGHTS, Reach, Right
from largesse.db.pool import Connection, Row, commit_as_one
from largesse.db.shard_groups import Customers
from largesse.encryption.vault import Vault
from largesse.jobs.outbox import mail_users
from largesse.ledger.low_balance_store import NOTIFIED_ROLES, mark_low_balances
from largesse.mail import store
from largesse.mail.people.automation_words import CATALOGUES, why
from largesse.mail.rendering import UNBRANDED, render, theme
from largesse.notes.service import read_row
from largesse.notes.store import take_for_mail
from largesse.orders.options import DEFAULT_WRAPPING

# What a mail is about: the values for its template. Amounts are in minor units.
About = Mapping[str, Any] | Row


async def read_about(connection: Connection, vault: Vault, mail: Row, customer_id: int) -> About | None:
    """Returns what a row of `people_mails` is about, as it is now. Returns None if the mail is no longer due.

    That is so if the balance has risen or the user can no longer see the account, if a request needs no decision of theirs, or is not
    decided, if the gifts were sent, or if there are no notes left. Call it inside a transaction.
    """
    user_id, kind = mail["user_id"], mail["kind"]
    if kind == "low_balance":
        return await connection.fetchrow(store.LOW_BALANCE, user_id, mail["account_id"], list(NOTIFIED_ROLES))
    if kind == "credited":
        roles = RIGHTS[Right.MOVE_FUNDS]
        of_all, of_own = ([role for role, reach in roles.items() if reach is one] for one in (Reach.ALL, Reach.OWN))
        row = await connection.fetchrow(store.CREDITED, user_id, mail["account_id"], of_all, of_own)
        return row and {**row, "credited_minor": mail["credited_minor"]}
    if mail["request_id"] is not None:
        return await read_approval(connection, customer_id, user_id, kind, mail["request_id"])
    if kind == "thank_you":
        await commit_as_one(connection)
        rows = await take_for_mail(connection, customer_id, mail["note_order_id"], user_id, mail["id"])
        return {**rows[0], "notes": [read_row(vault, row) for row in rows]} if rows else None
    if kind == "automation_refused":
        return await _read_refused_gifts(connection, customer_id, mail)
    return await connection.fetchrow(store.ASKED_AUTOMATION, user_id, mail["automation_id"])


async def read_approval(
    connection: Connection, customer_id: int, user_id: int, kind: str, request_id: str
) -> About | None:
    """Returns the content of the mail to a user about a request.

    Returns None if it or the person is gone, if the person may no longer decide, or if it has been decided, withdrawn, or sent without an
    approval.
    """
    row, is_asked = await read_for_mail(connection, customer_id, user_id, request_id), kind == "approval_asked"
    if row is None or row["state"] == WITHDRAWN or (row["state"] == WAITING) != is_asked:
        return None
    rules = await find_rules(connection, customer_id, row["rule_ids"]) if is_asked else ()
    if is_asked and not may_decide(rules, user_id, row["role"], row["requester_id"]):
        return None
    return None if row["is_sent"] and row["state"] != APPROVED else row


async def _read_refused_gifts(connection: Connection, customer_id: int, mail: Row) -> About | None:
    """Returns the refused and missed gifts of an automation, by reason, with the last day of further attempts if there are any."""
    about = mail["user_id"], mail["automation_id"], list(RIGHTS[Right.SEND])
    row = await connection.fetchrow(store.REFUSING_AUTOMATION, *about)
    gifts = await connection.fetch(store.REFUSED_GIFTS, customer_id, mail["automation_id"], mail["created_at"])
    if row is None or not gifts:
        return None
    zone = ZoneInfo(row["zone"])
    found = [{**one, "until": one["until"] and one["until"].astimezone(zone)} for one in gifts]
    return {**row, "count": gifts[0]["all_gifts"], "gifts": found}


async def queue_low_balances(connection: Connection, customers: Customers = None) -> int:
    """Queues mails about accounts that fell below their limit, of some customers or of all. Returns the number of mails. Call it inside a transaction."""
    mails = 0
    await commit_as_one(connection)
    for _, account_id, user_ids in await mark_low_balances(connection, customers):
        await mail_users(connection, "low_balance", user_ids, account_id=account_id)
        mails += len(user_ids)
    return mails


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
    about: About | None = None  # None for mail about the person alone
    content: bytes | None = None  # the whole message, if it was written before
    change: str | None = None  # the change, only for second_step


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
            about=mail.about,
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


def _why(language: Language, gifts: About) -> str:
    """Returns why gifts were refused, in the words of the automation's page."""
    texts = translations(language.tag, CATALOGUES)

    def say(english: str, **values: str) -> str:
        return texts.gettext(english) % values

    return why(gifts["reason"] or "", say, language, gifts["is_failed"])


@cache
def _templates(tag: str) -> jinja2.Environment:
    return template_environment(TEMPLATES, tag, CATALOGUES)
