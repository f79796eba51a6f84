"""The table of routes: each address has a route, and lets in whom it says and nobody else."""

import re
from collections.abc import Iterable, Iterator

import httpx
import pytest
from starlette.routing import BaseRoute, Route
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser, SignIn, acme_with, signed_in

from largesse.customers.roles import ROLES
from largesse.web.console import home
from largesse.web.console.guard import console_pages
from largesse.web.console.page_routes import Access, Group, PageRoute
from largesse.web.console.routes import ROUTES
from largesse.web.kit.page_services import page_services


def test_a_page_of_the_menu_needs_an_icon() -> None:
    with pytest.raises(ValueError, match="/app/x is in the menu, so its route needs a title and an icon"):
        PageRoute("GET", "/app/x", home.show, Access.MEMBER, "X", Group.GIFTS)


WORLD = acme_with(**{role: role for role in ROLES})
# Access ends the session, or begins another, would change who asks next.
LEFT_OUT = {"/app/sign-out", "/app/sign-in", "/app/link/{secret}"}


@pytest.fixture(scope="module")
def people(service: Service) -> dict[str, Browser]:
    return {role: signed_in(service, f"{role}@acme.example") for role in ROLES}


def path_of(route: PageRoute) -> str:
    """An address of a route, with an id that is nobody's."""
    return re.sub(r"\{\w+(:\w+)?\}", "999999", route.path)


def asked(browser: Browser, route: PageRoute) -> httpx.Response:
    path = path_of(route)
    if route.method == "GET":
        return browser.get(path)
    return browser.upload(path, b"x") if route.takes_files else browser.post(path)


def answers(browser: Browser, routes: Iterable[PageRoute], form: str) -> Iterator[tuple[PageRoute, httpx.Response]]:
    """What each route answers, pages first. The token of forms is of the page `form`: a new one, unless the last form was refused."""
    is_spent = True
    for route in sorted(routes, key=lambda route: route.method):
        if route.method == "POST" and is_spent:
            assert browser.get(form).status_code == 200
        answer = asked(browser, route)
        is_spent = route.method == "GET" or answer.status_code not in {401, 403}
        yield route, answer


def served(pages: Iterable[BaseRoute]) -> list[tuple[str, str]]:
    """The methods and paths of pages, in their order."""
    return sorted(
        (method, route.path)
        for route in pages
        if isinstance(route, Route) and "/assets/" not in route.path
        for method in route.methods or ()
        if method != "HEAD"
    )


def test_every_route_is_in_the_table(service: Service) -> None:
    assert served(console_pages(page_services(service.app.services))) == sorted(
        (route.method, route.path) for route in ROUTES
    )
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)


def test_what_acts_is_no_get_and_menus_are_of_pages() -> None:
    assert {route.method for route in ROUTES} == {"GET", "POST"}
    for route in ROUTES:
        assert route.method == "GET" or route.group is None
        assert route.title or route.method == "POST"
        assert route.group is None or not isinstance(route.who, Access) or route.who is Access.MEMBER


# Whom an address is for, said once more beside the table of routes: the first that fits.
MAY = (
    (r"\w+ /app/(keys|people|requests|unclaimed|webhooks|service-accounts)\b.*", "admin"),
    (r"POST /app/security/(required|large-sends)", "admin"),
    (r"\w+ /app/funding/(accounts\b.*|\{account:int\}/(close|name|open))", "admin"),
    (r"POST /app/notes", "admin"),
    (r"\w+ /app/(automations|campaigns)\b.*", "admin member"),
    (r"\w+ /app/branding\b.*", "admin"),
    (r"\w+ /app/approvals/rules\b.*", "admin"),
    (r"POST /app/approvals/\{send\}/withdraw", "admin member"),
    (r"POST /app/budgets\b.*|GET /app/budgets/.+", "admin"),
    (r"\w+ /app/audit\b.*", "admin finance"),
    (r"\w+ /app/funding/(transfers?|\{account:int\}/(account|watch))", "admin finance"),
    (r"\w+ /app/funding/owed\b.*", "admin finance viewer"),
    (r"POST /app/funding/top-ups\b.*|GET /app/funding/top-ups/new", "admin finance member"),
    (r"GET /app/(orders|reports)\.csv", "admin finance member"),
    (r"GET /app/orders/\{reference\}/recipients\.csv", "admin finance member"),
    (r"\w+ /app/orders/\{reference\}/.+", "admin member"),
    (r"\w+ /app/(send|templates|contacts)\b.*", "admin member"),
    (r"POST /app/collections\b.*|GET /app/collections/(new|\{collection:int\}/(edit|remove))", "admin member"),
    (r".*", "admin finance member viewer"),
)


