"""`keys`: API keys by name, and what each is for."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import click

from largesse.base.errors import OperatorError
from largesse.base.settings import ENVIRONMENTS, Network
from largesse.cli.running import Commands, acting_operator, command, current_database, read_name
from largesse.customers.api_keys import (
    MOST_NAME,
    KeyRecord,
    add_second_key,
    create_key,
    delete_key,
    find_key,
    list_keys,
    narrow_key,
)
from largesse.customers.customers import find_customer
from largesse.customers.restrictions import (
    MOST_NETWORKS,
    SCOPES,
    networks_said,
    parse_network,
    scopes_kept,
    scopes_said,
)
from largesse.db.scope import OPERATOR


def narrowing_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --scope and --network; the command gets `scopes` and `networks`, empty where none was given."""
    scope = click.option(
        "--scope", "scopes", multiple=True, type=click.Choice(SCOPES), help="What it is for; repeatable."
    )
    network = click.option(
        "--network", "networks", multiple=True, metavar="CIDR", help="Where it may be used from; repeatable."
    )
    return scope(network(function))


def _read_networks(networks: Sequence[str]) -> list[Network] | None:
    if len(networks) > MOST_NETWORKS:
        raise OperatorError(f"--network may be given {MOST_NETWORKS} times at most")
    try:
        return [parse_network(network) for network in networks] or None
    except ValueError as error:
        raise OperatorError(f"--network: {error}") from None


@click.group(cls=Commands)
def keys() -> None:
    """Make, narrow, replace, list and delete API keys."""


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
    name = read_name(name, MOST_NAME, argument="--name")
    wanted_scopes, wanted_networks = scopes_kept(scopes), _read_networks(networks)
    async with acting_operator() as (database, acting), database.transaction(OPERATOR) as connection:
        key_id, secret = await create_key(
            connection,
            customer=customer,
            service_account=service_account,
            environment=environment,
            key=name,
            scopes=wanted_scopes,
            networks=wanted_networks,
        )
        await acting.record(
            connection,
            "key.created",
            f"API key {key_id}",
            customer_id=await find_customer(connection, customer),
            environment=environment,
            after={
                "name": name,
                "service_account": service_account,
                "for": scopes_said(wanted_scopes),
                "from": networks_said(wanted_networks),
            },
        )
    _tell_secret(key_id, name, secret, as_json=as_json)


@keys.command("replace")
@click.argument("key_id", type=click.IntRange(1, 2_147_483_647))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@command
async def keys_replace(key_id: int, as_json: bool) -> None:
    """Make a second key beside the API key KEY_ID (see `keys list`) and print its secret, this once.

    It acts as the same service account, for the same, from the same networks. Both work: have the program use the second one, see in
    `keys list` that the first is no longer used, then delete that with `keys delete`.
    """
    async with acting_operator() as (database, acting), database.transaction(OPERATOR) as connection:
        made = await add_second_key(connection, key_id)
        await acting.record(
            connection,
            "key.created",
            f"API key {made.id}",
            customer_id=made.first.customer_id,
            environment=made.first.environment,
            after={"name": made.key, "replaces": made.first.key},
        )
    _tell_secret(made.id, made.key, made.secret, as_json=as_json)


def _tell_secret(key_id: int, name: str, secret: str, *, as_json: bool) -> None:
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
        raise OperatorError("--all-scopes goes without --scope, and --any-network without --network")
    if not (all_scopes or scopes or any_network or networks):
        raise OperatorError("say what is to change: --scope, --all-scopes, --network or --any-network")
    wanted_scopes, wanted_networks = scopes_kept(scopes), _read_networks(networks)
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
            before={"for": scopes_said(before.scopes), "from": networks_said(before.networks)},
            after={"for": scopes_said(key.scopes), "from": networks_said(key.networks)},
        )
    said = f"for {scopes_said(key.scopes)}, from {networks_said(key.networks)}"
    click.echo(f"API key {key_id} ({key.key}) is {said}.")


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
        seen += f" from {r.last_seen_address}" if r.last_seen_address else ""
        seen += f"  replaces {r.replaces}" if r.replaces else ""
        gone = f"  deleted {r.deleted_at:%Y-%m-%d %H:%M} UTC" if r.deleted_at else ""
        narrowed = "".join(
            (
                f"  for {scopes_said(r.scopes)}" if r.scopes is not None else "",
                f"  from {networks_said(r.networks)}" if r.networks is not None else "",
            )
        )
        click.echo(f"{r.id:6}  {r.customer}/{r.key}  {r.environment}  as {r.service_account}{narrowed}  {seen}{gone}")


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
        "made_by": record.made_by,
        "replaces": record.replaces,
        "last_seen_at": record.last_seen_at.isoformat() if record.last_seen_at else None,
        "last_seen_address": record.last_seen_address,
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
