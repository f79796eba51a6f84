"""The pages of the captured mailbox. Whoever can reach them reads codes: `main` adds them in staging and the demo alone.

They run no script. A message is shown in a frame of its own, whose document may neither run nor load anything.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol
from urllib.parse import urlsplit

import jinja2
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from largesse.base.errors import InvalidRequest, NotFound
from largesse.base.hosts import own_hosts
from largesse.base.settings import Settings
from largesse.base.vault import SealBroken, Vault
from largesse.database import Database
from largesse.delivery.mail import OpenedMail, list_captured, open_captured
from largesse.web.kit.hosts import require_own_host

PAGE_MESSAGES = 50
_HIGHEST_ID = 2**63 - 1  # PostgreSQL's bigint

_SHARED_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex, nofollow",
}
_PAGE_HEADERS = {
    **_SHARED_HEADERS,
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; frame-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}
# Links may open a window of their own, which the sandbox does not reach: claiming works as from a mail client.
_SANDBOX = "allow-popups allow-popups-to-escape-sandbox"
_MESSAGE_HEADERS = {
    **_SHARED_HEADERS,
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    f"frame-ancestors 'self'; sandbox {_SANDBOX}",
    "Cache-Control": "no-store",
}
_STYLE_HEADERS = {**_SHARED_HEADERS, "Cache-Control": "public, max-age=300"}

_templates = jinja2.Environment(
    loader=jinja2.PackageLoader("largesse.web.mailbox", "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)


Endpoint = Callable[[Request], Awaitable[Response]]


class Services(Protocol):
    """What the pages need of the running application."""

    @property
    def database(self) -> Database: ...

    @property
    def vault(self) -> Vault: ...


def mailbox_pages(settings: Settings, listens_on: str = "") -> Sequence[BaseRoute]:
    """The routes under `/mailbox`, for the mail of the process's environment.

    They answer to the service's own host names alone; `listens_on` is one of them.
    """
    return _Pages(settings, listens_on).routes()


class _Pages:
    def __init__(self, settings: Settings, listens_on: str) -> None:
        self._environment = settings.environment
        self._hosts = own_hosts(listens_on=listens_on, urls=(settings.public_url, settings.other_public_url))
        self._base = urlsplit(settings.public_url).path.rstrip("/")

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/mailbox", self._own(self._list), methods=["GET"]),
            Route("/mailbox/style.css", self._style, methods=["GET"]),
            Route("/mailbox/{id:int}", self._own(self._message), methods=["GET"]),
            Route("/mailbox/{id:int}/html", self._own(self._html), methods=["GET"]),
            Route("/mailbox/{id:int}/message.eml", self._own(self._raw), methods=["GET"]),
        ]

    def _own(self, endpoint: Endpoint) -> Endpoint:
        """`endpoint` for who comes by a name of ours."""

        async def own(request: Request) -> Response:
            connected_to = request.scope["server"][0] if request.scope.get("server") else ""
            require_own_host(self._hosts, request.headers.getlist("host"), connected_to)
            return await endpoint(request)

        return own

    async def _list(self, request: Request) -> Response:
        before = _read_before(request)
        async with _services(request).database.connection() as connection:
            found = await list_captured(connection, self._environment, before=before, limit=PAGE_MESSAGES + 1)
        shown = found[:PAGE_MESSAGES]
        return self._page(
            "list.html",
            messages=shown,
            is_first=before is None,
            older=shown[-1].id if len(found) > PAGE_MESSAGES else None,
        )

    async def _message(self, request: Request) -> Response:
        opened = await self._open(request)
        return self._page(
            "message.html",
            id=request.path_params["id"],
            message=opened,
            sandbox=_SANDBOX,
        )

    async def _html(self, request: Request) -> Response:
        opened = await self._open(request)
        # Inside the frame the pages of a claim are forbidden to show, and a mail client opens a window, too.
        html = opened.html.replace("<head>", '<head>\n<base target="_blank">', 1)
        return Response(html, media_type="text/html", headers=_MESSAGE_HEADERS)

    async def _raw(self, request: Request) -> Response:
        opened = await self._open(request)
        attached = {"Content-Disposition": f'attachment; filename="{request.path_params["id"]}.eml"'}
        return Response(opened.raw, media_type="message/rfc822", headers=_MESSAGE_HEADERS | attached)

    async def _style(self, _: Request) -> Response:
        assert _templates.loader is not None
        source = _templates.loader.get_source(_templates, "style.css")[0]
        return Response(source, media_type="text/css", headers=_STYLE_HEADERS)

    async def _open(self, request: Request) -> OpenedMail:
        """The message of the path. Raises NotFound when this environment has none of that id, or cannot open it."""
        captured_id: int = request.path_params["id"]
        opened = None
        if captured_id <= _HIGHEST_ID:
            services = _services(request)
            try:
                async with services.database.connection() as connection:
                    opened = await open_captured(connection, services.vault, self._environment, captured_id)
            except SealBroken:
                raise NotFound("The message is sealed with a master key that is not set any more.") from None
        if opened is None:
            raise NotFound("There is no such message here; captured mail is kept for 30 days.")
        return opened

    def _page(self, template: str, **values: object) -> Response:
        html = _templates.get_template(template).render(
            values, base=self._base, environment=self._environment
        )
        return Response(html, media_type="text/html", headers=_PAGE_HEADERS)


def _services(request: Request) -> Services:
    services: Services = request.app.services
    return services


def _read_before(request: Request) -> int | None:
    """The id that a page of the list begins below. Raises InvalidRequest."""
    given = request.query_params.get("before")
    if given is None:
        return None
    if not given.isascii() or not given.isdigit() or len(given) > 19 or int(given) > _HIGHEST_ID:
        raise InvalidRequest("`before` must be the id of a message.")
    return int(given)
