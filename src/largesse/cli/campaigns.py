"""`campaigns`: list and show campaigns of customers, and end one."""

from collections.abc import Mapping
from typing import Any

import click

from largesse.base.money import to_number
from largesse.campaigns import store
from largesse.campaigns.model import Campaign
from largesse.campaigns.service import close_campaign, read_progress
from largesse.cli.running import ID, Commands, operator_actor, reading
from largesse.cli.tables import environment_option, format_options, show
from largesse.customers.customer_store import find_customer
from largesse.db.pool import Connection

_COLUMNS = (
    "id",
    "name",
    "state",
    "gifts",
    "taken",
    "left",
    "reserved",
    "refunded",
    "currency",
    "opens",
    "closes",
    "person",
    "for",
)
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
