"""Addresses of the test lab: each causes a certain outcome in staging. In production they are ordinary addresses.

    bounce@test.invalid    the mail bounces
    late@test.invalid      the mail server accepts the mail an hour later
    claims@test.invalid    the recipient claims the gift as soon as the mail arrives
    never@test.invalid     the recipient never claims
    no-stock@test.invalid  a claimed gift waits for a voucher number

Add a suffix for more recipients of the same kind, such as `bounce+7@test.invalid`.
"""

import re
from enum import Enum

_ADDRESS = re.compile(r"([a-z-]+)(?:\+[^@]*)?@test\.invalid", re.IGNORECASE)


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
    found = _ADDRESS.fullmatch(email or "")
    return _BEHAVIOURS.get(found[1].lower()) if found else None
