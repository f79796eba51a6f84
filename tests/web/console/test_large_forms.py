"""Large forms, and those who send many: what is read of them before anything is known about who sent them, and at once."""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest
from tests.waiting import wait_until
from tests.web.api.conftest import Service, ServiceFactory
from tests.web.console import worst_forms as worst_forms_program
from tests.web.console.conftest import Browser, signed_in
from tests.web.console.sending import WORLD, begin
from tests.web.half_sent import await_held, half_sent, head_of_answer

from largesse.web.kit.body import BYTES_EACH

URLENCODED = "application/x-www-form-urlencoded"
LARGE = 7_000_000
GIL = "      - {email: gil@globex.example, name: Gil, role: admin}\n"
NEIGHBOUR = """    service_accounts: [{key: neighbour, name: Neighbour}]
    api_keys: [{key: globex, service_account: neighbour, environment: production}]
"""


@pytest.fixture(scope="module")
def service(start_service: ServiceFactory) -> Service:
    return start_service(WORLD.replace(GIL, GIL + NEIGHBOUR))


@pytest.fixture
def ada(service: Service) -> Browser:
    return signed_in(service, "ada@acme.example")


def of(browser: Browser) -> dict[str, str]:
    """The headers of somebody's form."""
    cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    return {"Cookie": cookie, "Content_Type": URLENCODED, "X_Forwarded_For": browser.host}


@pytest.mark.parametrize("token", ["x" * 40, ""])
def test_a_form_with_no_token_of_ours_is_refused_before_it_has_come(service: Service, ada: Browser, token: str) -> None:
    path = begin(ada, service)
    body = f"token={token}&rows=".encode() + b"%41" * 10_000
    with half_sent(service, f"{path}/recipients", body, whole=LARGE, **of(ada)) as connection:
        assert head_of_answer(connection).startswith("http/1.1 403")


def test_a_form_for_somebody_elses_draft_is_refused_before_it_has_come(service: Service, ada: Browser) -> None:
    cem = signed_in(service, "cem@acme.example")
    path = begin(cem, service)
    ada.get("/app/send")
    for page in ("recipients", "file", "rows"):
        body = f"token={ada.token}&rows=%41".encode()
        with half_sent(service, f"{path}/{page}", body, whole=900_000, **of(ada)) as connection:
            assert head_of_answer(connection).startswith("http/1.1 404"), page


def test_a_form_that_says_that_it_is_too_large_is_told_so(service: Service, ada: Browser) -> None:
    path = begin(ada, service)
    answer = ada.submit(f"{path}/recipients", rows="x" * 9_000_000)
    assert answer.status_code == 413
    assert "too large" in answer.text


def test_pasted_rows_are_taken_in_both_encodings_of_forms(service: Service, ada: Browser) -> None:
    path = begin(ada, service)
    ada.get(f"{path}/recipients")
    assert 'recipients" enctype="multipart/form-data"' in ada.page.text
    assert ada.post(f"{path}/recipients", rows="zoë+1@example.com, Zoë\r\n").status_code == 303
    ada.get(f"{path}/recipients")
    rows = {"token": (None, ada.token), "rows": (None, "bo@example.com, Bö\r\n"), "taking": (None, "add")}
    cookies = "; ".join(f"{name}={value}" for name, value in ada.cookies.items())
    answer = service.client().post(f"{path}/recipients", files=rows, headers={"Cookie": cookies})
    assert answer.status_code == 303, answer.text
    ada.sees(f"{path}/recipients", "zoë+1@example.com", "Bö bo@example.com")


@pytest.mark.long
def test_somebody_has_so_many_bytes_on_their_way_and_no_more(service: Service, ada: Browser) -> None:
    cem = signed_in(service, "cem@acme.example")
    path, of_cem = begin(ada, service), begin(cem, service)
    ada.get(f"{path}/recipients")
    cem.get(f"{of_cem}/recipients")
    body = f"token={ada.token}&rows=".encode() + b"x" * LARGE
    with ExitStack() as stack:
        fitting = BYTES_EACH // LARGE
        for _ in range(fitting):
            stack.enter_context(half_sent(service, f"{path}/recipients", body, whole=LARGE + 90_000, **of(ada)))
        await_held(service, (fitting - 1) * LARGE)
        one_more = stack.enter_context(half_sent(service, f"{path}/recipients", body, whole=LARGE + 90_000, **of(ada)))
        refused = head_of_answer(one_more)
        assert refused.startswith("http/1.1 429")
        assert "retry-after: 5" in refused
        # Small forms of the same person, and large ones of others, are read.
        assert ada.post("/app/environment", environment="production").status_code == 303
        assert cem.post(f"{of_cem}/recipients", rows="bo@example.com\n" * 4_000).status_code == 303
    await_held(service, 0, 0)


