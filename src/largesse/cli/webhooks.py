"""`webhooks`: list subscriptions, and replace their secrets."""

import json
from datetime import UTC
from uuid import UUID

import click

from largesse.base.settings import load_settings
from largesse.cli.running import Commands, acting_operator, reading
from largesse.cli.tables import customer_option, format_options, show
from largesse.db.scope import OPERATOR
from largesse.installation import open_vault
from largesse.webhooks.service import rotate_secret
from largesse.webhooks.store import find_subscription, list_every_subscription

_COLUMNS = ("id", "customer", "environment", "events", "target_url", "created_at", "previous_until")


@click.group("webhooks", cls=Commands)
def webhooks() -> None:
    """List webhook subscriptions, and replace their secrets."""


@webhooks.command("list")
@customer_option("this one's subscriptions")
@format_options
async def webhooks_list(customer: str | None, form: str | None) -> None:
    """List webhook subscriptions, without their secrets."""
    async with reading(customer) as connection:
        found = await list_every_subscription(connection, customer)
    rows = ({**row, "id": str(row["id"]), "events": ", ".join(row["events"] or [row["event"]])} for row in found)
    show(form, _COLUMNS, rows, empty="There are no webhook subscriptions.")


@webhooks.command("rotate-secret")
@click.argument("subscription", metavar="ID", type=click.UUID)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
async def webhooks_rotate_secret(subscription: UUID, as_json: bool) -> None:
    """Replace the secret of the webhook subscription ID (see `webhooks list`) and print the new one once.

    For 24 hours deliveries carry signatures by both secrets. A further rotation ends the oldest secret at once.
    """
    async with acting_operator() as (database, operator):
        vault = await open_vault(database, load_settings())
        async with database.connection(OPERATOR) as connection:
            customer_id, environment = await find_subscription(connection, subscription)
        actor = operator.on_behalf_of(customer_id, environment)
        rotated = await rotate_secret(actor, vault, subscription)
    until = rotated.previous_until.astimezone(UTC)
    if as_json:
        said = {"id": str(rotated.id), "secret": rotated.secret, "previous_until": until.isoformat()}
        click.echo(json.dumps(said))
    else:
        click.echo(f"New secret: {rotated.secret}\nKeep it: it is not shown again.")
        click.echo(f"Deliveries are signed with the previous secret too until {until:%Y-%m-%d %H:%M} UTC.")
