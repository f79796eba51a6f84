"""The commands about approvals."""

import json
from typing import Any

import pytest
from tests.cli.conftest import Run, assert_refused, sql

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
