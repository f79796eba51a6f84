"""Reads e-mail addresses, for the API, seed files and pages alike. The library `email-validator` checks them, without DNS.

Addresses of the test lab each cause a certain outcome in staging. In production they are ordinary addresses.

    bounce@test.invalid    the mail bounces
    late@test.invalid      the mail server accepts the mail an hour later
    claims@test.invalid    the recipient claims the gift as soon as the mail arrives
    never@test.invalid     the recipient never claims
    no-stock@test.invalid  a claimed gift waits for a voucher number

Add a suffix for more recipients of the same kind, such as `bounce+7@test.invalid`.
"""

from __future__ import annotations

import re
import unicodedata
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING

from largesse.base.text import trimmed

if TYPE_CHECKING:
    from email_validator import ValidatedEmail

# Most addresses are plain. For these, this pattern replaces the library's full parse (some 60 µs). A test checks
# that it accepts no address that the library refuses, and normalises each in the same way.
_PLAIN = re.compile(
    r"(?=[^@]{1,64}@)[A-Za-z0-9_+-]+(?:\.[A-Za-z0-9_+-]+)*"
    r"@(?:[A-Za-z0-9](?:(?!--)[A-Za-z0-9-]){0,61}(?<!-)\.)+(?P<top>[A-Za-z]{2,63})"
)
_LONGEST_PLAIN = 200
MAX_EMAIL = 254  # characters; RFC 5321, section 4.5.3.1.3, without the brackets
# A local part without quotes, brackets or other characters that could end it early. The library checks the rest.
_BARE = re.compile(r"[^\s\x00-\x1f\x7f\"(),:;<>@\[\\\]\ud800-\udfff]+")
# One address as people paste it: `Ada <ada@example.com>`, `mailto:ada@example.com`, `"ada@example.com".`
_PASTED = re.compile(
    r"""(?:[^<>@]*<)?[\s"'\u2018\u201c\u201e\xab(]*(?:mailto:)?"""
    r"""(?P<address>[^\s<>@,;:"()\u201c-\u201e\xab\xbb]+@[^\s<>@,;:"()\u201c-\u201e\xab\xbb]+?)[\s"'\u2019\u201c\u201d\xbb)>.,;]*""",
    re.IGNORECASE,
)
_HIDDEN = re.compile("[\xad\u200b\u2060\ufeff]")  # what pages put into long words so that they may break
_LONGEST_PASTED = 2 * MAX_EMAIL
_ANY_LOCAL, _ANY_DOMAIN = "x", "example.com"
_DOMAINS = 2_000
_SPECIAL = frozenset({"arpa", "invalid", "local", "localhost", "onion", "test"})


class EmailError(ValueError):
    """A text is not an e-mail address. The message says why."""


def normalise_email(text: str) -> str:
    """Returns the address with its domain in lower case and its characters normalised (NFC). Raises EmailError.

    Addresses under `.test` are accepted. They reach nobody, so they are useful for tests.
    """
    if len(text) > MAX_EMAIL:
        raise EmailError(f"It has {len(text)} characters; at most {MAX_EMAIL} are allowed.")
    plain = _PLAIN.fullmatch(text) if len(text) <= _LONGEST_PLAIN else None
    if plain and plain["top"].lower() not in _SPECIAL:
        local, _, domain = text.rpartition("@")
        return f"{local}@{domain.lower()}"
    local, _, domain = text.rpartition("@")
    if not domain or not _BARE.fullmatch(local):
        return _judge(text).normalized
    normalised, most_bytes = _judge_domain(domain)
    if most_bytes is None:
        raise EmailError(normalised)
    local_part = _judge(f"{local}@{_ANY_DOMAIN}").local_part
    if max(len(local.encode()), len(local_part.encode())) + most_bytes >= MAX_EMAIL:
        return _judge(text).normalized  # the library counts exactly
    return f"{local_part}@{normalised}"


def pasted_email(text: str) -> str:
    """Returns the normalised address in a field for one, without what people paste around it and the marks inside that nobody sees. Raises EmailError."""
    plain = trimmed(text)
    try:
        return normalise_email(plain)
    except EmailError:
        found = _PASTED.fullmatch(_HIDDEN.sub("", plain)) if len(plain) <= _LONGEST_PASTED else None
        if found is None:
            raise
        return normalise_email(trimmed(found["address"]))


