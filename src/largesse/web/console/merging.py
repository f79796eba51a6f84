"""Carries out a form that changes what somebody else may change at the same moment.

Its handler reads the object, merges the form with it (`Form.keep_others`), and calls an operation with what it has `seen`. The operation
locks the object, and raises ReadAgain if it has changed since. Then the handler is called again, with the form as it was typed.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from starlette.responses import Response

from largesse.customers.actor import ReadAgain
from largesse.web.console.context import PageContext
from largesse.web.console.form import CHANGED, Form

AnyContext = TypeVar("AnyContext", bound=PageContext)
_MOST_READS = 5


async def carry_out(context: AnyContext, handler: Callable[[AnyContext], Awaitable[Response]]) -> Response:
    """Returns the response of a handler, which is called again as long as others change what it has read. After some calls, says so."""
    typed = context.form.fields
    for _ in range(_MOST_READS):
        try:
            return await handler(context)
        except ReadAgain:
            context.form = Form(typed, context.say)
    return context.trouble(409, context.say(CHANGED))
