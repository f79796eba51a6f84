"""Quotes: what a send would be charged, all that would keep it from being placed, and sends held to what was quoted."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.web.api.conftest import RICH_WORLD
from tests.web.api.loading import load_document
from tests.web.api.test_clock import move_clock

from largesse.seed.reading import parse_seed

__all__ = ["move_clock"]

SAM = {"email": "sam@example.com", "name": "Sam"}
LATER = (datetime.now(UTC) + timedelta(days=30)).replace(microsecond=0)


@pytest.mark.parametrize(
    ("what", "name", "account", "members", "value", "cost"),
    [
        ("gift", "coffee", "gbp", {"value": 10, "codeQuantity": 3}, 10.0, 30.0),
        ("gift", "hamper", "gbp", {"country": "IE", "codeQuantity": 2}, 38.5, 119.18),
        ("gift", "ramen", "jpy", {"value": 500, "country": "JP"}, 500.0, 500.0),
        ("gift", "dates", "kwd", {"value": 1.25, "country": "KW"}, 1.25, 1.25),
        ("gift", "coffee", "gbp", {"value": 5, "recipients": [SAM, {**SAM, "quantity": 2}]}, 5.0, 15.0),
        ("gift", "coffee", "gbp", {"value": 5, "recipients": [SAM], "sendAt": LATER.isoformat()}, 5.0, 5.0),
        ("collection", "treats", "gbp", {"value": 50}, 50.0, 50.0),
        ("collection", "acme-thanks", "gbp", {"value": 99.999}, 25.0, 25.0),
        ("template", "welcome", "gbp", {"recipients": [SAM]}, 10.0, 10.0),
        ("template", "box", "gbp", {}, 38.5, 59.59),
    ],
)
def test_what_is_quoted_is_what_is_placed(
    service: Any, quote: Any, what: str, name: str, account: str, members: dict[str, Any], value: float, cost: float
) -> None:
    quoted = quote(what, name, account=account, **members)
    assert quoted.status_code == 200, quoted.text
    told = quoted.json()
    assert (told["value"], told["totalCost"]) == (value, cost)
    placed = service.send(what, name, account=account, quote=told["quote"], **members)
    assert placed.status_code == 200, placed.text
    alike = set(told) - {"balanceAfter", "expiresAt", "quote"}
    assert {member: told[member] for member in alike} == {member: placed.json()[member] for member in alike}
    accounts = service.client("hr").get("/funding-accounts").json()
    number = service.ids["funding_accounts"][account]
    assert told["balanceAfter"] == next(one["balance"] for one in accounts if one["id"] == number)


def test_a_quote_says_until_when_it_holds(service: Any, quote: Any) -> None:
    told = quote("gift", "coffee", value=5).json()
    expires_at = datetime.fromisoformat(told["expiresAt"])
    now = service.sql("SELECT clock_now() AS now")[0]["now"]
    assert timedelta(minutes=14) < expires_at - now <= timedelta(minutes=15)
    assert len(told["quote"]) == 128
    assert told["quote"] != quote("gift", "coffee", value=5).json()["quote"]


def test_quotes_write_nothing(service: Any, quote: Any) -> None:
    """A quote that holds and one that is refused write nothing, and no account is made for a new currency.

    Last-seen of keys and the request log are about requests, and are written later.
    """
    tables = [
        row["name"]
        for row in service.sql(
            "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' AND tablename NOT IN ('api_keys', 'api_requests')"
        )
    ]
    assert "orders" in tables
    everything = " UNION ALL ".join(f"SELECT '{name}' AS name, count(*) AS count FROM {name}" for name in tables)
    spent = "SELECT sequencename::text AS name, last_value AS count FROM pg_sequences WHERE sequencename <> 'api_requests_id_seq'"

    def state() -> list[tuple[Any, ...]]:
        return [tuple(row) for query in (everything, spent) for row in service.sql(f"{query} ORDER BY 1")]

    before = service.state(), state()
    assert quote("gift", "coffee", value=5, codeQuantity=5000).status_code == 200
    assert quote("gift", "shop", account="team", value=50.01).status_code == 402
    assert quote("gift", "books", key="initech", account=None, value=5, country="IE").status_code == 200
    assert quote("gift", "coffee", value=6).status_code == 400
    assert (service.state(), state()) == before


def test_an_invoiced_customer_has_no_balance_after(service: Any, quote: Any) -> None:
    answer = quote("gift", "coffee", key="initech", account=None, value=5)
    assert answer.status_code == 200
    assert answer.json()["balanceAfter"] is None
    token = answer.json()["quote"]
    assert service.send("gift", "coffee", key="initech", account=None, value=5, quote=token).status_code == 200


def test_a_quote_is_for_what_the_account_holds_and_reserves_none_of_it(service: Any, quote: Any, problem: Any) -> None:
    exact = {"account": "team", "value": service.balance("team")}
    told = quote("gift", "shop", **exact).json()
    assert told["balanceAfter"] == 0
    a_penny_more = quote("gift", "shop", account="team", value=exact["value"] + 0.01)
    assert "the account holds" in problem(a_penny_more, 402, "insufficient-balance")
    assert service.send("gift", "shop", account="team", value=0.01).status_code == 200
    before = service.state()
    problem(service.send("gift", "shop", quote=told["quote"], **exact), 402, "insufficient-balance")
    assert service.state() == before


# Held to it


@pytest.mark.parametrize(
    "changed",
    [
        {"value": 25},
        {"country": "IE"},
        {"accountId": 2},
        {"recipients": [SAM, {"email": "kim@example.com"}]},
        {"recipients": [{**SAM, "name": "Samira"}]},
        {"recipients": [{**SAM, "email": "sam@example.org"}]},
        {"recipients": [{**SAM, "quantity": 2}]},
        {"recipients": None, "codeQuantity": 1},
        {"wrappingKey": "stars"},
        {"fromName": "Kim"},
        {"message": "Thanks"},
        {"sendAt": LATER.isoformat()},
        {"claimBy": LATER.isoformat()},
        {"expiryAfterDays": 31},
        {"source": "hr"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_another_request_is_not_placed(service: Any, quote: Any, problem: Any, changed: dict[str, Any]) -> None:
    members = {"value": 10, "recipients": [SAM], "message": "Thank you", "expiryAfterDays": 30}
    token = quote("gift", "coffee", **members).json()["quote"]
    before = service.state()
    answer = service.send("gift", "coffee", quote=token, **{**members, **changed})
    assert "nothing was placed" in problem(answer, 409, "quote-changed")
    assert answer.json()["instance"] is None
    assert service.state() == before
    assert service.send("gift", "coffee", quote=token, **members).status_code == 200


def test_another_gift_is_not_placed(service: Any, quote: Any, problem: Any) -> None:
    token = quote("template", "welcome").json()["quote"]
    others = ("gift", "coffee", {"value": 10}), ("collection", "treats", {"value": 10}), ("template", "box", {})
    for what, name, members in others:
        problem(service.send(what, name, quote=token, **members), 409, "quote-changed")


def test_the_same_in_other_words_is_placed(service: Any, quote: Any) -> None:
    """What counts is what was understood. The caller's reference is not part of it: it names the order, whatever is in that."""
    token = quote("gift", "coffee", value=10, recipients=[SAM], source="API", sendAt=LATER.isoformat()).json()["quote"]
    members = {
        "value": 10.0,
        "country": "gb",
        "recipients": [{**SAM, "quantity": None}],
        "message": "  ",
        "wrappingKey": "default",
        "sendAt": LATER.strftime("%Y-%m-%dT%H:%M:%S"),
        "externalReference": "quoted-in-other-words",
        "unknown": 1,
    }
    assert service.send("gift", "coffee", quote=token, **members).status_code == 200


