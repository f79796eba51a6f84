"""The data that the back office may not read, and the data about members of staff that only few other roles may read."""

from collections.abc import Mapping

from largesse.db.roles import Role

# Tables with the sign-in of members of staff, and their records. For the back office, commands, and the worker's clean-up.
OF_STAFF = frozenset(
    (
        "customer_notes",
        "customer_views",
        "erasure_jobs",
        "erasure_orders",
        "privacy_requests",
        "staff",
        "staff_form_posts",
        "staff_links",
        "staff_passkeys",
        "staff_recovery_codes",
        "staff_sessions",
    )
)
READ_STAFF = frozenset((Role.WORKER, Role.OFFICE, Role.OPERATOR))
# Tables that the back office does not read: those with the sign-in of customers' people, and with keys.
NOT_OF_OFFICE = frozenset(
    ("chain_keys", "claim_addresses", "form_posts", "pin_failures", "sessions", "sign_in_allowances")
)
# Columns that all other roles read: encrypted codes, PINs, voucher numbers and secrets, and hashes by which keys are found.
HIDDEN_OF_OFFICE: Mapping[str, tuple[str, ...]] = {
    "api_keys": ("hash",),
    "captured_mail": ("sealed",),
    "lines": ("code_lookup", "sealed"),
    "passkeys": ("credential_id", "credential", "name", "sign_count", "created_at", "used_at"),
    "recovery_codes": ("hash", "used_at"),
    "sign_in_links": ("hash",),
    "vouchers": ("sealed",),
    "webhook_subscriptions": ("sealed_secret", "previous_secret"),
}
# The other columns of these tables. A column in neither list is hidden from the back office, and a test fails.
SHOWN_TO_OFFICE: Mapping[str, tuple[str, ...]] = {
    "api_keys": (
        "id",
        "customer_id",
        "service_account_id",
        "key",
        "environment",
        "created_at",
        "last_seen_at",
        "deleted_at",
        "scopes",
        "networks",
        "made_by",
        "replaces",
        "last_seen_address",
    ),
    "captured_mail": (
        "id",
        "message_id",
        "environment",
        "recipient",
        "subject",
        "captured_at",
        "customer_id",
        "claims",
    ),
    "passkeys": ("id", "person_id"),
    "recovery_codes": ("person_id",),
    "sign_in_links": ("kind", "user_id", "person_id", "created_at", "ends_at", "used_at", "is_mailed"),
    "lines": ("order_id", "number", "recipient_email", "recipient_name", "customer_id", "was_email"),
    "vouchers": (
        "id",
        "product_id",
        "value_minor",
        "lookup",
        "is_test",
        "added_at",
        "order_id",
        "number",
        "handed_at",
        "customer_id",
        "use_by",
    ),
    "webhook_subscriptions": (
        "id",
        "customer_id",
        "environment",
        "event",
        "target_url",
        "service_account_id",
        "created_at",
        "user_id",
        "events",
        "previous_until",
    ),
}
