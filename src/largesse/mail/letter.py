"""Writes the letter to a recipient: all their codes of one order, or a notification about one of them, as HTML and as text."""

import hashlib
from collections.abc import Sequence
from datetime import date
from email.utils import parseaddr
from functools import lru_cache
from typing import Any

from babel.numbers import get_decimal_symbol

from largesse.base.confidential import Confidential
from largesse.base.email import to_dial
from largesse.base.i18n.languages import Language
from largesse.base.text import cleaned
from largesse.branding.model import NO_BRAND, Brand
from largesse.catalogue.model import NOTHING_SAID, Details
from largesse.catalogue.pictures import picture_path
from largesse.mail import mime
from largesse.mail.rendering import button_theme, render, theme, what_to_do

_MANY_RECIPIENTS = 2
# With more codes, the HTML has the first ones, and a file has all. Gmail cuts HTML at 102 KB: a code takes 1.5 KB, and texts of a product up to 50 KB.
SHOWN_CODES = 25
CODES_FILE = "codes.csv"

GIFT, VOUCHER_READY, SHIPPED, RETURNED = "gift", "voucher_ready", "shipped", "returned"
CAMPAIGN_CODE = "campaign_code"
VOUCHER, PARCEL, CHOICE = "voucher", "parcel", "choice"


class LetterCode(Confidential, frozen=True):
    """One code with its PIN and claim link, in clear."""

    code: str
    pin: str
    link: str

    @property
    def link_with_pin(self) -> str:
        """The claim link with the PIN as its fragment, which no browser sends to a server. A preview's code has no digits."""
        return f"{self.link}#pin={self.pin}" if self.pin.isdecimal() else self.link


class Letter(Confidential, frozen=True):
    """The content of a letter to one recipient. It has no repr, as it contains codes."""

    kind: str  # gift, voucher_ready, shipped or returned (shipped_2 when the parcel is sent again), campaign_code, or a kind of reminder
    reference: str  # the reference of the order
    # For a gift: 0, or the number of the resend; for a notification or reminder: the number of its first line.
    edition: int
    environment: str
    language: Language
    email: str
    name: str | None
    sender: str | None
    message: str | None
    wrapping_key: str
    gift: str  # the name of the gift
    comes_as: str  # a voucher, a parcel, or a choice from a collection
    value_minor: int | None  # None if the value is not shown
    currency: str
    expiry_days: int | None
    recipients: int  # the number of recipients of the whole order
    codes: Sequence[LetterCode]
    carrier: str | None = None  # only for a parcel
    tracking_number: str | None = None
    picture: str | None = None  # the address of the product's picture
    details: Details = NOTHING_SAID  # the texts about the product, if it is known
    claim_by: date | None = None  # the last day on which a gift can be claimed
    is_test: bool = False  # sent to its sender, without a working code
    brand: Brand = NO_BRAND
    pictures: str = ""  # the start of the addresses of brand pictures
    asked_code: str | None = None  # the code with which a visitor of a campaign confirms the address

    @property
    def is_reminder(self) -> bool:
        """Whether it is a reminder of a gift that was mailed before."""
        return self.kind.startswith("reminder")

    @property
    def is_one(self) -> bool:
        """Whether it is about one gift, not several."""
        return len(self.codes) <= 1

    @property
    def no_more(self) -> str:
        """The address where the recipient can stop reminders; empty in other letters."""
        return f"{self.codes[0].link}/reminders" if self.is_reminder and self.codes else ""

    @property
    def subject(self) -> str:
        """The subject in the letter's language, without the sender's name if it would be too long."""
        return _subject_and_sender(self, "")[0]

    def picture_address(self, name: str | None) -> str:
        """Returns the address of a brand picture; empty if there is none."""
        return self.pictures + picture_path(name) if name else ""


def message_id(letter: Letter, domain: str) -> str:
    """Returns the Message-ID. It is the same for each attempt. Each resend has another one."""
    what = f"{letter.reference}/{letter.email}/{letter.kind}/{letter.edition}".encode()
    return f"<{hashlib.sha256(what).hexdigest()[:32]}@{domain}>"


def write(letter: Letter, mail_from: str, *, at: float) -> bytes:
    """Returns the whole message, from the configured sender. `at` is its date, in seconds since 1970."""
    house, email = _house_of(letter, mail_from)
    subject, sender = _subject_and_sender(letter, house or email.rpartition("@")[2])
    headers = _headers(letter, subject, sender or house, email)
    words = _words(letter, subject)
    text, html = (_render(letter, words, ending) for ending in ("txt", "html"))
    attached = (CODES_FILE, _codes_file(letter)) if len(letter.codes) > SHOWN_CODES else None
    return mime.build(headers, text, html, at=at, attached=attached)


def _codes_file(letter: Letter) -> bytes:
    """Returns all codes as CSV, for spreadsheets of the letter's language. PINs have a hyphen, which keeps a zero in front."""
    separator = ";" if get_decimal_symbol(letter.language.locale) == "," else ","
    rows = [(one.code, f"{one.pin[:3]}-{one.pin[3:]}", one.link_with_pin) for one in letter.codes]
    return "".join(f"{separator.join(row)}\r\n" for row in [("code", "pin", "link"), *rows]).encode()


