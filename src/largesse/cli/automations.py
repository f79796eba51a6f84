"""`automations`: see what customers send by itself, and pause or resume it."""

from __future__ import annotations

import click

from largesse.automations.service import pause_automation
from largesse.automations.store import list_automations
from largesse.base.settings import ENVIRONMENTS
from largesse.cli.running import Commands, command, current_database, operator_actor
from largesse.cli.tables import format_options, show
from largesse.customers.customer_store import find_customer
from largesse.db.scope import OPERATOR

_COLUMNS = ("id", "name", "state", "occasion", "group", "template", "account", "person", "cap", "planned_through")
_environment = click.option(
    "--environment",
    default="production",
    show_default=True,
    type=click.Choice(ENVIRONMENTS),
    help="The environment of the automations.",
)


@click.group(cls=Commands)
def automations() -> None:
    """See which automations a customer has, and pause or resume one."""


@automations.command("list")
@click.argument("customer")
@_environment
@format_options
@command
async def automations_list(customer: str, environment: str, form: str | None) -> None:
    """List the automations of CUSTOMER that have not ended."""
    async with current_database() as database, database.connection(OPERATOR) as connection:
        customer_id = await find_customer(connection, customer)
        found = await list_automations(connection, customer_id, environment)
    rows = (
        {
            "id": one.id,
            "name": one.name,
            "state": one.state,
            "occasion": one.occasion,
            "group": one.group,
            "template": one.template,
            "account": one.account,
            "person": one.owner,
            "cap": one.cap,
            "planned_through": one.planned_through,
        }
        for one in found
    )
    show(form, _COLUMNS, rows, empty="There are none.")


@automations.command("pause")
@click.argument("customer")
@click.argument("automation", type=int)
@_environment
@command
async def automations_pause(customer: str, automation: int, environment: str) -> None:
    """Pause the automation AUTOMATION of CUSTOMER, by its id. Days that pass meanwhile are skipped."""
    async with operator_actor(customer, environment) as actor:
        await pause_automation(actor, automation, paused=True)
    click.echo("Paused.")


@automations.command("resume")
@click.argument("customer")
@click.argument("automation", type=int)
@_environment
@command
async def automations_resume(customer: str, automation: int, environment: str) -> None:
    """Resume the automation AUTOMATION of CUSTOMER, by its id."""
    async with operator_actor(customer, environment) as actor:
        await pause_automation(actor, automation, paused=False)
    click.echo("It sends again.")
