"""Checks of references in tables without foreign keys."""

from largesse.db.fragments import Fragment, compose, identifier, join
from largesse.verify.check import Check

_ALWAYS = Fragment("true")


def _belongs_to_order(table: str, of: str, row_id: Fragment, condition: Fragment = _ALWAYS) -> Check:
    return Check(
        f"{table.replace('_', '-')}-have-orders",
        f"Nothing in {table} belongs to an order that does not exist, or to another customer than its order.",
        compose(
            """
        SELECT {row_id} FROM {table} AS child
        WHERE {condition}
          AND NOT EXISTS (SELECT FROM orders o WHERE o.customer_id = child.customer_id AND o.id = child.order_id)
        """,
            row_id=row_id,
            table=identifier(table),
            condition=condition,
        ),
        of=of,
    )


# Columns with ids, and the sequence that each comes from.
_SEQUENCES = (
    ("orders", "id", "orders_id_seq"),
    ("entries", "id", "entries_id_seq"),
    ("entries", "movement_id", "movements_id_seq"),
    ("events", "id", "events_id_seq"),
    ("messages", "id", "messages_id_seq"),
    ("audit_events", "id", "audit_events_id_seq"),
    ("vouchers", "id", "vouchers_id_seq"),
    ("shipments", "id", "shipments_id_seq"),
)
IDS_GO_ON = "ids-go-on"

# Tables whose customer is checked nowhere else: by no foreign key, and by no check of the object that a row belongs to.
NAMING_CUSTOMERS = (
    "approval_requests", "approval_rules", "automation_runs", "automations", "budget_orders", "budget_people",
    "budget_periods", "budgets", "campaign_asks", "campaign_people", "campaigns", "captured_mail", "chain_openings",
    "contact_fields", "contact_groups", "contacts", "daily_spending", "deliveries", "delivery_attempts",
    "draft_columns", "draft_rows", "drafts", "erasures", "messages", "noted_anchors", "order_changes", "report_groups",
    "report_sums", "saved_views",
)  # fmt: skip


def _nobodys(table: str) -> Fragment:
    return compose(
        """
        SELECT '{table} of ' || customer_id FROM (
            SELECT DISTINCT customer_id FROM {table} WHERE customer_id IS NOT NULL) AS named
        WHERE NOT EXISTS (SELECT FROM customers c WHERE c.id = named.customer_id)
    """,
        table=identifier(table),
    )


REFERENCES = (
    Check(
        "rows-have-customers",
        "No row is nobody's: whoever it names as its customer exists.",
        join(Fragment(" UNION ALL "), map(_nobodys, NAMING_CUSTOMERS)),
    ),
    _belongs_to_order(
        "entries",
        "account/entry",
        Fragment("child.account_id || '/' || child.id"),
        Fragment("child.kind IN ('order', 'refund')"),
    ),
    _belongs_to_order("lines", "order/code", Fragment("child.order_id || '/' || child.number")),
    _belongs_to_order("events", "event", Fragment("child.id"), Fragment("child.order_id IS NOT NULL")),
    _belongs_to_order("mail_jobs", "order", Fragment("child.order_id")),
    _belongs_to_order("follow_ups", "order", Fragment("child.order_id")),
    _belongs_to_order("line_messages", "order/code", Fragment("child.order_id || '/' || child.number")),
    _belongs_to_order("reminder_stops", "order/code", Fragment("child.order_id || '/' || child.number")),
    _belongs_to_order("code_readings", "reading", Fragment("child.id")),
    _belongs_to_order("order_acts", "act", Fragment("child.id")),
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
        of="order",
    ),
    Check(
        "orders-have-keys",
        "The API key that placed an order is known, deleted or not.",
        """
        SELECT o.id FROM orders o
        WHERE o.api_key_id IS NOT NULL AND o.api_key_id NOT IN (SELECT id FROM api_keys)
        """,
        of="order",
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
        of="order",
    ),
    # Logical replication, for one, copies rows but not how far their sequences are.
    Check(
        IDS_GO_ON,
        "The sequences that give orders, entries, events, messages, vouchers and parcels their ids are not behind an id that is taken.",
        join(
            Fragment(" UNION ALL "),
            (
                compose(
                    "SELECT '{sequence}' WHERE (SELECT max({column}) FROM {table}) > (SELECT last_value FROM {sequence})",
                    table=identifier(table),
                    column=identifier(column),
                    sequence=identifier(sequence),
                )
                for table, column, sequence in _SEQUENCES
            ),
        ),
        of="sequence",
    ),
)
