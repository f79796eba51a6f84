"""What is no proper request: unreadable, over-large and wrongly labelled bodies, unknown paths, wrong methods."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing

import httpx
import pytest
from tests.connections.conftest import Wire
from tests.web.half_sent import await_held, half_sent, head_of_answer

from largesse.web.kit.body import BYTES_EACH, MAX_BODY_BYTES
from largesse.web.kit.headers import MAX_HEADER_BYTES

JSON = {"Content-Type": "application/json"}
LARGE = 4_000_000


@pytest.fixture(autouse=True)
def _nothing_is_placed(request: pytest.FixtureRequest, service) -> Iterator[None]:
    before = service.state()
    yield
    if "places" not in request.node.name:
        assert service.state() == before


def raw_body(service, **members: object) -> str:
    """The inside of a body that would be placed, for more to follow."""
    return json.dumps(service.body("gift", "coffee", value=5, **members))[1:-1]


@pytest.mark.sampled(7)
@pytest.mark.parametrize("path", ["/send/gift", "/send/collection", "/send/template", "/webhooks"])
@pytest.mark.parametrize(
    "raw",
    [b"", b"null", b"[]", b"{}}", b'{"productId":1,}', b"\xef\xbb\xbf{}", b'{"a":' * 200_000, b"productId=1&value=5"],
)
def test_a_body_that_is_no_json_object(service, problem, path: str, raw: bytes) -> None:
    problem(service.client("hr").post(path, content=raw, headers=JSON), 400)


@pytest.mark.parametrize(
    "member",
    [
        # A wrong member and then text that is not JSON, or JSON that cannot be kept
        '"productId":"x","y":',
        '"fromName":"\\ud800"',
        '"value":1e400',
        f'"value":{10**400}',
        '"value":-0.0',
        '"accountId":9223372036854775808',
        '"codeQuantity":1.0',
        '"productId":' + "[" * 100_000,
        '"unknown":' + "[" * 100_000 + "]" * 100_000,
    ],
)
def test_a_member_that_cannot_be_read(service, problem, member: str) -> None:
    raw = "{" + raw_body(service) + "," + member + "}"
    problem(service.client("hr").post("/send/gift", content=raw.encode(), headers=JSON), 400)


@pytest.mark.parametrize(
    "member",
    [
        '"unknown":1e400',
        '"unknown":[[[[{"a":[]}]]]]',
        '"value":5.0000',
        '"value":0.5e1',
        '"codeQuantity":7,"codeQuantity":1',  # the last of two counts
        '"message":"\\ud83c\\udf81"',
        '"message":"\\n"',
        '"\\u0076alue":10',
        f'"source":"{"s" * 100_000}"',
    ],
)
def test_places_what_is_unusual_but_sound(service, member: str) -> None:
    raw = "{" + raw_body(service) + "," + member + "}"
    answer = service.client("hr").post("/send/gift", content=raw.encode(), headers=JSON)
    assert answer.status_code == 200, answer.text
    assert answer.json()["codeCount"] == 1


@pytest.mark.parametrize(
    "content_type",
    [None, "application/json", "Application/JSON; charset=utf-8", "application/json;", "application/vnd.example+json"],
)
def test_places_json_by_any_of_its_names(service, content_type: str | None) -> None:
    headers = {} if content_type is None else {"Content-Type": content_type}
    raw = "{" + raw_body(service) + "}"
    answer = service.client("hr").post("/send/gift", content=raw.encode(), headers=headers)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "multipart/form-data; boundary=x"},
        {"Content-Type": "application/xml"},
        {"Content-Type": "json"},
        {**JSON, "Content-Encoding": "gzip"},
        {**JSON, "Content-Encoding": "br"},
        {**JSON, "Content-Encoding": "unheard-of"},
    ],
)
def test_a_body_labelled_as_anything_but_json(service, problem, headers: dict[str, str]) -> None:
    raw = "{" + raw_body(service) + "}"
    answer = service.client("hr").post("/send/gift", content=raw.encode(), headers=headers)
    problem(answer, 415, "unsupported-body")


@pytest.mark.parametrize(("size", "status"), [(MAX_HEADER_BYTES - 2048, 200), (MAX_HEADER_BYTES, 431)])
def test_headers_up_to_their_limit(service, problem, size: int, status: int) -> None:
    answer = service.client("hr").get("/me", headers={"X-Padding": "x" * size})
    assert answer.status_code == status
    if status != 200:
        problem(answer, 431, "headers-too-large")


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_four_mebibytes(service, problem, chunked: bool) -> None:
    raw = b'{"unknown":"' + b"x" * MAX_BODY_BYTES + b'"}'
    pieces = iter([raw[: 1 << 20], raw[1 << 20 :]])
    answer = service.client("hr").post("/send/gift", content=pieces if chunked else raw, headers=JSON)
    problem(answer, 413, "too-large")
    assert service.client("hr").get("/me").status_code == 200


@pytest.mark.parametrize("chunked", [False, True])
def test_places_a_body_of_exactly_four_mebibytes(service, chunked: bool) -> None:
    start = ("{" + raw_body(service) + ',"unknown":"').encode()
    raw = start + b"x" * (MAX_BODY_BYTES - len(start) - 2) + b'"}'
    assert len(raw) == MAX_BODY_BYTES
    answer = service.client("hr").post("/send/gift", content=iter([raw]) if chunked else raw, headers=JSON)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    "path", ["/nothing", "/me/", "//me", "/Me", "/send", "/send/", "/send/gifts", "/products/1/2", "/orders/"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_an_unknown_path(service, problem, method: str, path: str) -> None:
    answer = service.client().request(method, service.url + path)
    problem(answer, 404, "not-found")


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("/me/", " Did you mean `/me`?"),
        ("/Send/Gift/", " Did you mean `/send/gift`?"),
        ("/products/1/", " Did you mean it without the slash at the end?"),
        ("/v1/orders", " Did you mean `/orders`?"),
        ("/api/v2/Send/gift", " Did you mean `/send/gift`?"),
        ("/v1/products/1", " Did you mean it without the prefix?"),
        ("/v1/product/1", ""),
        ("/", ""),
        ("/Office/", ""),
        ("/send/", ""),
    ],
)
def test_an_address_that_almost_exists_is_named(service, problem, path: str, hint: str) -> None:
    answer = service.client().post(path)
    if answer.status_code != 405:  # `/` is a page
        assert problem(answer, 404, "not-found") == f"There is nothing at this address.{hint}"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("page=1&limit=5&page=1", "The query parameter page must be sent once."),
        ("a%0Ab_c=1&a%0Ab_c=2", "The query parameter a%0Ab_c must be sent once."),
        ("&".join(f"p{n}=1" for n in range(51)), "A query must have at most 50 parameters."),
        ("keyword=%ff", "The query string cannot be read."),
    ],
)
def test_a_query_that_cannot_be_read_names_what_is_wrong(service, problem, query: str, said: str) -> None:
    assert problem(service.client("hr").get(f"/products?{query}"), 400) == said


@pytest.mark.parametrize("path", ["/app/collections/", "/claim/", "/mailbox/", "/products/"])
def test_a_path_with_more_digits_than_can_be_converted_leads_nowhere(service, path: str) -> None:
    assert service.client("hr").get(path + "9" * 5_000).status_code == 404


def test_a_length_with_thousands_of_zeros_is_read_as_a_number(service) -> None:
    head = f"POST /send/gift HTTP/1.1\r\nHost: largesse\r\nAuthorization: Bearer {service.keys['hr']}\r\n"
    with closing(Wire(service.url)) as wire:
        answer = wire.ask(f"{head}Content-Length: {'2'.zfill(5_000)}\r\n\r\n{{}}".encode())
    assert answer.status == 400


def test_head_answers_as_get_without_a_body(service) -> None:
    head, get = service.client("hr").head("/products"), service.client("hr").get("/products")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["Content-Length"] == str(len(get.content))


def test_a_request_id_is_given_back_or_made(service) -> None:
    client = service.client()
    assert client.get("/health", headers={"X-Request-Id": "mine-1"}).headers["X-Request-Id"] == "mine-1"
    made = {client.get(path).headers["X-Request-Id"] for path in ("/health", "/me", "/nothing")}
    assert len(made) == 3
    for odd in ("a b", "x" * 65, "<x>", ""):
        assert client.get("/health", headers={"X-Request-Id": odd}).headers["X-Request-Id"] not in {odd, ""}


def test_no_answer_may_be_cached_or_sniffed(service) -> None:
    for answer in (service.client("hr").get("/me"), service.client().get("/nothing")):
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_places_orders_while_a_customer_has_so_many_bytes_on_their_way_and_no_more(service) -> None:
    headers = {"Authorization": f"Bearer {service.keys['hr']}", "Content_Type": "application/json"}
    body = b'{"message": "' + b"x" * LARGE
    with ExitStack() as stack:
        fitting = BYTES_EACH // LARGE
        for _ in range(fitting):
            stack.enter_context(half_sent(service, "/send/gift", body, whole=LARGE + 90_000, **headers))
        await_held(service, (fitting - 1) * LARGE)
        one_more = stack.enter_context(half_sent(service, "/send/gift", body, whole=LARGE + 90_000, **headers))
        refused = head_of_answer(one_more)
        assert refused.startswith("http/1.1 429")
        assert "retry-after: 5" in refused
        # Orders of the usual size are read.
        assert service.send("gift", "coffee", value=10).status_code == 200
    await_held(service, 0, 0)


# Which of several faults of a request is told: 401, 402 for the plan, 403, 400 unreadable, 409, 400, 402 for the balance

BROKEN = b'{"externalReference":"taken"'


def post(service, key: str | None, raw: bytes, **headers: str) -> httpx.Response:
    return service.client(key).post("/send/gift?unknown=1", content=raw, headers={**JSON, **headers})


def test_the_key_comes_before_anything_in_the_body(service, problem) -> None:
    for raw in (BROKEN, b"", b"x" * 5_000_000):
        problem(post(service, None, raw), 401, "unauthorized")
    problem(post(service, None, b"{}", **{"Content-Type": "text/plain"}), 401, "unauthorized")
    problem(service.client().get("/products?limit=0"), 401, "unauthorized")


def test_the_plan_comes_before_anything_in_the_request(service, problem) -> None:
    for raw in (BROKEN, b"", b"{}"):
        problem(post(service, "tiny", raw), 402, "plan-required")
    problem(service.client("tiny").get("/products?limit=0"), 402, "plan-required")
    problem(service.client("tiny").get("/products/999999"), 402, "plan-required")


def test_a_wrong_body_comes_before_the_balance(service, problem) -> None:
    dear = service.send("gift", "shop", account="team", value=100_000, codeQuantity=5001)
    problem(dear, 400)
    other_currency = service.send("gift", "shop", account="eur", value=100_000, codeQuantity=5000)
    problem(other_currency, 400)


def test_the_address_and_the_method_come_before_the_key(service, problem) -> None:
    problem(service.client().get("/nothing"), 404, "not-found")
    problem(service.client().put("/me"), 405, "method-not-allowed")
    problem(service.client().get("/products/999999"), 401, "unauthorized")


def test_the_key_headers_come_before_the_key(service, problem) -> None:
    both = {"Authorization": "Bearer nonsense", "X-Api-Key": "nonsense"}
    problem(service.client().get("/me", headers=both), 400)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/products/coffee", "There is nothing under 'coffee': an id here is a whole number from 1 to 2147483647."),
        ("/webhooks/7/deliveries", "There is nothing under '7': an id here is a UUID."),
        ("/orders/7", "There is no order with that reference. An order's `id` is not its `reference`."),
        ("/orders/0WBQK7M2PXR4D9VA1C3E", "There is no order with that reference."),
    ],
)
def test_an_id_of_another_kind_is_explained(service, problem, path: str, said: str) -> None:
    assert problem(service.client("hr").get(path), 404, "not-found") == said


def test_other_methods_are_listed(service, problem) -> None:
    for path, others in (("/contacts/1", "DELETE, GET or PATCH"), ("/contacts", "GET or POST"), ("/me", "GET")):
        said = problem(service.client("hr").put(path), 405, "method-not-allowed")
        assert said == f"PUT is not allowed here. Use {others}."
