"""Quotes that are refused: as the send would be, and all that is wrong told at once."""

from typing import Any

import httpx
import pytest

SAM = {"email": "sam@example.com", "name": "Sam"}


def details(answer: httpx.Response) -> dict[str, str]:
    """What is wrong by the member it is about."""
    return {error["pointer"]: error["detail"] for error in answer.json()["errors"]}


@pytest.mark.parametrize(
    "members",
    [
        {"productId": None},
        {"productId": 2_000_000},
        {"value": 11},
        {"value": None},
        {"value": "10"},
        {"country": "GBR"},
        {"country": "FR"},
        {"codeQuantity": 5001},
        {"codeQuantity": None},
        {"codeQuantity": 1, "recipients": [SAM]},
        {"recipients": [{"email": "no address"}], "codeQuantity": None},
        {"recipients": [{"name": "Sam"}, {"email": "no address"}], "codeQuantity": None},
        {"recipients": [{**SAM, "quantity": 1000}] * 6, "codeQuantity": None},
        {"recipients": [SAM], "codeQuantity": None, "sendAt": "2020-01-01T00:00:00Z"},
        {"recipients": [SAM], "codeQuantity": None, "sendAt": 5},
        {"claimBy": "2020-01-01T00:00:00Z"},
        {"fromName": "x" * 33},
        {"message": "a\u0000b"},
        {"expiryAfterDays": 0},
        {"accountId": None},
        {"accountId": 2_000_000},
        {"accountId": 4},
        {"externalReference": "x" * 129},
        {"externalReference": "taken-before"},
        {"externalReference": "taken-before", "value": 11},
        {"value": 25, "codeQuantity": 5000, "accountId": 2},
    ],
    ids="-".join,
)
def test_a_quote_is_refused_as_the_send_is(service: Any, members: dict[str, Any]) -> None:
    taken = service.send("gift", "coffee", value=5, externalReference="taken-before")
    assert taken.status_code in {200, 409}
    body = service.body("gift", "coffee", value=10) | members
    before = service.state()
    sent, quoted = (service.client("hr").post(path, json=body).json() for path in ("/send/gift", "/quote/gift"))
    assert service.state() == before
    errors = quoted.pop("errors")
    sent.pop("errors", None)
    told, first = quoted.pop("detail"), sent.pop("detail")
    assert told.startswith(errors[0]["detail"])
    assert told == first if len(errors) == 1 else told.endswith("see `errors`.")
    assert quoted == sent


def test_a_body_that_cannot_be_read_is_told_alone(service: Any, problem: Any) -> None:
    client = service.client("hr")
    for raw in (b"[]", b"{", b'{"productId": 1,}', b"\xff"):
        answer = client.post("/quote/gift", content=raw, headers={"Content-Type": "application/json"})
        assert problem(answer, 400).startswith("The body")
        assert "errors" not in answer.json()


def test_everything_that_is_wrong_is_told_at_once(service: Any, quote: Any, problem: Any) -> None:
    service.send("gift", "coffee", value=5, externalReference="taken-before-all")
    answer = quote(
        "gift",
        "coffee",
        value="10",
        country="GBR",
        recipients=[SAM, {"email": "no address"}, {"name": "Kim"}, {**SAM, "quantity": 1001}],
        fromName="x" * 33,
        message="a\u0000b",
        sendAt="2020-01-01T00:00:00Z",
        accountId=2_000_000,
        expiryAfterDays=0,
        reminderDays=[3, 366],
        externalReference="taken-before-all",
    )
    assert "11 more are wrong: see `errors`." in problem(answer, 409, "reference-used")
    assert answer.json()["instance"].startswith("/orders/")
    assert set(details(answer)) == {
        "#/externalReference",
        "#/value",
        "#/country",
        "#/recipients/1/email",
        "#/recipients/2/email",
        "#/recipients/3/quantity",
        "#/fromName",
        "#/message",
        "#/sendAt",
        "#/expiryAfterDays",
        "#/reminderDays/1",
        "#/accountId",
    }


def test_what_depends_on_something_wrong_is_not_guessed_at(service: Any, quote: Any, problem: Any) -> None:
    """Product 1 stands for none: no word of its price, its country or what an account could pay of it."""
    body = service.body("gift", "coffee", account="team", value=11, codeQuantity=5000) | {"productId": "1"}
    answer = service.client("hr").post("/quote/gift", json=body)
    problem(answer, 400)
    assert set(details(answer)) == {"#/productId"}
    # The account is looked at all the same, and the batch that was not understood is not one for recipients.
    other = body | {"accountId": 2_000_000, "codeQuantity": "5", "sendAt": "2020-01-01T00:00:00Z"}
    answer = service.client("hr").post("/quote/gift", json=other)
    assert set(details(answer)) == {"#/productId", "#/accountId", "#/codeQuantity"}


def test_a_customer_without_any_account_is_told_whom_to_ask(staging: Any, problem: Any) -> None:
    body = staging.body("gift", "coffee", account="test-gbp", value=5)
    answer = staging.client("globex-test").post("/quote/gift", json=body)
    assert "Ask the operator" in problem(answer, 400)
    assert set(details(answer)) == {"#/accountId"}
