"""One's passkeys: adding one, removing one, and what other pages ask them.

Passkeys alone need script: what the server asks stands in a form, `passkeys.js` has the browser answer it, and the form is posted.
"""

from __future__ import annotations

from starlette.responses import Response

from largesse.base.errors import NotFound
from largesse.base.i18n.templates import text
from largesse.customers.passkeys import (
    MOST_PASSKEYS,
    NotThePasskey,
    Passkey,
    Unfit,
    add_passkey,
    ask_new_passkey,
    ask_passkey,
    list_passkeys,
    remove_passkey,
    take_new_passkey,
)
from largesse.customers.sessions import Session, end_sessions
from largesse.db.scope import LOOKUP
from largesse.web.console.context import RequestContext

HERE = "/app/security"
NEW = f"{HERE}/passkeys/new"
_MOST_NAME = 60
_NOT_MADE = text("No passkey was made. Try again.")
_ENOUGH = text("You have %(most)s passkeys, or this one already: remove one first.")


async def asked(context: RequestContext) -> str | None:
    """What the page is to ask one's passkeys; None where there are none."""
    assert context.session is not None, "for who is signed in"
    session, party = context.session, context.services.signing_in.party
    if not session.has_passkey or not party.has_name:
        return None
    async with context.services.database.connection(LOOKUP) as connection:
        return await ask_passkey(connection, party, session.id, session.person_id)


async def own_passkeys(context: RequestContext, session: Session) -> list[Passkey]:
    """Those of who asks."""
    async with context.database.connection(LOOKUP) as connection:
        return await list_passkeys(connection, session.person_id)


async def begin(context: RequestContext) -> Response:
    """The form in which one more is named and made."""
    context.require_proof()
    person, party = context.person, context.services.signing_in.party
    if not party.has_name:
        raise NotFound("Passkeys are for names.")
    async with context.services.database.connection(LOOKUP) as connection:
        options = await ask_new_passkey(connection, party, person.session_id, person.person_id, person.email)
    status = 422 if context.form.errors else 200
    return context.page("passkey.html", status=status, options=options, most=_MOST_NAME)


async def add(context: RequestContext) -> Response:
    """Keeps the passkey that the browser made; other sessions end. Shows the recovery codes where there were none."""
    person, form = context.person, context.form
    name = form.text("name", _MOST_NAME)
    if form.errors:
        return await begin(context)
    try:
        async with context.services.database.connection(LOOKUP) as connection:
            party = context.services.signing_in.party
            made = await take_new_passkey(connection, party, person.session_id, form["passkey"])
        async with context.writing(changes_access=True) as connection:
            codes = await add_passkey(connection, person.person_id, name, made)
            await end_sessions(connection, person.person_id, but=person.session_id)
            await context.tell_second_step(connection, "passkey_added")
            await context.record(connection, "person.passkey_added", person.email, after={"name": name})
    except NotThePasskey:
        form.error("name", context.say(_NOT_MADE))
    except Unfit:
        form.error("name", context.say(_ENOUGH, most=MOST_PASSKEYS))
    if form.errors:
        return await begin(context)
    if codes:
        return context.page("recovery_codes.html", codes=codes)
    return context.see(HERE, context.say("%(name)s is a passkey of yours now.", name=name))


async def remove(context: RequestContext) -> Response:
    """Asks for that one no longer. Raises NotFound for one that is not one's own."""
    person = context.person
    async with context.writing(changes_access=True) as connection:
        name = await remove_passkey(connection, person.person_id, context.number("passkey"))
        if name is None:
            raise NotFound("There is no such passkey.")
        await context.tell_second_step(connection, "passkey_removed")
        await context.record(connection, "person.passkey_removed", person.email, before={"name": name})
    return context.see(HERE, context.say("%(name)s is no passkey of yours any longer.", name=name))
