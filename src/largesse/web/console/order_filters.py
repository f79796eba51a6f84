"""Which orders a page is about, from its address: a link to a page is the view it shows."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

from largesse.base.i18n.templates import text
from largesse.people.roles import Reach, Right
from largesse.reports.filters import GroupFilter, OrderFilter
from largesse.reports.standing import OrderState
from largesse.web.console.visit import Visit

STATES = {
    OrderState.SCHEDULED: ("waiting", text("Scheduled")),
    OrderState.BOUNCED: ("bad", text("Mail refused")),
    OrderState.WAITING: ("waiting", text("Unclaimed codes")),
    OrderState.CLAIMED: ("good", text("Claimed")),
    OrderState.CANCELLED: ("still", text("Cancelled")),
}
_ID = re.compile(r"(product|collection|key|person)-([0-9]{1,9})")
_COLUMN = {
    "product": "product_id",
    "collection": "collection_id",
    "key": "service_account_id",
    "person": "user_id",
}
NO_DAY = text("This is not a date, such as 2026-11-30.")


def read_filter(visit: Visit) -> OrderFilter:
    """The filter in the address of the page; of a member, their own orders. What is wrong with a day is noted in the form."""
    person = visit.person
    said: dict[str, Any] = {}  # by the names of the filter's fields
    for name in ("gift", "by"):
        if found := _ID.fullmatch(visit.query(name)):
            said[_COLUMN[found[1]]] = int(found[2])
    if visit.query("source"):
        said["source"] = visit.query("source")
    if (account_id := visit.parameters.number("account")) is not None:
        said["account_id"] = account_id
    if person.reach(Right.SEE_ORDERS) is Reach.OWN:
        said["user_id"] = person.user_id
        said.pop("service_account_id", None)
    state = visit.query("state")
    return OrderFilter(
        customer_id=person.customer_id,
        environment=person.environment,
        group=GroupFilter(**said),
        states=(OrderState(state),) if state in set(OrderState) else (),
        since=read_day(visit, "since"),
        until=read_day(visit, "until"),
        search=visit.query("q"),
    )


def read_day(visit: Visit, name: str) -> date | None:
    """The day in a parameter of the address; None for none, and for what is none, which is noted in the form."""
    if visit.parameters.is_wrong(name):
        visit.form.error(name, visit.say(NO_DAY))
    return visit.parameters.day(name)
