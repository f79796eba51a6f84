"""Checks that a person's order is approved by others if a rule of their customer requires it. Orders of API keys need no approval."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from largesse.approvals.model import ApprovalRule, Grant, SendFacts, rules_of
from largesse.approvals.store import read_grants, read_rules
from largesse.base.errors import ApprovalRequired, BudgetExceeded, Unauthorized
from largesse.customers.access import PersonStatus, member_statuses, person_statuses
from largesse.db.pool import Connection, coordinator_of
from largesse.orders.order import Order

# FOR SHARE: a pause, change or end of an automation waits until its order is placed or refused.
_RUNNING = """
    SELECT id, user_id, approved_by FROM automations
    WHERE customer_id = ANY($1::int[]) AND id = ANY($2::int[]) AND ended_at IS NULL AND paused_at IS NULL
      AND (NOT asks_approval OR approved_by IS NOT NULL) FOR SHARE
"""
_APPROVERS = "SELECT id, role FROM users WHERE id = ANY($1::int[]) AND is_active"


class RunningAutomation(NamedTuple):
    """An automation that may send, its person, and who has approved it."""

    user_id: int
    approved_by: int | None
    approver_role: str | None  # None if they are no longer a member

    def meets(self, rules: Sequence[ApprovalRule]) -> bool:
        """Returns whether its approval is enough for each of these rules."""
        approver, role = self.approved_by, self.approver_role
        return (
            approver is not None
            and role is not None
            and all(rule.is_met({approver: role}, self.user_id) for rule in rules)
        )


class Approvals(msgspec.Struct, frozen=True):
    """The rules of the customers of a batch, and the approvals of its orders, by their references."""

    rules: Sequence[ApprovalRule] = ()
    grants: Mapping[str, Grant] = {}
    automations: Mapping[int, RunningAutomation] = {}  # the automations of the batch that may send
    is_quote: bool = False  # a quote places nothing, so no rule refuses it


NO_APPROVALS = Approvals()


async def read_people(connection: Connection, orders: Sequence[Order]) -> dict[int, PersonStatus]:
    """Returns the people of orders who may still send, by `Principal.person_key`. Locks the rows that say so."""
    keys = {key for order in orders if (key := order.principal.person_key) is not None}
    people = {}
    if sessions := [key for key in keys if key >= 0]:
        people = await person_statuses(connection, sessions)
    if members := [-key for key in keys if key < 0]:
        people |= await member_statuses(connection, members)
    return people


async def read_approvals(connection: Connection, orders: Sequence[Order], *, is_quote: bool = False) -> Approvals:
    """Returns the rules and approvals for the orders of people. These approvals cannot be taken back until the transaction ends."""
    asked = [order for order in orders if order.principal.user_id is not None]
    rules = await read_rules(connection, [order.row.customer_id for order in asked])
    if is_quote or not (rules or any(order.principal.session_id is None for order in asked)):
        return Approvals(rules, is_quote=is_quote)
    keys = [(order.row.customer_id, order.row.environment, order.reference) for order in asked]
    return Approvals(rules, await read_grants(connection, keys), await _running(connection, asked))


async def _running(connection: Connection, orders: Sequence[Order]) -> dict[int, RunningAutomation]:
    """Returns the automations of orders that may send, locked against changes."""
    ids = {order.principal.automation_id for order in orders if order.principal.automation_id is not None}
    if not ids:
        return {}
    coordinator = coordinator_of(connection)
    customers = {order.row.customer_id for order in orders}
    rows = await coordinator.fetch(_RUNNING, sorted(customers), sorted(ids))
    approvers = [row["approved_by"] for row in rows if row["approved_by"] is not None]
    roles = {row["id"]: row["role"] for row in await coordinator.fetch(_APPROVERS, approvers)} if approvers else {}
    return {
        row["id"]: RunningAutomation(row["user_id"], row["approved_by"], roles.get(row["approved_by"])) for row in rows
    }


def require_grant(order: Order, approvals: Approvals) -> None:
    """Raises Unauthorized for a person who is not signed in, unless others approved exactly this order, or a running automation sends it."""
    principal = order.principal
    if principal.session_id is not None or approvals.is_quote:
        return
    if principal.automation_id is not None:
        automation = approvals.automations.get(principal.automation_id)
        if automation is None or automation.user_id != principal.user_id:
            raise Unauthorized("The automation is not running.")
        return
    grant = approvals.grants.get(order.reference)
    if grant is None or not grant.covers((), order.quoted, order.total_minor):
        raise Unauthorized("This person is not signed in.")


def rules_about(order: Order, approvals: Approvals, role: str, *, is_beyond_budget: bool) -> Sequence[ApprovalRule]:
    """Returns the rules that apply to the order of a person with that role."""
    row = order.row
    facts = SendFacts(
        row.customer_id,
        row.environment,
        role,
        row.currency,
        order.total_minor,
        row.account_id,
        row.product_id,
        row.collection_id,
        is_beyond_budget,
    )
    return rules_of(facts, approvals.rules)


def require_approved(order: Order, approvals: Approvals, role: str, beyond: BudgetExceeded | None) -> None:
    """Raises ApprovalRequired unless each rule that applies to the order is met by an approval of exactly this order.

    `beyond` is the problem of a budget that the order exceeds. Raises it if no rule lets others approve such an order.
    """
    rules = rules_about(order, approvals, role, is_beyond_budget=beyond is not None)
    if beyond is not None and not any(rule.beyond_budget for rule in rules):
        raise beyond
    if not rules or approvals.is_quote:
        return
    automation = approvals.automations.get(order.principal.automation_id or 0)
    if automation is not None and automation.meets(rules):
        return
    grant = approvals.grants.get(order.reference)
    if grant is None or not grant.covers(rules, order.quoted, order.total_minor):
        raise ApprovalRequired([rule.name for rule in rules])
