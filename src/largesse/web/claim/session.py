"""What lets a browser come back to the gift it claimed: a sealed cookie for one hour, sent to that gift's pages alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from largesse.encryption.vault import Vault
from largesse.lines.states import LineKey
from largesse.web.kit.sessions import form_key, is_form_of, open_cookie, seal_cookie

COOKIE = "gift"
LASTS = timedelta(hours=1)


@dataclass(frozen=True, slots=True, repr=False)
class Session:
    """A browser's access to one line. `handle` names it in addresses and gives nothing away."""

    line: LineKey
    handle: str
    cookie: str

    def form_key(self, vault: Vault) -> str:
        """What a form of this session carries, so that no other site can send one."""
        return form_key(vault, self.cookie)

    def sent(self, vault: Vault, form: Mapping[str, str]) -> bool:
        """Whether one of its forms was posted."""
        return is_form_of(vault, self.cookie, form.get("key", ""))


def new_session(vault: Vault, environment: str, line: LineKey, now: datetime) -> Session:
    """A session that lasts from `now`."""
    cookie = seal_cookie(vault, _purpose(environment), b"%d/%d/%d" % line, now + LASTS)
    return Session(line, handle_of(vault, line), cookie)


def read_session(vault: Vault, environment: str, cookie: str, handle: str, now: datetime) -> Session | None:
    """The session of a cookie; None when it is over, of another gift, or none of ours."""
    about = open_cookie(vault, _purpose(environment), cookie, now)
    if about is None:
        return None
    parts = about.split(b"/")
    if len(parts) != len(LineKey._fields):  # of a release that named no customer
        return None
    line = LineKey(*map(int, parts))
    return Session(line, handle, cookie) if vault.handles.is_name(handle, _gift(line)) else None


def handle_of(vault: Vault, line: LineKey) -> str:
    """The name of a line in the addresses of its pages."""
    return vault.handles.name(_gift(line))


def _gift(line: LineKey) -> bytes:
    return b"gift/%d/%d" % (line.order_id, line.number)


def _purpose(environment: str) -> str:
    return f"claim-session/{environment}"
