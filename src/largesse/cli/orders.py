"""`orders`: list placed orders. `unclaimed`: set what happens to gifts that nobody claims. `rebuild-reports`: rebuild the read models."""

from typing import Any

import click
from msgspec.structs import replace

from largesse.base.errors import OperatorError
from largesse.cli.running import Command, Commands, acting_operator, operator_actor, progress, reading
from largesse.cli.tables import customer_option, format_options, in_major_units, show
from largesse.customers.customer_store import find_customer, find_follow_up
from largesse.orders.claim_by_store import list_claim_by
from largesse.orders.follow_ups import MAX_CLAIM_BY_DAYS, MAX_REMINDER_DAYS, MAX_REMINDERS, read_defaults
from largesse.orders.listing import list_newest_orders
from largesse.orders.schedule import set_defaults

_COLUMNS = (
    "id", "created_at", "customer", "environment", "reference", "external_reference", "gift", "code_count",
    "delivery_mode", "scheduled_for", "source", "service_account", "account", "total", "currency",
)  # fmt: skip
_AFTER_ALL = 2_147_483_647
_CLAIM_BY_COLUMNS = ("claim_by", "customer", "environment", "reference", "codes", "claimed", "cancelled")
_MOST_CLAIM_BY = 10_000


@click.group(cls=Commands)
def orders() -> None:
    """See placed orders."""


@orders.command("list")
@customer_option("its orders")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 10_000), help="How many at the most.")
@click.option("--before", default=_AFTER_ALL, type=click.IntRange(1, _AFTER_ALL), help="Only orders with smaller ids.")
@format_options
async def orders_list(customer: str | None, limit: int, before: int, form: str | None) -> None:
    """List the newest orders, newest first, without codes, names or addresses."""
    async with reading() as connection:
        customer_id = None if customer is None else await find_customer(connection, customer)
        records = await list_newest_orders(connection, customer_id, before=before, limit=limit)
    rows = (in_major_units(record, "total") for record in records)
    show(form, _COLUMNS, rows, empty="There are no orders.")


@click.command("rebuild-reports", cls=Command)
async def rebuild_reports() -> None:
    """Rebuild what people list, search and add up, from the orders.

    Orders can be placed meanwhile, and workers help. If interrupted, the workers finish it.
    """
    from largesse.reports.updates import rebuild

    async with acting_operator() as (database, actor):
        with progress("orders taken in") as show:
            total = await rebuild(database, actor.acting, show)
    click.echo(f"The reports are made anew from {total:,} orders.")


@click.group(cls=Commands)
def unclaimed() -> None:
    """List orders with a claim-by date, and set what happens to gifts that nobody claims."""


@unclaimed.command("list")
@customer_option("its orders")
@format_options
async def unclaimed_list(customer: str | None, form: str | None) -> None:
    """List the orders with a claim-by date that has not passed or is being carried out, the next one first."""
    async with reading() as connection:
        customer_id = None if customer is None else await find_customer(connection, customer)
        rows = await list_claim_by(connection, customer_id, _MOST_CLAIM_BY)
    show(form, _CLAIM_BY_COLUMNS, map(dict, rows), empty="No order has a claim-by date to come.")


@unclaimed.command("set")
@click.argument("customer")
@click.option("--claim-by-days", metavar="DAYS", help="Days after gifts leave until they are cancelled, or `none`.")
@click.option(
    "--remind-after", metavar="DAYS", help="Days after which recipients are reminded, such as 3,10, or `none`."
)
@click.option("--api", type=click.Choice(["yes", "no"]), help="Whether it applies to orders of the API, too.")
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
        async with reading() as connection:
            old = read_defaults(await find_follow_up(connection, actor.customer_id))
        defaults = replace(old, **given)
        await set_defaults(actor, defaults)
    days = defaults.claim_by_days
    said = "no claim-by date" if days is None else f"a claim-by date {days} days after they leave"
    reminders = ", ".join(map(str, defaults.reminder_days))
    said += f" and reminders after {reminders} days" if reminders else " and no reminders"
    click.echo(f"Gifts of {customer} have {said}; orders of the API {'too' if defaults.of_api else 'do not'}.")


def _reminders(text: str) -> tuple[int, ...]:
    """Returns the days of the reminders; an empty tuple for the text `none`. Raises OperatorError."""
    if text == "none":
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
    """Returns the number of days; None for the text `none`. Raises OperatorError."""
    if text == "none":
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 4 or not 0 < int(text) <= MAX_CLAIM_BY_DAYS:
        raise OperatorError(f"--claim-by-days must be a whole number from 1 to {MAX_CLAIM_BY_DAYS}, or `none`")
    return int(text)
