"""Finding gifts of all customers in the back office, by address, reference, code or tracking number.

The searched text is posted and not logged, so that it is in no web address. A searched code is not shown again.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response

from largesse.base.errors import InvalidRequest, TooManyRequests
from largesse.base.i18n.templates import text
from largesse.base.throttle import Rate, Throttle
from largesse.reports.across import LONGEST_SOUGHT, MOST_FOUND, By, FoundOrder, search_gifts
from largesse.web.office.context import OfficeContext
from largesse.web.office.customers import ENVIRONMENT_NAMES, named

SEARCHES_A_MINUTE = 30  # of one member of staff, in each serving process
_searches: Throttle[int] = Throttle(Rate(SEARCHES_A_MINUTE, 60.0))
_BY = {
    By.ADDRESS: text("E-mail address"),
    By.REFERENCE: text("Order reference"),
    By.CODE: text("Code"),
    By.TRACKING: text("Tracking number"),
}


async def ask(context: OfficeContext) -> Response:
    """Shows the search."""
    return _asked(context)


async def search(context: OfficeContext) -> Response:
    """Shows the results of a search."""
    form = context.form
    by, sought = form.choice("by", tuple(By)), form.text("sought", LONGEST_SOUGHT)
    if form.errors:
        return _asked(context, status=422)
    try:
        _searches.spend(context.person.person_id, "too many searches")
        found = await search_gifts(context.actor, context.services.vault, By(by), sought)
    except TooManyRequests as refused:
        wait_s = round(refused.retry_after_s or 1)
        form.error("sought", context.say("Too many searches. Try again in %(seconds)s seconds.", seconds=wait_s))
        return _asked(context, status=429)
    except InvalidRequest:
        form.error("sought", context.say("This is not a code. It has 17 letters and digits."))
        return _asked(context, status=422)
    return _asked(context, found=found, is_many=len(found) >= MOST_FOUND)


def _asked(
    context: OfficeContext, *, status: int = 200, found: Sequence[FoundOrder] | None = None, is_many: bool = False
) -> Response:
    if context.form["by"] == By.CODE:  # a code is not shown again
        errors = context.form.errors
        context.form = context.form.without(("sought",))
        context.form.errors = errors
    return context.page(
        "find.html",
        status=status,
        kinds=named(context, _BY),
        most=LONGEST_SOUGHT,
        environments=dict(named(context, ENVIRONMENT_NAMES)),
        found=found,
        is_many=is_many,
    )