@pytest.mark.parametrize(("token", "status"), [("", 303), ("x" * 40, 403)])
def test_somebody_has_two_forms_handled_at_once_and_the_next_waits(
    service: Service, ada: Browser, token: str, status: int
) -> None:
    """A form with an invalid token waits too."""
    cem = signed_in(service, "cem@acme.example")
    turns = service.app.services.form_turns
    key = ("/app", service.sql("SELECT id FROM people WHERE email = 'ada@acme.example'")[0][0])
    for browser in (ada, cem):
        browser.get("/app")
    assert turns.begins(key)
    assert ada.post("/app/environment", environment="production").status_code == 303  # beside another one
    assert turns.begins(key)
    ada.get("/app")
    with ThreadPoolExecutor(1) as pool:
        third = pool.submit(ada.post, "/app/environment", environment="production", token=token or ada.token)
        wait_until(lambda: key in turns._waiting)
        loop = turns._waiting[key][0].get_loop()
        assert cem.post("/app/environment", environment="production").status_code == 303
        assert not third.done()
        for _ in range(2):
            loop.call_soon_threadsafe(turns.end, key)
        assert third.result().status_code == status


@contextmanager
def worst_forms(service: Service, browser: Browser) -> Iterator[subprocess.Popen[str]]:
    """Somebody posts the worst forms for as long as the block, whose statuses come from the process, none of them a fault of ours."""
    path = begin(browser, service)
    browser.get(f"{path}/recipients")
    program = [sys.executable, worst_forms_program.__file__, f"{service.url}{path}/recipients"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        headers = {name.replace("_", "-"): value for name, value in of(browser).items()}
        process.stdin.write(json.dumps({"token": browser.token, "headers": headers}) + "\n")
        process.stdin.flush()
        assert process.stdout.readline() == "posting\n"
        yield process
        said, _ = process.communicate()
    statuses = {int(status) for status in said.split()}
    assert statuses
    assert max(statuses) < 500, statuses


def took_s(client: httpx.Client, method: str, path: str, **request: Any) -> float:
    began_s = time.monotonic()
    assert client.request(method, path, **request).status_code == 200
    return time.monotonic() - began_s


@pytest.mark.long
@pytest.mark.timeout(180)
def test_the_worst_forms_of_one_keep_nobody_waiting(service: Service, ada: Browser) -> None:
    """The bounds are wide, as the machine may be busy: before there were any, one of these forms stopped everything for seconds."""
    with worst_forms(service, ada), httpx.Client(base_url=service.url, timeout=60) as client:
        taken_s = []
        for _ in range(50):
            taken_s.append(took_s(client, "GET", "/health"))
            time.sleep(0.1)
    print(f"/health: {max(taken_s):.3f} s at most")  # noqa: T201 - what the test is for
    assert max(taken_s) < 0.5


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_worst_forms_of_one_slow_a_neighbours_orders_at_most_fourfold(service: Service, ada: Browser) -> None:
    """In turns, as the machine may be busy with something else, too."""
    client, body = service.client("globex"), service.body("gift", "coffee", account=None, value=10)

    def median_s() -> float:
        return statistics.median(took_s(client, "POST", "/send/gift", json=body) for _ in range(30))

    ratios = []
    for _ in range(3):
        alone_s = median_s()
        with worst_forms(service, ada):
            beside_s = median_s()
        print(f"an order: {1e3 * alone_s:.1f} ms alone, {1e3 * beside_s:.1f} ms beside the forms")  # noqa: T201
        ratios.append(beside_s / alone_s)
    assert statistics.median(ratios) < 4, ratios
