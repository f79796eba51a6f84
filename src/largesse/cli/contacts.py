"""`contacts`: list a customer's contacts, and import them from a CSV file."""

import asyncio
from pathlib import Path
from typing import Any

import click

from largesse.base.cooperative import finish_soon
from largesse.base.errors import OperatorError
from largesse.base.settings import load_settings
from largesse.cli.running import Commands, acting_operator, reading
from largesse.cli.tables import environment_option, format_options, listing
from largesse.contacts.groups import list_fields
from largesse.contacts.importing import DAY, MONTH, CheckedContacts, check_contacts, guess_contact_columns
from largesse.contacts.model import PROBLEMS, Contact, written_birthday, written_groups
from largesse.contacts.service import save_contacts
from largesse.contacts.store import Filter, list_by_id
from largesse.customers.customer_store import find_customer
from largesse.db.scope import OPERATOR
from largesse.drafts.sheet import MAX_FILE_BYTES, SheetRefused
from largesse.drafts.text_sheet import read_text_file, read_text_sheet
from largesse.installation import open_vault

_AT_ONCE = 1_000
_SHOWN = 20  # how many rows with faults an error names
_COLUMNS = (
    "id", "email", "name", "language", "country", "birthday", "start_date", "external_id", "groups", "is_active"
)  # fmt: skip


@click.group(cls=Commands)
def contacts() -> None:
    """List and import the people whom a customer sends to."""


_customer = click.option("--customer", metavar="KEY", required=True, help="The customer.")
_environment = environment_option()


@contacts.command("list")
@_customer
@_environment
@format_options
async def contacts_list(customer: str, environment: str, form: str | None) -> None:
    """List a customer's contacts, without their postal addresses."""
    with listing(form, _COLUMNS, empty="There are no contacts.") as add:
        async with reading() as connection:
            place = await find_customer(connection, customer), environment
            after = 0
            while found := await list_by_id(connection, place, Filter(), _AT_ONCE, after):
                add(map(_row, found))
                after = found[-1].id


@contacts.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_customer
@_environment
@click.option(
    "--dates", type=click.Choice([DAY, MONTH]), help="Which is first in dates such as 03/04/1990: day or month."
)
async def contacts_import(file: Path, customer: str, environment: str, dates: str | None) -> None:
    """Create and change a customer's contacts from the CSV file FILE, whose first row has headings.

    A contact is found by its address. Blank cells change nothing. If a row has a fault, nothing is imported.
    """
    try:
        sheet = await finish_soon(read_text_sheet(read_text_file(await asyncio.to_thread(_content, file)).text))
    except SheetRefused as refused:
        raise OperatorError(f"{file}: {refused.detail}") from None
    async with acting_operator() as (database, operator):
        async with database.connection(OPERATOR) as connection:
            customer_id = await find_customer(connection, customer)
            fields = await list_fields(connection, (customer_id, environment))
        columns = guess_contact_columns(sheet, fields)
        if columns.base.email is None:
            raise OperatorError(f"{file}: no column has e-mail addresses")
        checked = await finish_soon(check_contacts(sheet, columns, dates or ""))
        if checked.bad:
            raise OperatorError(_faults_of(checked))
        vault = await open_vault(database, load_settings())
        actor = operator.on_behalf_of(customer_id, environment)
        saved = await save_contacts(actor, vault, checked.changes)
    click.echo(f"Created: {saved.created:,}. Changed: {saved.changed:,}.")
    for part in checked.month_first:
        click.echo(f"{part}: the month is read first, as some dates have no other meaning.")
    for part, example in checked.unsure:
        click.echo(
            f"{part}: {example} is read with the day first. If the month is first, import again with --dates month."
        )
    headings = dict(enumerate(sheet.rows[0].cells)) if columns.base.has_heading else {}
    if unread := [headings.get(at) or f"column {at + 1}" for at in columns.unread(sheet)]:
        click.echo(f"Not read: {', '.join(unread)}.")


def _content(file: Path) -> bytes:
    """Returns the bytes of a file. Of one that is too large, returns one more than there may be."""
    with file.open("rb") as opened:
        return opened.read(MAX_FILE_BYTES + 1)


def _row(contact: Contact) -> dict[str, Any]:
    row = {name: getattr(contact, name) for name in _COLUMNS}
    birthday = contact.birthday
    return row | {
        "groups": written_groups(contact.groups),
        "birthday": None if birthday is None else written_birthday(birthday),
    }


def _faults_of(checked: CheckedContacts) -> str:
    """Returns the faults of the first rows to fix, in one line."""
    said = [f"row {row.number}: {' '.join(PROBLEMS[kind] for _, kind in row.faults)}" for row in checked.bad[:_SHOWN]]
    more = len(checked.bad) - len(said)
    return "; ".join(said) + (f"; and {more:,} more rows" if more else "")
