"""`receivables`: what invoiced customers owe."""

from __future__ import annotations

import click

from largesse.base.money import label
from largesse.base.settings import ENVIRONMENTS
from largesse.cli.ledger import read_amount, read_reference
from largesse.cli.running import Commands, command, current_database, operator_actor
from largesse.cli.tables import customer_option, format_options, in_major_units, show
from largesse.db.scope import OPERATOR
from largesse.ledger.receivables import list_receivables, settle

_COLUMNS = ("customer", "name", "environment", "currency", "ordered", "settled", "owed")


@click.group(cls=Commands)
def receivables() -> None:
    """See what invoiced customers owe, and record what they paid."""


@receivables.command("list")
@customer_option("what it owes")
@format_options
@command
async def receivables_list(customer: str | None, form: str | None) -> None:
    """List what each invoiced customer has ordered, paid and still owes, by environment and currency."""
    async with current_database() as database, database.connection(OPERATOR) as connection:
        records = await list_receivables(connection, customer)
    rows = (in_major_units(record, "ordered", "settled", "owed") for record in records)
    show(form, _COLUMNS, rows, empty="Nobody was ever invoiced.")


@receivables.command("settle", context_settings={"ignore_unknown_options": True})
@click.argument("customer")
@click.argument("amount")
@click.option("--currency", required=True, help="ISO 4217 code of the currency that was invoiced.")
@click.option(
    "--reference", required=True, help="Names the payment; repeating one with the same amount changes nothing."
)
@click.option(
    "--environment",
    default="production",
    show_default=True,
    type=click.Choice(ENVIRONMENTS),
    help="The environment of the orders.",
)
@command
async def receivables_settle(customer: str, amount: str, currency: str, reference: str, environment: str) -> None:
    """Record that the customer CUSTOMER has paid AMOUNT of what it owes, in major units of the currency."""
    currency = currency.upper()
    name = read_reference(reference)
    amount_minor = read_amount(amount, currency)
    async with operator_actor(customer, environment) as actor:
        credit = await settle(actor, currency=currency, amount_minor=amount_minor, reference=name)
    click.echo(f"{customer} now owes {label(-credit.balance_minor, currency)}.")