def _judge(text: str) -> ValidatedEmail:
    # Imported here: loading it takes a tenth of the start of a service, and the pattern above judges most addresses.
    from email_validator import EmailNotValidError, validate_email

    try:
        return validate_email(text, check_deliverability=False, test_environment=True)
    except EmailNotValidError as error:
        raise EmailError(str(error)) from None


@lru_cache(maxsize=_DOMAINS)
def _judge_domain(domain: str) -> tuple[str, int | None]:
    """Returns the normalised domain and the bytes of its longest form. For a faulty domain, returns the fault and None.

    Cached, as the library takes milliseconds for a domain beyond ASCII, and many recipients share one.
    """
    try:
        judged = _judge(f"{_ANY_LOCAL}@{domain}")
    except EmailError as error:
        return str(error), None
    return judged.domain, max(len(form.encode()) for form in (domain, judged.domain, judged.ascii_domain))


def is_mistyped(email: str) -> bool:
    """Returns whether the part before the @ has characters that no mailbox has, but that keyboards and word processors write.

    These are full-width letters and signs beyond ASCII, such as a curly apostrophe.
    """
    return not email.isascii() and any(
        unicodedata.east_asian_width(one) == "F" or (not one.isascii() and unicodedata.category(one)[0] in "PS")
        for one in email.partition("@")[0]
    )


def email_key(email: str) -> str:
    """Returns the key that all spellings of an address share: it ignores letter case.

    It does not use `casefold`, for which `straße` and `strasse` are equal: they may be two people.
    """
    return email.lower()


def typed_key(text: str) -> str:
    """Returns the `email_key` of an address as somebody types it: orders and contacts hold its normal form."""
    typed = text.strip()
    try:
        return email_key(pasted_email(typed))
    except EmailError:  # such as an address of the test lab, or the placeholder of an erased one
        return email_key(typed)


def address_pattern(email: str) -> re.Pattern[str]:
    """Returns a pattern that finds an address in texts, in any letter case. It does not find `ed@a.example` in `fred@a.example`."""
    return re.compile(rf"(?<![a-z0-9]){re.escape(email)}(?![a-z0-9])", re.IGNORECASE)


def to_dial(email: str) -> str:
    """Returns an e-mail address for SMTP: an international domain in its `xn--` form, and the local part as it is.

    Raises ValueError for a domain that has no such form.
    """
    local, _, domain = email.rpartition("@")
    if domain.isascii():
        return email
    import idna  # imported here, as few addresses need it

    return f"{local}@{idna.encode(domain, uts46=True).decode('ascii')}"


ERASED_DOMAIN = "erased.invalid"


def erased_email(number: int) -> str:
    """Returns a placeholder for an erased address, so that an order keeps its number of recipients. No real address equals it."""
    return f"erased-{number}@{ERASED_DOMAIN}"


def is_erased(email: str) -> bool:
    """Returns whether this is the placeholder of an erased address."""
    return email.endswith(f"@{ERASED_DOMAIN}")


def masked(email: str) -> str:
    """Returns an address with most of its local part hidden: `b•••@example.com`."""
    local, _, domain = email.rpartition("@")
    return f"{local[:1]}•••@{domain}"


_LAB_ADDRESS = re.compile(r"([a-z-]+)(?:\+[^@]*)?@test\.invalid", re.IGNORECASE)


class Behaviour(Enum):
    """What happens to the mail or the gift of an address of the lab."""

    BOUNCE = "bounce"
    LATE = "late"
    CLAIMS = "claims"
    NEVER = "never"
    NO_STOCK = "no-stock"


_BEHAVIOURS = {behaviour.value: behaviour for behaviour in Behaviour}


def behaviour_of(email: str | None) -> Behaviour | None:
    """Returns the behaviour of an address of the lab, or None for any other address."""
    found = _LAB_ADDRESS.fullmatch(email or "")
    return _BEHAVIOURS.get(found[1].lower()) if found else None
