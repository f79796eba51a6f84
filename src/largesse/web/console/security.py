"""One's own password, second step, sessions, and how pages are written; and whether a customer asks everybody for a second step."""

from __future__ import annotations

from starlette.responses import Response

from largesse.base.i18n.languages import LANGUAGES
from largesse.base.i18n.templates import text
from largesse.base.money import label
from largesse.customers.customers import confirm_above as set_confirm_above
from largesse.customers.customers import confirmed_above, require_second_step
from largesse.customers.people import set_preferences
from largesse.customers.principal import ADMIN
from largesse.customers.second_step import (
    count_recovery_codes,
    forget_app,
    new_recovery_codes,
    new_totp_secret,
    totp_address,
    turn_on,
    typed_secret,
)
from largesse.customers.sessions import Session, end_session_of, end_sessions, list_sessions
from largesse.customers.sign_in import Refused, Step
from largesse.db.scope import LOOKUP
from largesse.encryption.vault import SealBroken
from largesse.web.console.context import Visit, typed_amount
from largesse.web.console.passkeys import HERE, asked, own_passkeys
from largesse.web.console.periods import known_zones, zone_choices
from largesse.web.console.sign_in import new_password, own_path
from largesse.web.console.step_up import refused

_NOT_THAT_CODE = text("That is not the code that the app shows now. Wait for the next one and try again.")


async def show(visit: Visit) -> Response:
    """All of it."""
    session = _session(visit)
    async with visit.database.connection(LOOKUP) as connection:
        sessions = await list_sessions(connection, session.person_id)
        codes_left = await count_recovery_codes(connection, session.person_id)
    amounts: dict[str, int] = {}
    if session.person is not None and session.person.role == ADMIN:
        async with visit.database.connection(session.person.scope) as connection:
            amounts = await confirmed_above(connection, session.person.customer_id)
    languages = [("", visit.say("As my browser asks")), *((one.tag, one.name) for one in LANGUAGES.values())]
    return visit.page(
        "security.html",
        status=422 if visit.form.errors else 200,
        sessions=sessions,
        codes_left=codes_left,
        can_passkeys=visit.services.signing_in.party.has_name,
        passkeys=await own_passkeys(visit, session),
        languages_offered=languages,
        zones_offered=zone_choices(session.zone or ""),
        confirmed_above=sorted(amounts.items()),
        currencies=[(one, one) for one in await _currencies(visit)],
    )


async def change_password(visit: Visit) -> Response:
    """Another password; other sessions end."""
    password = new_password(visit, visit.person.email)
    if password is None:
        return await show(visit)
    await visit.services.signing_in.change_password(visit.person, password, visit.origin)
    return visit.see(HERE, visit.say("Your password is changed, and your other sessions are signed out."))


async def app(visit: Visit) -> Response:
    """The code to scan with an app, and the field for what it shows then."""
    visit.require_proof()
    return _app(visit, new_totp_secret())


async def turn_app_on(visit: Visit) -> Response:
    """Asks for codes of the app from now on; shows the recovery codes, this once, where there were none."""
    session = _session(visit)
    try:
        secret = visit.services.vault.second_steps.open(
            bytes.fromhex(visit.form["secret"]), _pending(session)
        )
    except (SealBroken, ValueError):
        return visit.see(f"{HERE}/app")
    async with visit.writing(changes_access=True) as connection:
        codes = await turn_on(connection, visit.services.vault, session.person_id, secret, visit.form["code"])
        if codes is not None:
            await end_sessions(connection, session.person_id, but=session.id)
            await visit.tell_second_step(connection, "app_on")
            await visit.record(connection, "person.second_step_on", visit.person.email)
    if codes is None:
        visit.form.error("code", visit.say(_NOT_THAT_CODE))
        return _app(visit, secret)
    if not codes:
        return visit.see(HERE, visit.say("Codes of your app are asked for from now on."))
    return visit.page("recovery_codes.html", codes=codes)


async def turn_app_off(visit: Visit) -> Response:
    """Asks for no codes of an app any longer."""
    async with visit.writing(changes_access=True) as connection:
        await forget_app(connection, visit.person.person_id)
        await visit.tell_second_step(connection, "app_off")
        await visit.record(connection, "person.second_step_off", visit.person.email)
    if _session(visit).has_passkey:
        return visit.see(HERE, visit.say("No code of an app is asked for any longer."))
    return visit.see(HERE, visit.say("You sign in with your password alone now."))


