"""`campaigns`: list and show campaigns of customers, and end one."""

from collections.abc import Mapping
from typing import Any

import click

from largesse.base.errors import OperatorError
from largesse.base.money import to_number
from largesse.campaigns import store
from largesse.campaigns.model import Campaign
from largesse.campaigns.service import close_campaign
from largesse.cli.running import ID, Commands, operator_actor, reading
from largesse.cli.tables import environment_option, format_options, show
from largesse.customers.customer_store import find_customer
from largesse.db.pool import Connection
from largesse.db.statements import read_now

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
        found = await store.list_campaigns(connection, customer_id, environment, None, _MOST)
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
        found = await store.find_campaign(connection, customer_id, environment, campaign)
        if found is None:
            raise OperatorError(f"there is no campaign {campaign} in {environment}")
        row = await _row(connection, found)
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
    orders = await store.read_orders(connection, campaign.customer_id, [campaign.order_reference])
    order = orders.get(campaign.order_reference)
    taken = (await store.count_taken(connection, campaign.customer_id, [campaign.id])).get(campaign.id, 0)
    counts = None if order is None else await store.count_gifts(connection, campaign.customer_id, order["id"])
    has_left = counts is not None and counts.left > 0
    state = campaign.state(await read_now(connection), is_ordered=order is not None, has_left=has_left)
    money: dict[str, Any] = {"reserved": None, "refunded": None, "currency": None}
    if order is not None and counts is not None:
        each, currency = order["total_minor"] // order["code_count"], order["currency"]
        money = {
            "reserved": to_number(order["total_minor"], currency),
            "refunded": to_number(each * (counts.returned + counts.withdrawn), currency),
            "currency": currency,
        }
    return {
        "id": campaign.id,
        "name": campaign.name,
        "state": str(state),
        "gifts": order["code_count"] if order is not None else campaign.gifts,
        "taken": taken,
        "left": counts.left if counts is not None else None,
        **money,
        "opens": campaign.opens_at,
        "closes": campaign.closes_at,
        "person": campaign.owner,
        "for": ", ".join(campaign.domains) or "a list",
    }
