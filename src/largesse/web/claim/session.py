"""The session of a claimed gift: a sealed cookie for one hour, sent only to the pages of that gift."""

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
    """A browser's access to one line. `handle` names the line in addresses and reveals nothing."""

    line: LineKey
    handle: str
    cookie: str

    def form_key(self, vault: Vault) -> str:
        """Returns the key that forms of this session carry, so that no other site can send one."""
        return form_key(vault, self.cookie)

    def sent(self, vault: Vault, form: Mapping[str, str]) -> bool:
        """Returns whether a posted form belongs to this session."""
        return is_form_of(vault, self.cookie, form.get("key", ""))


def new_session(vault: Vault, environment: str, line: LineKey, now: datetime) -> Session:
    """Returns a session that starts `now`."""
    cookie = seal_cookie(vault, _purpose(environment), b"%d/%d/%d" % line, now + LASTS)
    return Session(line, handle_of(vault, line), cookie)


def read_session(vault: Vault, environment: str, cookie: str, handle: str, now: datetime) -> Session | None:
    """Returns the session of a cookie; None if it has ended, is of another gift, or is not ours."""
    about = open_cookie(vault, _purpose(environment), cookie, now)
    if about is None:
        return None
    parts = about.split(b"/")
    if len(parts) != len(LineKey._fields):  # from a release whose cookies did not name the customer
        return None
    line = LineKey(*map(int, parts))
    return Session(line, handle, cookie) if vault.handles.is_name(handle, _gift(line)) else None


def handle_of(vault: Vault, line: LineKey) -> str:
    """Returns the name of a line in addresses."""
    return vault.handles.name(_gift(line))


def _gift(line: LineKey) -> bytes:
    return b"gift/%d/%d" % (line.order_id, line.number)


def _purpose(environment: str) -> str:
    return f"claim-session/{environment}"
