"""Sealed cookies and form tokens.

A sealed cookie holds the subject of a session and when it ends. Nobody can forge it, and the server stores nothing. Forms carry a key or
token that belongs to the cookie, so that no other site can send them.
"""

import base64
import binascii
import os
from datetime import datetime
from typing import Literal, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from largesse.encryption.vault import DecryptionFailed, Vault

_MAX_COOKIE = 400
_MARK_BYTES = 12
# Those that `str.strip` takes include the bytes 85 and A0: browsers let a subdomain set a `__Host-` cookie with one in front of its name.
_BLANKS = " \t"
_READ = "largesse.cookies"  # the member of a scope that has the cookies of its request


def seal_cookie(vault: Vault, purpose: str, about: bytes, ends_at: datetime) -> str:
    """Returns the value of a cookie that holds `about` for a purpose, until `ends_at`."""
    sealed = vault.sessions.seal(about + b"/%d" % int(ends_at.timestamp()), purpose.encode("ascii"))
    return base64.urlsafe_b64encode(sealed).decode("ascii").rstrip("=")


def open_cookie(vault: Vault, purpose: str, cookie: str, now: datetime) -> bytes | None:
    """Returns what the cookie holds; None if it has ended, is for another purpose, or is not ours."""
    if not cookie or len(cookie) > _MAX_COOKIE:
        return None
    try:
        sealed = base64.urlsafe_b64decode(cookie.encode("ascii") + b"=" * (-len(cookie) % 4))
        about, _, ends_s = vault.sessions.open(sealed, purpose.encode("ascii")).rpartition(b"/")
        return about if int(ends_s) > now.timestamp() else None
    except (DecryptionFailed, binascii.Error, UnicodeError, ValueError):
        return None


def form_key(vault: Vault, cookie: str) -> str:
    """Returns the key that forms of the session carry. Only pages of the session show it."""
    return vault.forms.name(_form(cookie))


def is_form_of(vault: Vault, cookie: str, key: str) -> bool:
    """Returns whether that key belongs to a page of the session."""
    return vault.forms.is_name(key, _form(cookie))


class OneTimeToken(NamedTuple):
    """The content of a form token."""

    mark: bytes  # a value that no other form of the session has
    place: str


def one_time_token(vault: Vault, session: str, place: str = "") -> str:
    """Returns a new token for one form of the session. `place` says what its page is about."""
    mark = os.urandom(_MARK_BYTES).hex()
    return f"{mark}.{place}.{vault.forms.name(_marked(session, mark, place))}"


def read_one_time_token(vault: Vault, session: str, token: str) -> OneTimeToken | None:
    """Returns the content of a form token; None for a token of another session."""
    mark, _, rest = token.partition(".")
    place, _, name = rest.rpartition(".")
    is_ours = token.isascii() and vault.forms.is_name(name, _marked(session, mark, place))
    return OneTimeToken(mark.encode(), place) if is_ours else None


def read_cookie(request: Request, name: str) -> str:
    """Returns the value of a browser's cookie as it was sent; empty without one.

    Starlette's `request.cookies` also undoes Python's quoting of values, which takes older releases of Python seconds (CVE-2024-7592).
    Our values are never quoted.
    """
    cookies: dict[str, str] | None = request.scope.get(_READ)
    if cookies is None:
        pairs = (pair.partition("=") for header in request.headers.getlist("cookie") for pair in header.split(";"))
        cookies = request.scope[_READ] = {given.strip(_BLANKS): value.strip(_BLANKS) for given, _, value in pairs}
    return cookies.get(name, "")


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
    """Sets a cookie that no script can read, for pages below `path`."""
    response.set_cookie(name, value, max_age=lasts_s, path=path, secure=is_secure, httponly=True, samesite=same_site)


class PageCookies(NamedTuple):
    """The cookies of the pages for people who sign in: how they are named, and for which path."""

    prefix: str
    path: str
    is_secure: bool

    def read(self, request: Request, name: str) -> str:
        """Returns the value of a cookie; empty without one."""
        return read_cookie(request, self.prefix + name)

    def give(self, response: Response, name: str, value: str, lasts_s: int) -> None:
        """Sets a cookie."""
        name, path, is_secure = self.prefix + name, self.path, self.is_secure
        give_cookie(response, name, value, lasts_s=lasts_s, path=path, is_secure=is_secure, same_site="lax")

    def take(self, response: Response, name: str) -> None:
        """Deletes a cookie of the browser."""
        response.delete_cookie(self.prefix + name, path=self.path, secure=self.is_secure, httponly=True)


def page_cookies(public_url: str, base: str, root: str) -> PageCookies:
    """Returns the cookies of the pages below `root`, such as `/app`. `base` is the path of the public address.

    A subdomain can set cookies for the whole domain, and so put a person into a session of its own. It cannot set a `__Host-` cookie. Such a
    cookie needs TLS and the path `/`, so an address with a path has none: other programs on that host would get the cookie.
    """
    prefix, is_secure = f"{root[1:]}-", public_url.startswith("https://")
    if is_secure and not base:
        return PageCookies(f"__Host-{prefix}", "/", is_secure)
    return PageCookies(prefix, base + root, is_secure)


def _marked(session: str, mark: str, place: str) -> bytes:
    return f"once/{session}/{mark}/{place}".encode()


def _form(cookie: str) -> bytes:
    return b"form/" + cookie.encode()
