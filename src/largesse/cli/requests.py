"""`requests`: the request log."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click
import msgspec

from largesse.base import clock
from largesse.base.errors import OperatorError
from largesse.cli import running
from largesse.cli.running import command, current_database
from largesse.cli.tables import customer_option, format_options, listing
from largesse.customers.customer_store import find_customer
from largesse.db.scope import OPERATOR
from largesse.request_log.model import DAYS, STATUS_CLASSES, LoggedRequest, RequestFilter
from largesse.request_log.store import list_since

_SHOWN = (
    "at",
    "customer",
    "environment",
    "method",
    "path",
    "status",
    "problem",
    "duration_ms",
    "request_id",
    "key",
    "address",
)
_STATUSES = {f"{one}xx": one for one in STATUS_CLASSES}


@click.command()
@customer_option("its requests")
@click.option(
    "--since", metavar="TIME", help=f"{running.HELP} By default the last 24 hours; with --request-id all {DAYS} days."
)
@click.option("--status", metavar="CLASS", help=f"Only {', '.join(_STATUSES)}.")
@click.option("--request-id", metavar="ID", help="Only requests of this `X-Request-Id`.")
@format_options
@command
async def requests(
    customer: str | None, since: str | None, status: str | None, request_id: str | None, form: str | None
) -> None:
    """Print the requests of API keys in the last 30 days, oldest first.

    Under load some are left out: largesse_requests_not_in_log_total counts them.
    """
    if status is not None and status not in _STATUSES:
        raise OperatorError(f"--status must be one of: {', '.join(_STATUSES)}")
    wanted = RequestFilter(status_class=_STATUSES[status] if status else None, request_id=request_id)
    if since is not None:
        start = running.read_since(since)
    else:
        start = clock.now() - timedelta(days=DAYS + 1 if request_id else 1)
    async with current_database() as database, database.connection(OPERATOR) as connection:
        customer_id = None if customer is None else await find_customer(connection, customer)
        columns = _SHOWN if form is None else [field.name for field in msgspec.structs.fields(LoggedRequest)]
        with listing(form, columns, empty="There are no such requests in the log.") as add:
            async for part in list_since(connection, start, customer_id, wanted):
                add(map(_row, part))


def _row(request: LoggedRequest) -> dict[str, Any]:
    return {**msgspec.structs.asdict(request), "duration_ms": round(request.duration_ms, 1)}
