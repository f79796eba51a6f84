"""Carries out a form that changes what somebody else may change or end at the same moment.

Its handler reads the object, merges the form with it (`Form.keep_others`), and calls an operation with what it has `seen`. The operation
locks the object, and raises ReadAgain if it has changed since. Then the handler is called again, with the form as it was typed.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from starlette.responses import Response

from largesse.base.errors import HasEnded
from largesse.base.i18n.languages import text
from largesse.customers.actor import ReadAgain
from largesse.web.console.context import PageContext, RequestContext
from largesse.web.console.form import CHANGED, Form

AnyContext = TypeVar("AnyContext", bound=PageContext)
_MOST_READS = 5
_ENDED = text("This has ended already. Nothing was changed.")


async def carry_out(context: AnyContext, handler: Callable[[AnyContext], Awaitable[Response]]) -> Response:
    """Returns the response of a handler, which is called again as long as others change what it has read. After some calls, says so."""
    typed = context.form.fields
    for _ in range(_MOST_READS):
        try:
            return await handler(context)
        except ReadAgain:
            context.form = Form(typed, context.say, context.language)
    return context.trouble(409, context.say(CHANGED))


def or_ended(
    page: str, handler: Callable[[RequestContext], Awaitable[Response]]
) -> Callable[[RequestContext], Awaitable[Response]]:
    """Returns the handler of a form. Once what it changes has ended, the form leads to `page`, such as `/app/campaigns/{campaign}`, which says so."""

    async def handle(context: RequestContext) -> Response:
        try:
            return await handler(context)
        except HasEnded:
            return context.see(page.format(**context.request.path_params), context.say(_ENDED))

    return handle