def test_each_address_is_for_its_roles() -> None:
    for route in ROUTES:
        said = f"{route.method} {route.path}"
        roles = next(roles for pattern, roles in MAY if re.fullmatch(pattern, said))
        assert sorted(route.roles) == roles.split(), (
            f"{said}: say in MAY whom a new address is for, above the lines that fit it, too"
        )


# All roles in CI; in `make test` the one that may do least.
@pytest.mark.sampled(1)
@pytest.mark.parametrize("role", [ROLES[-1], *(pytest.param(role, marks=pytest.mark.slow) for role in ROLES[:-1])])
def test_each_role_is_let_in_as_the_table_says(people: dict[str, Browser], role: str) -> None:
    routes = [route for route in ROUTES if route.path not in LEFT_OUT]
    for route, answer in answers(people[role], routes, "/app/security"):
        if role in route.roles:
            assert answer.status_code in {200, 303, 404, 409, 422}, (route.method, route.path)
        else:
            assert answer.status_code == 403, (route.method, route.path)


def test_nobody_is_let_in_without_a_session(service: Service) -> None:
    routes = [route for route in ROUTES if route.who is not Access.ANYONE]
    for route, answer in answers(Browser(service), routes, "/app/sign-in"):
        if route.method == "GET":
            assert answer.status_code == 303, route.path
            assert answer.headers["location"].startswith("/app/sign-in?next=%2Fapp")
        else:
            assert answer.status_code == 401, route.path


@pytest.mark.parametrize("role", ROLES)
def test_the_menu_shows_what_a_role_may_see(people: dict[str, Browser], role: str) -> None:
    browser = people[role]
    browser.get("/app")
    shown = {link for link in browser.links if link.startswith("/app") and "/assets/" not in link}
    assert {route.path for route in menu() if role in route.roles} <= shown
    assert not {route.path for route in menu() if role not in route.roles} & shown


def menu() -> Iterator[PageRoute]:
    return (route for route in ROUTES if route.group)


def test_pages_say_who_they_are_for(sign_in: SignIn) -> None:
    browser = sign_in("admin@acme.example")
    browser.sees("/app", "Acme Ltd", "admin@acme.example", "Skip to the content")


def test_what_is_not_there_is_said_within_the_menu_to_who_is_in(service: Service, sign_in: SignIn) -> None:
    inside, outside = sign_in("viewer@acme.example"), Browser(service)
    for path, status in (("/app/nothing-there", 404), ("/app/orders/999999", 404), ("/app/people", 403)):
        assert inside.get(path).status_code == status
        assert {"/app/orders", "/app/security"} <= set(inside.links), path
        assert inside.page.text.count("<h1") == 1
        if path == "/app/orders/999999":
            assert re.search('aria-current="page"><svg.*?</svg><span>Orders', inside.page.text)
    assert outside.get("/app/nothing-there").status_code == 404
    assert "/app/orders" not in outside.links
    refused = inside.submit("/app", "/app/environment", token="0" * 40, environment="staging")
    assert refused.status_code == 403
    assert "/app/orders" in refused.text


def test_pages_of_a_new_installation_do_not_blame_a_search(people: dict[str, Browser]) -> None:
    for path in ("/app/send", "/app/catalogue", "/app/collections/new"):
        people["admin"].sees(path, "There are no gifts yet. The operator of this installation adds them.")
        assert 'role="search"' not in people["admin"].page.text.partition("<main")[2].partition("</main>")[0]
    people["admin"].sees("/app/send?tab=collections", "A collection lets each recipient choose a gift.")
    people["admin"].sees("/app/search", "Search for a name, an address, a reference or a word of the page.")
    assert "Nothing matches" not in people["admin"].text


def test_without_an_account_a_top_up_says_who_can_create_one(people: dict[str, Browser]) -> None:
    people["admin"].sees("/app/funding/top-ups/new", "There is no account that you can top up. New account")
    assert "/app/funding/accounts/new" in people["admin"].links
    people["finance"].sees("/app/funding/top-ups/new", "There is no account", "Ask an administrator of your company.")
    assert "/app/funding/accounts/new" not in people["finance"].links
