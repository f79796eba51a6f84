"""The commands about budgets and approvals."""

import json
from typing import Any

import pytest
from tests.cli.conftest import Run, assert_refused, sql

BOT = ("--currency", "gbp", "--service-account", "hr-bot")


def listed(run: Run) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run("budgets", "list", "acme", "--json").stdout)
    return found


def test_one_is_set_listed_changed_and_ended(run: Run, database: str, loaded: dict[str, Any]) -> None:
    done = run("budgets", "create", "acme", "Bot gifts", *BOT, "--limit", "250.50", "--per-gift", "25")
    assert done.stdout == "Bot gifts is budget 1 of acme.\n", done.output
    run(
        "budgets",
        "create",
        "acme",
        "Float",
        "--currency",
        "GBP",
        "--account",
        "acme/gbp",
        "--period",
        "total",
        "--limit",
        "9",
    )
    assert listed(run) == [
        {
            "id": 1, "name": "Bot gifts", "kind": "service_account", "of": "HR bot", "period": "month", "currency": "GBP",
            "limit": 250.5, "spent": 0.0, "left": 250.5, "per_gift": 25.0,
        },
        {
            "id": 2, "name": "Float", "kind": "account", "of": "Acme float", "period": "total", "currency": "GBP",
            "limit": 9.0, "spent": 0.0, "left": 9.0, "per_gift": None,
        },
    ]  # fmt: skip
    assert (
        run("budgets", "change", "acme", "1", "--limit", "none", "--name", "Robots").stdout == "Robots was changed.\n"
    )
    assert (listed(run)[1]["name"], listed(run)[1]["limit"], listed(run)[1]["per_gift"]) == ("Robots", None, 25.0)
    assert run("budgets", "end", "acme", "1").stdout == "Robots has ended.\n"
    assert [one["name"] for one in listed(run)] == ["Float"]
    acts = sql(database, "SELECT act FROM audit_events WHERE act LIKE 'budget.%' ORDER BY id")
    assert [row["act"] for row in acts] == ["budget.created", "budget.created", "budget.changed", "budget.ended"]


@pytest.mark.slow
def test_people_together_share_one(run: Run, database: str, loaded: dict[str, Any]) -> None:
    for name in ("ada", "cem"):
        assert run("users", "invite", f"{name}@acme.example", "--customer", "acme").exit_code == 0
    people = ("--person", "ada@acme.example", "--person", "CEM@acme.example")
    assert run("budgets", "create", "acme", "Both", "--currency", "GBP", *people, "--limit", "9").exit_code == 0
    assert run("budgets", "create", "acme", "Her", "--currency", "GBP", *people[:2], "--limit", "9").exit_code == 0
    assert (
        run("budgets", "create", "acme", "All", "--currency", "GBP", "--role", "member", "--limit", "9").exit_code == 0
    )
    assert [(one["kind"], one["of"]) for one in listed(run)] == [
        ("role", "member"),
        ("group", "ada, cem"),
        ("person", "ada"),
    ]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create", "acme", "X", "--currency", "GBP", "--limit", "1"), "give one of these: --person"),
        (("create", "acme", "X", *BOT, "--role", "admin", "--limit", "1"), "give one of these: --person"),
        (("create", "acme", "X", *BOT), "`limit` or `per_gift` is required"),
        (("create", "acme", "X", *BOT, "--limit", "much"), "--limit: “much” is not an amount"),
        (("create", "acme", " ", *BOT, "--limit", "1"), "NAME must have"),
        (("create", "nobody", "X", *BOT, "--limit", "1"), "no customer 'nobody'"),
        (
            ("create", "acme", "X", "--currency", "XXX", "--service-account", "hr-bot", "--limit", "1"),
            "no currency 'XXX'",
        ),
        (
            ("create", "acme", "X", "--currency", "GBP", "--service-account", "rewards", "--limit", "1"),
            "no service account",
        ),
        (
            ("create", "acme", "X", "--currency", "EUR", "--account", "acme/gbp", "--limit", "1"),
            "There is no such person, service account or account in that currency.",
        ),
        (
            ("create", "acme", "X", "--currency", "GBP", "--account", "globex/shared", "--limit", "1"),
            "There is no such person, service account or account in that currency.",
        ),
        (
            ("create", "acme", "X", "--currency", "GBP", "--person", "x@acme.example", "--limit", "1"),
            "no person with that",
        ),
        (("change", "acme", "7", "--limit", "1"), "no budget 7"),
        (("end", "acme", "7"), "no such budget"),
    ],
)
def test_what_is_refused(
    run: Run, database: str, loaded: dict[str, Any], arguments: tuple[str, ...], said: str
) -> None:
    assert_refused(run("budgets", *arguments), said)
    assert listed(run) == []


RULE = """
    INSERT INTO approval_rules (customer_id, environment, name, currency, above_minor, beyond_budget, account_ids, product_ids,
        collection_ids, approver_ids, needed, expires_days)
    SELECT id, 'production', 'Above ten', 'GBP', 1000, false, '{}', '{}', '{}', '{}', 2, 7 FROM customers WHERE key = 'acme'
"""
REQUEST = """
    INSERT INTO approval_requests (customer_id, environment, id, user_id, state, rule_ids, quote, digest, total_minor, currency,
        gift_name, code_count, draft_changed_at, asked_at, expires_at)
    SELECT customer_id, 'production', '0WBQK7M2PXR4D9VA1C3E', id, 'waiting', '{1}', '', '', 2000, 'GBP', 'Coffee', 2,
        '2030-01-01Z', '2030-01-01Z', '2030-01-08Z' FROM users
"""


@pytest.mark.slow
def test_rules_and_requests_are_listed_and_a_rule_is_ended(run: Run, database: str, loaded: dict[str, Any]) -> None:
    assert json.loads(run("approvals", "rules", "acme", "--json").stdout) == []
    assert run("users", "invite", "cem@acme.example", "--customer", "acme").exit_code == 0
    sql(database, RULE)
    sql(database, REQUEST)
    assert json.loads(run("approvals", "rules", "acme", "--json").stdout) == [
        {
            "id": 1, "name": "Above ten", "role": None, "above": 10.0, "currency": "GBP", "beyond_budget": False, "needed": 2,
            "approvers": "any administrator", "days": 7,
        }
    ]  # fmt: skip
    assert json.loads(run("approvals", "list", "acme", "--json").stdout) == [
        {
            "reference": "0WBQK7M2PXR4D9VA1C3E", "person": "cem@acme.example", "state": "waiting", "sent": False, "gift": "Coffee",
            "codes": 2, "total": 20.0, "currency": "GBP", "asked_at": "2030-01-01T00:00:00+00:00", "expires_at": "2030-01-08T00:00:00+00:00",
        }
    ]  # fmt: skip
    assert json.loads(run("approvals", "list", "globex", "--json").stdout) == []
    assert run("approvals", "end-rule", "acme", "1").stdout == "Above ten has ended.\n"
    assert json.loads(run("approvals", "rules", "acme", "--json").stdout) == []
    assert_refused(run("approvals", "end-rule", "acme", "1"), "no such rule")
    assert_refused(run("approvals", "list", "nobody"), "no customer 'nobody'")