def test_a_price_that_changed_is_not_charged(service: Any, quote: Any, problem: Any) -> None:
    told = quote("gift", "hamper").json()
    dearer = RICH_WORLD.replace("cost: 35.00", "cost: 36.00")

    def load(world: str) -> None:
        document = parse_seed(world.encode(), "world.yaml")
        service.run(lambda connection: load_document(connection, document))

    load(dearer)
    try:
        before = service.state()
        detail = problem(service.send("gift", "hamper", quote=told["quote"]), 409, "quote-changed")
        assert detail.startswith("The order was quoted at 52.14 GBP and would cost 53.46 GBP;")
        assert service.state() == before
        again = quote("gift", "hamper").json()
        assert again["totalCost"] == 53.46
        assert service.send("gift", "hamper", quote=again["quote"]).json()["totalCost"] == 53.46
    finally:
        load(RICH_WORLD)


def test_a_quote_expires(service: Any, quote: Any, problem: Any, move_clock: Any) -> None:
    token = quote("gift", "coffee", value=5).json()["quote"]
    move_clock(timedelta(minutes=14))
    assert service.send("gift", "coffee", value=5, quote=token).status_code == 200
    move_clock(timedelta(minutes=15, seconds=1))
    before = service.state()
    detail = problem(service.send("gift", "coffee", value=5, quote=token), 409, "quote-expired")
    assert "held until 20" in detail
    assert service.state() == before


