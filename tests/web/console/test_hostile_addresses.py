"""Every address with what nobody types into its path and its parameters: no fault of ours, and no file that is cut off."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import msgspec
import pytest
from tests.web.api.conftest import RICH_WORLD, Service, ServiceFactory
from tests.web.console.conftest import Browser, signed_in
from tests.web.console.everything import Walk, route_of, send_gift
from tests.web.console.orders import work
from tests.web.hostile import IN_STEPS, VALUES, pairs

from largesse.web.api.routes import OPERATIONS
from largesse.web.console.layout import HERE as ROOM
from largesse.web.console.page_routes import PARAMETERS
from largesse.web.console.routes import ROUTES


@pytest.fixture(scope="module")
def service(start_service: ServiceFactory) -> Service:
    """With somebody of each role."""
    cem = "      - {email: cem@acme.example, name: Cem, role: member}\n"
    assert cem in RICH_WORLD
    others = [cem.replace("member", role).replace("cem@", f"{role}@") for role in ("finance", "viewer")]
    return start_service(RICH_WORLD.replace(cem, cem + "".join(others)))


@pytest.fixture(scope="module")
def walk(service: Service) -> Walk:
    """An administrator who has seen everything there is."""
    assert service.send("gift", "coffee", value=10, codeQuantity=2).status_code == 200
    walk = Walk(signed_in(service, "ada@acme.example"), "text")
    for codes in (False, True):
        for path in send_gift(walk.browser, "text", codes=codes):
            walk.pages[path] = walk.browser.get(path)
    work(service)
    walk.go("/app", "/app/forgot", "/app/customers", "/app/prove?next=%2Fapp")
    return walk


@pytest.fixture(scope="module")
def pages(walk: Walk) -> list[str]:
    """An address of each page, and of those that were not reached what the table says."""
    found: dict[str, str] = {}
    for address in walk.pages:
        path = urlsplit(address).path
        if (route := route_of("GET", path)) is not None:
            found.setdefault(route.path, path)
    for route in ROUTES:
        if route.method == "GET" and route.path not in found:
            found[route.path] = re.sub(r"\{[^}]*\}", "1", route.path)
    assert len(found) > 60
    return list(found.values())


def get(browser: Browser, address: str) -> httpx.Response:
    """What is answered, whole: the client raises for a file that ends before its end."""
    answer = browser.get(address)
    assert answer.status_code < 500, (address, answer.text)
    if answer.headers.get("content-type", "").startswith("text/csv"):
        assert answer.text.endswith("\n"), address
    return answer


def queries() -> Iterator[str]:
    """All parameters at once with each value; twice the same, and as a list."""
    names = [*PARAMETERS, "unknown"]
    for value in VALUES.values():
        yield "&".join(f"{name}={value[:300]}" for name in names)
    yield "&".join(f"{name}[]=1&{name}=1&{name}=2" for name in names)
    yield "&" * 2_000
    yield "&".join(f"x{at}=1" for at in range(2_000))
    yield "before"


@pytest.mark.slow
@IN_STEPS
@pytest.mark.timeout(900)
def test_no_parameter_of_a_page_is_a_fault_of_ours(walk: Walk, pages: list[str], step: int) -> None:
    for page, query in pairs(pages, queries(), step):
        get(walk.browser, f"{page}?{query}")


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("email", ["finance@acme.example", "viewer@acme.example", "cem@acme.example"])
def test_no_parameter_is_a_fault_of_ours_for_another_role(service: Service, pages: list[str], email: str) -> None:
    browser = signed_in(service, email)
    for page, query in pairs(pages, queries(), 3):
        get(browser, f"{page}?{query}")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_no_parameter_alone_is_a_fault_of_ours(walk: Walk, pages: list[str]) -> None:
    for page in pages:
        for name in PARAMETERS:
            for value in ("NUL", "a larger number", "the first day", "very long"):
                get(walk.browser, f"{page}?{name}={VALUES[value]}")


@pytest.mark.slow
@IN_STEPS
@pytest.mark.parametrize("email", ["ada@acme.example", "cem@acme.example", None])
def test_no_path_of_a_page_is_a_fault_of_ours(service: Service, email: str | None, step: int) -> None:
    browser = Browser(service) if email is None else signed_in(service, email)
    paths = {route.path for route in ROUTES if "{" in route.path} | {"/claim/{token}", "/claim/gift/{handle}"}
    for path, value in pairs(sorted(paths), VALUES.values(), step):
        get(browser, re.sub(r"\{[^}]*\}", lambda _: value, path))  # noqa: B023 - used at once


@pytest.mark.long
@IN_STEPS
@pytest.mark.timeout(900)
def test_no_path_of_a_form_is_a_fault_of_ours(service: Service, step: int) -> None:
    browser = signed_in(service, "ada@acme.example")
    browser.get("/app/security")
    token = browser.token
    paths = [route.path for route in ROUTES if route.method == "POST" and "{" in route.path]
    for form, value in pairs([path for path in paths if "session" not in path], VALUES.values(), step):
        path = re.sub(r"\{[^}]*\}", lambda _: value, form)  # noqa: B023 - used at once
        assert browser.post(path, token=token).status_code < 500, path


@pytest.mark.long
def test_no_parameter_or_path_of_another_page_is_a_fault_of_ours(
    service: Service, start_service: ServiceFactory
) -> None:
    browser = Browser(service)
    for path in ("/", "/docs", "/problems", "/health", "/openapi.json", "/openapi-events.json", "/claim"):
        for value in VALUES.values():
            get(browser, f"{path}?lang={value}&x={value}")
    for path in ("/problems/{}", "/pictures/{}", "/app/assets/{}", "/claim/assets/{}", "/claim/{}/opened", "/{}"):
        for value in VALUES.values():
            get(browser, path.format(value))
    staging = start_service(like=service, environment="staging")
    browser = Browser(staging)
    for value in VALUES.values():
        get(browser, f"/mailbox?before={value}")
        for path in ("/mailbox/{}", "/mailbox/{}/html", "/mailbox/{}/message.eml"):
            get(browser, path.format(value))


@pytest.mark.slow
@IN_STEPS
def test_no_parameter_or_path_of_an_operation_is_a_fault_of_ours(service: Service, step: int) -> None:
    client = service.client("hr")
    for operation, value in pairs(OPERATIONS, VALUES.values(), step):
        names = [one.encode_name for one in msgspec.structs.fields(operation.query)] + ["unknown"]
        path = re.sub(r"\{\w+\}", "1", operation.path)
        for address in (
            f"{path}?{'&'.join(f'{name}={value[:300]}' for name in names)}",
            *(f"{path}?{name}={value[:300]}" for name in names),
            re.sub(r"\{\w+\}", lambda _: value, operation.path),  # noqa: B023 - used at once
        ):
            answer = client.request(operation.method, address)
            assert answer.status_code < 500, (operation.method, address, answer.text)


def test_every_parameter_that_a_page_reads_or_names_in_a_link_is_declared() -> None:
    source = "".join(path.read_text() for kind in ("*.py", "*.html") for path in ROOM.rglob(kind))
    read = set(re.findall(r"(?:query|parameters\.number|parameters\.day)\(\"(\w+)\"", source))
    named = set(re.findall(r"[?&](\w+)=\{", source))
    assert read | named <= set(PARAMETERS), (read | named) - set(PARAMETERS)
    assert len(read) > 15
