"""A person's pages for passkeys: adding and removing one, and the options that other pages pass to the browser.

Only passkeys need JavaScript: the form holds the server's options, and `passkeys.js` passes them to the browser and posts its answer.
"""

from __future__ import annotations

from starlette.responses import Response

from largesse.base.i18n.templates import text
from largesse.customers.passkeys import MOST_PASSKEYS, NotThePasskey, Unfit
from largesse.customers.security import LastSecondStep
from largesse.web.console.context import PageContext

_MOST_NAME = 60
_NOT_MADE = text("No passkey was created. Try again.")
LAST = text("A second step is required. Set up another one first.")
_ENOUGH = text("You already have this passkey, or %(most)s of them. Remove one first.")


def here_of(context: PageContext) -> str:
    """Returns the path of the security page."""
    return f"{context.site}/security"


async def asked(context: PageContext) -> str | None:
    """Returns the options with which the browser asks for a passkey, as JSON; None if the person has none."""
    assert context.session is not None, "only for a signed-in person"
    return await context.security.ask_passkey(context.session)


async def begin(context: PageContext) -> Response:
    """Shows the form that names and creates a passkey. Raises NotFound if the installation cannot have passkeys."""
    context.require_proof()
    options = await context.security.ask_new_passkey(context.person)
    return context.page("passkey.html", options=options, most=_MOST_NAME)


async def add(context: PageContext) -> Response:
    """Adds the passkey that the browser created. Shows the recovery codes if it is the person's first second step."""
    form = context.form
    name = form.text("name", _MOST_NAME)
    if form.errors:
        return await begin(context)
    try:
        codes = await context.security.add_passkey(context.actor, name, form["passkey"], context.origin)
    except NotThePasskey:
        form.error("name", context.say(_NOT_MADE))
    except Unfit:
        form.error("name", context.say(_ENOUGH, most=MOST_PASSKEYS))
    if form.errors:
        return await begin(context)
    if codes:
        return context.page("recovery_codes.html", codes=codes)
    return context.see(here_of(context), context.say("The passkey %(name)s was added.", name=name))


async def remove(context: PageContext) -> Response:
    """Removes a passkey of the person. Raises NotFound."""
    try:
        name = await context.security.remove_passkey(context.actor, context.number("passkey"), context.origin)
    except LastSecondStep:
        return context.see(here_of(context), context.say(LAST))
    return context.see(here_of(context), context.say("The passkey %(name)s was removed.", name=name))
