"""`unclaimed`: what happens by itself to gifts that nobody claims."""

from __future__ import annotations

from typing import Any

import click
from msgspec.structs import replace

from largesse.base.errors import OperatorError
from largesse.cli.running import Commands, command, current_database, operator_actor
from largesse.cli.tables import customer_option, format_options, show
from largesse.customers.customer_store import find_customer, find_follow_up
from largesse.db.pool import Row
from largesse.db.scope import OPERATOR
from largesse.orders.claim_by import set_defaults
from largesse.orders.claim_by_store import list_claim_by
from largesse.orders.follow_ups import MAX_CLAIM_BY_DAYS, MAX_REMINDER_DAYS, MAX_REMINDERS, read_defaults

_COLUMNS = ("claim_by", "customer", "environment", "reference", "codes", "claimed", "cancelled")
_NONE = "none"
_MOST = 10_000


@click.group(cls=Commands)
def unclaimed() -> None:
    """List orders with a claim-by date, and set what happens to gifts that nobody claims."""


@unclaimed.command("list")
@customer_option("its orders")
@format_options
@command
async def unclaimed_list(customer: str | None, form: str | None) -> None:
    """List the orders with a claim-by date that has not passed or is being carried out, the next one first."""
    async with current_database() as database, database.connection(OPERATOR) as connection:
        customer_id = None if customer is None else await find_customer(connection, customer)
        rows = await list_claim_by(connection, customer_id, _MOST)
    show(form, _COLUMNS, map(_row, rows), empty="No order has a claim-by date to come.")


def _row(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in _COLUMNS}


@unclaimed.command("set")
@click.argument("customer")
@click.option("--claim-by-days", metavar="DAYS", help="Days after gifts leave until they are cancelled, or `none`.")
@click.option(
    "--remind-after", metavar="DAYS", help="Days after which recipients are reminded, such as 3,10, or `none`."
)
@click.option("--api", type=click.Choice(["yes", "no"]), help="Whether it applies to orders of the API, too.")
@command
async def unclaimed_set(customer: str, claim_by_days: str | None, remind_after: str | None, api: str | None) -> None:
    """Set what happens to gifts that nobody claims, in new orders of the customer CUSTOMER without settings of their own.

    Options that you leave out change nothing.
    """
    given: dict[str, Any] = {}
    if claim_by_days is not None:
        given["claim_by_days"] = _days(claim_by_days)
    if remind_after is not None:
        given["reminder_days"] = _reminders(remind_after)
    if api is not None:
        given["of_api"] = api == "yes"
    if not given:
        raise OperatorError("say what to set: --claim-by-days, --remind-after or --api")
    async with operator_actor(customer) as actor:
        async with current_database() as database, database.connection(OPERATOR) as connection:
            old = read_defaults(await find_follow_up(connection, actor.customer_id))
        defaults = replace(old, **given)
        await set_defaults(actor, defaults)
    days = defaults.claim_by_days
    said = "no claim-by date" if days is None else f"a claim-by date {days} days after they leave"
    reminders = ", ".join(map(str, defaults.reminder_days))
    said += f" and reminders after {reminders} days" if reminders else " and no reminders"
    click.echo(f"Gifts of {customer} have {said}; orders of the API {'too' if defaults.of_api else 'do not'}.")


def _reminders(text: str) -> tuple[int, ...]:
    """Returns the days of the reminders; none for `none`. Raises OperatorError."""
    if text == _NONE:
        return ()
    typed = [one.strip() for one in text.split(",")]
    days = [int(one) for one in typed if one.isascii() and one.isdigit() and len(one) < 4]
    fits = len(days) == len(typed) <= MAX_REMINDERS and all(0 < one <= MAX_REMINDER_DAYS for one in days)
    if not fits or sorted(set(days)) != days:
        raise OperatorError(
            f"--remind-after must be at most {MAX_REMINDERS} numbers from 1 to {MAX_REMINDER_DAYS}, ascending, or `none`"
        )
    return tuple(days)


def _days(text: str) -> int | None:
    """Returns the number of days; None for `none`. Raises OperatorError."""
    if text == _NONE:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 4 or not 0 < int(text) <= MAX_CLAIM_BY_DAYS:
        raise OperatorError(f"--claim-by-days must be a whole number from 1 to {MAX_CLAIM_BY_DAYS}, or `none`")
    return int(text)
