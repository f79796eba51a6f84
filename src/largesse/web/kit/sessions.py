"""What a browser keeps so that it may come back: a cookie that is sealed, ends, and cannot be made up.

Nothing of a session is kept here. What it is about is inside the cookie; forms carry a key that goes with it, so that no other site
can send one.
"""

from __future__ import annotations

import base64
import binascii
import os
from datetime import datetime
from typing import Literal, NamedTuple

from starlette.responses import Response

from largesse.encryption.vault import DecryptionFailed, Vault

_LONGEST = 400
_MARK_BYTES = 12


def seal_cookie(vault: Vault, purpose: str, about: bytes, ends_at: datetime) -> str:
    """The value of a cookie for that purpose, about what `about` says, until then."""
    sealed = vault.sessions.seal(about + b"/%d" % int(ends_at.timestamp()), purpose.encode("ascii"))
    return base64.urlsafe_b64encode(sealed).decode("ascii").rstrip("=")


def open_cookie(vault: Vault, purpose: str, cookie: str, now: datetime) -> bytes | None:
    """What the cookie is about; None when it has ended, is for another purpose, or none of ours."""
    if not cookie or len(cookie) > _LONGEST:
        return None
    try:
        sealed = base64.urlsafe_b64decode(cookie.encode("ascii") + b"=" * (-len(cookie) % 4))
        about, _, ends_s = vault.sessions.open(sealed, purpose.encode("ascii")).rpartition(b"/")
        return about if int(ends_s) > now.timestamp() else None
    except (DecryptionFailed, binascii.Error, UnicodeError, ValueError):
        return None


def form_key(vault: Vault, cookie: str) -> str:
    """What the forms of that session carry: nobody can tell it who has not seen its pages."""
    return vault.forms.name(_form(cookie))


def is_form_of(vault: Vault, cookie: str, key: str) -> bool:
    """Whether a form with that key was posted from a page of the session."""
    return vault.forms.is_name(key, _form(cookie))


class OneTimeToken(NamedTuple):
    """What the token of a form says: which form it is, and what its page was about."""

    mark: bytes  # tells the form from all others of the session
    place: str


def one_time_token(vault: Vault, session: str, place: str = "") -> str:
    """Returns what one form of that session carries, once: another each time. `place` says what its page is about."""
    mark = os.urandom(_MARK_BYTES).hex()
    return f"{mark}.{place}.{vault.forms.name(_marked(session, mark, place))}"


def read_one_time_token(vault: Vault, session: str, token: str) -> OneTimeToken | None:
    """Returns what the token of a form says; None for a token that no page of the session had."""
    mark, _, rest = token.partition(".")
    place, _, name = rest.rpartition(".")
    is_ours = token.isascii() and vault.forms.is_name(name, _marked(session, mark, place))
    return OneTimeToken(mark.encode(), place) if is_ours else None


def give_cookie(
    response: Response,
    name: str,
    value: str,
    *,
    lasts_s: int,
    path: str,
    is_secure: bool,
    same_site: Literal["lax", "strict"],
) -> None:
    """Has the browser keep a cookie that no script reads, for pages below `path`."""
    response.set_cookie(name, value, max_age=lasts_s, path=path, secure=is_secure, httponly=True, samesite=same_site)


def take_cookie(response: Response, name: str, *, path: str, is_secure: bool) -> None:
    """Has the browser forget a cookie."""
    response.delete_cookie(name, path=path, secure=is_secure, httponly=True)


def _marked(session: str, mark: str, place: str) -> bytes:
    return f"once/{session}/{mark}/{place}".encode()


def _form(cookie: str) -> bytes:
    return b"form/" + cookie.encode()
