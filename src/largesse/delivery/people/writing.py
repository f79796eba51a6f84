"""What a mail to somebody who signs in says."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP, SMTPUTF8
from email.utils import format_datetime, parseaddr
from functools import cache
from pathlib import Path

import jinja2
from babel.dates import format_datetime as format_for_readers

from largesse.base.i18n.languages import DEFAULT, LANGUAGES
from largesse.base.i18n.templates import template_environment
from largesse.base.text import cleaned
from largesse.delivery.people.low_balance import LowBalance

TEMPLATES = Path(__file__).parent / "templates"
CATALOGUES = Path(__file__).parent / "locale"


@dataclass(frozen=True, slots=True, repr=False)
class PeopleMail:
    """One that is due. It has no repr: the link lets in."""

    id: int
    kind: str  # invitation, reset, new_device, second_step, low_balance or test
    email: str
    language: str | None
    customer_name: str | None
    address: str | None
    browser: str | None
    created_at: datetime
    attempts: int
    link: str | None
    low: LowBalance | None = None  # the account, of low_balance
    content: bytes | None = None  # the whole message, where it is not written here
    change: str | None = None  # what changed, of second_step


def write(mail: PeopleMail, mail_from: str, at: datetime) -> bytes:
    """The message: plain text, whose template's first line is its subject."""
    language = LANGUAGES.get(mail.language or "", DEFAULT)
    since = format_for_readers(mail.created_at, "long", locale=language.locale)
    said = (
        _templates(language.tag)
        .get_template("mail.txt")
        .render(mail=mail, since=since, amount=language.amount)
    )
    subject, _, text = said.partition("\n")
    message = EmailMessage(policy=SMTP if mail.email.isascii() else SMTPUTF8)
    message["From"] = mail_from
    message["To"] = mail.email
    message["Subject"] = cleaned(subject, " ")
    message["Message-ID"] = f"<people-{mail.id}@{parseaddr(mail_from)[1].rpartition('@')[2]}>"
    message["Date"] = format_datetime(at)
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(text.strip() + "\n", cte="quoted-printable")
    return message.as_bytes()


@cache
def _templates(tag: str) -> jinja2.Environment:
    return template_environment(TEMPLATES, tag, CATALOGUES)
