"""Row-level security: which rows of each table the serving process may see and write. Only this module decides it.

Every table with `customer_id` is listed here; a test fails if one is missing. `migrate` sets the policies (`grants`). `check` and `verify` compare.

OFFICE has all rows of the tables that it reads. APP has only the rows of its transaction's scope (`largesse.db.scope`). Without a scope, the setting
is not an array, and a statement fails. The other roles act across customers and have all rows. So has the owner of the tables, which needs a
policy for it, as security is forced on a single server.

Tables without a customer are not listed: shared ones (products, currencies, the clock), those of the installation (keys, proofs, limits of guesses), and
people with their credentials. A person may belong to several customers, and is identified before one is chosen. Their rows are found by the hash
of a secret, or by a session that such a hash has found.
"""

from collections.abc import Mapping

import msgspec

from largesse.db.fragments import Fragment, compose
from largesse.db.office_rights import NOT_OF_OFFICE
from largesse.db.roles import Role

# Expressions in the form in which PostgreSQL returns them, so that they can be compared.
_CUSTOMERS = Fragment("(current_setting('largesse.customers'::text))::integer[]")
_ENVIRONMENTS = Fragment("(current_setting('largesse.environments'::text))::text[]")
_CUSTOMERS_ONCE = compose("( SELECT {customers} AS current_setting)::integer[]", customers=_CUSTOMERS)
_ENVIRONMENTS_ONCE = compose("( SELECT {environments} AS current_setting)::text[]", environments=_ENVIRONMENTS)
# Conditions on sums and joined texts, for which there is no index: a policy must not decide how a statement finds its rows.
# With plain conditions, and without statistics of the table, the planner searched all orders of a customer for a reference.
_HERE = f"((environment || ''::text) = ANY ({_ENVIRONMENTS}))"


_ACROSS = tuple(sorted((Role.OWNER, Role.WORKER, Role.OPERATOR, Role.READ)))


def _own(column: str = "customer_id") -> str:
    return f"(({column} + 0) = ANY ({_CUSTOMERS}))"


def _read_once(expression: str) -> str:
    """Returns the expression with each setting read once in a statement, not for each row that is written. A setting may name a hundred customers."""
    return expression.replace(_CUSTOMERS, _CUSTOMERS_ONCE).replace(_ENVIRONMENTS, _ENVIRONMENTS_ONCE)


class Policy(msgspec.Struct, frozen=True, order=True):
    """A policy for all commands. `using` selects the rows to see and change, and `check` those that may be written; None means the same."""

    table: str
    name: str
    roles: tuple[str, ...]
    using: str
    check: str | None = None

    @property
    def create(self) -> str:
        """The statement that creates the policy."""
        check = f" WITH CHECK ({self.check})" if self.check else ""
        return f"CREATE POLICY {self.name} ON {self.table} TO {', '.join(self.roles)} USING ({self.using}){check}"

    @property
    def drop(self) -> str:
        """The statement that drops the policy."""
        return f"DROP POLICY {self.name} ON {self.table}"


class Rows(msgspec.Struct, frozen=True):
    """The rows of a table that a transaction for customers may see. `written` are those it may write, if these are fewer."""

    seen: str
    written: str | None = None


_OF_CUSTOMER = Rows(_own())
_OF_ENVIRONMENT = Rows(f"({_own()} AND {_HERE})")
# Rows without a customer may be seen, and a free voucher taken. But such rows cannot be written.
_OR_NOBODYS = Rows(f"((customer_id IS NULL) OR {_own()})", _own())