async def recovery_codes(visit: Visit) -> Response:
    """Fresh recovery codes, this once; those of before hold no longer."""
    if not _session(visit).has_second_step:
        return visit.see(HERE)
    async with visit.writing(changes_access=True) as connection:
        codes = await new_recovery_codes(connection, visit.person.person_id)
        await visit.tell_second_step(connection, "recovery_codes")
        await visit.record(connection, "person.recovery_codes", visit.person.email)
    return visit.page("recovery_codes.html", codes=codes)


async def end_one(visit: Visit) -> Response:
    """Ends one of one's sessions."""
    async with visit.writing(changes_access=True) as connection:
        await end_session_of(connection, visit.person.person_id, visit.number("session"))
    return visit.see(HERE, visit.say("That session is signed out."))


async def end_others(visit: Visit) -> Response:
    """Ends all of one's sessions but this one."""
    async with visit.writing(changes_access=True) as connection:
        await end_sessions(connection, visit.person.person_id, but=visit.person.session_id)
    return visit.see(HERE, visit.say("All other sessions are signed out."))


async def prefer(visit: Visit) -> Response:
    """How pages are written for one."""
    form = visit.form
    language = form.choice("language", ["", *LANGUAGES])
    zone = form.choice("zone", {"", *known_zones()})
    if form.errors:
        return await show(visit)
    async with visit.writing(changes_access=True) as connection:
        await set_preferences(connection, visit.person.person_id, language or None, zone or None)
    return visit.see(HERE, visit.say("Saved."))


async def require_of_all(visit: Visit) -> Response:
    """Has the customer ask everybody for a second step, or no longer."""
    required = visit.form["required"] == "yes"
    if required and not _session(visit).has_second_step:
        return visit.see(HERE, visit.say("Set up your own second step first."))
    async with visit.writing(changes_access=True) as connection:
        await require_second_step(connection, visit.person.customer_id, required=required)
        await visit.record(
            connection,
            "people.second_step_required",
            visit.person.customer_name,
            after={"required": required},
        )
    return visit.see(HERE, visit.say("Saved."))


async def confirm_above(visit: Visit) -> Response:
    """Says above which amount a send is confirmed first, in a currency; nothing typed: at no amount."""
    form, person = visit.form, visit.person
    currency = form.choice("currency", await _currencies(visit))
    amount_minor = (
        typed_amount(visit, "above", currency) if not form.errors and form["above"].strip() else None
    )
    if form.errors:
        return await show(visit)
    async with visit.writing(changes_access=True) as connection:
        before = await set_confirm_above(connection, person.customer_id, currency, amount_minor)
        if before != amount_minor:
            told, tells = (
                {"currency": currency, "above": "no amount" if one is None else label(one, currency)}
                for one in (before, amount_minor)
            )
            await visit.record(
                connection, "sends.confirmed_above", person.customer_name, before=told, after=tells
            )
    return visit.see(HERE, visit.say("Saved."))


async def _currencies(visit: Visit) -> list[str]:
    """Returns all currencies, those that the customer has accounts in first."""
    person = visit.person
    async with visit.database.connection(person.scope) as connection:
        rows = await connection.fetch("SELECT code FROM currencies ORDER BY code")
        held = await connection.fetch(
            "SELECT DISTINCT currency FROM accounts WHERE customer_id = $1", person.customer_id
        )
    own = {row["currency"] for row in held}
    return sorted((row["code"] for row in rows), key=lambda code: (code not in own, code))


async def ask_second_step(visit: Visit) -> Response:
    """The form for the code, between the password and the pages."""
    if not _session(visit).awaits_second_step:
        return visit.see("/app")
    return visit.page("second_step.html", next=visit.query("next"), asked=await asked(visit))


async def second_step(visit: Visit) -> Response:
    """Takes the code; the browser gets another session's cookie with it."""
    session = _session(visit)
    if not session.awaits_second_step:
        return visit.see("/app")
    try:
        secret = await visit.services.signing_in.by_second_step(
            session, Step(visit.form["code"], visit.form["passkey"]), visit.origin
        )
    except Refused:
        refused(visit, "code")
        return visit.page("second_step.html", status=422, next=visit.form["next"], asked=await asked(visit))
    visit.begin(secret)
    return visit.see(own_path(visit.form["next"]))


def _app(visit: Visit, secret: bytes) -> Response:
    session = _session(visit)
    return visit.page(
        "app.html",
        status=422 if visit.form.errors else 200,
        address=totp_address(secret, session.email),
        typed=typed_secret(secret),
        sealed=visit.services.vault.second_steps.seal(secret, _pending(session)).hex(),
    )


def _pending(session: Session) -> bytes:
    """Where a secret belongs that no app has confirmed yet: to the page of one session."""
    return b"pending/%d" % session.id


def _session(visit: Visit) -> Session:
    assert visit.session is not None, "for who is signed in"
    return visit.session
