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
from largesse.web.console.context import Visit

HERE = "/app/security"
NEW = f"{HERE}/passkeys/new"
_MOST_NAME = 60
_NOT_MADE = text("No passkey was made. Try again.")
_ENOUGH = text("You have %(most)s passkeys, or this one already: remove one first.")


async def asked(visit: Visit) -> str | None:
    """What the page is to ask one's passkeys; None where there are none."""
    assert visit.session is not None, "for who is signed in"
    session, party = visit.session, visit.services.signing_in.party
    if not session.has_passkey or not party.has_name:
        return None
    async with visit.services.database.connection(LOOKUP) as connection:
        return await ask_passkey(connection, party, session.id, session.person_id)


async def own_passkeys(visit: Visit, session: Session) -> list[Passkey]:
    """Those of who asks."""
    async with visit.database.connection(LOOKUP) as connection:
        return await list_passkeys(connection, session.person_id)


async def begin(visit: Visit) -> Response:
    """The form in which one more is named and made."""
    visit.require_proof()
    person, party = visit.person, visit.services.signing_in.party
    if not party.has_name:
        raise NotFound("Passkeys are for names.")
    async with visit.services.database.connection(LOOKUP) as connection:
        options = await ask_new_passkey(connection, party, person.session_id, person.person_id, person.email)
    status = 422 if visit.form.errors else 200
    return visit.page("passkey.html", status=status, options=options, most=_MOST_NAME)


async def add(visit: Visit) -> Response:
    """Keeps the passkey that the browser made; other sessions end. Shows the recovery codes where there were none."""
    person, form = visit.person, visit.form
    name = form.text("name", _MOST_NAME)
    if form.errors:
        return await begin(visit)
    try:
        async with visit.services.database.connection(LOOKUP) as connection:
            party = visit.services.signing_in.party
            made = await take_new_passkey(connection, party, person.session_id, form["passkey"])
        async with visit.writing(changes_access=True) as connection:
            codes = await add_passkey(connection, person.person_id, name, made)
            await end_sessions(connection, person.person_id, but=person.session_id)
            await visit.tell_second_step(connection, "passkey_added")
            await visit.record(connection, "person.passkey_added", person.email, after={"name": name})
    except NotThePasskey:
        form.error("name", visit.say(_NOT_MADE))
    except Unfit:
        form.error("name", visit.say(_ENOUGH, most=MOST_PASSKEYS))
    if form.errors:
        return await begin(visit)
    if codes:
        return visit.page("recovery_codes.html", codes=codes)
    return visit.see(HERE, visit.say("%(name)s is a passkey of yours now.", name=name))


async def remove(visit: Visit) -> Response:
    """Asks for that one no longer. Raises NotFound for one that is not one's own."""
    person = visit.person
    async with visit.writing(changes_access=True) as connection:
        name = await remove_passkey(connection, person.person_id, visit.number("passkey"))
        if name is None:
            raise NotFound("There is no such passkey.")
        await visit.tell_second_step(connection, "passkey_removed")
        await visit.record(connection, "person.passkey_removed", person.email, before={"name": name})
    return visit.see(HERE, visit.say("%(name)s is no passkey of yours any longer.", name=name))
