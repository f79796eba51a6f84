"""The table of routes of the back office: each address has a route, and lets in whom it says and nobody else."""

import re

import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser, signed_in
from tests.web.console.test_routes import answers, path_of, served
from tests.web.office.conftest import add_staff, link_of, staff_in

from largesse.customers.staff_roles import STAFF_RIGHTS, STAFF_ROLES, StaffRight
from largesse.web.console.page_routes import Access
from largesse.web.console.routes import ROUTES as OF_CONSOLE
from largesse.web.kit.page_services import page_services
from largesse.web.office.guard import office_pages
from largesse.web.office.routes import ROUTES

# Access ends the session, or begins another, would change who asks next.
LEFT_OUT = {"/office/sign-out", "/office/sign-in", "/office/link/{secret}"}
GUARDED = [route for route in ROUTES if route.who not in {Access.ANYONE, Access.ENTERING}]


@pytest.fixture(scope="module")
def people(service: Service) -> dict[str, Browser]:
    return {role: staff_in(service, role) for role in STAFF_ROLES}


def test_every_route_is_in_the_table(service: Service) -> None:
    assert served(office_pages(page_services(service.app.services))) == sorted(
        (route.method, route.path) for route in ROUTES
    )
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)


def test_what_acts_is_no_get_and_each_route_names_a_right() -> None:
    assert {route.method for route in ROUTES} == {"GET", "POST"}
    for route in ROUTES:
        assert route.method == "GET" or route.group is None
        assert route.title or route.method == "POST"
        assert isinstance(route.who, StaffRight) or route.who in {Access.ANYONE, Access.ENTERING}, route.path
    for right, roles in STAFF_RIGHTS.items():
        assert "owner" in roles <= set(STAFF_ROLES), right
    assert set(STAFF_RIGHTS) == set(StaffRight)


def test_an_auditor_changes_nothing() -> None:
    # A search is posted, so that no log has it.
    own = ("/office/security", "/office/prove", "/office/second-step", "/office/find")
    for route in GUARDED:
        if route.method == "POST" and not route.path.startswith(own):
            assert "auditor" not in route.roles, route.path


# Who may see and who may change what is at an address, said once more beside the table of routes: the first that fits. An owner may do all.
ALL = "auditor catalogue finance support warehouse"
MAY = (
    (r"\w+ /office/(second-step|sign-in|sign-out|link|prove|security)\b.*", ALL),
    (r"GET /office", ALL),
    (r"\w+ /office/(staff|settings)\b.*", ""),
    (r"GET /office/audit", "auditor"),
    (r"GET /office/customers(/\{customer:int\}(/people|/service-accounts)?)?", "auditor catalogue finance support"),
    (r"\w+ /office/(customers|see-as|as)\b.*", "support"),
    (r"(GET /office/gifts/.*|\w+ /office/find)", "auditor support"),
    (r"GET /office/(deliveries(/webhooks)?|privacy(/\{request:int\})?)", "auditor support"),
    (r"\w+ /office/(gifts|deliveries|privacy)/.*|POST /office/privacy", "support"),
    (r"GET /office/(catalogue|collections)(\.csv|/\{id:int\})?", ALL),
    (r"\w+ /office/(catalogue|collections)/.*", "catalogue"),
    (r"GET /office/stock\b.*", "auditor catalogue warehouse"),
    (r"POST /office/stock\b.*", "catalogue warehouse"),
    (r"GET /office/parcels(/\{parcel:int\})?", "auditor support warehouse"),
    (r"\w+ /office/parcels/.*", "warehouse"),
    (r"GET /office/money/.*/correct", "finance"),
    (r"GET /office/money\b.*", "auditor finance"),
    (r"POST /office/money/.*", "finance"),
    (r"GET /office/\{rest:path\}", ALL),
)


def test_each_address_is_for_its_roles() -> None:
    for route in ROUTES:
        said = f"{route.method} {route.path}"
        roles = next(roles for pattern, roles in MAY if re.fullmatch(pattern, said))
        may = STAFF_RIGHTS[route.who] if isinstance(route.who, StaffRight) else STAFF_ROLES
        assert sorted(may) == sorted(["owner", *roles.split()]), f"{said}: say in MAY whom a new address is for"


