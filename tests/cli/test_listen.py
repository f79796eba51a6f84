"""`listen` and `trigger` against a running service: a local program gets what happens, signed, within two seconds."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import standardwebhooks
from click.testing import CliRunner, Result
from tests.lab.conftest import Receiver, receiver, working
from tests.web.api.conftest import Service, problem, service, staging, start_service

from largesse.base.errors import OperatorError
from largesse.cli import main
from largesse.cli.listen import Answer, Listener, ask, read_url, secret_of
from largesse.cli.listen import Service as Asked

__all__ = ["problem", "receiver", "service", "staging", "start_service", "working"]

KEY = "hr-test"
WITHIN_S = 2.0


class Ended(Exception):
    """The test is over."""


@pytest.fixture
def listening(staging: Service, receiver: Receiver) -> Iterator[Callable[..., list[str]]]:
    """Starts a listener in a thread; returns what it shows."""
    threads, ended = [], threading.Event()

    def start(*events: str) -> list[str]:
        shown: list[str] = []
        key = staging.keys[KEY]
        listener = Listener(Asked(staging.url, key), receiver.url, secret_of(key), events, shown.append)
        listener.begin()

        def pause(seconds: float) -> None:
            if ended.wait(seconds):
                raise Ended

        def follow() -> None:
            with pytest.raises(Ended):
                listener.follow(pause)

        threads.append(threading.Thread(target=follow))
        threads[-1].start()
        return shown

    yield start
    ended.set()
    for thread in threads:
        thread.join()


def within(seconds: float, is_so: Callable[[], bool]) -> float:
    """Waits until something is so; returns how long that took. Fails after twice the time."""
    began = time.monotonic()
    while not is_so():
        assert time.monotonic() - began < 2 * seconds
        time.sleep(0.02)
    return time.monotonic() - began


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="largesse")


def place(service: Service, key: str = KEY) -> dict[str, Any]:
    body = {"productId": service.ids["products"]["coffee"], "value": 10, "codeQuantity": 1}
    accounts = service.client(key).get("/funding-accounts").json()
    answer = service.client(key).post("/send/gift", json={**body, "accountId": accounts[0]["id"]})
    assert answer.status_code == 200, answer.text
    placed: dict[str, Any] = answer.json()
    return placed


@pytest.mark.usefixtures("working")
def test_a_local_program_gets_an_order_and_a_claim_within_two_seconds(
    staging: Service, receiver: Receiver, listening: Callable[..., list[str]]
) -> None:
    before = place(staging)
    within(WITHIN_S, lambda: before["reference"] in staging.client(KEY).get("/events?limit=1").text)
    shown = listening()
    order = place(staging)
    took_s = within(WITHIN_S, lambda: len(receiver.got) == 1)
    triggered = run("trigger", "gift.claimed", "--service", staging.url, "--key", staging.keys[KEY])
    assert triggered.exit_code == 0, triggered.output
    assert triggered.output.startswith("gift.claimed was recorded, with the id evt_")
    took_s = max(took_s, within(WITHIN_S, lambda: len(shown) == 2))
    assert took_s < WITHIN_S
    secret = secret_of(staging.keys[KEY])
    read = [standardwebhooks.Webhook(secret).verify(body, headers) for headers, body in receiver.got]
    assert [event["event"] for event in read] == ["order.created", "gift.claimed"]
    assert read[0]["reference"] == order["reference"] != before["reference"]
    assert read[1]["id"] == triggered.output.split()[-1]
    assert receiver.events == ["order.created", "gift.claimed"]
    assert shown == [f"order.created {order['reference']} -> 204", "gift.claimed 00000000000000000000 -> 204"]


def test_a_program_that_never_ends_its_error_gave_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("largesse.cli.listen._TIMEOUT_S", 0.5)
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as program:

        def answer() -> None:
            connection, _ = program.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 500 No\r\nContent-Length: 100\r\n\r\nabc")
                ended.wait(30)

        thread = threading.Thread(target=answer)
        thread.start()
        given = ask("POST", f"http://127.0.0.1:{program.getsockname()[1]}/hook", {}, b"{}")
        ended.set()
        thread.join()
    assert given == Answer(0, b"timed out")


def test_what_a_program_says_cannot_change_the_terminal() -> None:
    with socket.create_server(("127.0.0.1", 0)) as program:

        def answer() -> None:
            connection, _ = program.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"\x1b]0;title\x07\x1b[31mred\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        given = ask("POST", f"http://127.0.0.1:{program.getsockname()[1]}/hook", {}, b"{}")
        thread.join()
    assert given == Answer(0, b"]0;title [31mred")


@pytest.mark.usefixtures("working")
def test_what_the_program_answers_is_shown_and_nothing_is_repeated(
    staging: Service, receiver: Receiver, listening: Callable[..., list[str]]
) -> None:
    shown = listening("gift.opened")
    receiver.status = 500
    for event in ("gift.claimed", "gift.opened"):
        assert run("trigger", event, "--service", staging.url, "--key", staging.keys[KEY]).exit_code == 0
    within(WITHIN_S, lambda: shown != [])
    time.sleep(0.7)
    assert shown == ["gift.opened 00000000000000000000 -> 500"]
    assert len(receiver.got) == 1
    receiver.server.shutdown()
    receiver.server.server_close()
    run("trigger", "gift.opened", "--service", staging.url, "--key", staging.keys[KEY])
    within(WITHIN_S, lambda: len(shown) == 2)
    assert shown[1].startswith("gift.opened 00000000000000000000 -> no answer (")


def test_a_key_of_production_is_refused_unless_it_is_allowed(service: Service, staging: Service) -> None:
    asked = ("--service", service.url, "--key", service.keys["hr"])
    refused = run("listen", "--forward-to", "http://127.0.0.1:9/", *asked)
    assert (refused.exit_code, refused.output.splitlines()) == (
        1,
        ["Error: this is a key of production: use one of staging, or add --live to forward real events"],
    )
    triggered = run("trigger", "gift.claimed", *asked)
    assert (triggered.exit_code, "use one of staging" in triggered.output) == (1, True)
    assert service.client("hr").post("/test/events", json={"event": "gift.claimed"}).status_code == 404
    assert "/test/events" not in httpx.get(f"{service.url}/openapi.json").text
    assert "/test/events" in httpx.get(f"{staging.url}/openapi.json").text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("listen", "--forward-to", "127.0.0.1:3000"), "--forward-to must be an address"),
        (("listen", "--forward-to", "ftp://127.0.0.1/"), "--forward-to must be an address"),
        (("listen", "--forward-to", "http://127.0.0.1/h\xf6k"), "--forward-to must percent-encode"),
        (("listen", "--forward-to", "http://127.0.0.1/", "--event", "gift.lost"), "there is no event gift.lost"),
        (("listen", "--forward-to", "http://127.0.0.1/"), "cannot be reached"),
        (("trigger", "gift.lost"), "there is no event gift.lost"),
        (("trigger", "gift.sent", "--service", "http://[::1"), "--service must be an address"),
        (("trigger", "gift.sent", "--service", "http://a..b"), "http://a..b cannot be reached: "),
        (("trigger", "gift.sent", "--service", "http://127.0.0.1:9/é"), "--service must percent-encode"),
        (("trigger", "gift.sent", "--key", "secret\r"), "--key must be an API key"),
        (("listen", "--forward-to", "http://127.0.0.1/", "--key", "secret\nx"), "--key must be an API key"),
    ],
)
def test_what_is_wrong_is_one_line(arguments: tuple[str, ...], said: str) -> None:
    failed = run(*arguments[:1], "--service", "http://127.0.0.1:9", "--key", "x", *arguments[1:])
    assert "secret" not in failed.output
    assert (failed.exit_code, len(failed.output.splitlines())) == (1, 1)
    assert said in failed.output


@pytest.mark.parametrize(
    "answer", [(200, b"[1]"), (200, b"{}"), (200, b'{"environment": 7}'), (404, b"[]"), (404, b"x")]
)
@pytest.mark.parametrize("command", [("trigger", "gift.sent"), ("listen", "--forward-to", "http://127.0.0.1/")])
def test_another_program_that_answers_in_json_is_no_service(
    monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], answer: tuple[int, bytes]
) -> None:
    """As the developer's own, whose address is easily taken for the service's."""
    monkeypatch.setattr("largesse.cli.listen.ask", lambda *_: Answer(*answer))
    failed = run(*command, "--service", "http://127.0.0.1:9", "--key", "x")
    said = f"Error: http://127.0.0.1:9 answered {answer[0]}, but not as a Largesse service does: is it the address of one?\n"
    assert (failed.exit_code, failed.output) == (1, said)


@pytest.mark.parametrize("answer", [Answer(0, b"away"), Answer(200, b'{"events": []}'), Answer(200, b'[{"id": 1}]')])
def test_a_service_that_is_away_for_a_night_is_asked_again(monkeypatch: pytest.MonkeyPatch, answer: Answer) -> None:
    """Also when another program has its port meanwhile."""
    monkeypatch.setattr("largesse.cli.listen.ask", lambda *_: answer)
    shown: list[str] = []
    waits: list[float] = []

    def pause(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2_000:
            raise Ended

    listener = Listener(Asked("http://127.0.0.1:9", "x"), "http://127.0.0.1:9", secret_of("x"), (), shown.append)
    with pytest.raises(Ended):
        listener.follow(pause)
    assert waits[:7] == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert waits[-1] == 30.0
    assert shown[-1].endswith(" Trying again in 30 s.")


def test_a_wrong_key_is_said(staging: Service) -> None:
    failed = run("trigger", "gift.claimed", "--service", staging.url, "--key", "wrong")
    assert "answered 401: " in failed.output


def test_a_secret_is_the_same_for_a_key_and_no_other() -> None:
    assert secret_of("a") == secret_of("a") != secret_of("b")
    assert len(secret_of("a")) == len("whsec_") + 44
    assert read_url("https://example.com/x/", "--x") == "https://example.com/x/"
    with pytest.raises(OperatorError):
        read_url("https://", "--x")
