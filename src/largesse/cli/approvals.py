"""`approvals`: see what waits for approval and by which rules, and end a rule."""

from typing import Any

import click

from largesse.approvals.model import ApprovalRule
from largesse.approvals.service import MOST_LISTED, end_rule
from largesse.approvals.store import list_requests, list_rules
from largesse.base.money import to_decimal
from largesse.cli.running import ID, Commands, operator_actor, reading
from largesse.cli.tables import environment_option, format_options, major, show
from largesse.customers.customer_store import find_customer
from largesse.customers.members import list_members

_REQUESTS = ("reference", "person", "state", "sent", "gift", "codes", "total", "currency", "asked_at", "expires_at")
_RULES = ("id", "name", "role", "above", "currency", "beyond_budget", "needed", "approvers", "days")
_environment = environment_option("The environment of the rules and requests.")


@click.group(cls=Commands)
def approvals() -> None:
    """List approval requests and rules, and end a rule."""


@approvals.command("list")
@click.argument("customer")
@_environment
@format_options
async def approvals_list(customer: str, environment: str, form: str | None) -> None:
    """List the newest approval requests of CUSTOMER."""
    async with reading() as connection:
        customer_id = await find_customer(connection, customer)
        requests = await list_requests(connection, (customer_id, environment), most=MOST_LISTED)
        emails = {member.id: member.email for member in await list_members(connection, customer_id)}
    rows = (
        {
            "reference": one.id,
            "person": emails.get(one.user_id),
            "state": one.state,
            "sent": one.is_sent,
            "gift": one.gift_name,
            "codes": one.code_count,
            "total": to_decimal(one.total_minor, one.currency),
            "currency": one.currency,
            "asked_at": one.asked_at,
            "expires_at": one.expires_at,
        }
        for one in requests
    )
    show(form, _REQUESTS, rows, empty="There are no approval requests.")


@approvals.command("rules")
@click.argument("customer")
@_environment
@format_options
async def approvals_rules(customer: str, environment: str, form: str | None) -> None:
    """List the approval rules of CUSTOMER."""
    async with reading() as connection:
        customer_id = await find_customer(connection, customer)
        rules = await list_rules(connection, (customer_id, environment))
        emails = {member.id: member.email for member in await list_members(connection, customer_id)}
    show(form, _RULES, (_row(rule, emails) for rule in rules), empty="There are no approval rules.")


@approvals.command("end-rule")
@click.argument("customer")
@click.argument("rule", type=ID)
@_environment
async def approvals_end_rule(customer: str, rule: int, environment: str) -> None:
    """End the approval rule RULE of CUSTOMER, by its id. Requests that wait for it still wait."""
    async with operator_actor(customer, environment) as actor:
        name = await end_rule(actor, rule)
    click.echo(f"{name} has ended.")


def _row(rule: ApprovalRule, emails: dict[int, str]) -> dict[str, Any]:
    approvers = ", ".join(sorted(emails.get(one, "?") for one in rule.approver_ids))
    return {
        "id": rule.id,
        "name": rule.name,
        "role": rule.role,
        "above": rule.currency and major(rule.above_minor, rule.currency),
        "currency": rule.currency,
        "beyond_budget": rule.beyond_budget,
        "needed": rule.needed,
        "approvers": approvers or "any administrator",
        "days": rule.expires_days,
    }
