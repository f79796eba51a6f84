"""The samples of the developer guide, run."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from largesse.base import clock
from largesse.webhooks.signing import Signer, new_secret, signature

if TYPE_CHECKING:
    from conftest import Service

GUIDE = (Path(__file__).parents[3] / "docs/guide-developer.md").read_text()

SECRET, BODY = "whsec_of-a-sample", '{"id":1,"fromName":"Zoë"}'.encode()


def block(language: str, holding: str) -> str:
    """The guide's one code block of a language that holds a text."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE)
    (found,) = [text for text in blocks if holding in text]
    return found


@pytest.fixture
def place(service: Service, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The guide's function that places an order exactly once."""
    monkeypatch.setenv("LARGESSE", service.url)
    monkeypatch.setenv("LARGESSE_API_KEY", service.keys["hr"])
    names: dict[str, Any] = {}
    exec(block("python", "def place("), names)  # noqa: S102 - text of our own
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


def test_the_guide_charges_what_was_agreed_to(service: Service, place: Any) -> None:
    names = place.__globals__
    exec(block("python", "def confirm("), names)  # noqa: S102 - text of our own
    order = {"productId": 1, "value": 10, "accountId": 1, "codeQuantity": 1, "externalReference": "guide-quoted"}
    shown: list[dict[str, Any]] = []
    before = service.balance("gbp")
    assert names["confirm"]("gift", order, shown.append) is None
    assert service.balance("gbp") == before
    placed = names["confirm"]("gift", order, lambda quoted: quoted["totalCost"] == 10)
    assert names["confirm"]("gift", {**order, "externalReference": "another"}, bool) != placed
    assert set(json.loads(block("json", "balanceAfter"))) == set(shown[0])
    assert before - service.balance("gbp") == 20


def test_the_python_client_of_the_guide_places_an_order(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LARGESSE", service.url)
    monkeypatch.setenv("LARGESSE_API_KEY", service.keys["hr"])
    names: dict[str, Any] = {}
    exec(block("python", "import Largesse"), names)  # noqa: S102 - text of our own
    order = names["order"]
    assert service.client("hr").get(f"/orders/{order.reference}").json()["totalCost"] == order.total_cost == 10


def test_the_first_order_of_the_guide_is_placed(service: Service) -> None:
    shell = block("sh", "thanks-2030-0001")
    body = re.search(r"-d '(\{.*?\})'", shell, re.DOTALL)
    assert body
    answer = service.client("hr").post("/send/gift", json=json.loads(body[1]))
    assert answer.status_code == 200
    shown = json.loads(block("json", '"externalReference":'))
    assert answer.json() == {**shown, "reference": answer.json()["reference"]}


def test_the_identity_of_the_guide_is_shaped_as_answered(service: Service) -> None:
    shown = json.loads(block("json", "serviceAccountName"))
    assert shown == service.client("hr").get("/me").json()


def test_the_problem_of_the_guide_is_shaped_as_answered(service: Service) -> None:
    shown = json.loads(block("json", "insufficient-balance"))
    order = {"productId": 1, "value": 25, "accountId": service.ids["funding_accounts"]["team"]}
    answer = service.client("hr").post("/send/gift", json={**order, "codeQuantity": 10}).json()
    assert {**answer, "detail": ""} == {**shown, "detail": ""}
    assert answer["detail"] == shown["detail"].replace("100.00", "50.00")


def test_the_python_sample_checks_signatures() -> None:
    names: dict[str, Any] = {}
    exec(block("python", "def is_genuine("), names)  # noqa: S102 - text of our own
    header = signature(SECRET.encode(), BODY)
    assert names["is_genuine"](BODY, header, SECRET)
    assert not names["is_genuine"](BODY + b" ", header, SECRET)
    assert not names["is_genuine"](BODY, "sha256=é", SECRET)


def delivered(secret: str) -> dict[str, str]:
    """The headers of a delivery made now, as servers hand them over: in lower case."""
    headers = Signer(secret.encode()).headers(7, "order.created", BODY)
    return {name.lower(): value for name, value in headers.items()}


def test_the_python_samples_check_standard_signatures(monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, Any] = {}
    exec(block("python", "def read_event("), names)  # noqa: S102 - text of our own
    exec(block("python", "def is_genuine_and_new("), names)  # noqa: S102 - text of our own
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
    """A body changed, a signature that is none, and another instant."""
    earlier = str(int(headers["webhook-timestamp"]) - 10)
    return [
        (BODY + b" ", headers),
        (BODY, {**headers, "webhook-signature": "v1,c2hvcnQ="}),
        (BODY, {**headers, "webhook-timestamp": earlier}),
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
    script = block("js", "isGenuineAndNew") + (
        f"\nfor (const [body, headers] of {json.dumps(calls)})"
        f" console.log(isGenuineAndNew(Buffer.from(body), headers, {json.dumps(secret)}));"
    )
    answer = subprocess.run(["node", "-e", script], capture_output=True, text=True, timeout=60, check=True)
    assert answer.stdout.split() == ["true", "false", "false", "false", "false"]


def test_the_node_sample_checks_signatures() -> None:
    if shutil.which("node") is None:
        pytest.skip("needs node")
    header = signature(SECRET.encode(), BODY)
    calls = [[BODY.decode(), header], [BODY.decode() + " ", header], [BODY.decode(), "sha256=short"]]
    script = block("js", "isGenuine(") + (
        f"\nfor (const [body, header] of {json.dumps(calls)})"
        f" console.log(isGenuine(Buffer.from(body), header, {json.dumps(SECRET)}));"
    )
    answer = subprocess.run(["node", "-e", script], capture_output=True, text=True, timeout=60, check=True)
    assert answer.stdout.split() == ["true", "false", "false"]
