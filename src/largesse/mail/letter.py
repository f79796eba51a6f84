"""The letter a recipient gets: all their codes of one order, as HTML and as text."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from email.utils import parseaddr
from pathlib import Path

import idna
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from largesse.mail import mime
from largesse.mail.wrappings import wrapping

_MANY_RECIPIENTS = 2

_templates = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=select_autoescape(["html"]),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    auto_reload=False,
)
GIFT, VOUCHER_READY, SHIPPED = "gift", "voucher_ready", "shipped"


@dataclass(frozen=True, slots=True, repr=False)
class Gift:
    """One code with its PIN and claim link, in clear."""

    code: str
    pin: str
    link: str


@dataclass(frozen=True, slots=True, repr=False)
class Letter:
    """What one recipient is to read. It has no repr: it holds codes."""

    kind: str  # gift, voucher_ready or shipped
    reference: str  # the order's
    edition: int  # of a gift 0, or the number of the resend; of a notice the number of its line
    environment: str
    email: str
    name: str | None
    sender: str | None
    message: str | None
    wrapping_key: str
    gift: str  # its name
    chooses: bool  # whether the recipient chooses from a collection
    value: str | None  # for people, `£10.00`; None when it is not told
    expiry_days: int | None
    recipients: int  # of the whole order
    gifts: Sequence[Gift]
    carrier: str | None = None  # of a parcel
    tracking_number: str | None = None

    @property
    def subject(self) -> str:
        if self.kind == VOUCHER_READY:
            return "Your gift is ready"
        if self.kind == SHIPPED:
            return "Your gift is on its way"
        what = "a gift" if len(self.gifts) == 1 else "gifts"
        return (
            mime.one_line(f"{self.sender} sent you {what}") if self.sender else f"You have been sent {what}"
        )


def message_id(letter: Letter, domain: str) -> str:
    """The Message-ID: the same however often the letter is tried, another for each resend."""
    what = f"{letter.reference}/{letter.email}/{letter.kind}/{letter.edition}".encode()
    return f"<{hashlib.sha256(what).hexdigest()[:32]}@{domain}>"


def write(letter: Letter, mail_from: str, *, at: float) -> bytes:
    """The whole message, from the configured sender. `at` is its date, in seconds since 1970."""
    words = {
        "subject": letter.subject,
        "name": _said(letter.name),
        "sender": _said(letter.sender),
        "message": _paragraphs(letter.message),
        "gift": letter.gift,
        "value": letter.value,
        "gifts": letter.gifts,
        "chooses": letter.chooses,
        "expiry_days": letter.expiry_days,
        "environment": letter.environment,
        "wrapping": wrapping(letter.wrapping_key),
        "kind": letter.kind,
        "carrier": _said(letter.carrier),
        "tracking_number": _said(letter.tracking_number),
    }
    template = "letter" if letter.kind == GIFT else "notice"
    text, html = (_templates.get_template(f"{template}.{ending}").render(words) for ending in ("txt", "html"))
    return mime.build(_headers(letter, mail_from), text, html, at=at)


def to_dial(address: str) -> str:
    """The address as SMTP takes it: an international domain becomes its `xn--` form, the local part stays."""
    local, _, domain = address.rpartition("@")
    if domain.isascii():
        return address
    return f"{local}@{idna.encode(domain, uts46=True).decode('ascii')}"


def _headers(letter: Letter, mail_from: str) -> dict[str, str]:
    sender_name, sender_address = parseaddr(mail_from)
    headers = {
        "From": mime.encode_mailbox(sender_name, sender_address),
        "To": mime.encode_mailbox(letter.name or "", to_dial(letter.email)),
        "Subject": mime.encode_text(letter.subject),
        "Message-ID": message_id(letter, sender_address.rpartition("@")[2]),
        "Auto-Submitted": "auto-generated",
    }
    if letter.recipients >= _MANY_RECIPIENTS:
        # One letter to many: a way out, as mailbox providers ask for (RFC 2369).
        headers["List-Unsubscribe"] = f"<mailto:{sender_address}?subject=unsubscribe>"
    return headers


def _said(text: str | None) -> str:
    return mime.one_line(text or "")


def _paragraphs(text: str | None) -> str:
    lines = (text or "").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(mime.one_line(line) for line in lines).strip()
