"""Checks of what foreign keys would hold on the tables that carry none."""

from __future__ import annotations

from largesse.verify.check import Check


def _belongs_to_order(table: str, row_id: str, condition: str = "true") -> Check:
    return Check(
        f"{table.replace('_', '-')}-have-orders",
        f"Nothing in {table} belongs to an order that does not exist, or to another customer than its order.",
        f"""
        SELECT {row_id} FROM {table} AS child
        WHERE {condition}
          AND NOT EXISTS (SELECT FROM orders o WHERE o.customer_id = child.customer_id AND o.id = child.order_id)
        """,  # noqa: S608 - put together from the constants below
    )


# Whose customer nothing else holds: not a foreign key, not a check of what the row belongs to.
NAMING_CUSTOMERS = (
    "captured_mail",
    "chain_openings",
    "daily_spending",
    "deliveries",
    "delivery_attempts",
    "draft_columns",
    "draft_rows",
    "drafts",
    "erasures",
    "messages",
    "noted_anchors",
    "order_changes",
    "report_groups",
    "report_sums",
)


def _nobodys(table: str) -> str:
    return f"""
        SELECT '{table} of ' || customer_id FROM (
            SELECT DISTINCT customer_id FROM {table} WHERE customer_id IS NOT NULL) AS named
        WHERE NOT EXISTS (SELECT FROM customers c WHERE c.id = named.customer_id)
    """  # noqa: S608 - one of the constants above


REFERENCES = (
    Check(
        "rows-have-customers",
        "No row is nobody's: whoever it names as its customer exists.",
        " UNION ALL ".join(map(_nobodys, NAMING_CUSTOMERS)),
    ),
    _belongs_to_order("entries", "child.account_id || '/' || child.id", "child.kind IN ('order', 'refund')"),
    _belongs_to_order("lines", "child.order_id || '/' || child.number"),
    _belongs_to_order("events", "child.id"),
    _belongs_to_order("mail_jobs", "child.order_id"),
    _belongs_to_order("code_readings", "child.id"),
    _belongs_to_order("order_acts", "child.id"),
    Check(
        "orders-have-customers",
        "Every order is of a customer that exists, by one of its service accounts or one of its people.",
        """
        SELECT o.id FROM orders o
        WHERE NOT EXISTS (SELECT FROM customers c WHERE c.id = o.customer_id)
           OR (o.service_account_id IS NULL) = (o.user_id IS NULL)
           OR (o.user_id IS NULL AND NOT EXISTS (
               SELECT FROM service_accounts s WHERE s.id = o.service_account_id AND s.customer_id = o.customer_id))
           OR (o.user_id IS NOT NULL AND NOT EXISTS (
               SELECT FROM users u WHERE u.id = o.user_id AND u.customer_id = o.customer_id))
        """,
    ),
    Check(
        "orders-have-keys",
        "The API key that placed an order is known, deleted or not.",
        """
        SELECT o.id FROM orders o
        WHERE o.api_key_id IS NOT NULL AND o.api_key_id NOT IN (SELECT id FROM api_keys)
        """,
    ),
    Check(
        "orders-have-gifts",
        "Every order names one gift that exists: a product or, for the recipient's choice, a collection.",
        """
        SELECT o.id FROM orders o
        LEFT JOIN products p ON p.id = o.product_id
        LEFT JOIN collections c ON c.id = o.collection_id
        WHERE CASE o.gift_selection WHEN 'gift' THEN p.id IS NULL OR o.collection_id IS NOT NULL
                                    ELSE c.id IS NULL OR o.product_id IS NOT NULL END
        """,
    ),
)
