"""One's own password, second step, sessions, and how pages are written; and whether a customer asks everybody for a second step."""

from __future__ import annotations

from starlette.responses import Response

from largesse.base.i18n.languages import LANGUAGES
from largesse.base.i18n.templates import text
from largesse.customers.customer_store import confirmed_above
from largesse.customers.customers import confirm_above as set_confirm_above
from largesse.customers.customers import require_second_step
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
from largesse.customers.sign_in import Refused, SignInStep
from largesse.db.scope import LOOKUP
from largesse.encryption.vault import DecryptionFailed
from largesse.web.console.context import RequestContext, typed_amount
from largesse.web.console.passkeys import HERE, asked, own_passkeys
from largesse.web.console.periods import known_zones, zone_choices
from largesse.web.console.sign_in import new_password, own_path
from largesse.web.console.step_up import refused

_NOT_THAT_CODE = text("That is not the code that the app shows now. Wait for the next one and try again.")


async def show(context: RequestContext) -> Response:
    """All of it."""
    session = _session(context)
    async with context.database.connection(LOOKUP) as connection:
        sessions = await list_sessions(connection, session.person_id)
        codes_left = await count_recovery_codes(connection, session.person_id)
    amounts: dict[str, int] = {}
    if session.person is not None and session.person.role == ADMIN:
        async with context.database.connection(session.person.scope) as connection:
            amounts = await confirmed_above(connection, session.person.customer_id)
    languages = [("", context.say("As my browser asks")), *((one.tag, one.name) for one in LANGUAGES.values())]
    return context.page(
        "security.html",
        status=422 if context.form.errors else 200,
        sessions=sessions,
        codes_left=codes_left,
        can_passkeys=context.services.signing_in.party.has_name,
        passkeys=await own_passkeys(context, session),
        languages_offered=languages,
        zones_offered=zone_choices(session.zone or ""),
        confirmed_above=sorted(amounts.items()),
        currencies=[(one, one) for one in await _currencies(context)],
    )


async def change_password(context: RequestContext) -> Response:
    """Another password; other sessions end."""
    password = new_password(context, context.person.email)
    if password is None:
        return await show(context)
    await context.services.signing_in.change_password(context.person, password, context.origin)
    return context.see(HERE, context.say("Your password is changed, and your other sessions are signed out."))


async def app(context: RequestContext) -> Response:
    """The code to scan with an app, and the field for what it shows then."""
    context.require_proof()
    return _app(context, new_totp_secret())


async def turn_app_on(context: RequestContext) -> Response:
    """Asks for codes of the app from now on; shows the recovery codes, this once, where there were none."""
    session = _session(context)
    try:
        secret = context.services.vault.second_steps.open(bytes.fromhex(context.form["secret"]), _pending(session))
    except (DecryptionFailed, ValueError):
        return context.see(f"{HERE}/app")
    async with context.writing(changes_access=True) as connection:
        codes = await turn_on(connection, context.services.vault, session.person_id, secret, context.form["code"])
        if codes is not None:
            await end_sessions(connection, session.person_id, but=session.id)
            await context.tell_second_step(connection, "app_on")
            await context.record(connection, "person.second_step_on", context.person.email)
    if codes is None:
        context.form.error("code", context.say(_NOT_THAT_CODE))
        return _app(context, secret)
    if not codes:
        return context.see(HERE, context.say("Codes of your app are asked for from now on."))
    return context.page("recovery_codes.html", codes=codes)


async def turn_app_off(context: RequestContext) -> Response:
    """Asks for no codes of an app any longer."""
    async with context.writing(changes_access=True) as connection:
        await forget_app(connection, context.person.person_id)
        await context.tell_second_step(connection, "app_off")
        await context.record(connection, "person.second_step_off", context.person.email)
    if _session(context).has_passkey:
        return context.see(HERE, context.say("No code of an app is asked for any longer."))
    return context.see(HERE, context.say("You sign in with your password alone now."))