class Shown(Confidential, frozen=True):
    """A letter as its recipient sees it."""

    sender: str
    subject: str
    html: str


def show(letter: Letter, mail_from: str) -> Shown:
    """Returns the visible parts of a letter, without making the whole message."""
    house, email = _house_of(letter, mail_from)
    subject, sender = _subject_and_sender(letter, house or email.rpartition("@")[2])
    return Shown(sender or house or email, subject, _render(letter, _words(letter, subject), "html"))


def _render(letter: Letter, words: dict[str, Any], ending: str) -> str:
    template = "letter" if letter.kind == GIFT or letter.is_reminder else "notification"
    if letter.kind == CAMPAIGN_CODE:
        template = "campaign_code"
    return render(f"{template}.{ending}", letter.language, words)


def _words(letter: Letter, subject: str) -> dict[str, Any]:
    """Returns the values for all templates."""
    value_minor = letter.value_minor
    steps, until = what_to_do(letter.language, letter.comes_as, letter.expiry_days, is_one=letter.is_one)
    shown = theme(letter.wrapping_key, letter.brand)
    own = letter.brand.wrapping(letter.wrapping_key)
    return {
        "subject": subject,
        "steps": steps,
        "until": until,
        "is_one": letter.is_one,
        "is_reminder": letter.is_reminder,
        "no_more": letter.no_more,
        "claim_by": letter.language.day(letter.claim_by) if letter.claim_by else "",
        "message": _paragraphs(letter.message),
        "theme": shown,
        "button": button_theme(shown, letter.brand),
        "logo": letter.picture_address(letter.brand.logo),
        "company": _line(letter.brand.company),
        "paper_picture": letter.picture_address(own.picture if own else None),
        "footer": _paragraphs(letter.brand.footer),
        "kind": letter.kind,
        "name": _line(letter.name),
        "sender": _line(letter.sender),
        "gift": _line(letter.gift),
        "value": None if value_minor is None else letter.language.amount(value_minor, letter.currency),
        "codes": letter.codes,
        "shown": letter.codes[:SHOWN_CODES],
        "file": CODES_FILE,
        "asked_code": letter.asked_code,
        "environment": letter.environment,
        "is_test": letter.is_test,
        "carrier": _line(letter.carrier),
        "tracking_number": _line(letter.tracking_number),
        "picture": letter.picture,
        "description": _paragraphs(letter.details.description),
        "how_to_redeem": _paragraphs(letter.details.how_to_redeem),
        "terms": _paragraphs(letter.details.terms),
    }


_house = lru_cache(maxsize=8)(parseaddr)


def _house_of(letter: Letter, mail_from: str) -> tuple[str, str]:
    """Returns the sender's name and address: the brand's name, and the configured address."""
    house, email = _house(mail_from)
    return _line(letter.brand.sender_name) or house, email


def _subject_and_sender(letter: Letter, house: str) -> tuple[str, str]:
    """Returns the subject, and the sender's name with the name of the service. That is empty if the order names no sender."""
    subject, sender = _kept_subject_and_sender(letter.language, letter.kind, _line(letter.sender), house, letter.is_one)
    if letter.kind == GIFT:
        subject = letter.brand.subject_from(_line(letter.sender)) or subject
    return f"[Test] {subject}" if letter.is_test else subject, sender


@lru_cache(maxsize=1_000)
def _kept_subject_and_sender(language: Language, kind: str, sender: str, house: str, is_one: bool) -> tuple[str, str]:
    """Returns the subject and the sender's name. They are cached, as all recipients of an order get the same."""
    values = {"kind": kind, "sender": sender, "house": house, "is_one": is_one}
    subject, _, named_sender = render("headers.txt", language, values).partition("\n")
    return subject, named_sender.strip()


def _headers(letter: Letter, subject: str, sender: str, email: str) -> dict[str, str]:
    headers = {
        "From": mime.encode_mailbox(sender, email),
        "To": mime.encode_mailbox(_line(letter.name), to_dial(letter.email)),
        "Subject": mime.encode_text(subject),
        "Message-ID": message_id(letter, email.rpartition("@")[2]),
        "Content-Language": letter.language.tag,
        "Auto-Submitted": "auto-generated",
    }
    if letter.brand.reply_to:
        headers["Reply-To"] = to_dial(letter.brand.reply_to)
    if letter.is_reminder:
        # Mailbox providers require unsubscribing with one click (RFC 8058).
        headers["List-Unsubscribe"] = f"<{letter.no_more}>"
        headers["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    elif letter.recipients >= _MANY_RECIPIENTS:
        # For letters to many recipients, mailbox providers require a way to unsubscribe (RFC 2369).
        headers["List-Unsubscribe"] = f"<mailto:{email}?subject=unsubscribe>"
    return headers


def _line(text: str | None) -> str:
    """Returns a text on one line, without characters that change the writing direction. Old orders may have names that are refused today."""
    return mime.one_line(cleaned(text, " ")) if text else ""


def _paragraphs(text: str | None) -> str:
    if not text:
        return ""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(_line(line) for line in lines).strip()
