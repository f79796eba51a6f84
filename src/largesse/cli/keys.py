"""`keys`: API keys by name."""

from __future__ import annotations

import json

import click

from largesse.base.errors import StartError
from largesse.base.settings import ENVIRONMENTS
from largesse.base.text import unfit
from largesse.cli.running import Commands, acting_operator, command, current_database
from largesse.database import OPERATOR
from largesse.identity import KeyRecord, create_key, delete_key, find_customer, list_keys


@click.group(cls=Commands)
def keys() -> None:
    """Make, list and delete API keys."""


@keys.command("create")
@click.option("--customer", required=True, help="Key of the customer in the world file.")
@click.option("--service-account", required=True, help="Key of the service account it acts as.")
@click.option("--environment", required=True, type=click.Choice(ENVIRONMENTS))
@click.option("--name", required=True, help="What to call the key; unique for the customer.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@command
async def keys_create(
    customer: str, service_account: str, environment: str, name: str, as_json: bool
) -> None:
    """Make an API key and print its secret, this once."""
    if not 0 < len(name.strip()) <= 100:
        raise StartError("--name must have 1 to 100 characters")
    if found := unfit(name):
        raise StartError(f"--name must hold no {found}")
    async with acting_operator() as (database, acting), database.transaction(OPERATOR) as connection:
        key_id, secret = await create_key(
            connection,
            customer=customer,
            service_account=service_account,
            environment=environment,
            key=name.strip(),
        )
        await acting.record(
            connection,
            "key.created",
            f"API key {key_id}",
            customer_id=await find_customer(connection, customer),
            environment=environment,
            after={"name": name.strip(), "service_account": service_account},
        )
    if as_json:
        click.echo(json.dumps({"id": key_id, "name": name, "secret": secret}))
    else:
        click.echo(f"API key {key_id} ({name}): {secret}\nKeep it: it is not shown again.")


@keys.command("list")
@click.option("--customer", help="Only this customer's.")
@click.option("--deleted", is_flag=True, help="Those that were deleted, too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@command
async def keys_list(customer: str | None, deleted: bool, as_json: bool) -> None:
    """List API keys, without their secrets."""
    async with current_database() as database, database.connection(OPERATOR) as connection:
        records = await list_keys(connection, customer, with_deleted=deleted)
    if as_json:
        click.echo(json.dumps([_described(record, with_deleted=deleted) for record in records], indent=2))
        return
    for r in records:
        seen = f"last seen {r.last_seen_at:%Y-%m-%d %H:%M} UTC" if r.last_seen_at else "never seen"
        gone = f"  deleted {r.deleted_at:%Y-%m-%d %H:%M} UTC" if r.deleted_at else ""
        click.echo(f"{r.id:6}  {r.customer}/{r.key}  {r.environment}  as {r.service_account}  {seen}{gone}")


def _described(record: KeyRecord, *, with_deleted: bool) -> dict[str, object]:
    """A key in JSON; only a list that shows deleted keys says of each when it was."""
    described: dict[str, object] = {
        "id": record.id,
        "customer": record.customer,
        "name": record.key,
        "service_account": record.service_account,
        "environment": record.environment,
        "created_at": record.created_at.isoformat(),
        "last_seen_at": record.last_seen_at.isoformat() if record.last_seen_at else None,
    }
    if with_deleted:
        described["deleted_at"] = record.deleted_at.isoformat() if record.deleted_at else None
    return described


@keys.command("delete")
@click.argument("key_id", type=click.IntRange(1, 2_147_483_647))
@command
async def keys_delete(key_id: int) -> None:
    """Delete the API key KEY_ID (see `keys list`); it stops working at once."""
    async with acting_operator() as (database, acting), database.transaction(OPERATOR) as connection:
        deleted = await delete_key(connection, key_id)
        await acting.record(
            connection,
            "key.deleted",
            f"API key {key_id}",
            customer_id=deleted.customer_id,
            environment=deleted.environment,
            before={"name": deleted.key},
        )
    click.echo(f"API key {key_id} is deleted.")
