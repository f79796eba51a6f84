"""Checks of approvals: nobody approved their own send, and what was approved has been approved."""

from __future__ import annotations

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
    ),
)