# All roles in CI; in `make test` the one that changes nothing.
@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "role", [STAFF_ROLES[-1], *(pytest.param(role, marks=pytest.mark.slow) for role in STAFF_ROLES[:-1])]
)
def test_each_role_is_let_in_as_the_table_says(people: dict[str, Browser], role: str) -> None:
    routes = [route for route in ROUTES if route.path not in LEFT_OUT]
    for route, answer in answers(people[role], routes, "/office/security"):
        if role in route.roles or isinstance(route.who, Access):
            assert answer.status_code in {200, 303, 404, 409, 422}, (route.method, route.path)
        else:
            assert answer.status_code == 403, (route.method, route.path)


@pytest.mark.slow
def test_nobody_is_let_in_without_a_session(service: Service) -> None:
    add_staff(service, "owner")
    for route, answer in answers(Browser(service), GUARDED, "/office/sign-in"):
        if route.method == "GET":
            assert answer.status_code == 303, route.path
            assert answer.headers["location"].startswith("/office/sign-in?next=%2Foffice")
        else:
            assert answer.status_code == 401, route.path


@pytest.mark.slow
def test_nobody_is_let_in_before_their_second_step(service: Service) -> None:
    browser, link = Browser(service), link_of(service, add_staff(service, "owner", "waits@largesse.example"))
    browser.submit(link)
    for _, answer in answers(browser, GUARDED, "/office/second-step"):
        assert (answer.status_code, answer.headers["location"].partition("?")[0]) == (303, "/office/second-step")


@pytest.mark.slow
def test_who_has_no_second_step_sets_one_up_before_anything_else(service: Service) -> None:
    staff_id = add_staff(service, "owner", "none@largesse.example")
    service.sql("UPDATE staff SET totp = NULL WHERE id = $1 RETURNING 1", staff_id)
    browser, link = Browser(service), link_of(service, staff_id)
    browser.submit(link)
    for route, answer in answers(browser, GUARDED, "/office/security"):
        if not route.before_second_step:
            assert (answer.status_code, answer.headers["location"]) == (303, "/office/security"), route.path
        else:
            assert route.path.startswith(("/office/security", "/office/prove"))


@pytest.mark.slow
def test_people_and_keys_of_customers_reach_nothing_of_it(service: Service) -> None:
    """Not with their session, under whatever name of a cookie, nor with an API key."""
    add_staff(service, "owner")
    ada = signed_in(service, "ada@acme.example")
    ada.cookies["__Host-office-session"] = ada.cookies["__Host-app-session"]
    for route, answer in answers(ada, GUARDED, "/office/sign-in"):
        assert answer.status_code in {303, 401}, route.path
        by_key = service.client("hr").request(route.method, path_of(route))
        assert by_key.status_code in {303, 401, 403}, route.path
        assert by_key.headers.get("location", "/office/sign-in").startswith("/office/sign-in")


@pytest.mark.slow
def test_members_of_staff_reach_nothing_of_customers(service: Service) -> None:
    owner = staff_in(service, "owner")
    owner.cookies["__Host-app-session"] = owner.cookies["__Host-office-session"]
    routes = [route for route in OF_CONSOLE if route.who is not Access.ANYONE]
    for route, answer in answers(owner, routes, "/app/sign-in"):
        assert answer.status_code in {303, 401}, route.path
    answer = service.client().get(
        "/orders", headers={"Authorization": f"Bearer {owner.cookies['__Host-office-session']}"}
    )
    assert answer.status_code == 401


@pytest.mark.parametrize("role", STAFF_ROLES)
def test_the_menu_shows_what_a_role_may_see(people: dict[str, Browser], role: str) -> None:
    browser = people[role]
    browser.get("/office")
    shown = {link for link in browser.links if link.startswith("/office") and "/assets/" not in link}
    menu = [route for route in ROUTES if route.group]
    assert {route.path for route in menu if role in route.roles} <= shown
    assert not {route.path for route in menu if role not in route.roles} & shown


def test_the_cookies_are_of_the_back_office_alone(service: Service) -> None:
    browser, link = Browser(service), link_of(service, add_staff(service, "owner"))
    browser.get(link)
    for cookie in browser.post(link).headers.get_list("set-cookie"):
        assert re.search(r"^__Host-office-\w+=.*; Path=/;.*SameSite=lax; Secure$", cookie), cookie
        assert "HttpOnly" in cookie
