"""Checks of gift programmes: approvals, automations, budgets and campaigns."""

from largesse.verify.check import Check

APPROVALS = (
    Check(
        "approvals-are-of-others",
        "Whoever decides about a send is of its customer, and is not the person who sends it.",
        """
        SELECT d.request_id || '/' || d.user_id FROM approval_decisions d
        JOIN approval_requests r ON (r.customer_id, r.environment, r.id) = (d.customer_id, d.environment, d.request_id)
        WHERE d.user_id = r.user_id
           OR NOT EXISTS (SELECT FROM users u WHERE u.id = d.user_id AND u.customer_id = d.customer_id)
        """,
        of="request/person",
    ),
    Check(
        "approved-sends-were-approved",
        "A send that is approved has as many approvals as each of its rules takes, and nobody declined it.",
        """
        SELECT r.id FROM approval_requests r
        LEFT JOIN (
            SELECT customer_id, environment, request_id, round, count(*) FILTER (WHERE approves) AS approvals, bool_or(NOT approves) AS declined
            FROM approval_decisions GROUP BY customer_id, environment, request_id, round
        ) AS d ON (d.customer_id, d.environment, d.request_id, d.round) = (r.customer_id, r.environment, r.id, r.round)
        WHERE r.state = 'approved' AND (NOT d.declined AND d.approvals >= (
            SELECT max(needed) FROM approval_rules a WHERE a.customer_id = r.customer_id AND a.id = ANY(r.rule_ids))) IS NOT TRUE
        """,
        of="request",
    ),
    Check(
        "approvals-are-recorded",
        "The audit log says that each approval of a send that is approved, and of an automation, was given by that person.",
        """
        SELECT d.request_id || '/' || d.user_id FROM approval_decisions d
        JOIN approval_requests r ON (r.customer_id, r.environment, r.id, r.round) = (d.customer_id, d.environment, d.request_id, d.round)
        LEFT JOIN audit_events e ON e.customer_id = d.customer_id AND e.environment = d.environment AND e.act = 'approval.given'
            AND e.subject = 'send ' || d.request_id AND e.actor = 'person' AND e.actor_id = d.user_id
        WHERE d.approves AND r.state = 'approved' AND e.id IS NULL
        UNION ALL
        SELECT 'automation ' || a.id || '/' || a.approved_by FROM automations a
        LEFT JOIN audit_events e ON e.customer_id = a.customer_id AND e.environment = a.environment AND e.act = 'automation.approved'
            AND e.subject = 'automation ' || a.id AND e.actor = 'person' AND e.actor_id = a.approved_by
        WHERE a.approved_by IS NOT NULL AND e.id IS NULL
        """,
    ),
)


AUTOMATIONS = (
    Check(
        "automations-sent-what-they-say",
        "Every gift that an automation placed has its order, whose reference names automation, contact and day. An order that an automation "
        "placed in the last year is of one of its gifts.",
        """
        WITH placed AS MATERIALIZED (SELECT customer_id, order_reference FROM automation_runs WHERE state = 'placed'),
        found AS MATERIALIZED (
            SELECT customer_id, reference, environment, source, external_reference, user_id, api_key_id, created_at, erased_at FROM orders
            WHERE source = 'automation'
            UNION
            SELECT o.customer_id, o.reference, o.environment, o.source, o.external_reference, o.user_id, o.api_key_id, o.created_at, o.erased_at
            FROM placed p JOIN orders o ON o.customer_id = p.customer_id AND o.reference = p.order_reference)
        SELECT r.automation_id || '/' || r.contact_id || '/' || r.on_day FROM automation_runs r
        LEFT JOIN found o ON o.customer_id = r.customer_id AND o.reference = r.order_reference
        WHERE r.state = 'placed' AND (o.reference IS NULL OR o.source <> 'automation' OR o.environment <> r.environment OR (o.erased_at IS NULL
            AND o.external_reference NOT IN ('automation-' || r.automation_id || '-' || r.contact_id || '-' || r.on_day, 'erased-' || o.reference)))
        UNION ALL
        SELECT 'order ' || o.reference FROM found o
        WHERE o.source = 'automation' AND o.user_id IS NOT NULL AND o.api_key_id IS NULL AND o.external_reference ~ '^automation-[0-9]+-[0-9]+-'
          AND o.created_at > (SELECT clock_now()) - interval '365 days' AND NOT EXISTS (
            SELECT FROM automation_runs r WHERE r.customer_id = o.customer_id
              AND o.external_reference = 'automation-' || r.automation_id || '-' || r.contact_id || '-' || r.on_day
              AND (r.order_reference = o.reference OR r.state = 'placing'))
        """,
    ),
)


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
        of="budget/order",
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
        of="budget",
    ),
    # Not for budgets of roles and groups, whose people change. Allows for orders that began before a budget ended and were placed after it.
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
        of="budget/order",
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
        of="account",
    ),
)


CAMPAIGNS = (
    Check(
        "campaigns-have-their-orders",
        "The order of a campaign is of its environment and its person, with no recipients of its own. No other order of a person is of a campaign.",
        """
        SELECT 'campaign ' || c.id FROM campaigns c JOIN orders o ON o.customer_id = c.customer_id AND o.reference = c.order_reference
        WHERE o.environment <> c.environment OR o.source <> 'campaign' OR o.delivery_mode <> 'manual' OR o.user_id IS DISTINCT FROM c.user_id
        UNION ALL
        SELECT 'order ' || reference FROM (
            SELECT customer_id, reference FROM orders WHERE source = 'campaign' AND user_id IS NOT NULL
            EXCEPT SELECT customer_id, order_reference FROM campaigns) AS unknown
        """,
    ),
    Check(
        "campaign-gifts-fit",
        "Who has a gift of a campaign is the recipient of that line of its order, and a line of its order has a recipient only so.",
        """
        SELECT coalesce('campaign ' || p.campaign_id || '/' || p.number, 'order ' || l.order_id || '/' || l.number)
        FROM (SELECT * FROM campaign_people WHERE number IS NOT NULL) AS p
        JOIN campaigns c ON c.customer_id = p.customer_id AND c.id = p.campaign_id
        LEFT JOIN orders o ON o.customer_id = c.customer_id AND o.reference = c.order_reference
        FULL JOIN (
            SELECT l.customer_id, l.order_id, l.number, l.recipient_email FROM lines l
            JOIN orders o ON o.customer_id = l.customer_id AND o.id = l.order_id
            WHERE o.source = 'campaign' AND o.user_id IS NOT NULL AND l.recipient_email IS NOT NULL) AS l
            ON l.customer_id = p.customer_id AND l.order_id = o.id AND l.number = p.number
        WHERE p.number IS NULL OR l.number IS NULL OR p.environment <> c.environment OR p.number > c.given_through
        """,
    ),
    Check(
        "campaigns-are-refunded",
        "Of a campaign that has ended, no gift is left that nobody has.",
        """
        SELECT 'campaign ' || c.id FROM campaigns c JOIN orders o ON o.customer_id = c.customer_id AND o.reference = c.order_reference
        WHERE c.ended_at IS NOT NULL AND EXISTS (
            SELECT FROM lines l WHERE l.customer_id = o.customer_id AND l.order_id = o.id AND l.recipient_email IS NULL AND NOT EXISTS (
                SELECT FROM line_states s
                WHERE s.customer_id = l.customer_id AND s.order_id = l.order_id AND s.number = l.number))
        """,
    ),
)
