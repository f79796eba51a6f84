"""A person's pages about how they sign in: password, second step, sessions and preferences, and what their customer requires.

Only passkeys need JavaScript: the form holds the server's options, and `passkeys.js` passes them to the browser and posts its answer.
"""

from starlette.responses import Response

from largesse.base.i18n.languages import LANGUAGES, text
from largesse.base.zones import known_zones
from largesse.customers.customer_store import confirmed_above, list_currencies
from largesse.customers.customers import confirm_above as set_confirm_above
from largesse.customers.customers import require_second_step
from largesse.customers.passkeys import MOST_PASSKEYS, NotThePasskey, Unfit
from largesse.customers.principal import ADMIN
from largesse.customers.second_step import new_totp_secret, totp_address, typed_secret
from largesse.customers.security import LastSecondStep
from largesse.customers.sessions import SignedIn
from largesse.customers.sign_in import Refused, SignInStep
from largesse.encryption.vault import DecryptionFailed
from largesse.web.console.context import PageContext, RequestContext, typed_amount
from largesse.web.console.layout import browser_zone, zone_choices
from largesse.web.console.people import MOST_NAME
from largesse.web.console.sign_in import asked, new_password, refused

_MOST_PASSKEY = 60
_LAST = text("A second step is required. Set up another one first.")
_ENOUGH = text("You already have this passkey, or %(most)s of them. Remove one first.")


async def show(context: PageContext) -> Response:
    """Shows password, second step, sessions and preferences."""
    session, security = _session(context), context.users.security
    methods = await security.read_methods(session.person_id)
    amounts: dict[str, int] = {}
    currencies: list[str] = []
    if isinstance(context, RequestContext):
        currencies = await _currencies(context)
        if context.person.role == ADMIN:
            amounts = await context.read(confirmed_above, context.person.customer_id)
    languages = [("", context.say("Use my browser's language")), *((one.tag, one.name) for one in LANGUAGES.values())]
    return context.page(
        "security.html",
        most_name=MOST_NAME,
        sessions=methods.sessions,
        codes_left=methods.recovery_codes,
        can_passkeys=security.has_passkeys,
        passkeys=methods.passkeys,
        languages_offered=languages,
        zones_offered=_zones(context, session.zone or ""),
        confirmed_above=sorted(amounts.items()),
        currencies=[(one, one) for one in currencies],
    )


async def change_password(context: PageContext) -> Response:
    """Changes the password, and ends the other sessions."""
    password = new_password(context, context.person.email)
    if password is None:
        return await show(context)
    await context.users.security.change_password(context.actor, password)
    said = context.say("Your password was changed, and your other sessions were signed out.")
    return context.see(_here(context), said)


async def app(context: PageContext) -> Response:
    """Shows the QR code for an authenticator app, and the field for the code that the app shows."""
    context.require_proof()
    return _app(context, new_totp_secret())


async def turn_app_on(context: PageContext) -> Response:
    """Switches on the authenticator app. Shows recovery codes, once, if the person had none."""
    session = _session(context)
    try:
        secret = context.services.vault.second_steps.open(bytes.fromhex(context.form["secret"]), _pending(session))
    except (DecryptionFailed, ValueError):
        return context.see(f"{_here(context)}/app")
    codes = await context.users.security.turn_on_app(context.actor, secret, context.form["code"], context.origin)
    if codes is None:
        context.form.error("code", context.say("The code does not match. Wait for the next one and try again."))
        return _app(context, secret)
    if not codes:
        said = context.say("From now on you need a code from your authenticator app to sign in.")
        return context.see(_here(context), said)
    return context.page("recovery_codes.html", codes=codes)


async def turn_app_off(context: PageContext) -> Response:
    """Switches off the authenticator app."""
    try:
        await context.users.security.turn_off_app(context.actor, context.origin)
    except LastSecondStep:
        return context.see(_here(context), context.say(_LAST))
    if _session(context).has_passkey:
        return context.see(_here(context), context.say("Your authenticator app is switched off."))
    return context.see(_here(context), context.say("You now sign in with your password alone."))


async def new_passkey(context: PageContext) -> Response:
    """Shows the form that names and creates a passkey. Raises NotFound if the installation cannot have passkeys."""
    context.require_proof()
    options = await context.users.security.ask_new_passkey(context.person)
    return context.page("passkey.html", options=options, most=_MOST_PASSKEY)


async def add_passkey(context: PageContext) -> Response:
    """Adds the passkey that the browser created. Shows the recovery codes if it is the person's first second step."""
    form = context.form
    name = form.text("name", _MOST_PASSKEY)
    if form.errors:
        return await new_passkey(context)
    try:
        codes = await context.users.security.add_passkey(context.actor, name, form["passkey"], context.origin)
    except NotThePasskey:
        form.error("name", context.say("No passkey was created. Try again."))
    except Unfit:
        form.error("name", context.say(_ENOUGH, most=MOST_PASSKEYS))
    if form.errors:
        return await new_passkey(context)
    if codes:
        return context.page("recovery_codes.html", codes=codes)
    return context.see(_here(context), context.say("The passkey %(name)s was added.", name=name))


