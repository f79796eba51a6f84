"""Checks of the back office: its members and their roles, corrections, and privacy requests."""

from largesse.verify.check import Check

CORRECTIONS = (
    Check(
        "corrections-are-whole",
        "An approved correction is one transfer, as it says: between its account and the customer's deposits, or sales for a refund. No other "
        "transfer is of this kind.",
        """
        SELECT coalesce('correction ' || n.id, 'transfer ' || p.movement_id) FROM (SELECT * FROM corrections WHERE state = 'approved') n
        FULL JOIN (
            SELECT e.customer_id, e.movement_id, count(*) AS entries,
                   min(e.account_id) FILTER (WHERE a.kind IN ('funding', 'receivable')) AS account_id,
                   min(e.amount_minor) FILTER (WHERE a.kind IN ('funding', 'receivable')) AS minor,
                   min(a.kind) FILTER (WHERE a.kind IN ('deposits', 'sales')) AS other_kind,
                   min(a.environment) AS environment, min(o.reference) AS order_reference, count(e.order_id) AS of_orders
            FROM entries e JOIN accounts a ON a.customer_id = e.customer_id AND a.id = e.account_id
            LEFT JOIN orders o ON o.customer_id = e.customer_id AND o.id = e.order_id
            WHERE e.kind = 'correction' GROUP BY e.customer_id, e.movement_id
        ) AS p ON p.customer_id = n.customer_id AND p.movement_id = n.transfer_id
        WHERE ((p.entries, p.account_id, p.environment) = (2, n.account_id, n.environment)
               AND p.minor = CASE n.kind WHEN 'debit' THEN -n.amount_minor ELSE n.amount_minor END
               AND p.other_kind = CASE n.kind WHEN 'refund' THEN 'sales' ELSE 'deposits' END
               AND p.of_orders = CASE n.kind WHEN 'refund' THEN 2 ELSE 0 END
               AND p.order_reference IS NOT DISTINCT FROM n.order_reference) IS NOT TRUE
        """,
    ),
    Check(
        "corrections-are-by-two",
        "The audit log says that an approved correction was proposed by one member of staff and approved by another.",
        """
        SELECT n.id FROM corrections n
        WHERE n.state = 'approved' AND NOT EXISTS (
            SELECT FROM audit_events proposed JOIN audit_events approved USING (customer_id, subject, actor)
            WHERE customer_id = n.customer_id AND subject = 'correction ' || n.id AND actor = 'staff'
              AND proposed.act = 'correction.proposed' AND proposed.actor_id = n.proposed_by
              AND approved.act = 'correction.approved' AND approved.actor_id = n.decided_by
              AND n.proposed_by <> n.decided_by)
        """,
        of="correction",
    ),
)


STAFF = (
    Check(
        "staff-roles-are-recorded",
        "The audit log shows that each active member of staff was invited, and was given the role they have.",
        "SELECT staff_unrecorded()",
    ),
    Check(
        "privacy-requests-are-done",
        "The audit log shows that each privacy request marked as done was finished. Each erasure has its receipt.",
        "SELECT privacy_requests_unrecorded()",
    ),
)
