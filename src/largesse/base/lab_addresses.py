"""Addresses of the test lab: mail to them behaves in staging. In production nothing about them is special.

    bounce@test.invalid    the mail bounces
    late@test.invalid      the mail server takes the mail an hour later
    claims@test.invalid    the recipient claims the gift as soon as the mail is there
    never@test.invalid     the recipient never claims
    no-stock@test.invalid  a claimed gift waits for a voucher number

With a suffix, as `bounce+7@test.invalid`, each is as many recipients as a test needs.
"""

from __future__ import annotations

import re
from enum import Enum

_ADDRESS = re.compile(r"([a-z-]+)(?:\+[^@]*)?@test\.invalid", re.IGNORECASE)


class Behaviour(Enum):
    """What happens to mail for an address of the lab, or to its gift."""

    BOUNCE = "bounce"
    LATE = "late"
    CLAIMS = "claims"
    NEVER = "never"
    NO_STOCK = "no-stock"


_BEHAVIOURS = {behaviour.value: behaviour for behaviour in Behaviour}


def behaviour_of(email: str | None) -> Behaviour | None:
    """Returns the behaviour of an address; None for any other address."""
    found = _ADDRESS.fullmatch(email or "")
    return _BEHAVIOURS.get(found[1].lower()) if found else None
