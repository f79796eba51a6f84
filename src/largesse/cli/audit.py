"""`audit`: the audit log."""

from __future__ import annotations

import json
from typing import Any

import click

from largesse.audit.service import AuditEvent, list_events
from largesse.cli import running
from largesse.cli.running import command, current_database
from largesse.cli.tables import customer_option, format_options, listing
from largesse.customers.customer_store import find_customer
from largesse.db.scope import OPERATOR

_SHOWN = ("at", "customer", "who", "act", "subject", "address")
_COLUMNS = (
    "id",
    "at",
    "customer",
    "environment",
    "actor",
    "actor_id",
    "actor_name",
    "address",
    "request_id",
    "act",
    "subject",
    "before",
    "after",
)


@click.command()
@customer_option("its events")
@click.option("--since", metavar="TIME", help=running.HELP)
@format_options
@command
async def audit(customer: str | None, since: str | None, form: str | None) -> None:
    """Print the audit log, oldest first: who did what to what, and from where.

    What was before and after is in --json and --csv.
    """
    start = None if since is None else running.read_since(since)
    async with current_database() as database, database.connection(OPERATOR) as connection:
        customer_id = None if customer is None else await find_customer(connection, customer)
        with listing(form, _COLUMNS if form else _SHOWN, empty="Nothing was done.") as add:
            async for events in list_events(connection, customer_id=customer_id, since=start):
                add(_row(event, form) for event in events)


def _row(event: AuditEvent, form: str | None) -> dict[str, Any]:
    row = {column: getattr(event, column) for column in _COLUMNS}
    row["who"] = f"{event.actor} {event.actor_name}"
    if form == "json":
        row |= {side: json.loads(row[side]) if row[side] else None for side in ("before", "after")}
    return row
