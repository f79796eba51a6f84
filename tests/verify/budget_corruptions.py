"""What is broken on purpose about budgets and approvals, and which check must find it. All of it is of Acme."""

from __future__ import annotations

from tests.verify.corruption import BATCH, SALES
from tests.verify.corruption import corruption as _c

_PERSON = "(SELECT min(id) FROM users WHERE customer_id = 1)"


def _budget(kind: str, subject: str, role: str) -> str:
    """A budget that ends tomorrow, and that no account knows of."""
    return f"""
        INSERT INTO budgets
            (customer_id, id, environment, currency, name, kind, subject_id, role, period, limit_minor, starts_at, ended_at)
        VALUES (1, 9, 'production', 'GBP', 'Gifts', '{kind}', {subject}, {role}, 'month', 100, now() - interval '1 day', now() + interval '1 day')
    """


def _counted(of_order: int, in_period: int) -> str:
    """An order counted towards a budget of members, with so much more than it costs: by the order, and in the period."""
    return f"""
        {_budget("role", "NULL", "'member'")};
        INSERT INTO budget_orders (customer_id, reference, budget_id, starts_on, spent_minor)
        SELECT 1, reference, 9, '2026-01-01', total_minor + {of_order} FROM orders WHERE id = {BATCH};
        INSERT INTO budget_periods (customer_id, budget_id, starts_on, spent_minor)
        SELECT 1, 9, '2026-01-01', total_minor + {in_period} FROM orders WHERE id = {BATCH}
    """


def _asked(state: str) -> str:
    """A send that a person asked approval for, of a rule that takes one approval."""
    return f"""
        INSERT INTO approval_rules
            (customer_id, id, environment, name, beyond_budget, account_ids, product_ids, collection_ids, approver_ids, needed, expires_days)
        VALUES (1, 9, 'production', 'All', false, '{{}}', '{{}}', '{{}}', '{{}}', 1, 5);
        INSERT INTO approval_requests
            (customer_id, environment, id, user_id, state, rule_ids, quote, digest, total_minor, currency, gift_name, code_count,
             draft_changed_at, asked_at, expires_at)
        VALUES (1, 'production', 'SEND', {_PERSON}, '{state}', '{{9}}', '', '', 100, 'GBP', 'Coffee', 1, now(), now(), now())
    """


BUDGET_CORRUPTIONS = (
    _c("budgets-count-orders", None, _counted(1, 1)),
    _c("budgets-add-up", ("9 from 2026-01-01",), _counted(0, 1)),
    _c(
        "budgets-miss-no-order",
        None,
        _budget("service_account", f"(SELECT service_account_id FROM orders WHERE id = {BATCH})", "NULL"),
    ),
    _c("accounts-know-budgets", None, f"UPDATE accounts SET has_budgets = true WHERE id = {SALES}"),
    _c(
        "approvals-are-of-others",
        None,
        f"""
        {_asked("waiting")};
        INSERT INTO approval_decisions (customer_id, environment, request_id, round, user_id, approves)
        VALUES (1, 'production', 'SEND', 1, {_PERSON}, true)
        """,
    ),
    _c("approved-sends-were-approved", ("SEND",), _asked("approved")),
)
