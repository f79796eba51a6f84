"""Row-level security: which rows of which table the serving process sees and writes. The one place where that is said.

Every table with `customer_id` is here, and a test fails for one that is not. `migrate` makes it so (`granting`), and `check` and `verify` compare.

OFFICE has all rows of the tables that it reads, and none of the others. APP has what its transaction has said (`largesse.db.scope`) and no other row. A scope that was never said is an error of the statement, not an
empty answer: the setting is read as it stands, and what stands there is no array then. The other roles act across customers and have all rows; who
owns the tables, too, as security is forced where there is one server.

Tables of nobody are not here: what everybody shares (products, currencies, the clock), what the installation keeps for itself (keys, proofs, limits of
guesses), and people with what they sign in by. One person may belong to several customers and is known before any is chosen; what each of
these rows is about is found by the hash of a secret, or by the session that such a hash has found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from largesse.db.fragments import Fragment, compose
from largesse.db.office_rights import NOT_OF_OFFICE
from largesse.db.roles import Role

# As PostgreSQL writes expressions back, so that they can be compared.
_CUSTOMERS = Fragment("(current_setting('largesse.customers'::text))::integer[]")
_ENVIRONMENTS = Fragment("(current_setting('largesse.environments'::text))::text[]")
_CUSTOMERS_ONCE = compose("( SELECT {customers} AS current_setting)::integer[]", customers=_CUSTOMERS)
_ENVIRONMENTS_ONCE = compose("( SELECT {environments} AS current_setting)::text[]", environments=_ENVIRONMENTS)
# Of sums and joined texts, which no index has: a policy judges the rows that a statement finds, and has no part in how it finds them. With plain conditions
# the planner, as long as it knew nothing of a table, looked for a reference among all orders of a customer.
_HERE = f"((environment || ''::text) = ANY ({_ENVIRONMENTS}))"


_ACROSS = tuple(sorted((Role.OWNER, Role.WORKER, Role.OPERATOR, Role.READ)))


def _own(column: str = "customer_id") -> str:
    return f"(({column} + 0) = ANY ({_CUSTOMERS}))"


def _read_once(expression: str) -> str:
    """Returns the same, with each setting read once a statement and not for each row that is written: a batch names a hundred customers."""
    return expression.replace(_CUSTOMERS, _CUSTOMERS_ONCE).replace(_ENVIRONMENTS, _ENVIRONMENTS_ONCE)


@dataclass(frozen=True, slots=True, order=True)
class Policy:
    """A policy for all commands: rows that may be seen and changed (`using`) and those that may be written (`check`; None: the same)."""

    table: str
    name: str
    roles: tuple[str, ...]
    using: str
    check: str | None = None

    @property
    def create(self) -> str:
        """The statement that makes it."""
        check = f" WITH CHECK ({self.check})" if self.check else ""
        return f"CREATE POLICY {self.name} ON {self.table} TO {', '.join(self.roles)} USING ({self.using}){check}"

    @property
    def drop(self) -> str:
        """The statement that takes it away."""
        return f"DROP POLICY {self.name} ON {self.table}"


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a table that a transaction for customers has; `written` where it may write fewer than it sees."""

    seen: str
    written: str | None = None


_OF_CUSTOMER = Rows(_own())
_OF_ENVIRONMENT = Rows(f"({_own()} AND {_HERE})")
# Rows without a customer may be seen, and a free voucher taken; no row can be made so.
_OR_NOBODYS = Rows(f"((customer_id IS NULL) OR {_own()})", _own())

TABLES: Mapping[str, Rows] = {
    "account_service_accounts": _OF_CUSTOMER,
    "account_users": _OF_CUSTOMER,
    "account_watchers": _OF_CUSTOMER,
    "account_watches": _OF_CUSTOMER,
    "accounts": _OF_ENVIRONMENT,
    # Of both environments, as its people see them in one list.
    "api_keys": _OF_CUSTOMER,
    "api_requests": _OF_ENVIRONMENT,
    "approval_decisions": _OF_ENVIRONMENT,
    "approval_requests": _OF_ENVIRONMENT,
    "approval_rules": _OF_ENVIRONMENT,
    # An event is about one environment, or none.
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
    """Returns the policies of a table, none for a table of nobody. A database that is distributed over nodes takes no sub-select in one."""
    if table not in TABLES:
        return ()
    rows = TABLES[table]
    form = str if is_distributed else _read_once
    return (
        Policy(table, "own_rows", (Role.APP,), form(rows.seen), form(rows.written) if rows.written else None),
        Policy(table, "every_row", _ACROSS, "true"),
        *(() if table in NOT_OF_OFFICE else (Policy(table, "office_rows", (Role.OFFICE,), "true"),)),
    )