async def recovery_codes(context: RequestContext) -> Response:
    """Fresh recovery codes, this once; those of before hold no longer."""
    if not _session(context).has_second_step:
        return context.see(HERE)
    async with context.writing(changes_access=True) as connection:
        codes = await new_recovery_codes(connection, context.person.person_id)
        await context.tell_second_step(connection, "recovery_codes")
        await context.record(connection, "person.recovery_codes", context.person.email)
    return context.page("recovery_codes.html", codes=codes)


async def end_one(context: RequestContext) -> Response:
    """Ends one of one's sessions."""
    async with context.writing(changes_access=True) as connection:
        await end_session_of(connection, context.person.person_id, context.number("session"))
    return context.see(HERE, context.say("That session is signed out."))


async def end_others(context: RequestContext) -> Response:
    """Ends all of one's sessions but this one."""
    async with context.writing(changes_access=True) as connection:
        await end_sessions(connection, context.person.person_id, but=context.person.session_id)
    return context.see(HERE, context.say("All other sessions are signed out."))


async def prefer(context: RequestContext) -> Response:
    """How pages are written for one."""
    form = context.form
    language = form.choice("language", ["", *LANGUAGES])
    zone = form.choice("zone", {"", *known_zones()})
    if form.errors:
        return await show(context)
    async with context.writing(changes_access=True) as connection:
        await set_preferences(connection, context.person.person_id, language or None, zone or None)
    return context.see(HERE, context.say("Saved."))


async def require_of_all(context: RequestContext) -> Response:
    """Has the customer ask everybody for a second step, or no longer."""
    required = context.form["required"] == "yes"
    if required and not _session(context).has_second_step:
        return context.see(HERE, context.say("Set up your own second step first."))
    await require_second_step(context.actor, required=required)
    return context.see(HERE, context.say("Saved."))


async def confirm_above(context: RequestContext) -> Response:
    """Says above which amount a send is confirmed first, in a currency; nothing typed: at no amount."""
    form = context.form
    currency = form.choice("currency", await _currencies(context))
    amount_minor = typed_amount(context, "above", currency) if not form.errors and form["above"].strip() else None
    if form.errors:
        return await show(context)
    await set_confirm_above(context.actor, currency, amount_minor)
    return context.see(HERE, context.say("Saved."))


async def _currencies(context: RequestContext) -> list[str]:
    """Returns all currencies, those that the customer has accounts in first."""
    person = context.person
    async with context.database.connection(person.scope) as connection:
        rows = await connection.fetch("SELECT code FROM currencies ORDER BY code")
        held = await connection.fetch(
            "SELECT DISTINCT currency FROM accounts WHERE customer_id = $1", person.customer_id
        )
    own = {row["currency"] for row in held}
    return sorted((row["code"] for row in rows), key=lambda code: (code not in own, code))


async def ask_second_step(context: RequestContext) -> Response:
    """The form for the code, between the password and the pages."""
    if not _session(context).awaits_second_step:
        return context.see("/app")
    return context.page("second_step.html", next=context.query("next"), asked=await asked(context))


async def second_step(context: RequestContext) -> Response:
    """Takes the code; the browser gets another session's cookie with it."""
    session = _session(context)
    if not session.awaits_second_step:
        return context.see("/app")
    try:
        secret = await context.services.signing_in.by_second_step(
            session, SignInStep(context.form["code"], context.form["passkey"]), context.origin
        )
    except Refused:
        refused(context, "code")
        return context.page("second_step.html", status=422, next=context.form["next"], asked=await asked(context))
    context.begin(secret)
    return context.see(own_path(context.form["next"]))


def _app(context: RequestContext, secret: bytes) -> Response:
    session = _session(context)
    return context.page(
        "app.html",
        status=422 if context.form.errors else 200,
        address=totp_address(secret, session.email),
        typed=typed_secret(secret),
        sealed=context.services.vault.second_steps.seal(secret, _pending(session)).hex(),
    )


def _pending(session: Session) -> bytes:
    """Where a secret belongs that no app has confirmed yet: to the page of one session."""
    return b"pending/%d" % session.id


def _session(context: RequestContext) -> Session:
    assert context.session is not None, "for who is signed in"
    return context.session
