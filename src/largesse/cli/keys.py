"""`keys`: API keys by name, and what each is for."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable, Sequence
from typing import Any

import click

from largesse.base.errors import StartError
from largesse.base.settings import ENVIRONMENTS, Network
from largesse.base.text import unfit
from largesse.cli.running import Commands, acting_operator, command, current_database
from largesse.database import OPERATOR
from largesse.identity import (
    SCOPES,
    KeyRecord,
    create_key,
    delete_key,
    find_customer,
    find_key,
    list_keys,
    narrow_key,
)

_MAX_NETWORKS = 100


def narrowing_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --scope and --network; the command gets `scopes` and `networks`, empty where none was given."""
    scope = click.option(
        "--scope", "scopes", multiple=True, type=click.Choice(SCOPES), help="What it is for; repeatable."
    )
    network = click.option(
        "--network", "networks", multiple=True, metavar="CIDR", help="Where it may be used from; repeatable."
    )
    return scope(network(function))


def _read_scopes(scopes: Sequence[str]) -> list[str] | None:
    return [scope for scope in SCOPES if scope in scopes] or None


def _read_networks(networks: Sequence[str]) -> list[Network] | None:
    if len(networks) > _MAX_NETWORKS:
        raise StartError(f"--network may be given {_MAX_NETWORKS} times at most")
    try:
        return [ipaddress.ip_network(network.strip()) for network in networks] or None
    except ValueError as error:
        raise StartError(f"--network: {error}") from None


def _scopes_said(key: KeyRecord) -> str:
    return "everything" if key.scopes is None else ", ".join(key.scopes)


def _networks_said(key: KeyRecord) -> str:
    return "everywhere" if key.networks is None else ", ".join(map(str, key.networks))


@click.group(cls=Commands)
def keys() -> None:
    """Make, narrow, list and delete API keys."""


@keys.command("create")
@click.option("--customer", required=True, help="Key of the customer in the world file.")
@click.option("--service-account", required=True, help="Key of the service account it acts as.")
@click.option("--environment", required=True, type=click.Choice(ENVIRONMENTS))
@click.option("--name", required=True, help="What to call the key; unique for the customer.")
@narrowing_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@command
async def keys_create(
    customer: str,
    service_account: str,
    environment: str,
    name: str,
    scopes: tuple[str, ...],
    networks: tuple[str, ...],
    as_json: bool,
) -> None:
    """Make an API key and print its secret, this once.

    It may be used for everything and from everywhere, unless --scope or --network narrow it.
    """
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
            scopes=_read_scopes(scopes),
            networks=_read_networks(networks),
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


@keys.command("set")
@click.argument("key_id", type=click.IntRange(1, 2_147_483_647))
@narrowing_options
@click.option("--all-scopes", is_flag=True, help="For everything.")
@click.option("--any-network", is_flag=True, help="From everywhere.")
@command
async def keys_set(
    key_id: int, scopes: tuple[str, ...], networks: tuple[str, ...], all_scopes: bool, any_network: bool
) -> None:
    """Say what the API key KEY_ID (see `keys list`) is for, and from where it may be used, from the next request on.

    What no option speaks of stays as it is.
    """
    if (all_scopes and scopes) or (any_network and networks):
        raise StartError("--all-scopes goes without --scope, and --any-network without --network")
    if not (all_scopes or scopes or any_network or networks):
        raise StartError("say what is to change: --scope, --all-scopes, --network or --any-network")
    wanted_scopes, wanted_networks = _read_scopes(scopes), _read_networks(networks)
    async with acting_operator() as (database, acting), database.transaction(OPERATOR) as connection:
        before = await find_key(connection, key_id)
        narrowed = await narrow_key(
            connection,
            key_id,
            scopes=wanted_scopes if scopes or all_scopes else before.scopes,
            networks=wanted_networks if networks or any_network else before.networks,
        )
        key = await find_key(connection, key_id)
        await acting.record(
            connection,
            "key.narrowed",
            f"API key {key_id}",
            customer_id=narrowed.customer_id,
            environment=narrowed.environment,
            before={"for": _scopes_said(before), "from": _networks_said(before)},
            after={"for": _scopes_said(key), "from": _networks_said(key)},
        )
    click.echo(f"API key {key_id} ({key.key}) is for {_scopes_said(key)}, from {_networks_said(key)}.")


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
        narrowed = "".join(
            (
                f"  for {_scopes_said(r)}" if r.scopes is not None else "",
                f"  from {_networks_said(r)}" if r.networks is not None else "",
            )
        )
        click.echo(
            f"{r.id:6}  {r.customer}/{r.key}  {r.environment}  as {r.service_account}{narrowed}  {seen}{gone}"
        )


def _described(record: KeyRecord, *, with_deleted: bool) -> dict[str, object]:
    """A key in JSON; only a list that shows deleted keys says of each when it was."""
    described: dict[str, object] = {
        "id": record.id,
        "customer": record.customer,
        "name": record.key,
        "service_account": record.service_account,
        "environment": record.environment,
        "scopes": list(record.scopes or SCOPES),
        "networks": None if record.networks is None else [str(network) for network in record.networks],
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
