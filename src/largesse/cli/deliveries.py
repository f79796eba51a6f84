"""`webhooks`: list subscriptions, and replace their secrets. `mail`: send the mail to recipients again."""

import json
from datetime import UTC
from uuid import UUID

import click

from largesse.base.settings import load_settings
from largesse.cli.running import HELP, Commands, acting_operator, operator_actor, read_printable, read_since, reading
from largesse.cli.tables import customer_option, format_options, show
from largesse.db.scope import OPERATOR
from largesse.installation import open_vault
from largesse.mail.requeue import STATES, RequeueFilter, count_given_up, requeue
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

    For 24 hours deliveries carry signatures by the previous secrets too, at most three.
    """
    async with acting_operator() as (database, operator):
        vault = await open_vault(database, load_settings())
        customer_id, environment = await database.read(OPERATOR, find_subscription, subscription)
        actor = operator.on_behalf_of(customer_id, environment)
        rotated = await rotate_secret(actor, vault, subscription)
    until = rotated.previous_until.astimezone(UTC)
    if as_json:
        said = {"id": str(rotated.id), "secret": rotated.secret, "previous_until": until.isoformat()}
        click.echo(json.dumps(said))
    else:
        click.echo(f"New secret: {rotated.secret}\nKeep it: it is not shown again.")
        click.echo(f"Deliveries are signed with the previous secret too until {until:%Y-%m-%d %H:%M} UTC.")


@click.group(cls=Commands)
def mail() -> None:
    """Send mail again."""


@mail.command("requeue")
@click.option("--since", required=True, metavar="TIME", help=HELP)
@click.option(
    "--reason",
    metavar="WORDS",
    help="Only mail with these words in the mail server's answer, whatever their case, such as '530'.",
)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES),
    help="Only mail in this state; repeat it for several. `pending` is what waits for its next try.",
)
@click.option("--dry-run", is_flag=True, help="Only say how many messages that would be.")
async def mail_requeue(since: str, reason: str | None, states: tuple[str, ...], dry_run: bool) -> None:
    """Send again the mail that bounced, was given up after three days, is held, or waits for its next try.

    Each message goes out as before, without codes cancelled since, and has three days to be taken. Skips mail
    that was sent again meanwhile. Repeating the command sends nothing twice.
    """
    start = read_since(since)
    words = None if reason is None else read_printable(reason, 500, argument="--reason")
    wanted = RequeueFilter(start, words, states=states or STATES)
    async with operator_actor() as actor:
        if dry_run:
            click.echo(f"Messages that would be sent again: {await count_given_up(actor, wanted):,}")
        else:
            click.echo(f"Messages to be sent again: {await requeue(actor, wanted):,}")
