"""Shows the web application as a customer sees it, with the same handlers and templates. The viewer belongs to no customer and only reads.

Four safeguards: only GET routes with a path in `SEEN` exist below `/office/as`, and these show no codes, keys, secrets or files;
the person has the role `viewer`; the database refuses writes; and the actor refuses transactions.
"""

import re
from collections.abc import Mapping
from typing import Any, NoReturn

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from largesse.base.errors import InvalidRequest, NotFound
from largesse.base.settings import ENVIRONMENTS
from largesse.customers import customer_views
from largesse.customers.actor import Actor
from largesse.customers.customer_store import read_customer
from largesse.web.console.context import RequestContext
from largesse.web.console.guard import people
from largesse.web.console.layout import Layout
from largesse.web.console.page_routes import PageRoute
from largesse.web.console.routes import ROUTES
from largesse.web.kit.pages import see
from largesse.web.kit.sessions import one_time_token
from largesse.web.office.context import OfficeContext
from largesse.web.office.customers import ENVIRONMENT_NAMES, acting_for, named, page

ROOT = "/office/as"
_PICTURE = re.compile(rf"{ROOT}/pictures/(\w+\.\w+)")
# The paths of the web application that a view shows. All others are not found.
SEEN = frozenset(
    (
        "/app",
        "/app/search",
        "/app/orders",
        "/app/orders/{reference}",
        "/app/approvals",
        "/app/approvals/{send}",
        "/app/collections",
        "/app/collections/{collection:int}",
        "/app/collections/{collection:int}/claim",
        "/app/catalogue",
        "/app/catalogue/{product:int}",
        "/app/funding",
        "/app/funding/{account:int}",
        "/app/funding/{account:int}/print",
        "/app/funding/owed",
        "/app/funding/top-ups",
        "/app/funding/top-ups/{reference}",
        "/app/budgets",
        "/app/reports",
    )
)
_VIEWER = "viewer"
_SHOWN: tuple[tuple[Route, PageRoute], ...] = tuple(
    (Route(route.path, route.handler), route)
    for route in ROUTES
    if route.method == "GET" and route.path in SEEN and _VIEWER in route.roles and route.is_of_customer
)


class SeenContext(RequestContext):
    """The context of a handler of the web application in a view. It only reads."""

    @property
    def actor(self) -> Actor:
        """The viewer as an actor, for checks of what they may see. It refuses every transaction."""
        return replace(super().actor, begin=lambda _: _refuse())

    @property
    def address(self) -> str:
        """The path and parameters of the request."""
        return self.request.url.path

    def require_proof(self) -> None:
        """Raises NotFound, because a view has no step-up."""
        _refuse()

    async def csv(self, *_: Any, **__: Any) -> Response:
        """Raises NotFound, because a view has no files."""
        _refuse()

    def here(self, **changes: str | int | None) -> str:
        """Returns the address of this page with those parameters changed."""
        return super().here(**changes).replace(ROOT, "", 1)

    def shown(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the values of a page, with the banner."""
        assert isinstance(self.layout, _SeenLayout), "show makes it"
        path = self.request.url.path.removeprefix(ROOT)
        menu = self.layout.menu(self.language, self.person, path)
        return super().shown({**values, **self.layout.shown, "path": path, "menu": menu})


def _refuse() -> NoReturn:
    raise NotFound("This view of a customer's pages is read-only.")


class _SeenLayout(Layout):
    """The layout of the web application, with its paths below ROOT and a banner."""

    def __init__(self, base: Layout, view: customer_views.CustomerView, token: str) -> None:
        self.base = self._staging_base = base.base + ROOT
        self.docs_url = base.docs_url
        self.page_cookies = base.page_cookies
        self.routes = [route for _, route in _SHOWN]
        self.shown = {
            "asset": base.asset,  # assets stay at their own path
            "token": lambda: "",
            "seen_as": view,
            "seen_end": f"{base.base}/office/see-as/end",
            "seen_token": token,  # the token of the only form, which ends the view
            "notice": None,
        }


async def ask(context: OfficeContext) -> Response:
    """Asks for a reason to see the pages of a customer. Raises NotFound."""
    customer = await context.read(read_customer, context.number("customer"))
    return page(
        context,
        "see_as.html",
        customer=customer,
        environments=named(context, ENVIRONMENT_NAMES),
        least=customer_views.SHORTEST_REASON,
        most=customer_views.LONGEST_REASON,
        minutes=customer_views.LASTS.seconds // 60,
    )


async def begin(context: OfficeContext) -> Response:
    """Starts a view, and shows the customer's first page. Raises NotFound."""
    form = context.form
    environment = form.choice("environment", ENVIRONMENTS)
    if form.errors:
        return await ask(context)
    try:
        await customer_views.begin_view(acting_for(context, environment), context.person.session_id, form["reason"])
    except InvalidRequest:
        said = context.say(
            "Give a reason of %(least)s to %(most)s characters.",
            least=customer_views.SHORTEST_REASON,
            most=customer_views.LONGEST_REASON,
        )
        form.error("reason", said)
        return await ask(context)
    return context.see(f"{ROOT}/app")


async def end(context: OfficeContext) -> Response:
    """Ends the open view."""
    view = await context.read(customer_views.find_view, context.person.session_id)
    await customer_views.end_view(context.actor, context.person.session_id)
    said = context.say("The view has ended.")
    return context.see(f"/office/customers/{view.customer_id}" if view else "/office/customers", said)


async def show(context: OfficeContext) -> Response:
    """Shows a page of the web application as the customer of the open view sees it. Raises NotFound."""
    request = context.request
    view = await context.read(customer_views.find_view, context.person.session_id)
    if view is None:
        said = context.say(
            "The view has ended: it lasts %(minutes)s minutes.", minutes=customer_views.LASTS.seconds // 60
        )
        return context.see("/office/customers", said)
    if picture := _PICTURE.fullmatch(request.url.path):  # pictures are public, at their own path
        return see(f"{context.layout.base}/pictures/{picture[1]}", {})
    route, path_params = _route_of(request)
    seen = Request({**request.scope, "path_params": path_params}, request.receive)
    staff = context.session
    assert staff is not None, "the guard requires a session"
    session = view.session(context.person.email, staff.language, staff.zone or str(context.zone))
    token = one_time_token(context.services.vault, context.token_of, context.place)
    layout = _SeenLayout(context.layout, view, token)
    answered = SeenContext(
        seen, context.services, people(context.services), layout, route, session=session, language=context.language
    )
    return await route.handler(answered)


def _route_of(request: Request) -> tuple[PageRoute, dict[str, Any]]:
    """Returns the route of the web application for the path, with its parameters. Raises NotFound."""
    path = request.url.path.removeprefix(ROOT)
    for matcher, route in _SHOWN:
        found, scope = matcher.matches({"type": "http", "method": "GET", "path": path, "root_path": ""})
        if found is Match.FULL:
            return route, scope["path_params"]
    raise NotFound("A view does not show this page.")
