"""A person's pages of passkeys: adding and removing one, and what other pages ask them.

Passkeys alone need script: the page has the server's options in a form, `passkeys.js` has the browser answer them and posts the form.
"""

from __future__ import annotations

from starlette.responses import Response

from largesse.base.i18n.templates import text
from largesse.customers.passkeys import MOST_PASSKEYS, NotThePasskey, Unfit
from largesse.web.console.context import RequestContext

HERE = "/app/security"
NEW = f"{HERE}/passkeys/new"
_MOST_NAME = 60
_NOT_MADE = text("No passkey was created. Try again.")
_ENOUGH = text("You already have this passkey, or %(most)s of them. Remove one first.")


async def asked(context: RequestContext) -> str | None:
    """Returns what the page asks the person's passkeys, as JSON; None where there are none."""
    assert context.session is not None, "for who is signed in"
    return await context.services.security.ask_passkey(context.session)


async def begin(context: RequestContext) -> Response:
    """Shows the form that names and creates a passkey. Raises NotFound where there can be none."""
    context.require_proof()
    options = await context.services.security.ask_new_passkey(context.person)
    status = 422 if context.form.errors else 200
    return context.page("passkey.html", status=status, options=options, most=_MOST_NAME)


async def add(context: RequestContext) -> Response:
    """Adds the passkey that the browser created. Shows the recovery codes with the first second step."""
    form = context.form
    name = form.text("name", _MOST_NAME)
    if form.errors:
        return await begin(context)
    try:
        codes = await context.services.security.add_passkey(context.actor, name, form["passkey"], context.origin)
    except NotThePasskey:
        form.error("name", context.say(_NOT_MADE))
    except Unfit:
        form.error("name", context.say(_ENOUGH, most=MOST_PASSKEYS))
    if form.errors:
        return await begin(context)
    if codes:
        return context.page("recovery_codes.html", codes=codes)
    return context.see(HERE, context.say("The passkey %(name)s was added.", name=name))


async def remove(context: RequestContext) -> Response:
    """Removes a passkey of the person. Raises NotFound."""
    name = await context.services.security.remove_passkey(context.actor, context.number("passkey"), context.origin)
    return context.see(HERE, context.say("The passkey %(name)s was removed.", name=name))
