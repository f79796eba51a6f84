"""What lets a browser come back to the gift it claimed: a sealed cookie for one hour, sent to that gift's pages alone."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from datetime import datetime, timedelta

from largesse.base.vault import SealBroken, Vault
from largesse.lines.states import LineKey

COOKIE = "gift"
LASTS = timedelta(hours=1)
_LONGEST = 400


@dataclass(frozen=True, slots=True, repr=False)
class Session:
    """A browser's access to one line. `handle` names it in addresses and gives nothing away."""

    line: LineKey
    handle: str
    cookie: str

    def form_key(self, vault: Vault) -> str:
        """What a form of this session carries, so that no other site can send one."""
        return f"{vault.lookup(b'form/' + self.cookie.encode()) & 0xFFFF_FFFF_FFFF_FFFF:016x}"


def new_session(vault: Vault, environment: str, line: LineKey, now: datetime) -> Session:
    """A session that lasts from `now`."""
    ends_s = int((now + LASTS).timestamp())
    sealed = vault.seal(b"%d/%d/%d" % (*line, ends_s), _context(environment))
    return Session(line, handle_of(vault, line), base64.urlsafe_b64encode(sealed).decode("ascii").rstrip("="))


def read_session(vault: Vault, environment: str, cookie: str, handle: str, now: datetime) -> Session | None:
    """The session of a cookie; None when it is over, of another gift, or none of ours."""
    if not cookie or len(cookie) > _LONGEST:
        return None
    try:
        sealed = base64.urlsafe_b64decode(cookie.encode("ascii") + b"=" * (-len(cookie) % 4))
        order_id, number, ends_s = map(int, vault.open(sealed, _context(environment)).split(b"/"))
    except (SealBroken, binascii.Error, UnicodeError, ValueError):
        return None
    line = (order_id, number)
    if ends_s <= now.timestamp() or handle_of(vault, line) != handle:
        return None
    return Session(line, handle, cookie)


def handle_of(vault: Vault, line: LineKey) -> str:
    """The name of a line in the addresses of its pages."""
    return f"{vault.lookup(b'gift/%d/%d' % line) & 0xFFFF_FFFF_FFFF_FFFF:016x}"


def _context(environment: str) -> bytes:
    return f"claim-session/{environment}".encode("ascii")
