"""`approvals`, `automations` and `campaigns`: list those of a customer, end rules and campaigns, and pause or resume automations."""

from collections.abc import Mapping
from typing import Any

import click
from msgspec.structs import asdict

from largesse.approvals.model import ApprovalRule
from largesse.approvals.service import MOST_LISTED, end_rule
from largesse.approvals.store import list_requests, list_rules
from largesse.automations.service import pause_automation
from largesse.automations.store import list_automations
from largesse.base.money import to_decimal, to_number
from largesse.campaigns import store
from largesse.campaigns.model import Campaign
from largesse.campaigns.service import close_campaign, read_progress
from largesse.cli.running import ID, Commands, operator_actor, reading
from largesse.cli.tables import environment_option, format_options, major, show
from largesse.customers.customer_store import find_customer
from largesse.customers.members import list_members
from largesse.db.pool import Connection

_REQUESTS = ("reference", "person", "state", "sent", "gift", "codes", "total", "currency", "asked_at", "expires_at")
_RULES = ("id", "name", "role", "above", "currency", "beyond_budget", "needed", "approvers", "days")
_environment_of_approvals = environment_option("The environment of the rules and requests.")


@click.group(cls=Commands)
def approvals() -> None:
    """List approval requests and rules, and end a rule."""


@approvals.command("list")
@click.argument("customer")
@_environment_of_approvals
@format_options
async def approvals_list(customer: str, environment: str, form: str | None) -> None:
    """List the newest approval requests of CUSTOMER."""
    async with reading() as connection:
        customer_id = await find_customer(connection, customer)
        requests = await list_requests(connection, (customer_id, environment), most=MOST_LISTED)
        emails = {member.id: member.email for member in await list_members(connection, customer_id)}
    rows = (
        {
            **asdict(one),
            "reference": one.id,
            "person": emails.get(one.user_id),
            "sent": one.is_sent,
            "gift": one.gift_name,
            "codes": one.code_count,
            "total": to_decimal(one.total_minor, one.currency),
        }
        for one in requests
    )
    show(form, _REQUESTS, rows, empty="There are no approval requests.")


@approvals.command("rules")
@click.argument("customer")
@_environment_of_approvals
@format_options
async def approvals_rules(customer: str, environment: str, form: str | None) -> None:
    """List the approval rules of CUSTOMER."""
    async with reading() as connection:
        customer_id = await find_customer(connection, customer)
        rules = await list_rules(connection, (customer_id, environment))
        emails = {member.id: member.email for member in await list_members(connection, customer_id)}
    show(form, _RULES, (_rule_row(rule, emails) for rule in rules), empty="There are no approval rules.")


@approvals.command("end-rule")
@click.argument("customer")
@click.argument("rule", type=ID)
@_environment_of_approvals
async def approvals_end_rule(customer: str, rule: int, environment: str) -> None:
    """End the approval rule RULE of CUSTOMER, by its id. Requests that wait for it still wait."""
    async with operator_actor(customer, environment) as actor:
        name = await end_rule(actor, rule)
    click.echo(f"{name} has ended.")


def _rule_row(rule: ApprovalRule, emails: dict[int, str]) -> dict[str, Any]:
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


_AUTOMATIONS = ("id", "name", "state", "occasion", "group", "template", "account", "person", "cap", "planned_through")
_environment_of_automations = environment_option("The environment of the automations.")


@click.group(cls=Commands)
def automations() -> None:
    """See which automations a customer has, and pause or resume one."""


@automations.command("list")
@click.argument("customer")
@_environment_of_automations
@format_options
async def automations_list(customer: str, environment: str, form: str | None) -> None:
    """List the automations of CUSTOMER that have not ended."""
    async with reading() as connection:
        customer_id = await find_customer(connection, customer)
        found = await list_automations(connection, (customer_id, environment))
    rows = (
        {"person": one.owner} | {name: getattr(one, name) for name in _AUTOMATIONS if name != "person"} for one in found
    )
    show(form, _AUTOMATIONS, rows, empty="There are no automations.")


@automations.command("pause")
@click.argument("customer")
@click.argument("automation", type=ID)
@_environment_of_automations
async def automations_pause(customer: str, automation: int, environment: str) -> None:
    """Pause the automation AUTOMATION of CUSTOMER, by its id. Days that pass meanwhile are skipped."""
    async with operator_actor(customer, environment) as actor:
        await pause_automation(actor, automation, paused=True)
    click.echo("Paused.")


@automations.command("resume")
@click.argument("customer")
@click.argument("automation", type=ID)
@_environment_of_automations
async def automations_resume(customer: str, automation: int, environment: str) -> None:
    """Resume the automation AUTOMATION of CUSTOMER, by its id."""
    async with operator_actor(customer, environment) as actor:
        await pause_automation(actor, automation, paused=False)
    click.echo("It sends again.")


_COLUMNS = (
    "id", "name", "state", "gifts", "taken", "left", "reserved", "refunded", "currency", "opens", "closes", "person",
    "for",
)  # fmt: skip
_MOST = 1_000
_environment = environment_option("The environment of the campaigns.")


@click.group(cls=Commands)
def campaigns() -> None:
    """List a customer's campaigns, and end one."""


@campaigns.command("list")
@click.argument("customer")
@_environment
@format_options
async def campaigns_list(customer: str, environment: str, form: str | None) -> None:
    """List the newest campaigns of CUSTOMER, with gifts taken and refunded."""
    async with reading() as connection:
        customer_id = await find_customer(connection, customer)
        found = await store.list_campaigns(connection, (customer_id, environment), None, _MOST)
        rows = [await _row(connection, one) for one in found]
    show(form, _COLUMNS, rows, empty="There are no campaigns.")


@campaigns.command("show")
@click.argument("customer")
@click.argument("campaign", type=ID)
@_environment
@format_options
async def campaigns_show(customer: str, campaign: int, environment: str, form: str | None) -> None:
    """Show the campaign CAMPAIGN of CUSTOMER, by its id."""
    async with reading() as connection:
        customer_id = await find_customer(connection, customer)
        row = await _row(connection, await store.find_campaign(connection, (customer_id, environment), campaign))
    show(form, _COLUMNS, [row], empty="")


@campaigns.command("end")
@click.argument("customer")
@click.argument("campaign", type=ID)
@_environment
async def campaigns_end(customer: str, campaign: int, environment: str) -> None:
    """End the campaign CAMPAIGN of CUSTOMER, by its id. A worker refunds the remaining gifts. Visitors keep theirs."""
    async with operator_actor(customer, environment) as actor:
        await close_campaign(actor, campaign)
    click.echo("It has ended. A worker refunds the rest.")


async def _row(connection: Connection, campaign: Campaign) -> Mapping[str, Any]:
    one = await read_progress(connection, campaign)
    order, counts = one.order, one.counts
    money: dict[str, Any] = {"reserved": None, "refunded": None, "currency": None}
    if order is not None and counts is not None:
        currency = order["currency"]
        money = {
            "reserved": to_number(order["total_minor"], currency),
            "refunded": to_number(one.each_minor * (counts.returned + counts.withdrawn), currency),
            "currency": currency,
        }
    return {
        "id": campaign.id,
        "name": campaign.name,
        "state": str(one.state),
        "gifts": one.gifts,
        "taken": one.taken,
        "left": counts.left if counts is not None else None,
        **money,
        "opens": campaign.opens_at,
        "closes": campaign.closes_at,
        "person": campaign.owner,
        "for": ", ".join(campaign.domains) or "a list",
    }
