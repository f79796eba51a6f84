"""The pages of the captured mailbox. They show codes, so `main` adds them only in staging and in the demo.

They run no script. A message is shown in a frame whose document may run nothing and load only our pictures.
"""

from collections.abc import Sequence
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from largesse.base.errors import InvalidRequest
from largesse.base.hosts import own_hosts
from largesse.db.scope import LOOKUP
from largesse.mail.mailbox import OpenedMail, list_captured, open_captured
from largesse.web.kit.assets import Assets
from largesse.web.kit.headers import require_own_host
from largesse.web.kit.pages import Endpoint, page, page_templates, public_path
from largesse.web.kit.query import INT64, Whole, query_of, require_fit_path
from largesse.web.kit.security import UNLISTED, content_policy, page_headers, with_named_styles
from largesse.web.kit.services import Services

PAGE_MESSAGES = 50

_FOLDER = Path(__file__).parent
_PAGE_HEADERS = page_headers(content_policy(style_src="'self'", img_src="'self'", frame_src="'self'"))
# Links may open a window outside of the sandbox, so that claiming works as from a mail client.
_SANDBOX = "allow-popups allow-popups-to-escape-sandbox"


def mailbox_pages(services: Services, listens_on: str = "") -> Sequence[BaseRoute]:
    """Returns the routes under `/mailbox`, for the mail of the process's environment.

    They answer only to the service's own host names; `listens_on` is one of them.
    """
    return _Pages(services, listens_on).routes()


class _Pages:
    def __init__(self, services: Services, listens_on: str) -> None:
        settings = services.settings
        self._services = services
        self._environment = settings.environment
        self._hosts = own_hosts(listens_on=listens_on, urls=(settings.public_url, settings.other_public_url))
        self._base = public_path(settings.public_url)
        self._assets = Assets(_FOLDER / "assets", "/mailbox", UNLISTED)
        self._templates = page_templates(_FOLDER / "templates")
        # Mail names pictures by the public address, even if the mailbox is read under another host name.
        self._pictures = f"'self' {settings.public_url.removesuffix(self._base)}/"

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/mailbox", self._own(self._list), methods=["GET"]),
            *self._assets.routes(),
            Route("/mailbox/{id:int}", self._own(self._message), methods=["GET"]),
            Route("/mailbox/{id:int}/html", self._own(self._html), methods=["GET"]),
            Route("/mailbox/{id:int}/message.eml", self._own(self._raw), methods=["GET"]),
        ]

    def _own(self, endpoint: Endpoint) -> Endpoint:
        """Returns `endpoint`, limited to requests for one of our host names."""

        async def own(request: Request) -> Response:
            connected_to = request.scope["server"][0] if request.scope.get("server") else ""
            require_own_host(self._hosts, request.headers.getlist("host"), connected_to)
            require_fit_path(request)
            return await endpoint(request)

        return own

    async def _list(self, request: Request) -> Response:
        before = _read_before(request)
        async with self._services.database.connection(LOOKUP) as connection:
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
        return self._page("message.html", id=request.path_params["id"], message=opened, sandbox=_SANDBOX)

    async def _html(self, request: Request) -> Response:
        opened = await self._open(request)
        # Claim pages may not be framed, and a mail client opens a window too.
        html = opened.html.replace("<head>", '<head>\n<base target="_blank">', 1)
        document, styles = with_named_styles(html)
        return page(document, self._message_headers(styles))

    async def _raw(self, request: Request) -> Response:
        opened = await self._open(request)
        attached = {"Content-Disposition": f'attachment; filename="{request.path_params["id"]}.eml"'}
        return Response(opened.raw, media_type="message/rfc822", headers=self._message_headers("'none'") | attached)

    async def _open(self, request: Request) -> OpenedMail:
        """Returns the message in the path. Raises NotFound if this environment has none with that id, or cannot open it."""
        async with self._services.database.connection(LOOKUP) as connection:
            return await open_captured(connection, self._services.vault, self._environment, request.path_params["id"])

    def _page(self, template: str, **values: object) -> Response:
        html = self._templates.get_template(template).render(
            values,
            base=self._base,
            environment=self._environment,
            asset=lambda name: self._base + self._assets.address_of(name),
        )
        return page(html, _PAGE_HEADERS)

    def _message_headers(self, styles: str) -> dict[str, str]:
        """Returns the headers of a message in its frame, with its styles."""
        return page_headers(
            content_policy(style_src=styles, img_src=self._pictures, frame_ancestors="'self'", sandbox=_SANDBOX)
        )


def _read_before(request: Request) -> int | None:
    """Returns the id below which a page of the list begins. Raises InvalidRequest."""
    query = query_of(request, {"before": Whole(INT64)})
    if query.is_wrong("before"):
        raise InvalidRequest("`before` must be the id of a message.")
    return query.number("before", INT64)
