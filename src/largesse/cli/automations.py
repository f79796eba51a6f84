"""`automations`: list automations of customers, and pause or resume them."""

import click

from largesse.automations.service import pause_automation
from largesse.automations.store import list_automations
from largesse.cli.running import ID, Commands, operator_actor, reading
from largesse.cli.tables import environment_option, format_options, show
from largesse.customers.customer_store import find_customer

_COLUMNS = ("id", "name", "state", "occasion", "group", "template", "account", "person", "cap", "planned_through")
_environment = environment_option("The environment of the automations.")


@click.group(cls=Commands)
def automations() -> None:
    """See which automations a customer has, and pause or resume one."""


@automations.command("list")
@click.argument("customer")
@_environment
@format_options
async def automations_list(customer: str, environment: str, form: str | None) -> None:
    """List the automations of CUSTOMER that have not ended."""
    async with reading() as connection:
        customer_id = await find_customer(connection, customer)
        found = await list_automations(connection, (customer_id, environment))
    rows = (
        {"person": one.owner} | {name: getattr(one, name) for name in _COLUMNS if name != "person"} for one in found
    )
    show(form, _COLUMNS, rows, empty="There are no automations.")


@automations.command("pause")
@click.argument("customer")
@click.argument("automation", type=ID)
@_environment
async def automations_pause(customer: str, automation: int, environment: str) -> None:
    """Pause the automation AUTOMATION of CUSTOMER, by its id. Days that pass meanwhile are skipped."""
    async with operator_actor(customer, environment) as actor:
        await pause_automation(actor, automation, paused=True)
    click.echo("Paused.")


@automations.command("resume")
@click.argument("customer")
@click.argument("automation", type=ID)
@_environment
async def automations_resume(customer: str, automation: int, environment: str) -> None:
    """Resume the automation AUTOMATION of CUSTOMER, by its id."""
    async with operator_actor(customer, environment) as actor:
        await pause_automation(actor, automation, paused=False)
    click.echo("It sends again.")