TABLES: Mapping[str, Rows] = {
    "account_service_accounts": _OF_CUSTOMER,
    "account_users": _OF_CUSTOMER,
    "account_watchers": _OF_CUSTOMER,
    "account_watches": _OF_CUSTOMER,
    "accounts": _OF_ENVIRONMENT,
    # Rows of both environments, as people see them in one list.
    "api_keys": _OF_CUSTOMER,
    "api_requests": _OF_ENVIRONMENT,
    "approval_decisions": _OF_ENVIRONMENT,
    "approval_requests": _OF_ENVIRONMENT,
    "approval_rules": _OF_ENVIRONMENT,
    # Not every event has an environment.
    "audit_events": _OF_CUSTOMER,
    "audit_heads": _OF_CUSTOMER,
    "automation_runs": _OF_ENVIRONMENT,
    "automations": _OF_ENVIRONMENT,
    "brand_pictures": _OF_CUSTOMER,
    "brands": _OF_CUSTOMER,
    "budget_orders": _OF_CUSTOMER,
    "budget_people": _OF_CUSTOMER,
    "budget_periods": _OF_CUSTOMER,
    "budgets": _OF_ENVIRONMENT,
    "campaign_asks": _OF_ENVIRONMENT,
    "campaign_people": _OF_ENVIRONMENT,
    "campaigns": _OF_ENVIRONMENT,
    "captured_mail": _OF_ENVIRONMENT,
    "chain_openings": _OF_CUSTOMER,
    "code_readings": _OF_CUSTOMER,
    "collection_versions": _OF_CUSTOMER,
    "collections": _OR_NOBODYS,
    "contact_fields": _OF_ENVIRONMENT,
    "contact_groups": _OF_ENVIRONMENT,
    "contact_members": _OF_ENVIRONMENT,
    "contacts": _OF_ENVIRONMENT,
    "corrections": _OF_ENVIRONMENT,
    "customer_notes": _OF_CUSTOMER,
    "customer_views": _OF_CUSTOMER,
    "customers": Rows(_own("id")),
    "daily_spending": _OF_ENVIRONMENT,
    "deliveries": _OF_CUSTOMER,
    "delivery_attempts": _OF_CUSTOMER,
    "draft_columns": _OF_CUSTOMER,
    "draft_rows": _OF_ENVIRONMENT,
    "drafts": _OF_ENVIRONMENT,
    "entries": _OF_CUSTOMER,
    "erasure_jobs": _OF_CUSTOMER,
    "erasures": _OF_CUSTOMER,
    "events": _OF_ENVIRONMENT,
    "follow_ups": _OF_ENVIRONMENT,
    "line_event_marks": _OF_CUSTOMER,
    "line_events": _OF_CUSTOMER,
    "line_messages": _OF_CUSTOMER,
    "line_states": _OF_CUSTOMER,
    "lines": _OF_CUSTOMER,
    "mail_jobs": _OF_ENVIRONMENT,
    "messages": _OF_ENVIRONMENT,
    "noted_anchors": _OF_CUSTOMER,
    "order_acts": _OF_CUSTOMER,
    "order_changes": _OF_CUSTOMER,
    "orders": _OF_ENVIRONMENT,
    "privacy_requests": _OF_CUSTOMER,
    "reminder_stops": _OF_CUSTOMER,
    "own_wrappings": _OF_CUSTOMER,
    "report_groups": _OF_ENVIRONMENT,
    "report_orders": _OF_ENVIRONMENT,
    "report_sums": _OF_CUSTOMER,
    "report_words": _OF_ENVIRONMENT,
    "saved_views": _OF_ENVIRONMENT,
    "service_accounts": _OF_CUSTOMER,
    "shipments": _OF_ENVIRONMENT,
    "subscription_queues": _OF_CUSTOMER,
    "supplier_orders": _OF_ENVIRONMENT,
    "templates": _OF_CUSTOMER,
    "thank_you_notes": _OF_ENVIRONMENT,
    "top_ups": _OF_ENVIRONMENT,
    "transfers": _OF_ENVIRONMENT,
    "users": _OF_CUSTOMER,
    "voucher_waits": _OF_CUSTOMER,
    "vouchers": _OR_NOBODYS,
    "webhook_subscriptions": _OF_ENVIRONMENT,
}


def policies_on(table: str, *, is_distributed: bool = False) -> tuple[Policy, ...]:
    """Returns the policies of a table; none for a table without a customer. On a cluster, they have no subqueries, which it does not allow."""
    if table not in TABLES:
        return ()
    rows = TABLES[table]
    form = str if is_distributed else _read_once
    return (
        Policy(table, "own_rows", (Role.APP,), form(rows.seen), form(rows.written) if rows.written else None),
        Policy(table, "every_row", _ACROSS, "true"),
        *(() if table in NOT_OF_OFFICE else (Policy(table, "office_rows", (Role.OFFICE,), "true"),)),
    )
