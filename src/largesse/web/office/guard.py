"""Checks before a handler of the back office: whether the back office is open to the client, then the checks of the web application's guard.

Until somebody is invited, and for clients outside its networks, the back office answers every path below `/office` as not found.
"""

import ipaddress

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from largesse.base.errors import NotFound
from largesse.base.i18n.languages import text
from largesse.staff.sign_in import LASTS
from largesse.staff.store import SIGN_IN
from largesse.web.console.context import Users
from largesse.web.console.guard import Guard
from largesse.web.kit.asgi import client_address
from largesse.web.kit.page_services import Office, PageServices
from largesse.web.office.context import OfficeContext, OfficeLayout
from largesse.web.office.routes import ROUTES

_NOTHING = "There is nothing at this address."  # the same text as for every unknown path
_FORBIDDEN = text("Your role does not include this. Ask an owner of the back office.")


def office_pages(services: PageServices) -> list[BaseRoute]:
    """Returns the routes under `/office`; none if this process has no back office."""
    office = services.office
    if office is None:
        return []
    layout = OfficeLayout(services.settings, ROUTES)
    users = Users(
        lasts_s=int(LASTS.total_seconds()),
        forbidden=_FORBIDDEN,
        database=office.database,
        signing_in=office.signing_in,
        security=office.security,
        sql=SIGN_IN,
    )
    guards = [Guard(services, users, layout, route, OfficeContext) for route in ROUTES]
    routes = [*layout.assets.routes(), *(guard.route() for guard in guards)]
    hidden = [_hidden(one, services, office) for one in routes if isinstance(one, Route)]
    return [*hidden, _nothing_else()]


def _hidden(route: Route, services: PageServices, office: Office) -> Route:
    """Changes the route so that it is only found by clients that the back office is open to, and returns it."""
    answer = route.app

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if not await _is_for(scope, services, office):
            raise NotFound(_NOTHING)
        await answer(scope, receive, send)

    route.app = serve
    return route


def _nothing_else() -> Route:
    """Returns a route for all other methods, which would otherwise get status 405."""

    async def nothing(_: Request) -> Response:
        raise NotFound(_NOTHING)

    route = Route("/office{rest:path}", nothing)
    route.methods = set()
    return route


async def _is_for(scope: Scope, services: PageServices, office: Office) -> bool:
    networks = services.settings.office_networks
    address = client_address(scope)
    if networks:
        try:
            found = ipaddress.ip_address(address or "")
        except ValueError:
            return False
        if not any(found in network for network in networks):
            return False
    return await office.signing_in.is_open()
