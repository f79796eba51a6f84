"""`keys`: create, restrict, replace, list and delete API keys."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import click

from largesse.base.errors import OperatorError
from largesse.base.settings import ENVIRONMENTS, Network, parse_network
from largesse.cli.running import ID, Commands, operator_actor, read_name, reading
from largesse.customers.api_keys import MOST_NAME, NewKey, create_key, delete_key, narrow_key, replace_key
from largesse.customers.key_store import ApiKey, list_keys
from largesse.customers.restrictions import MOST_NETWORKS, SCOPES, networks_text, scopes_text, stored_scopes
from largesse.customers.service_accounts import named_service_account


def narrowing_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --scope and --network. The command gets `scopes` and `networks`, which are empty if none was given."""
    scope = click.option(
        "--scope", "scopes", multiple=True, type=click.Choice(SCOPES), help="What it may be used for; repeatable."
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
    """Create, narrow, replace, list and delete API keys."""


@keys.command("create")
@click.option("--customer", required=True, help="Key of the customer in the seed file.")
@click.option("--service-account", required=True, help="Key of the service account it acts as.")
@click.option("--environment", required=True, type=click.Choice(ENVIRONMENTS))
@click.option("--name", required=True, help="What to call the key; unique for the customer.")
@narrowing_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
async def keys_create(
    customer: str,
    service_account: str,
    environment: str,
    name: str,
    scopes: tuple[str, ...],
    networks: tuple[str, ...],
    as_json: bool,
) -> None:
    """Create an API key and print its secret, this once.

    It has all scopes and works from all networks, unless --scope or --network restrict it.
    """
    name = read_name(name, MOST_NAME, argument="--name")
    parsed_networks = _read_networks(networks)
    async with operator_actor(customer, environment) as actor:
        account = await named_service_account(actor, customer, service_account)
        made = await create_key(actor, account, name, scopes=stored_scopes(scopes), networks=parsed_networks)
    _print_secret(made, as_json=as_json)
    if not account.active:
        click.echo(f"{account.name} is switched off: until it is switched on, its keys get 403.", err=True)


@keys.command("replace")
@click.argument("key_id", type=ID)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
async def keys_replace(key_id: int, as_json: bool) -> None:
    """Create a second key beside the API key KEY_ID (see `keys list`) and print its secret, this once.

    It has the same service account, scopes and networks. Both keys work: have the program use the second one, check in `keys list`
    that the first is no longer used, then delete the first with `keys delete`.
    """
    async with operator_actor() as actor:
        made = await replace_key(actor, key_id)
    _print_secret(made, as_json=as_json)


def _print_secret(made: NewKey, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"id": made.id, "name": made.name, "secret": made.secret}))
    else:
        click.echo(f"API key {made.id} ({made.name}): {made.secret}\nKeep it: it is not shown again.")


@keys.command("set")
@click.argument("key_id", type=ID)
@narrowing_options
@click.option("--all-scopes", is_flag=True, help="For everything.")
@click.option("--any-network", is_flag=True, help="From everywhere.")
async def keys_set(
    key_id: int, scopes: tuple[str, ...], networks: tuple[str, ...], all_scopes: bool, any_network: bool
) -> None:
    """Set what the API key KEY_ID (see `keys list`) may be used for, and from where, from its next request on.

    Options that you leave out change nothing.
    """
    if (all_scopes and scopes) or (any_network and networks):
        raise OperatorError("--all-scopes cannot be combined with --scope, nor --any-network with --network")
    if not (all_scopes or scopes or any_network or networks):
        raise OperatorError("say what to change: --scope, --all-scopes, --network or --any-network")
    parsed_networks = _read_networks(networks)
    async with operator_actor() as actor:
        key = await narrow_key(
            actor,
            key_id,
            scopes=stored_scopes(scopes) if scopes or all_scopes else ...,
            networks=parsed_networks if networks or any_network else ...,
        )
    click.echo(f"API key {key_id} ({key.key}) is for {scopes_text(key.scopes)}, from {networks_text(key.networks)}.")


@keys.command("list")
@click.option("--customer", help="Only this customer's.")
@click.option("--deleted", is_flag=True, help="Include deleted keys.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
async def keys_list(customer: str | None, deleted: bool, as_json: bool) -> None:
    """List API keys, without their secrets."""
    async with reading(customer) as connection:
        listed = await list_keys(connection, customer, with_deleted=deleted)
    if as_json:
        click.echo(json.dumps([_described(key, with_deleted=deleted) for key in listed], indent=2))
        return
    if not listed:
        click.echo("There are no API keys.")
    for r in listed:
        seen = f"last seen {r.last_seen_at:%Y-%m-%d %H:%M} UTC" if r.last_seen_at else "never seen"
        seen += f" from {r.last_seen_address}" if r.last_seen_address else ""
        seen += f"  replaces {r.replaces}" if r.replaces else ""
        gone = f"  deleted {r.deleted_at:%Y-%m-%d %H:%M} UTC" if r.deleted_at else ""
        narrowed = "".join(
            (
                f"  for {scopes_text(r.scopes)}" if r.scopes is not None else "",
                f"  from {networks_text(r.networks)}" if r.networks is not None else "",
            )
        )
        click.echo(f"{r.id:6}  {r.customer}/{r.key}  {r.environment}  as {r.service_account}{narrowed}  {seen}{gone}")


def _described(key: ApiKey, *, with_deleted: bool) -> dict[str, object]:
    """Returns a key for JSON, with `deleted_at` only if the list shows deleted keys."""
    described: dict[str, object] = {
        "id": key.id,
        "customer": key.customer,
        "name": key.key,
        "service_account": key.service_account,
        "environment": key.environment,
        "scopes": list(key.scopes or SCOPES),
        "networks": None if key.networks is None else [str(network) for network in key.networks],
        "created_at": key.created_at.isoformat(),
        "made_by": key.made_by,
        "replaces": key.replaces,
        "last_seen_at": key.last_seen_at.isoformat() if key.last_seen_at else None,
        "last_seen_address": key.last_seen_address,
    }
    if with_deleted:
        described["deleted_at"] = key.deleted_at.isoformat() if key.deleted_at else None
    return described


@keys.command("delete")
@click.argument("key_id", type=ID)
async def keys_delete(key_id: int) -> None:
    """Delete the API key KEY_ID (see `keys list`). It stops working at once."""
    async with operator_actor() as actor:
        await delete_key(actor, key_id)
    click.echo(f"API key {key_id} is deleted.")
