"""`top-up`: what operators do with customers' money."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

import click

from largesse.cli.running import command, current_database
from largesse.errors import StartError
from largesse.funding import find_funding_account, top_up
from largesse.money import AmountError, label, to_minor


@click.command(
    "top-up", context_settings={"ignore_unknown_options": True}
)  # an amount may begin with a minus
@click.argument("account")
@click.argument("amount")
@click.option("--reference", help="Names the top-up; repeating one with the same amount changes nothing.")
@command
async def top_up_account(account: str, amount: str, reference: str | None) -> None:
    """Credit the funding account ACCOUNT with AMOUNT, in major units of its currency.

    ACCOUNT is an id, a key of the world file, or CUSTOMER/KEY.
    """
    if reference is not None and not 0 < len(reference.strip()) <= 128:
        raise StartError("--reference must have 1 to 128 characters")
    async with current_database() as database, database.transaction() as connection:
        found = await find_funding_account(connection, account)
        try:
            amount_minor = to_minor(Decimal(amount), found["currency"])
        except (AmountError, InvalidOperation) as error:
            reason = str(error) if isinstance(error, AmountError) else "must be a number"
            raise StartError(f"AMOUNT {reason}") from None
        balance_minor = await top_up(connection, found["id"], amount_minor, reference)
    click.echo(f"{found['name']} now holds {label(balance_minor, found['currency'])}.")