def test_a_quote_is_for_its_customer_and_environment(service: Any, staging: Any, quote: Any, problem: Any) -> None:
    members = {"value": 5, "codeQuantity": 1}
    of_globex = quote("gift", "coffee", key="globex", account="globex-gbp", **members).json()["quote"]
    body = staging.body("gift", "coffee", account="test-gbp", **members)
    of_staging = staging.client("hr-test").post("/quote/gift", json=body).json()["quote"]
    for token in (of_globex, of_staging):
        answer = service.send("gift", "coffee", quote=token, **members)
        assert problem(answer, 400).startswith("`quote` must be one that this service gave to this customer, unchanged")
    # Another service account of the customer may send what was quoted.
    own = quote("gift", "coffee", **members).json()["quote"]
    assert service.send("gift", "coffee", key="crm", quote=own, **members).status_code == 200


@pytest.mark.parametrize("token", ["", " ", "x", "a" * 128, "é" * 128, "a" * 256], ids=range(6))
def test_what_is_no_quote_is_refused(service: Any, problem: Any, token: str) -> None:
    assert "`quote` must be one that" in problem(service.send("gift", "coffee", value=5, quote=token), 400)


def test_a_quote_has_a_limit_and_a_type(service: Any, problem: Any) -> None:
    answer = service.send("gift", "coffee", value=5, quote="a" * 257)
    assert "`quote` must have at most 256 characters" in problem(answer, 400)
    assert "`quote` must be a string" in problem(service.send("gift", "coffee", value=5, quote=5), 400)
    assert service.send("gift", "coffee", value=5, quote=None).status_code == 200


def test_a_forged_quote_is_refused(service: Any, quote: Any, problem: Any) -> None:
    token = quote("gift", "coffee", value=5).json()["quote"]
    for at in range(0, len(token), 5):
        forged = token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :]
        assert "`quote` must be one that" in problem(service.send("gift", "coffee", value=5, quote=forged), 400)
    for cut in (token[:-4], token + "AAAA", f"{token[:8]}\n{token[8:]}"):
        assert "`quote` must be one that" in problem(service.send("gift", "coffee", value=5, quote=cut), 400)


def test_a_used_reference_is_told_first(service: Any, quote: Any, problem: Any, move_clock: Any) -> None:
    """Who repeats a send hears that it was placed, whatever has become of its quote."""
    members = {"value": 5, "externalReference": "quoted-once"}
    token = quote("gift", "coffee", **members).json()["quote"]
    placed = service.send("gift", "coffee", quote=token, **members).json()["reference"]
    before = service.state()
    assert placed in problem(service.send("gift", "coffee", quote=token, **members), 409, "reference-used")
    problem(service.send("gift", "coffee", quote="forged", **members), 409, "reference-used")
    problem(service.send("gift", "coffee", quote=token, **{**members, "value": 25}), 409, "reference-used")
    move_clock(timedelta(hours=1))
    problem(service.send("gift", "coffee", quote=token, **members), 409, "reference-used")
    assert service.state() == before


# Refused, and all there is to say


def test_large_orders_are_quoted(service: Any, quote: Any) -> None:
    recipients = [{"email": f"r{number}@example.com"} for number in range(5000)]
    told = quote("gift", "coffee", value=5, recipients=recipients).json()
    assert (told["codeCount"], told["recipientCount"], told["totalCost"]) == (5000, 5000, 25000.0)
    answer = service.send("gift", "coffee", value=5, recipients=recipients, quote=told["quote"])
    assert answer.status_code == 200
    assert answer.json()["totalCost"] == 25000.0