async def remove_passkey(context: PageContext) -> Response:
    """Removes a passkey of the person. Raises NotFound."""
    try:
        name = await context.users.security.remove_passkey(context.actor, context.number("passkey"), context.origin)
    except LastSecondStep:
        return context.see(_here(context), context.say(_LAST))
    return context.see(_here(context), context.say("The passkey %(name)s was removed.", name=name))


async def recovery_codes(context: PageContext) -> Response:
    """Creates recovery codes, and shows them once. The previous ones stop working."""
    if not _session(context).has_second_step:
        return context.see(_here(context))
    codes = await context.users.security.new_recovery_codes(context.actor, context.origin)
    return context.page("recovery_codes.html", codes=codes)


async def end_one(context: PageContext) -> Response:
    """Ends one of the person's sessions."""
    await context.users.security.end_session(context.actor, context.number("session"))
    return context.see(_here(context), context.say("The session was signed out."))


async def end_others(context: PageContext) -> Response:
    """Ends all of the person's sessions except this one."""
    await context.users.security.end_other_sessions(context.actor)
    return context.see(_here(context), context.say("All other sessions are signed out."))


async def prefer(context: PageContext) -> Response:
    """Sets the language and time zone of the person's pages."""
    form = context.form
    language = form.choice("language", ["", *LANGUAGES])
    zone = form.choice("zone", {"", *known_zones()})
    if form.errors:
        return await show(context)
    await context.users.security.set_preferences(context.actor, language or None, zone or None)
    here = context.own_path(form["next"]) if form["next"] else _here(context)
    return context.see(here, context.say("Saved."))


async def rename(context: PageContext) -> Response:
    """Changes the person's name."""
    name = context.form.text("name", MOST_NAME)
    if context.form.errors:
        return await show(context)
    await context.users.security.set_name(context.actor, name)
    return context.see(_here(context), context.say("Saved."))


async def require_of_all(context: RequestContext) -> Response:
    """Sets whether everybody at the customer needs a second step."""
    required = context.form["required"] == "yes"
    if required and not _session(context).has_second_step:
        return context.see(_here(context), context.say("Set up your own second step first."))
    await require_second_step(context.actor, required=required)
    return context.see(_here(context), context.say("Saved."))


async def confirm_above(context: RequestContext) -> Response:
    """Sets the amount in a currency above which people must confirm a send; an empty field turns that off."""
    form = context.form
    currency = form.choice("currency", await _currencies(context))
    amount_minor = typed_amount(context, "above", currency) if not form.errors and form["above"].strip() else None
    if form.errors:
        return await show(context)
    await set_confirm_above(context.actor, currency, amount_minor)
    return context.see(_here(context), context.say("Saved."))


async def _currencies(context: RequestContext) -> list[str]:
    """Returns all currencies, starting with those of the customer's accounts."""
    return await context.read(list_currencies, context.person.customer_id)


def _zones(context: PageContext, chosen: str) -> list[tuple[str, str]]:
    """Returns the time zones to choose from, as pairs of value and label."""
    named = browser_zone(context.request).replace("_", " ")
    of_browser = context.say("As my browser: %(zone)s", zone=named) if named else context.say("As my browser")
    return [("", of_browser), ("UTC", "UTC"), *((name, name.replace("_", " ")) for name in zone_choices(chosen))]


async def ask_second_step(context: PageContext) -> Response:
    """Shows the form for the code, after the password."""
    if not _session(context).awaits_second_step:
        return context.see(context.site)
    return context.page("second_step.html", next=context.query("next"), asked=await asked(context))


async def second_step(context: PageContext) -> Response:
    """Checks the code, and gives the browser a new session cookie."""
    session = _session(context)
    if not session.awaits_second_step:
        return context.see(context.site)
    try:
        secret = await context.users.signing_in.by_second_step(
            session, SignInStep(context.form["code"], context.form["passkey"]), context.origin
        )
    except Refused:
        refused(context, "code")
        return context.page("second_step.html", next=context.form["next"], asked=await asked(context))
    context.begin(secret)
    return context.see(context.own_path(context.form["next"]))


def _app(context: PageContext, secret: bytes) -> Response:
    session = _session(context)
    return context.page(
        "app.html",
        address=totp_address(secret, session.email),
        typed=typed_secret(secret),
        sealed=context.services.vault.second_steps.seal(secret, _pending(session)).hex(),
    )


def _pending(session: SignedIn) -> bytes:
    """Returns the encryption context of a secret that no app has confirmed yet. It binds the secret to the session."""
    return b"pending/%d" % session.id


def _session(context: PageContext) -> SignedIn:
    assert context.session is not None, "only for a signed-in person"
    return context.session


def _here(context: PageContext) -> str:
    return f"{context.site}/security"
