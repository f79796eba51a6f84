"""Pages for people: how one is answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

Endpoint = Callable[[Request], Awaitable[Response]]


def public_path(public_url: str) -> str:
    """The path that the public address begins with, without a slash at its end; mostly empty."""
    return urlsplit(public_url).path.rstrip("/")


def page(html: str, headers: Mapping[str, str], *, status: int = 200) -> Response:
    """A page with its headers (`largesse.web.kit.security`)."""
    return Response(html, status_code=status, media_type="text/html", headers=headers)
