"""Orders that are refused: each rule of the send bodies on both sides of its edge, and what a refusal leaves alone."""

from typing import Any, ClassVar

import pytest

SAM = {"email": "sam@example.com"}
EMOJI = "\U0001f381"


pytestmark = pytest.mark.usefixtures("refusals_alone")


@pytest.mark.parametrize(
    ("members", "said"),
    [
        # Exactly one of recipients and codeQuantity
        ({"codeQuantity": None}, "Exactly one of `recipients` and `codeQuantity`"),
        ({"recipients": None}, "Exactly one of `recipients` and `codeQuantity`"),
        ({"recipients": [SAM], "codeQuantity": 1}, "Exactly one of `recipients` and `codeQuantity`"),
        ({"recipients": []}, "Exactly one of `recipients` and `codeQuantity`"),
        # How many
        ({"codeQuantity": 0}, "`codeQuantity` must be at least 1"),
        ({"codeQuantity": 5001}, "`codeQuantity` must be at most 5000"),
        ({"recipients": [{**SAM, "quantity": 0}]}, "`recipients[0].quantity` must be at least 1"),
        ({"recipients": [{**SAM, "quantity": 1000}] * 5 + [SAM]}, "`recipients` must ask for at most 5000 codes"),
        ({"recipients": [SAM] * 5001}, "`recipients` must have at most 5000"),
        # Who
        ({"recipients": [SAM, {"email": None}]}, "`recipients[1].email` must be a string"),
        ({"recipients": [SAM, {"email": "sam"}]}, "`recipients[1].email` is not an email address"),
        ({"recipients": [{"email": "s" * 243 + "@example.com"}]}, "`recipients[0].email` must have at most 254"),
        ({"recipients": [{**SAM, "name": "S\rm"}]}, "`recipients[0].name` must not contain control"),
        ({"recipients": SAM}, "`recipients` must be an array or null"),
        ({"recipients": [{**SAM, "quantity": "2"}]}, "`recipients[0].quantity` must be an integer"),
        # Texts
        ({"fromName": "x" * 33}, "`fromName` must have at most 32 characters"),
        ({"fromName": EMOJI * 33}, "`fromName` must have at most 32 characters"),
        ({"fromName": "Ada\n"}, "`fromName` must not contain control characters"),
        ({"fromName": "A\u202eda"}, "`fromName` must not contain bidirectional control characters (U+202E)"),
        ({"message": "a\n\u2066b"}, "`message` must not contain bidirectional control characters (U+2066)"),
        ({"message": "x" * 257}, "`message` must have at most 256 characters"),
        ({"message": "tab\t"}, "`message` must not contain control characters"),
        ({"wrappingKey": "w" * 65}, "`wrappingKey` must have at most 64 characters"),
        ({"externalReference": "x" * 129}, "`externalReference` must have at most 128 characters"),
        ({"externalReference": "a\u0000b"}, "`externalReference` must not contain control characters"),
        # When
        ({"recipients": [SAM], "sendAt": "2020-01-01T00:00:00Z"}, "`sendAt` must be in the future"),
        ({"recipients": [SAM], "sendAt": "tomorrow"}, "`sendAt` must be a date-time such as 2030-12-24T09:00:00Z."),
        ({"recipients": [SAM], "sendAt": 4102444800}, "`sendAt` must be a date-time"),
        ({"recipients": [SAM], "sendAt": "9999-12-31T23:59:59-01:00"}, "`sendAt` is outside the calendar"),
        (
            {"recipients": [SAM], "sendAt": "9999-12-31T23:59:59Z", "claimBy": "9999-12-31T23:59:59Z"},
            "`claimBy` must be later than `sendAt`",
        ),
        (
            {"recipients": [SAM], "sendAt": "9990-01-01T00:00:00Z", "claimBy": "9999-12-31T00:00:00Z"},
            "`claimBy` must be at most 3,650 days",
        ),
        (
            {
                "recipients": [SAM],
                "sendAt": "9999-01-01T00:00:00Z",
                "claimBy": "9999-12-31T00:00:00Z",
                "reminderDays": [365],
            },
            "`reminderDays` must all be over before `claimBy`",
        ),
        ({"claimBy": "2020-01-01T00:00:00Z"}, "`claimBy` must be in the future"),
        ({"claimBy": 7}, "`claimBy` must be a date-time"),
        ({"claimBy": "9999-12-31T23:59:59-01:00"}, "`claimBy` is outside the calendar"),
        *(
            ({"recipients": [SAM], "reminderDays": days}, "`reminderDays")
            for days in ([5, 2], [2, 2], [0], [366], [1, 2, 3, 4], "2", [1.5])
        ),
        # Which and how much
        ({"productId": 999_999}, "`productId` names no product available in GB"),
        ({"productId": 0}, "`productId` must be at least 1"),
        ({"productId": 2**31}, "`productId` must be at most 2147483647"),
        ({"productId": None}, "`productId` must be an integer"),
        ({"productId": "1"}, "`productId` must be an integer"),
        ({"country": "FR"}, "`productId` names no product available in FR"),
        ({"country": "uk"}, "`productId` names no product available in UK. The United Kingdom is GB."),
        ({"country": ""}, "`country` must be a code of 2 letters from A to Z, such as GB."),
        ({"country": 44}, "`country` must be a string or null"),
        ({"value": None}, "`value` is required: one of 5.00, 10.00, 25.00"),
        ({"value": 5.01}, "`value` must be one of 5.00, 10.00, 25.00"),
        ({"value": 1e308}, "`value` must be at most 1000000000"),
        ({"value": 5.001}, "`value` must have at most 2 decimals in GBP"),
        ({"value": "5"}, "`value` must be a number or null"),
        # Who pays
        ({"accountId": None}, "`accountId` is required"),
        ({"accountId": 999_999}, "`accountId` names no funding account"),
        ({"accountId": 0}, "`accountId` must be at least 1"),
        ({"accountId": 2**31}, "`accountId` must be at most"),
        ({"accountId": "1"}, "`accountId` must be an integer or null"),
        # The rest
        ({"expiryAfterDays": 0}, "`expiryAfterDays` must be at least 1"),
        ({"expiryAfterDays": 36_501}, "`expiryAfterDays` must be at most 36500"),
        ({"source": 1}, "`source` must be a string or null"),
        ({"externalReference": 1}, "`externalReference` must be a string or null"),
        ({"codeQuantity": "1"}, "`codeQuantity` must be an integer or null"),
    ],
)
def test_a_gift_that_breaks_a_rule(service, problem, members: dict[str, Any], said: str) -> None:
    answer = service.send("gift", "coffee", **{"value": 5, **members})
    assert said in problem(answer, 400)


