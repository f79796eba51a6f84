"""`audit` and `requests`: the audit log and the request log."""

import json
from datetime import timedelta
from typing import Any

import click
from msgspec.structs import asdict

from largesse.audit.service import AuditEvent, list_events
from largesse.base import clock
from largesse.base.errors import OperatorError
from largesse.cli.running import HELP, Command, read_since, reading
from largesse.cli.tables import customer_option, format_options, listing
from largesse.customers.customer_store import find_customer
from largesse.request_log.model import DAYS, STATUS_CLASSES, LoggedRequest, RequestFilter
from largesse.request_log.store import list_since

_EVENTS_SHOWN = ("at", "customer", "who", "act", "subject", "address")
_EVENT_COLUMNS = (
    "id", "at", "customer", "environment", "actor", "actor_id", "actor_name", "address", "request_id", "act", "subject", "before",
    "after",
)  # fmt: skip
_REQUESTS_SHOWN = (
    "at", "customer", "environment", "method", "path", "status", "problem", "duration_ms", "request_id", "key", "address",
)  # fmt: skip
_STATUSES = {f"{one}xx": one for one in STATUS_CLASSES}


@click.command(cls=Command)
@customer_option("its events")
@click.option("--since", metavar="TIME", help=HELP)
@format_options
async def audit(customer: str | None, since: str | None, form: str | None) -> None:
    """Print the audit log, oldest first: who did what to what, and from where.

    --json and --csv also contain the values before and after.
    """
    start = None if since is None else read_since(since)
    async with reading() as connection:
        customer_id = None if customer is None else await find_customer(connection, customer)
        with listing(form, _EVENT_COLUMNS if form else _EVENTS_SHOWN, empty="Nothing was done.") as add:
            async for events in list_events(connection, customer_id=customer_id, since=start):
                add(_event_row(event, form) for event in events)


def _event_row(event: AuditEvent, form: str | None) -> dict[str, Any]:
    row = {column: getattr(event, column) for column in _EVENT_COLUMNS}
    row["who"] = f"{event.actor} {event.actor_name}"
    if form == "json":
        row |= {side: json.loads(row[side]) if row[side] else None for side in ("before", "after")}
    return row


@click.command(cls=Command)
@customer_option("its requests")
@click.option(
    "--since", metavar="TIME", help=f"{HELP} By default the last 24 hours; with --request-id all {DAYS} days."
)
@click.option("--status", metavar="CLASS", help=f"Only {', '.join(_STATUSES)}.")
@click.option("--request-id", metavar="ID", help="Only requests of this `X-Request-Id`.")
@format_options
async def requests(
    customer: str | None, since: str | None, status: str | None, request_id: str | None, form: str | None
) -> None:
    """Print the requests of API keys in the last 30 days, oldest first.

    Under load, the service leaves some out: largesse_requests_not_in_log_total counts them.
    """
    if status is not None and status not in _STATUSES:
        raise OperatorError(f"--status must be one of: {', '.join(_STATUSES)}")
    wanted = RequestFilter(status_class=_STATUSES[status] if status else None, request_id=request_id)
    start = read_since(since) if since is not None else clock.now() - timedelta(days=DAYS + 1 if request_id else 1)
    async with reading() as connection:
        customer_id = None if customer is None else await find_customer(connection, customer)
        columns = _REQUESTS_SHOWN if form is None else LoggedRequest.__struct_fields__
        with listing(form, columns, empty="There are no such requests in the log.") as add:
            async for part in list_since(connection, start, customer_id, wanted):
                add({**asdict(request), "duration_ms": round(request.duration_ms, 1)} for request in part)
