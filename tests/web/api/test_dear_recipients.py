"""Recipients whose addresses take long to read: what is wrong for a cheaper reason is told first, and nobody else waits."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from largesse.base import email

LETTERS = "абвгдежзийклмнопрстуфхцчшщэюя"
_random = random.Random(5)


def dear_address() -> str:
    """An address at a domain of its own, which takes the library some milliseconds to read."""
    labels = ("".join(_random.choices(LETTERS, k=24)) for _ in range(4))
    return f"sam@{'.'.join(labels)}.example.com"


def dear(count: int) -> list[dict[str, str]]:
    return [{"email": dear_address()} for _ in range(count)]


@pytest.fixture
def sent_soon(service: Any) -> Callable[..., httpx.Response]:
    """Sends the gift to a thousand recipients, and fails if the service, which is in this process, reads half of their domains."""

    def send(recipients: list[Any] | None = None, **members: Any) -> httpx.Response:
        body = service.body("gift", "coffee", recipients=recipients or dear(1_000), **{"value": 5, **members})
        before = email._judge_domain.cache_info().misses
        answer: httpx.Response = service.client("hr").post("/send/gift", json=body)
        assert email._judge_domain.cache_info().misses - before < 500
        return answer

    return send


@pytest.mark.parametrize(
    ("members", "detail"),
    [
        ({"accountId": 999_999}, "`accountId` names no funding account"),
        ({"value": 7}, "`value`"),
        ({"productId": 999_999}, "`productId` names no product"),
        ({"message": "a\x00b"}, "`message`"),
        ({"sendAt": "2001-01-01T00:00:00Z"}, "`sendAt` must be in the future"),
        ({"accountId": None}, "`accountId` is required"),
    ],
    ids=lambda one: next(iter(one)) if isinstance(one, dict) else None,
)
def test_what_is_wrong_for_a_cheaper_reason_is_told_first(
    sent_soon: Any, problem: Any, members: dict[str, Any], detail: str
) -> None:
    assert detail in problem(sent_soon(**members), 400)


def test_too_many_codes_are_told_before_addresses_are_read(sent_soon: Any, problem: Any) -> None:
    recipients = [one | {"quantity": 6} for one in dear(1_000)]
    assert "5000 codes" in problem(sent_soon(recipients), 400)


def test_a_used_reference_is_told_before_addresses_are_read(service: Any, sent_soon: Any, problem: Any) -> None:
    assert service.send("gift", "coffee", value=5, externalReference="dear").status_code == 200
    problem(sent_soon(externalReference="dear"), 409, "reference-used")


def test_a_domain_is_read_once(sent_soon: Any) -> None:
    domain = dear_address().partition("@")[2]
    answer = sent_soon([{"email": f"sam{number}@{domain}"} for number in range(1_000)])
    assert (answer.status_code, answer.json()["recipientCount"]) == (200, 1_000)


@pytest.mark.long
async def test_neighbours_do_not_wait_for_dear_recipients(service: Any) -> None:
    """One customer has 500 of them read in four requests; for every ten, a request of another one passes."""
    body = service.body("gift", "coffee", value=5)
    headers = {name: {"Authorization": f"Bearer {service.keys[name]}"} for name in ("hr", "globex")}
    passed = 0
    async with httpx.AsyncClient(base_url=service.url, timeout=120) as client:
        assert (await client.get("/me", headers=headers["globex"])).status_code == 200
        del body["codeQuantity"]
        sending = asyncio.gather(
            *(client.post("/send/gift", json=body | {"recipients": dear(125)}, headers=headers["hr"]) for _ in range(4))
        )
        while not sending.done():
            assert (await client.get("/me", headers=headers["globex"])).status_code == 200
            passed += 1
        assert [answer.status_code for answer in await sending] == [200] * 4
    assert passed > 500 / 10
