"""Shared by all pages of one order: finding the order, the recipients that are listed, and the redirect back to the list."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.responses import Response

from largesse.base.errors import InvalidRequest, NotFound, TooManyRequests
from largesse.customers.access import is_own
from largesse.customers.roles import Reach, Right
from largesse.db.pool import Connection, Row
from largesse.mail.resending import MAX_RESENDS_A_DAY
from largesse.orders.lookup import find_order
from largesse.web.console.context import RequestContext
from largesse.web.console.order_words import REFUSALS


@dataclass(frozen=True, slots=True)
class View:
    """The recipients that the page lists: search, filter and page number, from the address."""

    words: str
    state: str
    page: int
    edited: int | None  # the first line of the recipient whose address is being corrected

    @property
    def query(self) -> str:
        """The parameters of the view, with the question mark; empty for the first page without a filter."""
        return self.query_with()

    def query_with(self, **changes: object) -> str:
        """Returns `query` with changed parameters; None removes one."""
        said = {"q": self.words, "state": self.state, "page": self.page if self.page > 1 else "", **changes}
        query = urlencode({name: value for name, value in said.items() if value})
        return f"?{query}" if query else ""


def view_of(context: RequestContext) -> View:
    """Returns the view in the page's address."""
    parameters = context.parameters
    edited = context.query("edit")
    return View(
        context.query("q").strip(),
        context.query("state"),
        parameters.number("page") or 1,
        int(edited) if edited.isascii() and edited.isdigit() and len(edited) < 10 else None,
    )


def reference_of(context: RequestContext) -> str:
    """Returns the order's reference in the path."""
    return str(context.request.path_params["reference"])


def back(context: RequestContext, said: str | None = None, *, number: int | None = None) -> Response:
    """Redirects to the view where an action started, at the recipient with the first line `number`, and shows what happened."""
    anchor = f"#r{number}" if number else ""
    return context.see(f"/app/orders/{reference_of(context)}{view_of(context).query}{anchor}", said)


def refusal(context: RequestContext, problem: InvalidRequest | TooManyRequests) -> str:
    """Returns why an operation was refused, in the language of the page."""
    if isinstance(problem, TooManyRequests):
        return context.say("A recipient is mailed again at most %(most)s times a day.", most=MAX_RESENDS_A_DAY)
    return context.say(REFUSALS.get(problem.detail, problem.detail))


async def find(context: RequestContext, connection: Connection) -> Row:
    """Returns the order if the person may see it. Raises NotFound."""
    order = await find_order(connection, context.principal, reference_of(context))
    if context.person.reach(Right.SEE_ORDERS) is Reach.OWN and order["user_id"] != context.person.user_id:
        raise NotFound("There is no order of that reference.")
    return order


async def find_own(context: RequestContext, connection: Connection) -> Row:
    """Returns the order if the person may change it. Raises NotFound."""
    order = await find(context, connection)
    if not may_act(context, order):
        raise NotFound("There is no order of that reference.")
    return order


def may_act(context: RequestContext, order: Row) -> bool:
    """Returns whether the person may change the order."""
    return context.person.may(Right.SEND) and is_own(context.principal, order["service_account_id"], order["user_id"])
