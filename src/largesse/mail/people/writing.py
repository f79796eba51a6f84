"""Mails to people about an account that has mark_low_balances below what was set for it.

What a mail to somebody who signs in says.
"""

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
from largesse.db.pool import Connection, commit_as_one
from largesse.db.shard_groups import Customers
from largesse.jobs.outbox import mail_low_balance
from largesse.ledger.low_balance_store import NOTIFIED_ROLES, mark_low_balances


@dataclass(frozen=True, slots=True)
class LowBalance:
    """An account that holds little, as it is now; amounts in minor units."""

    account: str
    environment: str
    currency: str
    balance_minor: int
    below_minor: int


async def queue_low_balances(connection: Connection, customers: Customers = None) -> int:
    """Queues mails to everybody, of those customers or of all, whose accounts have mark_low_balances; returns how many mails. Call it inside a transaction."""
    mails = 0
    await commit_as_one(connection)
    for _, account_id, user_ids in await mark_low_balances(connection, customers):
        await mail_low_balance(connection, account_id, user_ids)
        mails += len(user_ids)
    return mails


async def read_low_balance(connection: Connection, user_id: int, account_id: int) -> LowBalance | None:
    """What the mail to a user says of an account; None where none is due any longer, or it has risen since."""
    row = await connection.fetchrow(
        """
        SELECT a.name AS account, a.environment, a.currency, a.balance_minor, w.below_minor
        FROM users u
        JOIN account_watchers x ON x.customer_id = u.customer_id AND x.user_id = u.id
        JOIN account_watches w ON w.customer_id = x.customer_id AND w.account_id = x.account_id
        JOIN accounts a ON a.customer_id = w.customer_id AND a.id = w.account_id
        WHERE u.id = $1 AND a.id = $2 AND u.is_active AND u.role = ANY($3::text[]) AND a.balance_minor < w.below_minor
        """,
        user_id,
        account_id,
        list(NOTIFIED_ROLES),
    )
    return None if row is None else LowBalance(**row)


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
    said = _templates(language.tag).get_template("mail.txt").render(mail=mail, since=since, amount=language.amount)
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
