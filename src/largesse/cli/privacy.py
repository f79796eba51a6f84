"""`privacy`: export and erase what is stored about a recipient."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

import click
import msgspec

from largesse.base.settings import load_settings
from largesse.cli.running import Commands, acting_operator, progress, read_email
from largesse.customers.actor import Actor
from largesse.customers.customer_store import find_customer
from largesse.db.scope import OPERATOR
from largesse.encryption.vault import Vault
from largesse.installation import open_vault
from largesse.privacy.erasing import begin, carry_out
from largesse.privacy.service import export
from largesse.privacy.store import Receipt

_customer = click.option("--customer", metavar="KEY", help="Only with this customer; else with all.")


@click.group(cls=Commands)
def privacy() -> None:
    """Export or erase what is stored about a recipient."""


@privacy.command("export")
@click.argument("email")
@_customer
async def privacy_export(email: str, customer: str | None) -> None:
    """Print what is stored about the recipient EMAIL, in JSON.

    Everything except codes, PINs and vouchers: orders, their status, mail, parcels with addresses, contacts. It reads all orders, which takes a
    while if there are many.
    """
    address = read_email(email)
    async with _operator(customer) as (actor, vault, customer_id):
        held = await export(actor, vault, address, customer_id)
    click.echo(json.dumps(held, indent=2, ensure_ascii=False, default=_plain))


@privacy.command("erase")
@click.argument("email")
@_customer
@click.option("--json", "as_json", is_flag=True, help="Print the receipt as JSON.")
async def privacy_erase(email: str, customer: str | None, as_json: bool) -> None:
    """Erase the recipient EMAIL, for good, and print a receipt.

    Removes address and name from orders, mail, the captured mailbox, parcels and texts, and deletes contacts. Orders, money and counts stay. Mail that is
    not sent yet is cancelled, and a claimed gift whose parcel is not shipped expires. It cannot find names in messages, and does not
    reach backups and logs of mail servers. If it is interrupted, workers carry it on; repeat it to wait for its receipt.
    """
    address = read_email(email)
    async with _operator(customer) as (actor, vault, customer_id):
        job_id = await begin(actor, vault, address, customer_id)
        with progress("orders erased") as show:
            receipt = await carry_out(actor, vault, job_id, show)
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(receipt), indent=2))
    else:
        click.echo(_said(receipt))


@asynccontextmanager
async def _operator(customer: str | None) -> AsyncIterator[tuple[Actor, Vault, int | None]]:
    """Yields the command as an actor, the vault, and the customer's id or None. Raises OperatorError for an unknown customer."""
    async with acting_operator() as (database, actor):
        vault = await open_vault(database, load_settings())
        async with database.connection(OPERATOR) as connection:
            customer_id = None if customer is None else await find_customer(connection, customer)
        yield actor, vault, customer_id


def _said(receipt: Receipt) -> str:
    return (
        f"Erasure {receipt.number} of {receipt.at:%Y-%m-%d %H:%M:%S} UTC. Orders: {receipt.orders:,}. Codes: {receipt.lines:,}. "
        f"Messages: {receipt.messages:,}, of which not sent any more: {receipt.cancelled:,}. Captured copies: {receipt.captured:,}. "
        f"Addresses of parcels: {receipt.parcels:,}. Texts: {receipt.texts:,}. Drafts: {receipt.drafts:,}. "
        f"Contacts: {receipt.contacts:,}. Lists of campaigns: {receipt.campaigns:,}. Notes of staff: {receipt.customer_notes:,}."
    )


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
