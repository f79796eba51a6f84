"""The page of the audit log: who did what to what, newest first."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

from starlette.responses import Response

from largesse.audit.model import ACTS
from largesse.audit.service import AuditEvent, newest_events
from largesse.base.i18n.templates import text
from largesse.web.console.context import RequestContext

_PAGE = 50
_OF_FILE_AT_ONCE = 1_000
_COLUMNS = (
    "id", "at", "environment", "actor", "actor_name", "address", "request_id", "act", "subject", "before", "after"
)  # fmt: skip
ACTORS = {"person": text("Person"), "key": text("API key"), "command": text("Operator"), "worker": text("By itself")}


async def show(context: RequestContext) -> Response:
    """A page of the log, by what was done and by whom."""
    act, who = _filter(context)
    before = context.parameters.number("before")
    async with context.database.connection(context.person.scope) as connection:
        found = await newest_events(
            connection, context.person.customer_id, act=act, who=who, before=before, limit=_PAGE + 1
        )
    return context.page(
        "log.html",
        events=[(event, _members(event.before), _members(event.after)) for event in found[:_PAGE]],
        actors=ACTORS,
        acts=sorted(ACTS),
        act=act,
        who=who,
        older=context.here(before=found[_PAGE - 1].id) if len(found) > _PAGE else None,
        newest=context.here(before=None) if before is not None else None,
        is_filtered=bool(act or who or before is not None),
        csv=context.here(before=None).replace("/app/audit", "/app/audit.csv", 1),
    )


async def download(context: RequestContext) -> Response:
    """What the page shows, all of it, as a file."""
    return await context.csv("audit-log.csv", _COLUMNS, _rows(context))


async def _rows(context: RequestContext) -> AsyncIterator[Sequence[object]]:
    act, who = _filter(context)
    before = None
    while True:
        async with context.database.connection(context.person.scope) as connection:
            events = await newest_events(
                connection, context.person.customer_id, act=act, who=who, before=before, limit=_OF_FILE_AT_ONCE
            )
        for event in events:
            yield _row(event)
        if len(events) < _OF_FILE_AT_ONCE:
            return
        before = events[-1].id


def _filter(context: RequestContext) -> tuple[str, str]:
    """What was done and by whom, as the address asks for; whatever is no act is none."""
    act = context.query("act")
    return act if act in ACTS else "", context.query("who").strip()


def _row(event: AuditEvent) -> list[object]:
    values = (getattr(event, column) for column in _COLUMNS)
    return [value.isoformat() if hasattr(value, "isoformat") else value for value in values]


def _members(changed: str | None) -> dict[str, Any]:
    members = json.loads(changed) if changed else {}
    return members if isinstance(members, dict) else {}