class TestSeveralWrongRecipients:
    """One refusal names all of them, whatever is wrong with each."""

    WRONG: ClassVar = [
        SAM,
        {"email": "sam"},
        {**SAM, "quantity": 1001},
        SAM,
        {},
        {**SAM, "name": "S\rm"},
        "sam@example.com",
        {"email": "kim@example", "quantity": 2},
    ]

    def test_all_are_named(self, service, problem) -> None:
        answer = service.send("gift", "coffee", value=5, recipients=self.WRONG)
        detail = problem(answer, 400)
        errors = answer.json()["errors"]
        assert [error["pointer"] for error in errors] == [
            "#/recipients/1/email",
            "#/recipients/2/quantity",
            "#/recipients/4/email",
            "#/recipients/5/name",
            "#/recipients/6",
            "#/recipients/7/email",
        ]
        for error, said in zip(
            errors,
            [
                "`recipients[1].email` is not an email address: ",
                "`recipients[2].quantity` must be at most 1000.",
                "`recipients[4].email` is required.",
                "`recipients[5].name` must not contain control characters.",
                "`recipients[6]` must be an object, not a string.",
                "`recipients[7].email` is not an email address: ",
            ],
            strict=True,
        ):
            assert error["detail"].startswith(said)
        assert detail == errors[0]["detail"] + " 5 more are wrong: see `errors`."

    def test_types_may_be_right(self, service, problem) -> None:
        recipients = [SAM, {"email": "x"}, SAM, {"email": "y"}]
        answer = service.send("gift", "coffee", value=5, recipients=recipients)
        assert "1 more is wrong" in problem(answer, 400)
        assert [error["pointer"] for error in answer.json()["errors"]] == [f"#/recipients/{n}/email" for n in (1, 3)]

    def test_a_lone_one_is_named_in_both_places(self, service, problem) -> None:
        answer = service.send("gift", "coffee", value=5, recipients=[{"email": "x"}])
        (error,) = answer.json()["errors"]
        assert error == {"pointer": "#/recipients/0/email", "detail": problem(answer, 400)}

    @pytest.mark.parametrize("wrong", [{"email": "x"}, {}])
    @pytest.mark.parametrize(("count", "named"), [(99, 99), (100, 100), (101, 100), (5000, 100)])
    def test_the_first_hundred_are_named(self, service, problem, wrong, count: int, named: int) -> None:
        answer = service.send("gift", "coffee", value=5, recipients=[wrong] * count)
        more = f"{count - 1} more" if count < 100 else "At least 99 more"
        assert f"{more} are wrong" in problem(answer, 400)
        errors = answer.json()["errors"]
        assert [error["pointer"] for error in errors] == [f"#/recipients/{n}/email" for n in range(named)]

    def test_other_refusals_have_none(self, service, problem) -> None:
        for members in ({"value": 6}, {"value": "x"}, {"recipients": [SAM] * 5001}):
            answer = service.send("gift", "coffee", **{"value": 5, **members})
            problem(answer, 400)
            assert "errors" not in answer.json()


