"""`customers`: making and changing them, and who orders here."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from largesse.base.errors import OperatorError
from largesse.cli.running import Commands, acting_operator, command, current_database, read_name
from largesse.cli.tables import format_options, show
from largesse.customers.customers import (
    MOST_CUSTOMER_KEY,
    MOST_CUSTOMER_NAME,
    PLANS,
    CustomerRecord,
    add_customer,
    change_customer,
    list_customers,
)
from largesse.db.scope import OPERATOR
from largesse.db.sharding import shard_groups_of
from largesse.ledger.payment_sources import SOURCES

_COLUMNS = ("id", "key", "name", "plan", "funding", "service_accounts", "api_keys", "created_at")


@click.group(cls=Commands)
def customers() -> None:
    """Make and change customers, and see who orders here."""


_plan = click.Choice(PLANS)
_funding = click.Choice(tuple(SOURCES))


@customers.command("create")
@click.argument("name")
@click.option("--plan", type=_plan, required=True, help="What it may do.")
@click.option("--funding", type=_funding, required=True, help="From a balance, or by invoice.")
@click.option("--key", help="What commands call it; by default made of NAME.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@command
async def customers_create(name: str, plan: str, funding: str, key: str | None, as_json: bool) -> None:
    """Make a customer called NAME, and print its key. It has no people, keys and funding accounts yet."""
    name = read_name(name, MOST_CUSTOMER_NAME)
    if key is not None and "/" in (key := read_name(key, MOST_CUSTOMER_KEY, argument="--key")):
        raise OperatorError("--key must not contain a slash")
    async with acting_operator() as (database, acting), database.transaction(OPERATOR) as connection:
        customer_id, key = await add_customer(connection, name, plan=plan, funding=funding, key=key)
        made = {"key": key, "name": name, "plan": plan, "funding": funding}
        await acting.record(
            connection, "customer.created", f"customer {customer_id}", customer_id=customer_id, after=made
        )
    if as_json:
        click.echo(json.dumps({"id": customer_id, **made}))
        return
    click.echo(
        f"{name} is {key} (id {customer_id}). Invite its first administrator: "
        f"largesse users invite EMAIL --customer {key} --role admin"
    )


@customers.command("set")
@click.argument("key")
@click.option("--name", help="What it is called.")
@click.option("--plan", type=_plan, help="What it may do.")
@click.option("--funding", type=_funding, help="From a balance, or by invoice.")
@command
async def customers_set(key: str, name: str | None, plan: str | None, funding: str | None) -> None:
    """Change name, plan or funding of the customer KEY; what no option speaks of stays as it is."""
    if name is None and plan is None and funding is None:
        raise OperatorError("say what is to change: --name, --plan or --funding")
    if name is not None:
        name = read_name(name, MOST_CUSTOMER_NAME, argument="--name")
    async with acting_operator() as (database, acting), database.transaction(OPERATOR) as connection:
        before, after = await change_customer(connection, key, name=name, plan=plan, funding=funding)
        if before != after:
            await acting.record(
                connection,
                "customer.changed",
                f"customer {before.id}",
                customer_id=before.id,
                before=_terms(before),
                after=_terms(after),
            )
    click.echo(f"{after.key} is {after.name}, {after.plan}, {after.funding}.")


def _terms(record: CustomerRecord) -> dict[str, object]:
    return {"name": record.name, "plan": record.plan, "funding": record.funding}


@customers.command("list")
@click.option("--nodes", is_flag=True, help="Tell which node of a cluster each lives on.")
@format_options
@command
async def customers_list(form: str | None, *, nodes: bool) -> None:
    """List the customers, with how many service accounts and API keys each has."""
    async with current_database() as database, database.connection(OPERATOR) as connection:
        records = await list_customers(connection)
        node = await shard_groups_of(connection, [record.id for record in records]) if nodes else {}
    rows = [asdict(record) | ({"node": node[record.id]} if nodes else {}) for record in records]
    columns = (*_COLUMNS, "node") if nodes else _COLUMNS
    show(form, columns, rows, empty="There are no customers: make one, or load a world file.")
