"""The samples of the documentation, run: none has an error in it, whatever else its own test asks of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from largesse_client import Largesse

from largesse.base import clock
from largesse.webhooks.signing import Signer, new_secret

if TYPE_CHECKING:
    from conftest import Service

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = {path.stem: path.read_text() for path in [DOCS / "quick-start.md", *(DOCS / "guides").glob("*.md")]}
SAMPLE_ORDER = "F6Z9C7XE1MN9MKA1FDPH"
SAMPLE_SUBSCRIPTION = "3f2b8c1e-5d0a-4b7e-9c61-0a8d4e2f7b15"

SECRET, BODY = "whsec_of-a-sample", '{"id":1,"fromName":"Zoë"}'.encode()


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of a page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGES[page], re.DOTALL | re.MULTILINE)


def block(page: str, language: str, holding: str) -> str:
    """The one code block of a page in a language that holds a text."""
    (found,) = [text for text in blocks(page, language) if holding in text]
    return found


def commands(page: str) -> list[str]:
    """The calls of curl on a page, one by one."""
    text = "\n".join(blocks(page, "sh")) + "\n"
    return re.findall(r"^curl .*?(?:(?<!\\)\n(?=curl|largesse|export|\n|\Z)|\Z)", text, re.DOTALL | re.MULTILINE)


def test_each_address_of_the_demo_has_a_key_of_its_environment() -> None:
    pairs = [
        pair
        for page in PAGES
        for text in blocks(page, "sh")
        for pair in re.findall(r"LARGESSE=http://127.0.0.1:(\d+)\nexport LARGESSE_API_KEY=lgs_(\w+)_", text)
    ]
    assert set(pairs) == {("8000", "live"), ("8001", "test")}


@pytest.fixture
def place(service: Service, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The guide's function that places an order exactly once."""
    monkeypatch.setenv("LARGESSE", service.url)
    monkeypatch.setenv("LARGESSE_API_KEY", service.keys["hr"])
    names: dict[str, Any] = {}
    exec(block("idempotency", "python", "def place("), names)  # noqa: S102 - text of our own
    yield names["place"]
    names["client"].close()


def test_the_guide_places_an_order_once(service: Service, place: Any) -> None:
    order = {"productId": 1, "value": 10, "accountId": 1, "codeQuantity": 2, "externalReference": "guide-1"}
    before = service.balance("gbp")
    placed = place("/send/gift", order)
    assert placed["codeCount"] == 2
    assert place("/send/gift", order) == placed
    assert before - service.balance("gbp") == 20
    with pytest.raises(httpx.HTTPStatusError):
        place("/send/gift", {**order, "externalReference": "guide-2", "value": 11})


class BrokenNetwork(httpx.BaseTransport):
    """Passes requests on. Of the first answers, one is lost, one is a proxy's, one says when to come back by a date, one is half there."""

    def __init__(self) -> None:
        self._network = httpx.HTTPTransport()
        self._answers = [
            None,
            httpx.Response(502, text="<h1>Bad gateway</h1>"),
            httpx.Response(429, headers={"Retry-After": "Tue, 01 Jan 2030 00:00:00 GMT"}),
            httpx.Response(200, text='{"reference":"F6Z9C'),
        ]
        self.requests: list[str] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._network.handle_request(request)
        answer.read()
        self.requests.append(request.method)
        given = self._answers.pop(0) if self._answers else answer
        if given is None:
            raise httpx.ReadError("The connection broke.")
        return given

    def close(self) -> None:
        self._network.close()


def test_the_guide_places_an_order_once_over_a_broken_network(service: Service, place: Any) -> None:
    names = place.__globals__
    network, waits = BrokenNetwork(), []
    names["client"].close()
    names["client"] = httpx.Client(
        base_url=service.url, transport=network, headers={"Authorization": f"Bearer {service.keys['hr']}"}
    )
    names["time"] = SimpleNamespace(sleep=waits.append)
    order = {"productId": 1, "value": 10, "accountId": 1, "codeQuantity": 2, "externalReference": "guide-broken"}
    before = service.balance("gbp")
    assert place("/send/gift", order)["codeCount"] == 2
    assert before - service.balance("gbp") == 20
    assert network.requests == ["POST", "POST", "POST", "POST", "POST", "GET"]
    assert waits == [1, 2, 4, 8]


def test_the_guide_charges_what_was_agreed_to(service: Service, place: Any) -> None:
    names = place.__globals__
    exec(block("quotes", "python", "def confirm("), names)  # noqa: S102 - text of our own
    order = {"productId": 1, "value": 10, "accountId": 1, "codeQuantity": 1, "externalReference": "guide-quoted"}
    shown: list[dict[str, Any]] = []
    before = service.balance("gbp")
    assert names["confirm"]("gift", order, shown.append) is None
    assert service.balance("gbp") == before
    placed = names["confirm"]("gift", order, lambda quoted: quoted["totalCost"] == 10)
    assert names["confirm"]("gift", {**order, "externalReference": "another"}, bool) != placed
    assert set(json.loads(block("quotes", "json", "balanceAfter"))) == set(shown[0])
    assert before - service.balance("gbp") == 20