@pytest.mark.parametrize(
    ("what", "name", "account", "members", "said"),
    [
        ("gift", "cinema", "gbp", {"value": 12.51}, "`value` must be 12.50 or left out"),
        ("gift", "hamper", "gbp", {"country": "FR"}, "`productId`"),
        ("gift", "books", "eur", {"value": 5}, "`productId` names no product available in GB"),
        ("gift", "globex-club", "gbp", {"value": 10}, "`productId` names no product available in GB"),
        ("collection", "treats", "gbp", {"value": 11}, "`value` must be one of 10.00, 25.00, 50.00"),
        ("collection", "any", "eur", {"value": 0}, "`value` must be more than 0"),
        ("collection", "globex-thanks", "gbp", {}, "`collectionId` names no collection available"),
        ("collection", "treats", "gbp", {"value": 10, "collectionId": None}, "`collectionId`"),
        ("template", "globex-hello", "gbp", {}, "`templateId` names no template"),
        ("template", "welcome", "gbp", {"templateId": 999_999}, "`templateId` names no template"),
        ("template", "welcome", "gbp", {"templateId": "1"}, "`templateId` must be an integer"),
        # The account
        ("gift", "coffee", "eur", {"value": 5}, "`accountId` names an account in EUR, but the order is in GBP"),
        ("gift", "coffee", "sales", {"value": 5}, "`accountId` names no funding account that this key can"),
        ("gift", "coffee", "globex-gbp", {"value": 5}, "`accountId` names no funding account that this key"),
        ("gift", "coffee", "test-gbp", {"value": 5}, "`accountId` names no funding account that this key"),
        ("gift", "coffee", None, {"value": 5}, "`accountId` is required"),
    ],
)
def test_an_order_that_breaks_a_rule(
    service, problem, what: str, name: str, account: str | None, members: dict[str, Any], said: str
) -> None:
    assert said in problem(service.send(what, name, account=account, **members), 400)


@pytest.mark.parametrize("member", ["productId", "accountId", "value"])
def test_a_required_member_left_out(service, problem, member: str) -> None:
    body = service.body("gift", "coffee", value=5)
    del body[member]
    assert f"`{member}` is required" in problem(service.client("hr").post("/send/gift", json=body), 400)


def test_the_ledgers_own_accounts_are_no_funding_accounts(service, problem) -> None:
    rows = service.sql("SELECT id FROM accounts WHERE kind <> 'funding'")
    for row in rows:
        assert "`accountId`" in problem(service.send("gift", "coffee", value=5, accountId=row["id"]), 400)
    assert rows


@pytest.mark.usefixtures("places")
@pytest.mark.parametrize(
    "members",
    [
        {"codeQuantity": 1},
        {"codeQuantity": 1, "recipients": []},
        {"codeQuantity": 1, "recipients": None, "sendAt": {"at": "noon"}},
        {"recipients": [{**SAM, "quantity": None}]},
        {"recipients": [{**SAM, "quantity": 1000}]},
        {"fromName": "x" * 32},
        {"fromName": EMOJI * 32},
        {"fromName": "\u00e9\u0301 \u200d\u4e2d"},
        {"externalReference": "\u202eturned"},
        {"message": "x" * 256},
        {"message": "a\nb\r\nc"},
        {"externalReference": "x" * 128},
        {"externalReference": "  " + "y" * 128 + " \t "},
        {"expiryAfterDays": 36_500},
        {"country": None},
        {"country": "gb"},
        {"recipients": [{"email": "s" * 64 + "@example.com"}]},
        {"recipients": [{"email": "s\u00f6ren@b\u00fccher.example.com", "name": "S\u00f6ren " + EMOJI}]},
    ],
)
def test_the_last_that_is_allowed(service, members: dict[str, Any]) -> None:
    answer = service.send("gift", "coffee", **{"value": 5, **members})
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("reference", [None, "", "   ", " \t\n "])
@pytest.mark.usefixtures("places")
def test_a_blank_reference_opts_out(service, reference: str | None) -> None:
    for _ in range(2):
        answer = service.send("gift", "coffee", value=5, externalReference=reference)
        assert answer.status_code == 200, answer.text
        assert answer.json()["externalReference"] is None


def test_an_invoiced_customer_names_no_account(service, problem) -> None:
    for account in ("initech-gbp", "gbp"):
        refused = service.send("gift", "coffee", key="initech", account=account, value=5)
        assert "`accountId` must be omitted" in problem(refused, 400)


def test_who_has_no_account_at_all_is_told_so_and_whom_to_ask(service, staging, problem) -> None:
    assert staging.client("globex-test").get("/funding-accounts").json() == []
    for account in (None, "globex-gbp", "test-gbp"):
        refused = staging.send("gift", "coffee", key="globex-test", account=account, value=5)
        detail = problem(refused, 400)
        assert "`accountId`" in detail
        assert "'Globex bot' has no funding account in staging. Ask the operator" in detail
