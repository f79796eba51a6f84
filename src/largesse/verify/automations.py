"""Checks of automations: each recorded gift exists once, and there are no others."""

from __future__ import annotations

from largesse.verify.check import Check

AUTOMATIONS = (
    Check(
        "automations-sent-what-they-say",
        "Every gift that an automation placed has its order, whose reference names automation, contact and day. An order that an automation "
        "placed in the last year is of one of its gifts.",
        """
        SELECT r.automation_id || '/' || r.contact_id || '/' || r.on_day FROM automation_runs r
        LEFT JOIN orders o ON o.customer_id = r.customer_id AND o.reference = r.order_reference
        WHERE r.state = 'placed' AND (o.id IS NULL OR o.source <> 'automation' OR o.environment <> r.environment OR (o.erased_at IS NULL
            AND o.external_reference NOT IN ('automation-' || r.automation_id || '-' || r.contact_id || '-' || r.on_day, 'erased-' || o.reference)))
        UNION ALL
        SELECT 'order ' || o.reference FROM orders o
        WHERE o.source = 'automation' AND o.user_id IS NOT NULL AND o.api_key_id IS NULL AND o.external_reference ~ '^automation-[0-9]+-[0-9]+-'
          AND o.created_at > (SELECT clock_now()) - interval '365 days' AND NOT EXISTS (
            SELECT FROM automation_runs r WHERE r.customer_id = o.customer_id
              AND o.external_reference = 'automation-' || r.automation_id || '-' || r.contact_id || '-' || r.on_day
              AND (r.order_reference = o.reference OR r.state = 'placing'))
        """,
    ),
)
