"""The filter of a list of orders. The address holds it, so that a link shows the same list. The page shows it as chips."""

import re
from collections.abc import Sequence
from datetime import date
from typing import Any
from urllib.parse import urlencode

import msgspec

from largesse.base import clock
from largesse.base.i18n.languages import text
from largesse.customers.roles import Reach, Right
from largesse.reports.filters import GroupFilter, OrderFilter
from largesse.reports.listing import Choices, Sort
from largesse.reports.sums import OrderState
from largesse.web.console.context import PageContext, RequestContext
from largesse.web.console.order_words import SOURCES, STATES
from largesse.web.console.periods import FREE, PERIODS, period_of

_ID = re.compile(r"(product|collection|key|person)-([0-9]{1,9})")
_COLUMN = {"product": "product_id", "collection": "collection_id", "key": "service_account_id", "person": "user_id"}
# The columns that a chip filters by.
_COLUMNS_OF = {
    "gift": ("product_id", "collection_id"),
    "source": ("source",),
    "account": ("account_id",),
    "by": ("service_account_id", "user_id"),
}
NO_DAY = text("Type a date, such as 2026-11-30.")
# The parameters that select and sort orders. A saved view holds them, except the search.
FILTERS = ("q", "state", "gift", "source", "account", "by", "period", "since", "until", "sort")


def read_filter(context: RequestContext) -> OrderFilter:
    """Returns the filter in the page's address. Members get only their own orders. Adds an error to the form for a wrong day."""
    person = context.person
    said: dict[str, Any] = {}  # the filter's values by the names of its fields
    for name in ("gift", "by"):
        if found := _ID.fullmatch(context.query(name)):
            said[_COLUMN[found[1]]] = int(found[2])
    if context.query("source"):
        said["source"] = context.query("source")
    if (account_id := context.parameters.number("account")) is not None:
        said["account_id"] = account_id
    if person.reach(Right.SEE_ORDERS) is Reach.OWN:
        said["user_id"] = person.user_id
        said.pop("service_account_id", None)
    state = context.query("state")
    since, until = read_day(context, "since"), read_day(context, "until")
    if context.query("period") in PERIODS and context.query("period") != FREE:
        period = period_of(context.query("period"), clock.now().date())
        since, until = period.since, period.until
    return OrderFilter(
        customer_id=person.customer_id,
        environment=person.environment,
        group=GroupFilter(**said),
        states=(OrderState(state),) if state in set(OrderState) else (),
        since=since,
        until=until,
        search=context.query("q"),
    )


def read_sort(context: RequestContext) -> Sort:
    """Returns the sort order in the page's address; newest first by default."""
    said = context.query("sort")
    return Sort(said) if said in set(Sort) else Sort.NEWEST


def read_day(context: PageContext, name: str) -> date | None:
    """Returns the day of a parameter; None if it is missing or wrong. Adds an error to the form for a wrong one."""
    if not context.parameters.is_wrong(name):
        return context.parameters.day(name)
    typed = context.form_of_address
    day = typed.day(name)
    context.form.errors = typed.errors | context.form.errors
    return day


class Chip(msgspec.Struct, frozen=True):
    """A filter on the page. `value` is the text of its current choice; empty if it is not set."""

    name: str
    label: str
    value: str
    choices: Sequence[tuple[str, str]]
    without: str  # the address of the list without this filter


def chips_of(context: RequestContext, choices: Choices) -> list[Chip]:
    """Returns the filters of the list: the period, and those with the values that the customer's orders have."""
    sources = [(value, context.say(SOURCES.get(value, value))) for value, _ in choices.sources]
    offered = [
        ("state", context.say("State"), [(state.value, context.say(word)) for state, word in STATES.items()]),
        ("gift", context.say("Gift"), choices.gifts),
        ("source", context.say("Source"), sources),
        ("account", context.say("Account"), choices.accounts),
    ]
    if context.person.reach(Right.SEE_ORDERS) is Reach.ALL:
        offered.append(("by", context.say("Placed by"), choices.placed_by))
    filtered = set(read_filter(context).group.said)
    return [_period(context), *(_chip(context, filtered, *one) for one in offered)]


def _chip(
    context: RequestContext, filtered: set[str], name: str, label: str, choices: Sequence[tuple[str, str]]
) -> Chip:
    value = dict(choices).get(context.query(name), "")
    if not value and not filtered.isdisjoint(_COLUMNS_OF.get(name, ())):
        # for example, an account that has paid none of this person's orders
        value = context.say("Not in this list")
    return Chip(name, label, value, choices, list_address(context, **{name: None}))


def _period(context: RequestContext) -> Chip:
    choices = [(name, context.say(word)) for name, word in PERIODS.items() if name != FREE]
    value = dict(choices).get(context.query("period"), "")
    since, until = read_day(context, "since"), read_day(context, "until")
    if not value and (since or until):
        value = " \N{EN DASH} ".join(context.language.short_day(day) if day else "…" for day in (since, until))
    without = list_address(context, period=None, since=None, until=None)
    return Chip("period", context.say("Period"), value, choices, without)


def is_filtered(context: RequestContext) -> bool:
    """Returns whether the page's address filters the orders."""
    return any(context.query(name) for name in FILTERS if name != "sort")


def list_address(context: RequestContext, **changes: str | int | None) -> str:
    """Returns the address of the first page of the list, with those parameters changed."""
    return context.here(**{"before": None, "after": None, "of": None, **changes})


def query_of_filter(context: RequestContext, **more: str) -> str:
    """Returns the parameters that select and sort orders, and `more`, encoded for an address."""
    return urlencode({name: context.query(name) for name in FILTERS if context.query(name)} | more)


def query_of_view(context: RequestContext) -> str:
    """Returns the parameters that a saved view holds, encoded: the filters and the sort order, without the search."""
    return urlencode({name: context.query(name) for name in FILTERS if name != "q" and context.query(name)})
