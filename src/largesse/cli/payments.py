"""`top-up`, `top-ups` and `receivables`: money that customers paid, and what they still owe."""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import click
from msgspec.structs import asdict

from largesse.base import amounts
from largesse.base.errors import OperatorError
from largesse.base.money import label
from largesse.cli.accounts import operator_on_account
from largesse.cli.running import Command, Commands, acting_operator, operator_actor, read_printable, reading
from largesse.cli.tables import customer_option, environment_option, format_options, in_major_units, listing, show
from largesse.db.scope import OPERATOR
from largesse.ledger.bank_file import MAX_BYTES, Columns, read_bank_file
from largesse.ledger.payments import Match, match_payments
from largesse.ledger.receivables import list_receivables, settle
from largesse.ledger.top_ups import (
    TransferReferenceError,
    confirm_top_up,
    credit_account,
    find_by_references,
    list_all_top_ups,
    parse_transfer_reference,
    spelled_reference,
)

_MAX_REFERENCE = 128
_COLUMNS = (
    "reference", "state", "customer", "environment", "account", "amount", "currency", "requested_at", "requested_by",
    "expires_at",
)  # fmt: skip
_ENDED_COLUMNS = (*_COLUMNS, "credited", "ended_at")
_MATCH_COLUMNS = ("line", "outcome", "reference", "amount", "currency", "account", "why")
_RECEIVABLE_COLUMNS = ("customer", "name", "environment", "currency", "ordered", "settled", "owed")


def _read_amount(text: str, currency: str) -> int:
    """Returns the minor units of an amount in major units, typed in the English format. Raises OperatorError."""
    try:
        return amounts.read_amount(text, currency)
    except amounts.UnreadableAmount as error:
        raise OperatorError(f"AMOUNT: {error}") from None


@click.command(
    "top-up",
    cls=Command,
    context_settings={"ignore_unknown_options": True},  # an amount may begin with a minus
)
@click.argument("account")
@click.argument("amount")
@click.option("--reference", help="Names the top-up; repeating one with the same amount changes nothing.")
async def top_up_account(account: str, amount: str, reference: str | None) -> None:
    """Credit the funding account ACCOUNT with AMOUNT, in major units of its currency.

    ACCOUNT is an id, a key of the seed file, or CUSTOMER/KEY.
    """
    name = None if reference is None else read_printable(reference, _MAX_REFERENCE, argument="--reference")
    async with operator_on_account(account) as (actor, found):
        credit = await credit_account(actor, found, _read_amount(amount, found["currency"]), name)
    click.echo(f"{found['name']} now holds {label(credit.balance_minor, found['currency'])}.")


@click.group("top-ups", cls=Commands)
def top_ups() -> None:
    """List the top-ups that customers requested, and credit paid ones."""


@top_ups.command("list")
@customer_option("its top-ups")
@click.option("--all", "ended", is_flag=True, help="Also those that were confirmed or cancelled.")
@format_options
async def top_ups_list(customer: str | None, ended: bool, form: str | None) -> None:
    """List the top-ups that wait for their money and those that have expired, oldest first."""
    async with reading(customer) as connection:
        found = await list_all_top_ups(connection, customer=customer, ended=ended)
    rows = (
        {**in_major_units(one, "amount", "credited"), "reference": spelled_reference(one.reference)} for one in found
    )
    show(
        form,
        _ENDED_COLUMNS if ended else _COLUMNS,
        rows,
        empty="There are no top-ups." if ended else "No top-up waits for its money.",
    )


@top_ups.command("confirm", context_settings={"ignore_unknown_options": True})
@click.argument("reference")
@click.option("--amount", help="The amount received, in major units, if it differs from the requested one.")
async def top_ups_confirm(reference: str, amount: str | None) -> None:
    """Credit the account of the top-up REFERENCE, whose money has arrived.

    Repeating it changes nothing.
    """
    parsed = _parsed(reference)
    async with acting_operator() as (database, actor):
        found = await database.read(OPERATOR, find_by_references, [parsed])
        if parsed not in found:
            raise OperatorError(f"there is no top-up {spelled_reference(parsed)}")
        currency = found[parsed][0].currency
        amount_minor = None if amount is None else _read_amount(amount, currency)
        done = await confirm_top_up(actor, parsed, amount_minor)
    assert done.credited_minor is not None
    click.echo(
        f"{spelled_reference(done.reference)}: {label(done.credited_minor, currency)} credited to {done.account} of {done.customer}."
    )


