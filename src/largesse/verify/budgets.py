"""Checks of budgets: the amount spent of each follows from the orders, and every order counts towards its budgets."""

from __future__ import annotations

from largesse.verify.check import Check

BUDGETS = (
    Check(
        "budgets-count-orders",
        "What counts towards a budget is an order of its customer, environment and currency, with its total and what was refunded of it.",
        """
        SELECT b.budget_id || '/' || b.reference FROM budget_orders b
        LEFT JOIN budgets g ON g.customer_id = b.customer_id AND g.id = b.budget_id
        LEFT JOIN orders o ON o.customer_id = b.customer_id AND o.reference = b.reference
        LEFT JOIN (
            SELECT customer_id, order_id, count(*) AS cancelled FROM line_states WHERE state = 'cancelled'
            GROUP BY customer_id, order_id) AS c ON c.customer_id = o.customer_id AND c.order_id = o.id
        WHERE ((g.environment, g.currency, b.spent_minor) = (o.environment, o.currency, o.total_minor)
               AND b.refunded_minor = o.total_minor / o.code_count * coalesce(c.cancelled, 0)) IS NOT TRUE
        """,
    ),
    Check(
        "budgets-add-up",
        "What was spent of a budget in a period is what its orders of that period cost, less what was refunded.",
        """
        SELECT coalesce(p.budget_id, o.budget_id) || ' from ' || coalesce(p.starts_on, o.starts_on) FROM budget_periods p
        FULL JOIN (
            SELECT customer_id, budget_id, starts_on, sum(spent_minor - refunded_minor) AS spent_minor FROM budget_orders
            GROUP BY customer_id, budget_id, starts_on) AS o USING (customer_id, budget_id, starts_on)
        WHERE coalesce(p.spent_minor, -1) <> coalesce(o.spent_minor, 0)
        """,
    ),
    # Not for roles and groups, whose people change. An order that began before a budget ended may be placed afterwards.
    Check(
        "budgets-miss-no-order",
        "Each order of a person, a service account or a funding account counts towards the budgets they had.",
        """
        SELECT b.id || '/' || o.reference FROM budgets b
        JOIN orders o ON o.customer_id = b.customer_id AND o.environment = b.environment AND o.currency = b.currency
            AND o.created_at >= b.starts_at AND o.created_at < coalesce(b.ended_at - interval '1 minute', 'infinity')
            AND CASE b.kind WHEN 'person' THEN o.user_id = b.subject_id
                            WHEN 'service_account' THEN o.service_account_id = b.subject_id
                            WHEN 'account' THEN o.account_id = b.subject_id END
        WHERE NOT EXISTS (
            SELECT FROM budget_orders c
            WHERE c.customer_id = b.customer_id AND c.budget_id = b.id AND c.reference = o.reference)
        """,
    ),
    Check(
        "accounts-know-budgets",
        "A sales account says that there are budgets exactly when its customer has one in its environment and currency.",
        """
        SELECT a.id FROM accounts a
        WHERE a.has_budgets <> (a.kind = 'sales' AND EXISTS (
            SELECT FROM budgets b
            WHERE b.customer_id = a.customer_id AND b.environment = a.environment AND b.currency = a.currency AND b.ended_at IS NULL))
        """,
    ),
)
