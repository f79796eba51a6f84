"""The rights of each role on each table. Only this module decides them. `migrate` grants them (`privileges`, `grants`).

All roles read all tables, within row-level security, except hidden columns and the exceptions in `office_rights`. All roles except READ
use all sequences. TRUNCATE is granted only on tables that can be rebuilt.
The list below says which roles write. A table that is missing can only be written by its owner, and a test fails.

A role that locks rows must have UPDATE on at least one column. It gets UPDATE on the most harmless one: `UPDATE(x)`.
Rows of append-only tables (entries, audit_events, code_readings, order_acts, line_events) cannot be changed or deleted. Of orders,
only texts and schedule can change.
"""

from collections.abc import Mapping

import msgspec

from largesse.db.roles import ACTING, Role


class Writes(msgspec.Struct, frozen=True):
    """The privileges of the roles on a table in addition to SELECT, as in GRANT, separated by commas."""

    app: str = ""
    worker: str = ""
    office: str = ""
    operator: str = ""

    def of(self, role: Role) -> tuple[str, ...]:
        """Returns the privileges of a role. `UPDATE(x)` is for the column `x` only."""
        said = {
            Role.APP: self.app,
            Role.WORKER: self.worker,
            Role.OFFICE: self.office,
            Role.OPERATOR: self.operator,
        }.get(role, "")
        return tuple(said.split(", ")) if said else ()


# Tables that can be rebuilt from the others.
_READ_MODEL = Writes(worker="INSERT, UPDATE, DELETE", operator="INSERT, UPDATE, DELETE, TRUNCATE")

# The texts of an order that may name a person, and the marks that cover them.
_ERASING = "UPDATE(message), UPDATE(from_name), UPDATE(external_reference), UPDATE(placed_digest), UPDATE(mac)"

