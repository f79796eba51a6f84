"""Checks of campaigns: each mailbox has one gift, the order's lines agree, and ended campaigns were refunded."""

from __future__ import annotations

from largesse.verify.check import Check

CAMPAIGNS = (
    Check(
        "campaigns-have-their-orders",
        "The order of a campaign is of its environment and its person, with no recipients of its own. No other order of a person is of a campaign.",
        """
        SELECT 'campaign ' || c.id FROM campaigns c JOIN orders o ON o.customer_id = c.customer_id AND o.reference = c.order_reference
        WHERE o.environment <> c.environment OR o.source <> 'campaign' OR o.delivery_mode <> 'manual' OR o.user_id IS DISTINCT FROM c.user_id
        UNION ALL
        SELECT 'order ' || o.reference FROM orders o
        WHERE o.source = 'campaign' AND o.user_id IS NOT NULL AND NOT EXISTS (
            SELECT FROM campaigns c WHERE c.customer_id = o.customer_id AND c.order_reference = o.reference)
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
