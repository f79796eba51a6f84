"""`privacy`: what is held about a recipient, and erasing it."""

from __future__ import annotations

import json
from datetime import datetime

import click
import msgspec

from largesse.base.email import EmailError, normalise_email
from largesse.base.errors import OperatorError
from largesse.base.settings import load_settings
from largesse.cli.running import Commands, acting_operator, command
from largesse.customers.customer_store import find_customer
from largesse.db.scope import OPERATOR
from largesse.installation import open_vault
from largesse.privacy.erasing import Receipt, erase
from largesse.privacy.exporting import export
from largesse.privacy.lookup import find

_customer = click.option("--customer", metavar="KEY", help="Only with this customer; else with all.")


@click.group(cls=Commands)
def privacy() -> None:
    """Tell or erase what is held about a recipient."""


@privacy.command("export")
@click.argument("email")
@_customer
@command
async def privacy_export(email: str, customer: str | None) -> None:
    """Print what is held about the recipient EMAIL, in JSON.

    Everything but codes, PINs and vouchers: orders sent to it, how they are doing, mail, parcels with their addresses. It reads
    all orders, which takes a while where there are many.
    """
    address = _read(email)
    async with acting_operator() as (database, acting):
        vault = await open_vault(database, load_settings())
        async with database.transaction(OPERATOR) as connection:
            customer_id = await find_customer(connection, customer) if customer else None
            found = await find(connection, vault, address, customer_id)
            told = {"orders": len(found.lines)}  # whose they are the log must not say
            await acting.record(connection, "privacy.exported", "a recipient's data", after=told)
            held = await export(connection, vault, address, found)
    if not found and not held["people"]:
        raise OperatorError("nothing is held about that address")
    click.echo(json.dumps(held, indent=2, ensure_ascii=False, default=_plain))


@privacy.command("erase")
@click.argument("email")
@_customer
@click.option("--json", "as_json", is_flag=True, help="Print the receipt as JSON.")
@command
async def privacy_erase(email: str, customer: str | None, as_json: bool) -> None:
    """Erase the recipient EMAIL, for good, and print a receipt.

    Address and name go from orders, mail, the captured mailbox, parcels and texts. Orders, money and counts stay as they are. Mail that
    has not left does not leave any more, and a parcel that is not shipped cannot be. Names in messages cannot be found. Backups and
    logs of mail servers are not ours to erase.
    """
    address = _read(email)
    async with acting_operator() as (database, acting):
        vault = await open_vault(database, load_settings())
        async with database.connection(OPERATOR) as connection:
            customer_id = await find_customer(connection, customer) if customer else None
            found = await find(connection, vault, address, customer_id)
        if not found:
            raise OperatorError("nothing is held about that address as a recipient's")
        receipt = await erase(database, acting.chains.entries, address, found, customer_id)
        async with database.transaction(OPERATOR) as connection:
            told = {"orders": receipt.orders, "lines": receipt.lines}
            await acting.record(connection, "privacy.erased", f"erasure {receipt.number}", after=told)
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(receipt), indent=2))
    else:
        click.echo(_said(receipt))


def _read(email: str) -> str:
    try:
        return normalise_email(email.strip())
    except EmailError as error:
        raise OperatorError(f"EMAIL is no e-mail address: {str(error).removesuffix('.')}") from None


def _said(receipt: Receipt) -> str:
    return (
        f"Erasure {receipt.number} of {receipt.at:%Y-%m-%d %H:%M:%S} UTC. Orders: {receipt.orders:,}. Codes: {receipt.lines:,}. "
        f"Messages: {receipt.messages:,}, of which not sent any more: {receipt.cancelled:,}. Captured copies: {receipt.captured:,}. "
        f"Addresses of parcels: {receipt.parcels:,}. Texts: {receipt.texts:,}. Drafts: {receipt.drafts:,}."
    )


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