@top_ups.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--amount-column", help="Heading of the column with the amount.")
@click.option("--currency-column", help="Heading of the column with the currency.")
@click.option("--currency", help="ISO 4217 code of the currency of all lines, where no column has it.")
@click.option("--decimal", type=click.Choice([".", ","]), help="The sign before an amount's decimals.")
@click.option("--dry-run", is_flag=True, help="Only list what would be credited.")
@format_options
async def top_ups_import(
    file: Path,
    amount_column: str | None,
    currency_column: str | None,
    currency: str | None,
    decimal: str | None,
    dry_run: bool,
    form: str | None,
) -> None:
    """Credit the top-ups that are paid by the transfers in FILE, a bank's CSV or CAMT file.

    A line confirms a top-up if any of its columns names the reference of a waiting one, and amount and currency are the requested
    ones. Each line counts once, however often you import the file. Every line is listed with its outcome. Exits with 1 if a line names
    one of our references and could not be matched.
    """
    columns = Columns(amount_column, currency_column, currency.upper() if currency else None)
    with file.open("rb") as opened:
        lines = read_bank_file(file.name, opened.read(MAX_BYTES + 1), columns)
    outcomes: Counter[str] = Counter()
    is_doubtful = False
    async with operator_actor() as actor:
        with listing(form, _MATCH_COLUMNS, empty="The file has no lines.") as add:
            async for matches in match_payments(actor, lines, decimal=decimal, dry_run=dry_run):
                outcomes.update(match.outcome for match in matches)
                is_doubtful |= any(match.outcome == "unmatched" and match.reference for match in matches)
                add(_match_row(match) for match in matches)
    click.echo(
        f"{'Would be confirmed' if dry_run else 'Confirmed'}: {outcomes['confirmed']:,}; "
        f"taken before: {outcomes['known']:,}; not matched: {outcomes['unmatched']:,}.",
        err=True,
    )
    if is_doubtful:
        sys.exit(1)


def _match_row(match: Match) -> dict[str, Any]:
    reference = None if match.reference is None else spelled_reference(match.reference)
    return {**asdict(match), "reference": reference, "why": None if match.why is None else str(match.why)}


def _parsed(reference: str) -> str:
    try:
        return parse_transfer_reference(reference)
    except TransferReferenceError as error:
        raise OperatorError(f"REFERENCE: {error}") from None


@click.group(cls=Commands)
def receivables() -> None:
    """See what invoiced customers owe, and record what they paid."""


@receivables.command("list")
@customer_option("what it owes")
@format_options
async def receivables_list(customer: str | None, form: str | None) -> None:
    """List what each invoiced customer has ordered, paid and still owes, by environment and currency."""
    async with reading(customer) as connection:
        records = await list_receivables(connection, customer)
    rows = (in_major_units(record, "ordered", "settled", "owed") for record in records)
    show(form, _RECEIVABLE_COLUMNS, rows, empty="Nobody was ever invoiced.")


@receivables.command("settle", context_settings={"ignore_unknown_options": True})
@click.argument("customer")
@click.argument("amount")
@click.option("--currency", required=True, help="ISO 4217 code of the currency that was invoiced.")
@click.option(
    "--reference", required=True, help="Names the payment; repeating one with the same amount changes nothing."
)
@environment_option("The environment of the orders.")
async def receivables_settle(customer: str, amount: str, currency: str, reference: str, environment: str) -> None:
    """Record that the customer CUSTOMER has paid AMOUNT of what it owes, in major units of the currency."""
    currency = currency.upper()
    name = read_printable(reference, _MAX_REFERENCE, argument="--reference")
    amount_minor = _read_amount(amount, currency)
    async with operator_actor(customer, environment) as actor:
        credit = await settle(actor, currency=currency, amount_minor=amount_minor, reference=name)
    click.echo(f"{customer} now owes {label(-credit.balance_minor, currency)}.")
