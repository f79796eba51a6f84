"""Orders that are placed: what the three send endpoints answer, and what is charged and kept."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from largesse.web.claim.rendering import THEMES, theme

SAM = {"email": "sam@example.com"}
REFERENCE = re.compile(r"[0-9A-HJKMNP-TV-Z]{20}")
CODE = re.compile(r"([0-9A-HJKMNP-TV-Z]{4}-){4}[0-9A-HJKMNP-TV-Z]")
PIN = re.compile(r"[0-9]{6}")
LINK = re.compile(r"https://gifts\.example/claim/[A-Za-z0-9_-]{40}(?:[A-Za-z0-9_-]{8})?")


def placed(answer) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "application/json"
    return answer.json()


@pytest.mark.parametrize(
    ("what", "name", "account", "members", "answered"),
    [
        # what, name, account, further members, (value, currency, total cost of two)
        ("gift", "coffee", "gbp", {"value": 10}, (10.0, "GBP", 20.0)),
        ("gift", "coffee", "gbp", {"value": 25.0, "country": "ie"}, (25.0, "GBP", 50.0)),
        ("gift", "cinema", "gbp", {}, (12.5, "GBP", 25.0)),
        ("gift", "shop", "gbp", {"value": 0.01}, (0.01, "GBP", 0.02)),
        ("gift", "shop", "gbp", {"value": 100000}, (100000.0, "GBP", 200000.0)),
        ("gift", "books", "eur", {"value": 5, "country": "IE"}, (5.0, "EUR", 10.0)),
        ("gift", "ramen", "jpy", {"value": 500, "country": "JP"}, (500.0, "JPY", 1000.0)),
        ("gift", "dates", "kwd", {"value": 1.25, "country": "KW"}, (1.25, "KWD", 2.5)),
        ("gift", "hamper", "gbp", {}, (38.5, "GBP", 104.28)),
        ("gift", "hamper", "gbp", {"country": "IE"}, (38.5, "GBP", 119.18)),
        ("gift", "club", "gbp", {"value": 20}, (20.0, "GBP", 40.0)),
        ("collection", "treats", "gbp", {"value": 50}, (50.0, "GBP", 100.0)),
        ("collection", "any", "eur", {"value": 0.01}, (0.01, "EUR", 0.02)),
        ("collection", "open", "kwd", {"value": 0.005}, (0.005, "KWD", 0.01)),
        ("collection", "acme-thanks", "gbp", {}, (25.0, "GBP", 50.0)),
        ("template", "welcome", "gbp", {}, (10.0, "GBP", 20.0)),
        ("template", "box", "gbp", {}, (38.5, "GBP", 119.18)),
        ("template", "thanks", "gbp", {}, (25.0, "GBP", 50.0)),
        ("template", "bunch", "gbp", {}, (25.0, "GBP", 50.0)),
    ],
)
def test_a_batch_of_two_codes(
    service, typed, what: str, name: str, account: str, members: dict[str, Any], answered: tuple[float, str, float]
) -> None:
    query = "SELECT balance_minor FROM accounts WHERE id = $1"
    before = service.sql(query, service.ids["funding_accounts"][account])[0][0]
    body = placed(service.send(what, name, account=account, codeQuantity=2, **members))
    value, currency, cost = answered
    assert REFERENCE.fullmatch(body.pop("reference"))
    codes = body.pop("codes")
    assert typed(body) == typed(
        {
            "giftSelectionType": "gifts" if what == "collection" or name in {"thanks", "bunch"} else "gift",
            "value": value,
            "currency": currency,
            "codeCount": 2,
            "recipientCount": 0,
            "totalCost": cost,
            "deliveryMode": "manual",
            "scheduledFor": None,
            "externalReference": None,
        }
    )
    assert len(codes) == 2
    for code in codes:
        assert set(code) == {"code", "pin", "redemptionUrl"}
        assert CODE.fullmatch(code["code"])
        assert PIN.fullmatch(code["pin"])
        assert LINK.fullmatch(code["redemptionUrl"])
    charged = before - service.sql(query, service.ids["funding_accounts"][account])[0][0]
    assert charged == round(cost * {"JPY": 1, "KWD": 1000}.get(currency, 100))


def test_an_emailed_order(service, typed) -> None:
    recipients = [
        {"email": "Sam@Example.com", "name": "Sam", "quantity": 2},
        {"email": "sam@example.com"},
        {"email": "kim@example.com", "name": None, "quantity": 1},
    ]
    body = placed(service.send("gift", "coffee", value=5, recipients=recipients, externalReference="  emailed-1 "))
    reference = body.pop("reference")
    assert typed(body) == typed(
        {
            "giftSelectionType": "gift",
            "value": 5.0,
            "currency": "GBP",
            "codeCount": 4,
            "recipientCount": 2,
            "totalCost": 20.0,
            "deliveryMode": "send",
            "scheduledFor": None,
            "externalReference": "emailed-1",
            "codes": [],
        }
    )
    rows = service.of_order(reference, "number, recipient_email, recipient_name", "lines", "ORDER BY number")
    assert [tuple(row) for row in rows] == [
        (1, "Sam@example.com", "Sam"),
        (2, "Sam@example.com", "Sam"),
        (3, "sam@example.com", None),
        (4, "kim@example.com", None),
    ]


def test_an_invoiced_order(service) -> None:
    body = placed(service.send("gift", "hamper", key="initech", account=None, recipients=[SAM]))
    assert body["totalCost"] == 52.14
    assert service.balance("initech-gbp") == 5.0


@pytest.mark.parametrize(
    ("send_at", "scheduled_for"),
    [
        ("2099-12-24T09:00:00Z", "2099-12-24T09:00:00Z"),
        ("2099-12-24T09:00:00", "2099-12-24T09:00:00Z"),
        ("2099-12-24T09:00:00+05:30", "2099-12-24T03:30:00Z"),
        ("2099-12-24T09:00:00-08:00", "2099-12-24T17:00:00Z"),
        ("2099-12-24 09:00:00z", "2099-12-24T09:00:00Z"),
        ("2099-12-24T09:00:00.250Z", "2099-12-24T09:00:00.250000Z"),
        (None, None),
    ],
)
def test_send_at_becomes_an_instant_in_utc(service, send_at: str | None, scheduled_for: str | None) -> None:
    body = placed(service.send("gift", "coffee", value=5, recipients=[SAM], sendAt=send_at))
    assert body["scheduledFor"] == scheduled_for
    due = service.sql(
        "SELECT due_at, o.created_at, scheduled_for FROM mail_jobs JOIN orders o ON o.id = order_id WHERE reference = $1",
        body["reference"],
    )[0]
    if scheduled_for is None:
        assert (due["due_at"], due["scheduled_for"]) == (due["created_at"], None)
    else:
        assert due["due_at"] == due["scheduled_for"] == datetime.fromisoformat(scheduled_for)


def test_a_code_batch_ignores_reminders(service) -> None:
    soon = (datetime.now(UTC) + timedelta(days=5)).isoformat()
    body = placed(service.send("gift", "coffee", value=5, codeQuantity=1, claimBy=soon, reminderDays=[9]))
    request = service.client("hr").get(f"/orders/{body['reference']}/request").json()
    assert request["reminderDays"] == []


@pytest.mark.parametrize(
    ("source", "kept"),
    [
        (None, "api"),
        ("!!!", "api"),
        ("HR Portal", "hr-portal"),
        ("--hr__portal--2--", "hr-portal-2"),
        ("caf\u00e9 rio", "caf-rio"),
        ("a" * 31 + " b", "a" * 31),
    ],
)
def test_source_is_kept_as_a_short_token(service, source: str | None, kept: str) -> None:
    reference = placed(service.send("gift", "coffee", value=5, source=source))["reference"]
    orders = service.client("hr").get("/orders?limit=1").json()
    assert (orders[0]["reference"], orders[0]["sourceType"]) == (reference, kept)


def test_what_a_template_supplies_and_what_overrides_it(service) -> None:
    query = "SELECT wrapping_key, from_name, message, expiry_after_days, template_id, country FROM orders WHERE reference = $1"
    plain = placed(service.send("template", "welcome", recipients=[SAM]))["reference"]
    template = service.ids["templates"]["welcome"]
    assert tuple(service.sql(query, plain)[0]) == ("confetti", "Acme", "Welcome!", 90, template, "GB")
    nulls = {"wrappingKey": None, "fromName": None, "message": None, "expiryAfterDays": None}
    same = placed(service.send("template", "welcome", recipients=[SAM], **nulls))["reference"]
    assert service.sql(query, same) == service.sql(query, plain)
    own = {"wrappingKey": "stars", "fromName": "Ada", "message": "Hi\nthere", "expiryAfterDays": 7}
    changed = placed(service.send("template", "welcome", recipients=[SAM], **own))["reference"]
    assert tuple(service.sql(query, changed)[0]) == ("stars", "Ada", "Hi\nthere", 7, template, "GB")
    blanks = {"wrappingKey": "", "fromName": " ", "message": " \n "}
    blanked = placed(service.send("template", "welcome", recipients=[SAM], **blanks))["reference"]
    assert service.sql(query, blanked) == service.sql(query, plain)
    some = placed(service.send("template", "welcome", message="Only this"))["reference"]
    assert tuple(service.sql(query, some)[0])[:3] == ("confetti", "Acme", "Only this")


def test_the_template_decides_value_and_country(service) -> None:
    body = placed(service.send("template", "welcome", value=25, country="IE", productId=1))
    assert body["value"] == 10.0
    assert service.client("hr").get("/orders?limit=1").json()[0]["country"] == "GB"


def test_expiry_holds_on_enterprise_plans_only(service) -> None:
    query = "SELECT expiry_after_days FROM orders WHERE reference = $1"

    def expiry(what: str, name: str, key: str, account: str, **members: Any) -> int | None:
        answer = placed(service.send(what, name, key=key, account=account, **members))
        return service.sql(query, answer["reference"])[0][0]

    assert expiry("gift", "coffee", "hr", "gbp", value=5, expiryAfterDays=30) == 30
    assert expiry("gift", "coffee", "hr", "gbp", value=5, expiryAfterDays=1) == 1
    assert expiry("gift", "coffee", "hr", "gbp", value=5, expiryAfterDays=None) is None
    assert expiry("gift", "coffee", "globex", "globex-gbp", value=5, expiryAfterDays=30) is None
    for number in (0, -1, 1.5, 36_501, 10**30):
        members = {"value": 5, "expiryAfterDays": number}
        assert expiry("gift", "coffee", "globex", "globex-gbp", **members) is None
    assert expiry("template", "globex-hello", "globex", "globex-gbp") is None
    assert expiry("template", "globex-hello", "globex", "globex-gbp", expiryAfterDays=30) is None


def test_wrapping_is_default_unless_said(service) -> None:
    client = service.client("hr")
    for given, kept in ((None, "default"), ("", "default"), ("  ", "default"), ("gold", "gold"), ("w" * 64, "w" * 64)):
        placed(service.send("gift", "coffee", value=5, wrappingKey=given))
        assert client.get("/orders?limit=1").json()[0]["wrappingKey"] == kept


def test_the_known_wrappings_are_listed(service) -> None:
    listed = service.client("hr").get("/wrappings").json()
    assert [wrapping["key"] for wrapping in listed] == list(THEMES)
    for wrapping in listed:
        for key in (wrapping["key"], *wrapping["aliases"]):
            assert theme(key).key == wrapping["key"]
        assert wrapping["label"]
    properties = service.client().get("/openapi.json").json()["components"]["schemas"]["SendGift"]["properties"]
    assert all(f"`{wrapping['key']}`" in properties["wrappingKey"]["description"] for wrapping in listed)


def test_a_group_account_assigned_to_the_service_account_pays(service) -> None:
    before = service.balance("team")
    placed(service.send("gift", "coffee", account="team", value=5))
    assert service.balance("team") == before - 5


def test_five_thousand_codes_are_distinct(service) -> None:
    body = placed(service.send("gift", "shop", value=0.01, codeQuantity=5000))
    codes = body["codes"]
    assert (body["codeCount"], len(codes), body["totalCost"]) == (5000, 5000, 50.0)
    assert len({code["code"] for code in codes}) == 5000
    assert len({code["redemptionUrl"] for code in codes}) == 5000
    assert all(PIN.fullmatch(code["pin"]) for code in codes)
    # Of 5,000 PINs drawn from a million, some 12 pairs are alike; a tenth alike would be no draw.
    assert len({code["pin"] for code in codes}) > 4500
    again = service.client("hr").get(f"/orders/{body['reference']}")
    assert again.json() == body