def test_the_python_client_of_the_guide_places_an_order(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LARGESSE", service.url)
    monkeypatch.setenv("LARGESSE_API_KEY", service.keys["hr"])
    names: dict[str, Any] = {}
    exec(block("quick-start", "python", "import Largesse"), names)  # noqa: S102 - text of our own
    order = names["order"]
    assert service.client("hr").get(f"/orders/{order.reference}").json()["totalCost"] == order.total_cost == 10


def test_the_first_order_of_the_guide_is_placed(service: Service) -> None:
    shell = block("quick-start", "sh", "thanks-2030-0001")
    body = re.search(r"-d '(\{.*?\})'", shell, re.DOTALL)
    assert body
    answer = service.client("hr").post("/send/gift", json=json.loads(body[1]))
    assert answer.status_code == 200
    shown = json.loads(block("quick-start", "json", '"externalReference":'))
    assert answer.json() == {**shown, "reference": answer.json()["reference"]}


def test_the_identity_of_the_guide_is_shaped_as_answered(service: Service) -> None:
    shown = json.loads(block("quick-start", "json", "serviceAccountName"))
    assert shown == service.client("hr").get("/me").json()


def test_the_problem_of_the_guide_is_shaped_as_answered(service: Service) -> None:
    shown = json.loads(block("errors", "json", "insufficient-balance"))
    order = {"productId": 1, "value": 25, "accountId": service.ids["funding_accounts"]["team"]}
    answer = service.client("hr").post("/send/gift", json={**order, "codeQuantity": 10}).json()
    assert {**answer, "detail": ""} == {**shown, "detail": ""}
    assert answer["detail"] == shown["detail"].replace("100.00", "50.00")


def test_the_python_sample_checks_signatures() -> None:
    names: dict[str, Any] = {}
    exec(block("webhooks", "python", "def is_genuine("), names)  # noqa: S102 - text of our own
    header = Signer(SECRET.encode()).headers(7, "order.created", BODY)["X-Service-Signature"]
    assert names["is_genuine"](BODY, header, SECRET)
    assert not names["is_genuine"](BODY + b" ", header, SECRET)
    assert not names["is_genuine"](BODY, "sha256=é", SECRET)


def delivered(secret: str) -> dict[str, str]:
    """The headers of a delivery made now, as servers hand them over: in lower case."""
    headers = Signer(secret.encode()).headers(7, "order.created", BODY)
    return {name.lower(): value for name, value in headers.items()}


def test_the_python_samples_check_standard_signatures(monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, Any] = {}
    exec(block("webhooks", "python", "def read_event("), names)  # noqa: S102 - text of our own
    exec(block("webhooks", "python", "def is_genuine_and_new("), names)  # noqa: S102 - text of our own
    secret = new_secret()
    headers = delivered(secret)
    assert names["read_event"](BODY, headers, secret) == json.loads(BODY)
    assert names["is_genuine_and_new"](BODY, headers, secret)
    with monkeypatch.context() as patched:
        patched.setattr(clock, "now", lambda: an_hour_before(headers))
        old = delivered(secret)
    for body, changed in [*forged(headers), (BODY, old)]:
        assert not names["is_genuine_and_new"](body, changed, secret)
        with pytest.raises(names["standardwebhooks"].WebhookVerificationError):
            names["read_event"](body, changed, secret)


def an_hour_before(headers: dict[str, str]) -> datetime:
    """That long before a delivery was made."""
    return datetime.fromtimestamp(int(headers["webhook-timestamp"]), UTC) - timedelta(hours=1)


def forged(headers: dict[str, str]) -> list[tuple[bytes, dict[str, str]]]:
    """A body changed, a signature that is none, another instant, and no signature."""
    earlier = str(int(headers["webhook-timestamp"]) - 10)
    return [
        (BODY + b" ", headers),
        (BODY, {**headers, "webhook-signature": "v1,c2hvcnQ="}),
        (BODY, {**headers, "webhook-timestamp": earlier}),
        (BODY, {}),
        (BODY, {"webhook-signature": headers["webhook-signature"]}),
    ]


def test_the_node_sample_checks_standard_signatures(monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("node") is None:
        pytest.skip("needs node")
    secret = new_secret()
    headers = delivered(secret)
    with monkeypatch.context() as patched:
        patched.setattr(clock, "now", lambda: an_hour_before(headers))
        old = delivered(secret)
    calls = [(body.decode(), changed) for body, changed in [(BODY, headers), *forged(headers), (BODY, old)]]
    script = block("webhooks", "js", "isGenuineAndNew") + (
        f"\nfor (const [body, headers] of {json.dumps(calls)})"
        f" console.log(isGenuineAndNew(Buffer.from(body), headers, {json.dumps(secret)}));"
    )
    answer = subprocess.run(["node", "-e", script], capture_output=True, text=True, timeout=60, check=True)
    assert answer.stdout.split() == ["true", *["false"] * 6]


def test_the_node_sample_checks_signatures() -> None:
    if shutil.which("node") is None:
        pytest.skip("needs node")
    header = Signer(SECRET.encode()).headers(7, "order.created", BODY)["X-Service-Signature"]
    calls = [[BODY.decode(), header], [BODY.decode() + " ", header], [BODY.decode(), "sha256=short"], [BODY.decode()]]
    script = block("webhooks", "js", "isGenuine(") + (
        f"\nfor (const [body, header] of {json.dumps(calls)})"
        f" console.log(isGenuine(Buffer.from(body), header, {json.dumps(SECRET)}));"
    )
    answer = subprocess.run(["node", "-e", script], capture_output=True, text=True, timeout=60, check=True)
    assert answer.stdout.split() == ["true", *["false"] * 3]


@pytest.fixture
def samples(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """What the samples need: a client, an order, a subscription. Puts those in the place of the ones that the guides name."""
    client = service.client("hr")
    order = service.send("gift", "coffee", value=5, recipients=[{"email": "sam@example.com"}]).json()["reference"]
    hook = {"targetUrl": "https://hooks.example.com/largesse", "event": "order.created"}
    subscription = client.post("/webhooks", json=hook).json()["id"]
    monkeypatch.setenv("LARGESSE", service.url)
    monkeypatch.setenv("LARGESSE_API_KEY", service.keys["hr"])
    yield lambda text: text.replace(SAMPLE_ORDER, order).replace(SAMPLE_SUBSCRIPTION, subscription)
    client.delete(f"/webhooks/{subscription}")


STAGING_ONLY = "/test/"
EVERY_CALL = [(page, at) for page in PAGES for at in range(len(commands(page)))]


@pytest.mark.parametrize(("page", "at"), EVERY_CALL, ids=str)
def test_every_call_of_curl_succeeds(
    service: Service,
    staging: Service,
    samples: Callable[[str], str],
    page: str,
    at: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = re.sub(
        r'("externalReference": ")', rf"\g<1>{at}-", samples(commands(page)[at])
    )  # other tests use the guides' own
    if STAGING_ONLY in command:
        order = order_of_staging(staging)
        command = re.sub(r'"orderReference": "\w+"', f'"orderReference": "{order}"', command)
        monkeypatch.setenv("LARGESSE", staging.url)
        monkeypatch.setenv("LARGESSE_API_KEY", service.keys["hr-test"])
    quiet = command.replace("curl ", "curl --silent --show-error --fail-with-body ", 1)
    done = subprocess.run(["bash", "-c", quiet], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def order_of_staging(staging: Service) -> str:
    """An order of one code there, which the test lab can claim."""
    sent = staging.send("gift", "coffee", key="hr-test", account="test-gbp", value=5)
    return str(sent.json()["reference"])


WITH_PYTHON = [
    path for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]) if "\n```python\n" in path.read_text()
]


def of_python(page: Path) -> Iterator[tuple[int, str]]:
    """The samples of Python of a page, each with the line it begins on."""
    text = page.read_text()
    for found in re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        yield text.count("\n", 0, found.start(1)), found[1]


def test_there_are_samples_of_python() -> None:
    assert len(WITH_PYTHON) > 5


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.name)
def test_every_sample_of_python_runs(samples: Callable[[str], str], page: Path) -> None:
    """One after another, as somebody who reads on would, with the client that the guide on authentication makes."""
    with Largesse(os.environ["LARGESSE"], os.environ["LARGESSE_API_KEY"]) as largesse:
        names: dict[str, Any] = {"__name__": "sample", "largesse": largesse}
        try:
            for line, sample in of_python(page):
                text = "\n" * line + samples(sample)  # an error names the page's own line
                exec(compile(text, str(page), "exec", dont_inherit=page.parent.name == "guides"), names)  # noqa: S102 - text of our own
        finally:
            for value in names.values():
                if isinstance(value, Largesse | httpx.Client):
                    value.close()


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.name)
def test_no_sample_escapes(page: Path) -> None:
    """A block of Python under another name, or indented, would not be run."""
    fences = re.findall(r"^ *```(?:python3?|py|pycon)\b.*$", page.read_text(), re.MULTILINE)
    assert fences == ["```python"] * len(list(of_python(page)))
