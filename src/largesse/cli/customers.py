"""`customers`: create, change and list customers."""

import json

import click
from msgspec.structs import asdict

from largesse.base.errors import OperatorError
from largesse.cli.running import Commands, operator_actor, read_name, reading
from largesse.cli.tables import format_options, show
from largesse.customers.customer_store import list_customers
from largesse.customers.customers import MOST_CUSTOMER_KEY, MOST_CUSTOMER_NAME, PLANS, change_customer, create_customer
from largesse.db.sharding import node_names
from largesse.ledger.payment_sources import SOURCES
from largesse.ledger.store import list_accounts, unspendable, warn_of_unspendable

_COLUMNS = ("id", "key", "name", "plan", "funding", "service_accounts", "api_keys", "created_at")


@click.group(cls=Commands)
def customers() -> None:
    """Create, change and list customers."""


_plan = click.Choice(PLANS)
_funding = click.Choice(tuple(SOURCES))


@customers.command("create")
@click.argument("name")
@click.option("--plan", type=_plan, required=True, help="The plan, which says what the customer may use.")
@click.option("--funding", type=_funding, required=True, help="How orders are paid: from a balance, or by invoice.")
@click.option("--key", help="What commands call it; derived from NAME by default.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
async def customers_create(name: str, plan: str, funding: str, key: str | None, as_json: bool) -> None:
    """Create a customer called NAME, and print its key. It has no people, API keys or funding accounts yet."""
    name = read_name(name, MOST_CUSTOMER_NAME)
    if key is not None and "/" in (key := read_name(key, MOST_CUSTOMER_KEY, argument="--key")):
        raise OperatorError("--key must not contain a slash")
    async with operator_actor() as actor:
        customer_id, key = await create_customer(actor, name, plan=plan, funding=funding, key=key)
    if as_json:
        click.echo(json.dumps({"id": customer_id, "key": key, "name": name, "plan": plan, "funding": funding}))
        return
    click.echo(
        f"{name} is {key} (id {customer_id}). Invite its first administrator: "
        f"largesse users invite EMAIL --customer {key} --role admin"
    )


@customers.command("set")
@click.argument("key")
@click.option("--name", help="What it is called.")
@click.option("--plan", type=_plan, help="What it may do.")
@click.option("--funding", type=_funding, help="How orders are paid: from a balance, or by invoice.")
async def customers_set(key: str, name: str | None, plan: str | None, funding: str | None) -> None:
    """Change name, plan or funding of the customer KEY. Options that you leave out change nothing."""
    if name is None and plan is None and funding is None:
        raise OperatorError("say what to change: --name, --plan or --funding")
    if name is not None:
        name = read_name(name, MOST_CUSTOMER_NAME, argument="--name")
    async with operator_actor(key) as actor:
        changed = await change_customer(actor, name=name, plan=plan, funding=funding)
    click.echo(f"{changed.key} is {changed.name}, {changed.plan}, {changed.funding}.")
    if funding is not None:
        await _warn_of_unspendable(changed.key, funding)


async def _warn_of_unspendable(key: str, funding: str) -> None:
    """Warns if an invoiced customer has money in its accounts, which it cannot spend."""
    async with reading() as connection:
        held = unspendable(await list_accounts(connection, [key]), funding)
    if held:
        remedy = f"`largesse customers set {key} --funding balance`"
        click.echo(f"Warning: {warn_of_unspendable(key, held, remedy)}", err=True)


@customers.command("list")
@click.option("--nodes", is_flag=True, help="Show which node of a cluster stores each.")
@format_options
async def customers_list(form: str | None, *, nodes: bool) -> None:
    """List the customers, with how many service accounts and API keys each has."""
    async with reading() as connection:
        listed = await list_customers(connection)
        node = await node_names(connection, [one.id for one in listed]) if nodes else {}
    rows = [asdict(one) | ({"node": node[one.id]} if nodes else {}) for one in listed]
    columns = (*_COLUMNS, "node") if nodes else _COLUMNS
    show(form, columns, rows, empty="There are no customers: make one, or load a seed file.")
