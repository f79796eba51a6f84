"""Parameters and members that there are none of: ignored as ever, and named in `X-Ignored` and in the log."""

import json
from typing import Any

import pytest
from structlog.testing import capture_logs

MOST, LONGEST, LOOKED_THROUGH = 10, 64, 64 * 1024


def ignored(answer: Any) -> str | None:
    return answer.headers.get("X-Ignored")


def test_what_is_known_is_not_named(service) -> None:
    body = service.body("gift", "coffee", value=5, recipients=[{"email": "sam@example.com", "name": None}])
    answer = service.client("hr").post("/send/gift", json=body | {"message": "Hi"})
    assert (answer.status_code, ignored(answer)) == (200, None)
    assert ignored(service.client("hr").get("/orders?limit=1&after=0")) is None


def test_misspelt_members_of_a_send_are_named_once(service) -> None:
    people = [{"email": "sam@example.com", "quantitiy": 2}, {"email": "ada@example.com", "quantitiy": 3, "Name": "Ada"}]
    with capture_logs() as logged:
        answer = service.send("gift", "coffee", value=5, recipients=people, externalRef="r-1", message="Hi")
    assert (answer.status_code, answer.json()["codeCount"]) == (200, 2)
    named = "externalRef, recipients[].quantitiy, recipients[].Name"
    assert ignored(answer) == named
    (line,) = [line for line in logged if line["event"] == "names_ignored"]
    assert (line["names"], line["route"], line["request_id"]) == (named, "/send/gift", answer.headers["X-Request-Id"])
    assert line["key_id"] == 1
    assert line["customer_id"] == 1


@pytest.mark.parametrize("path", ["/quote/gift", "/send/gift"])
def test_they_are_named_beside_what_is_wrong(service, path: str) -> None:
    body = service.body("gift", "coffee", value=5, recipients=[{"emial": "sam@example.com"}], productID=1)
    answer = service.client("hr").post(path, json=body)
    assert (answer.status_code, ignored(answer)) == (400, "productID, recipients[].emial")


def test_parameters_are_named(service) -> None:
    client = service.client("hr")
    answer = client.get("/orders?externalref=x&limit=1")
    assert (answer.status_code, ignored(answer)) == (200, "externalref")
    assert ignored(client.get("/orders?externalref=x&limit=1")) == "externalref"  # read once, named each time
    assert ignored(client.get("/me?page=2")) == "page"
    assert ignored(client.head("/me?page=2")) == "page"
    assert ignored(client.post("/send/gift?dryRun=1", json={})) == "dryRun"


@pytest.mark.parametrize("header", ["Idempotency-Key", "X-Idempotency-Key"])
@pytest.mark.parametrize("as_whole", [True, False])
def test_a_key_of_idempotency_in_a_header_is_named(service, header: str, as_whole: bool) -> None:
    """Callers of other APIs believe that it works: it places a second order. A request in chunks goes through ASGI."""
    body = json.dumps(service.body("gift", "coffee", value=5, codeQuantity=1, externalRef="r")).encode()
    sent: Any = body if as_whole else iter([body[:9], body[9:]])
    headers = {"Content-Type": "application/json", header: "thanks-1"}
    answer = service.client("hr").post("/send/gift", content=sent, headers=headers)
    assert (answer.status_code, ignored(answer)) == (200, f"{header}, externalRef")
    assert ignored(service.client("hr").get("/me", headers={header: "thanks-1"})) is None


def test_members_of_a_body_that_an_operation_does_not_take_are_named(service) -> None:
    client = service.client("hr")

    def cancelled(**sent: Any) -> tuple[int, str | None]:
        reference = service.send("gift", "coffee", value=5, codeQuantity=2).json()["reference"]
        answer = client.post(f"/orders/{reference}/cancel", **sent)
        return answer.json()["cancelledCount"], ignored(answer)

    assert cancelled(json={"number": 2}) == (2, "number")
    for unread in (b"", b"{}", b"[]", b"{", b'{"a":"' + b"x" * LOOKED_THROUGH + b'"}'):
        assert cancelled(content=unread) == (2, None)


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("x\r\nSet-Cookie: a=b", "x%0D%0ASet-Cookie%3A%20a%3Db"),
        ("a, b", "a%2C%20b"),
        ("lgs_live_" + "a" * 49, "lgs_..."),
        ("", ""),
        ("é\x00\u2028", "%C3%A9%00%E2%80%A8"),
        ("`$.x[0]`", "%60%24.x[0]%60"),
        (LONGEST * "n", LONGEST * "n"),
        ((LONGEST + 1) * "n", LONGEST * "n" + "..."),
        ((LONGEST - 1) * "n" + "é", (LONGEST - 1) * "n" + "..."),
    ],
)
def test_a_name_cannot_break_out_of_the_header(service, name: str, named: str) -> None:
    answer = service.send("gift", "coffee", value=5, **{name: 1})
    assert (answer.status_code, ignored(answer)) == (200, named)
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize(("count", "more"), [(MOST, ""), (MOST + 1, ", ..."), (5_000, ", ...")])
def test_so_many_are_named(service, count: int, more: str) -> None:
    names = {f"n{at}": at for at in range(count)}
    answer = service.send("gift", "coffee", value=5, **names)
    assert ignored(answer) == ", ".join(list(names)[:MOST]) + more


def test_of_a_large_body_the_first_is_named(service) -> None:
    body = service.body("gift", "coffee", value=5)

    def sent(size: int, **members: Any) -> Any:
        short = json.dumps(body | {"a": 1, "b": 2} | members)
        raw = short + " " * (size - len(short))
        return service.client("hr").post("/send/gift", content=raw, headers={"Content-Type": "application/json"})

    assert ignored(sent(LOOKED_THROUGH)) == "a, b"
    assert ignored(sent(LOOKED_THROUGH + 1)) == "a, ..."
    assert ignored(sent(LOOKED_THROUGH + 1, productId="x")) is None  # what is wrong comes first, and is told


def test_values_that_nobody_reads_may_be_anything(service) -> None:
    raw = json.dumps(service.body("gift", "coffee", value=5))[:-1] + ',"x":1e999,"y":{"z":[[[]]]},"x":-0}'
    answer = service.client("hr").post("/send/gift", content=raw, headers={"Content-Type": "application/json"})
    assert (answer.status_code, ignored(answer)) == (200, "x, y")