TABLES: Mapping[str, Writes] = {
    "account_service_accounts": Writes(app="INSERT, DELETE", operator="INSERT, UPDATE, DELETE"),
    "account_users": Writes(app="INSERT, DELETE", operator="INSERT, DELETE"),
    "account_watchers": Writes(app="INSERT, DELETE"),
    "account_watches": Writes(app="INSERT, UPDATE, DELETE", worker="UPDATE"),
    # Customer, currency and environment of an account never change.
    "accounts": Writes(
        app="INSERT, UPDATE(balance_minor), UPDATE(chain_head), UPDATE(name), UPDATE(closed_at), UPDATE(has_budgets)",
        worker="UPDATE(balance_minor), UPDATE(chain_head)",
        office="INSERT, UPDATE(balance_minor), UPDATE(chain_head)",
        operator="INSERT, UPDATE(balance_minor), UPDATE(chain_head), UPDATE(name), UPDATE(closed_at), UPDATE(has_budgets), UPDATE(is_master), "
        "UPDATE(open_to_all), UPDATE(mac)",
    ),
    "alembic_version": Writes(),
    "api_keys": Writes(app="INSERT, UPDATE", operator="INSERT, UPDATE"),
    "api_requests": Writes(app="INSERT", worker="DELETE"),
    "approval_decisions": Writes(
        app="INSERT, DELETE", worker="UPDATE(note)", office="UPDATE(note), DELETE", operator="UPDATE(note), DELETE"
    ),
    "approval_requests": Writes(app="INSERT, UPDATE", worker="UPDATE, DELETE", operator="UPDATE(state)"),
    "approval_rules": Writes(app="INSERT, UPDATE(ended_at)", operator="INSERT, UPDATE(ended_at)"),
    "audit_events": Writes(app="INSERT", worker="INSERT", office="INSERT", operator="INSERT"),
    "audit_heads": Writes(
        app="INSERT, UPDATE", worker="INSERT, UPDATE", office="INSERT, UPDATE", operator="INSERT, UPDATE"
    ),
    # A worker plans the runs. Serving processes place the orders.
    "automation_runs": Writes(app="INSERT, UPDATE, DELETE", worker="INSERT, DELETE"),
    "automations": Writes(
        app="INSERT, UPDATE",
        worker="UPDATE(planned_through), UPDATE(plan_at)",
        office="UPDATE(paused_at)",
        operator="UPDATE(paused_at), UPDATE(approved_by), UPDATE(approved_at), UPDATE(approved_minor)",
    ),
    "bank_files": Writes(office="INSERT"),
    "bank_lines": Writes(office="INSERT, UPDATE(dismissed_by), UPDATE(dismissed_at)"),
    "brand_pictures": Writes(app="INSERT, UPDATE(created_at), DELETE"),
    "brands": Writes(app="INSERT, UPDATE"),
    # A worker refunds. Which order counts towards which budget never changes.
    "budget_orders": Writes(
        app="INSERT, UPDATE(refunded_minor)",
        worker="UPDATE(refunded_minor)",
        office="UPDATE(refunded_minor)",
        operator="INSERT, UPDATE(refunded_minor)",
    ),
    "budget_people": Writes(app="INSERT, DELETE", operator="INSERT, DELETE"),
    "budget_periods": Writes(
        app="INSERT, UPDATE(spent_minor)",
        worker="UPDATE(spent_minor)",
        office="UPDATE(spent_minor)",
        operator="INSERT, UPDATE(spent_minor)",
    ),
    "budgets": Writes(
        app="INSERT, UPDATE(name), UPDATE(limit_minor), UPDATE(per_gift_minor), UPDATE(ended_at)",
        operator="INSERT, UPDATE(name), UPDATE(limit_minor), UPDATE(per_gift_minor), UPDATE(ended_at)",
    ),
    # Serving processes store visitors' requests and give gifts. A worker decides who is mailed, and ends campaigns.
    "campaign_asks": Writes(
        app="INSERT, UPDATE(state)", worker="UPDATE(state), DELETE", office="DELETE", operator="DELETE"
    ),
    "campaign_people": Writes(
        app="INSERT, UPDATE(number), UPDATE(language), UPDATE(taken_at), DELETE",
        worker="UPDATE(mailbox), DELETE",
        office="UPDATE(mailbox), DELETE",
        operator="UPDATE(mailbox), DELETE",
    ),
    "campaigns": Writes(
        app="INSERT, UPDATE",
        worker="UPDATE(ended_at), UPDATE(due_at), UPDATE(closes_at), UPDATE(opens_at)",
        operator="UPDATE(closes_at), UPDATE(due_at), UPDATE(paused_at)",
    ),
    "captured_mail": Writes(
        app="INSERT", worker="INSERT, UPDATE(claims), DELETE", office="DELETE", operator="UPDATE(sealed), DELETE"
    ),
    # Written by a trigger, which also removes old rows.
    "catalogue_changes": Writes(worker="INSERT, DELETE", office="INSERT, DELETE", operator="INSERT, DELETE"),
    # A worker publishes scheduled drafts.
    "catalogue_drafts": Writes(
        worker="UPDATE, DELETE", office="INSERT, UPDATE, DELETE", operator="INSERT, UPDATE, DELETE"
    ),
    "catalogue_version": Writes(worker="UPDATE", office="UPDATE", operator="UPDATE"),
    "catalogue_versions": Writes(worker="INSERT, DELETE", office="INSERT, DELETE", operator="INSERT, DELETE"),
    "chain_keys": Writes(operator="INSERT, UPDATE"),
    "chain_openings": Writes(operator="INSERT"),
    "claim_addresses": Writes(app="INSERT, UPDATE, DELETE", worker="DELETE"),
    "clock": Writes(),  # only tests and the demo move it, as the owner
    "code_readings": Writes(app="INSERT"),
    "collection_versions": Writes(
        app="INSERT, UPDATE", worker="INSERT, UPDATE", office="INSERT, UPDATE", operator="INSERT, UPDATE"
    ),
    "collections": Writes(
        app="INSERT, UPDATE", worker="UPDATE", office="INSERT, UPDATE, DELETE", operator="INSERT, UPDATE, DELETE"
    ),
    "contact_fields": Writes(app="INSERT, UPDATE, DELETE"),
    "contact_groups": Writes(app="INSERT, UPDATE, DELETE", operator="INSERT"),
    "contact_members": Writes(app="INSERT, DELETE", worker="DELETE", office="DELETE", operator="INSERT, DELETE"),
    "contacts": Writes(
        app="INSERT, UPDATE, DELETE",
        worker="UPDATE, DELETE",
        office="UPDATE, DELETE",
        operator="INSERT, UPDATE, DELETE",
    ),
    "corrections": Writes(office="INSERT, UPDATE(state), UPDATE(decided_by), UPDATE(decided_at), UPDATE(transfer_id)"),
    "credential_openings": Writes(),  # only `open_credentials` writes it
    "currencies": Writes(),
    "customer_notes": Writes(worker="DELETE", office="INSERT, DELETE", operator="INSERT, DELETE"),
    "customer_views": Writes(worker="DELETE", office="INSERT, UPDATE(ends_at)", operator="INSERT, UPDATE"),
    "customers": Writes(
        app="UPDATE(created_at), UPDATE(requires_second_step), UPDATE(confirm_above), UPDATE(follow_up), UPDATE(takes_notes)",
        office="INSERT, UPDATE(name), UPDATE(plan), UPDATE(funding)",
        operator="INSERT, UPDATE",
    ),
    "daily_spending": Writes(app="INSERT, UPDATE"),
    "deliveries": Writes(app="INSERT, UPDATE", worker="INSERT, UPDATE, DELETE", office="UPDATE"),
    "delivery_attempts": Writes(
        worker="INSERT, UPDATE(answer), DELETE", office="UPDATE(answer)", operator="UPDATE(answer)"
    ),
    "distribution": Writes(
        app="UPDATE(since)", worker="UPDATE(since)", office="UPDATE(since)", operator="UPDATE(since)"
    ),
    "draft_columns": Writes(app="INSERT, UPDATE", worker="DELETE"),
    "draft_rows": Writes(app="INSERT, DELETE"),
    "drafts": Writes(app="INSERT, UPDATE, DELETE", worker="DELETE", office="DELETE", operator="DELETE"),
    # The worker refunds gifts that were not claimed by the claim-by date.
    "entries": Writes(app="INSERT", worker="INSERT", office="INSERT", operator="INSERT"),
    "erasure_jobs": Writes(worker="UPDATE, DELETE", office="INSERT, UPDATE", operator="INSERT, UPDATE"),
    "erasure_orders": Writes(worker="INSERT", office="INSERT", operator="INSERT"),
    "erasures": Writes(worker="INSERT", office="INSERT", operator="INSERT"),
    "events": Writes(
        app="INSERT",
        worker="INSERT, UPDATE(fanned_out_at), UPDATE(position), UPDATE(body), DELETE",
        office="INSERT, UPDATE(body)",
        operator="INSERT, UPDATE(body)",
    ),
    "follow_ups": Writes(
        app="INSERT, UPDATE(claim_by), UPDATE(due_at), UPDATE(sent_at)",
        worker="UPDATE(due_at), UPDATE(reminded), UPDATE(reminded_last)",
    ),
    "form_posts": Writes(app="INSERT, UPDATE, DELETE", worker="DELETE"),
    # Only the worker makes marks.
    "line_event_head": Writes(worker="UPDATE"),
    "line_event_marks": Writes(worker="INSERT"),
    "line_events": Writes(app="INSERT", worker="INSERT", office="INSERT", operator="INSERT"),
    "line_messages": Writes(
        app="INSERT", worker="UPDATE(message)", office="UPDATE(message)", operator="UPDATE(message)"
    ),
    "line_states": Writes(
        app="INSERT, UPDATE", worker="INSERT, UPDATE", office="INSERT, UPDATE", operator="INSERT, UPDATE"
    ),
    "lines": Writes(
        app="INSERT, UPDATE(recipient_name), UPDATE(recipient_email), UPDATE(was_email)",
        worker="UPDATE(recipient_email), UPDATE(recipient_name), UPDATE(was_email)",
        office="UPDATE(recipient_email), UPDATE(recipient_name), UPDATE(was_email)",
        operator="UPDATE(sealed), UPDATE(code_lookup), UPDATE(recipient_email), UPDATE(recipient_name), UPDATE(was_email)",
    ),
    "low_stock": Writes(worker="INSERT, UPDATE, DELETE", office="INSERT, UPDATE, DELETE"),
    "mail_jobs": Writes(app="INSERT, UPDATE", worker="UPDATE", office="UPDATE", operator="UPDATE"),
    "mail_requeues": Writes(worker="UPDATE(reason)", office="INSERT, UPDATE", operator="INSERT, UPDATE"),
    "master_keys": Writes(operator="INSERT, UPDATE"),
    "messages": Writes(
        app="INSERT, UPDATE", worker="INSERT, UPDATE", office="INSERT, UPDATE", operator="INSERT, UPDATE"
    ),
    "noted_anchors": Writes(operator="INSERT, UPDATE"),
    "order_acts": Writes(app="INSERT", office="INSERT"),
    "order_changes": Writes(
        app="INSERT", worker="INSERT, UPDATE, DELETE", office="INSERT", operator="INSERT, UPDATE, DELETE"
    ),
    # Only texts, from which an operator (`largesse privacy erase`) or the worker (after the retention period) erases addresses, and the
    # time of a scheduled order that has not been sent.
    "orders": Writes(
        app="INSERT, UPDATE(scheduled_for), UPDATE(placed_digest), UPDATE(mac)",
        worker=f"{_ERASING}, UPDATE(erased_at)",
        office=_ERASING,
        operator=_ERASING,
    ),
    "own_wrappings": Writes(app="INSERT, DELETE"),
    "passkeys": Writes(app="INSERT, UPDATE, DELETE", office="DELETE", operator="DELETE"),
    "people": Writes(app="INSERT, UPDATE", office="UPDATE(password), UPDATE(totp)", operator="INSERT, UPDATE"),
    "people_mails": Writes(
        app="INSERT, UPDATE(due_at)", worker="INSERT, UPDATE, DELETE", office="INSERT", operator="INSERT"
    ),
    "pictures": Writes(office="INSERT", operator="INSERT"),
    "pin_failures": Writes(app="INSERT, UPDATE, DELETE", worker="DELETE", operator="UPDATE"),
    "privacy_requests": Writes(worker="UPDATE", office="INSERT, UPDATE", operator="INSERT, UPDATE"),
    "products": Writes(worker="UPDATE", office="INSERT, UPDATE, DELETE", operator="INSERT, UPDATE, DELETE"),
    "recovery_codes": Writes(app="INSERT, UPDATE, DELETE", office="DELETE", operator="DELETE"),
    "reminder_stops": Writes(app="INSERT"),
    "report_groups": _READ_MODEL,
    "report_orders": _READ_MODEL,
    "report_sums": _READ_MODEL,
    "report_words": Writes(
        app="INSERT, DELETE", worker=_READ_MODEL.worker, office="DELETE", operator=_READ_MODEL.operator
    ),
    "saved_views": Writes(app="INSERT, UPDATE, DELETE"),
    "service_accounts": Writes(
        app="INSERT, UPDATE", office="INSERT, UPDATE(active), UPDATE(limits)", operator="INSERT, UPDATE"
    ),
    "sessions": Writes(app="INSERT, UPDATE", worker="DELETE", operator="UPDATE"),
    "shipments": Writes(
        app="INSERT, UPDATE(sealed_address), UPDATE(requested_at)",
        worker="UPDATE(sealed_address)",
        office="UPDATE",
        operator="UPDATE",
    ),
    "sign_in_allowances": Writes(app="INSERT, UPDATE, DELETE", worker="DELETE"),
    "sign_in_links": Writes(
        app="INSERT, UPDATE", worker="INSERT, DELETE", office="INSERT, UPDATE(used_at)", operator="INSERT, UPDATE"
    ),
    "staff": Writes(office="INSERT, UPDATE", operator="INSERT, UPDATE"),
    "staff_form_posts": Writes(worker="DELETE", office="INSERT, UPDATE, DELETE"),
    "staff_links": Writes(worker="DELETE", office="INSERT, UPDATE", operator="INSERT, UPDATE"),
    "staff_passkeys": Writes(office="INSERT, UPDATE, DELETE", operator="DELETE"),
    "staff_recovery_codes": Writes(office="INSERT, UPDATE, DELETE", operator="DELETE"),
    "staff_sessions": Writes(worker="DELETE", office="INSERT, UPDATE", operator="UPDATE"),
    "stock_warnings": Writes(office="INSERT, UPDATE, DELETE"),
    "subscription_queues": Writes(app="INSERT, UPDATE", worker="INSERT, UPDATE", office="INSERT, UPDATE"),
    "supplier_costs": Writes(worker="INSERT, UPDATE"),
    "supplier_orders": Writes(app="INSERT", worker="INSERT, UPDATE"),
    "templates": Writes(app="INSERT, UPDATE", operator="INSERT, UPDATE"),
    # A worker stores which mail contains a note.
    "thank_you_notes": Writes(
        app="INSERT", worker="UPDATE(mail_id), DELETE", office="DELETE", operator="UPDATE(sealed), DELETE"
    ),
    "top_ups": Writes(app="INSERT, UPDATE", worker="UPDATE", office="UPDATE", operator="INSERT, UPDATE"),
    "transfers": Writes(app="INSERT"),
    "users": Writes(
        app="INSERT, UPDATE", office="INSERT, UPDATE(name), UPDATE(role), UPDATE(is_active)", operator="INSERT, UPDATE"
    ),
    "voucher_waits": Writes(
        app="INSERT, UPDATE(since), DELETE",
        worker="INSERT, UPDATE(since), DELETE",
        operator="INSERT, UPDATE(since), DELETE",
    ),
    "vouchers": Writes(app="INSERT, UPDATE", worker="INSERT, UPDATE", office="INSERT", operator="INSERT, UPDATE"),
    "webhook_subscriptions": Writes(
        app="INSERT, UPDATE(created_at), UPDATE(sealed_secret), UPDATE(previous_secret), UPDATE(previous_until), DELETE",
        worker="UPDATE(created_at), UPDATE(previous_secret), UPDATE(previous_until), DELETE",
        office="UPDATE(created_at)",
        operator="UPDATE(sealed_secret), UPDATE(previous_secret), UPDATE(previous_until)",
    ),
}

