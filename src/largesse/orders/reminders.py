"""Reminders: who is reminded of an order's gifts now."""

from __future__ import annotations

from datetime import datetime, timedelta

from largesse.base.email import email_key, is_erased
from largesse.db.pool import Connection, Row
from largesse.jobs.outbox import add_reminders
from largesse.lines.states import lock_issued
from largesse.orders import claim_by_store as store
from largesse.orders.follow_ups import Schedule

# The time between two mails about a gift to one recipient. None in staging, where the test clock makes days pass at once.
_APART = {"production": timedelta(days=1), "staging": timedelta()}


async def remind(connection: Connection, order: Row, schedule: Schedule, now: datetime) -> tuple[Schedule, int]:
    """Makes the reminders of an order that are due, if it is day in its country; returns what is left to do, and how many were made.

    Of reminders that were missed, as while no worker ran, only the last is made. A claim and the recipient's "no more reminders" lock the lines
    too: they come first, or find the reminder and withdraw it. Call it inside a transaction that has locked the follow-up.
    """
    ready = [one for one in schedule.reminders() if one.at <= now]
    if not ready or schedule.leaves_at(now) > now:
        return schedule, 0
    key = (order["customer_id"], order["id"])
    recipients = await _recipients(connection, key, _APART[order["environment"]])
    if recipients:
        await add_reminders(
            connection, key, ready[-1].kind, now, environment=order["environment"], recipients=recipients
        )
    return schedule.without(ready), len(recipients)


async def _recipients(
    connection: Connection, key: tuple[int, int], apart: timedelta
) -> list[tuple[str, str | None, list[int]]]:
    """Returns who is reminded: address, name, and the lines that nobody has claimed, which are locked."""
    rows = await connection.fetch(store.TO_REMIND, *key)
    if not rows:
        return []
    issued = set(await lock_issued(connection, *key, [row["number"] for row in rows]))
    # A recipient may have stopped the reminders while this waited for the locks.
    issued -= {row["number"] for row in await connection.fetch(store.STOPPED, *key)}
    mailed = {email_key(row["email"]) for row in await connection.fetch(store.MAILED, *key)}
    left_out = {email_key(row["email"]) for row in await connection.fetch(store.NOT_NOW, *key, apart)}
    found: dict[str, tuple[str, str | None, list[int]]] = {}
    for row in rows:
        at = email_key(row["email"])
        if row["number"] in issued and at in mailed and at not in left_out and not is_erased(row["email"]):
            found.setdefault(at, (row["email"], row["name"], []))[2].append(row["number"])
    return list(found.values())