# Columns that only commands read. Functions that require a key return these password hashes and encrypted secrets to others.
HIDDEN: Mapping[str, tuple[str, ...]] = {"people": ("password", "totp"), "staff": ("password", "totp")}
# The other columns of these tables. A column in neither list is hidden, and a test fails.
SHOWN: Mapping[str, tuple[str, ...]] = {
    "people": (
        "id",
        "email",
        "email_key",
        "language",
        "zone",
        "created_at",
        "totp_step",
        "confirmed_at",
        "has_password",
        "has_app",
    ),
    "staff": (
        "id",
        "email",
        "email_key",
        "name",
        "role",
        "is_active",
        "totp_step",
        "language",
        "zone",
        "created_at",
        "last_signed_in_at",
        "has_password",
        "has_app",
    ),
}

# Which roles may call a function that exists only on a cluster (largesse.db.sharding).
FUNCTIONS_OF_CLUSTER: Mapping[str, tuple[Role, ...]] = {"customers_of_code": (Role.APP,)}

# Which roles may call a function. No role calls the functions of triggers.
FUNCTIONS: Mapping[str, tuple[Role, ...]] = {
    "clock_now": ACTING,
    # Look-ups by the application before it knows the customer.
    "callers": (Role.APP,),
    "campaign_of_token": (Role.APP,),
    "captured_message": (Role.APP, Role.OPERATOR),
    "brand_picture": (Role.APP,),
    "captured_page": (Role.APP, Role.OPERATOR),
    "curated_collections": (Role.APP,),
    "has_audit_heads": ACTING,
    "has_marks": ACTING,
    "is_ledger_chained": ACTING,
    "last_sealed": ACTING,
    "lines_by_lookup": (Role.OFFICE, Role.OPERATOR),
    "lines_of_code": (Role.APP,),
    "memberships": (Role.APP, Role.OFFICE, Role.OPERATOR),
    "note_keys_seen": (Role.APP,),
    "open_credentials": (Role.APP, Role.WORKER, Role.OFFICE, Role.OPERATOR),
    "password_of": (Role.APP, Role.OPERATOR),
    "privacy_requests_unrecorded": (Role.READ, Role.OPERATOR),
    "staff_password_of": (Role.OFFICE,),
    "staff_totp_of": (Role.OFFICE,),
    "staff_unrecorded": (Role.READ, Role.OPERATOR),
    "totp_of": (Role.APP,),
    "note_sealing": (Role.APP, Role.WORKER, Role.OPERATOR),
    "user_of_link": (Role.APP,),
    "take_automation_runs": (Role.APP,),
    "waiting_lines": (Role.APP, Role.WORKER, Role.OPERATOR),
    # Functions of triggers.
    "catalogue_changed": (),
    "close_credentials": (),
    "guard_corrections": (),
    "guard_credentials": (),
    "refuse_backwards": (),
    "refuse_change": (),
}
