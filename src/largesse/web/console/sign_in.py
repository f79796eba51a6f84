"""Signing in and out, links that work once, choosing the customer and environment that the pages show, and step-up.

Step-up confirms who the person is before an important request, if they signed in a while ago.
After a GET, the person continues to the page. A posted form is carried along: the confirmation form contains its hidden fields and its token.
It posts to the same address, where every check runs again. Secrets are not carried: the person types them again. A form with
files never asks for proof, because files cannot be carried.

A person who came by a link and has no password yet cannot confirm who they are. They choose a password instead.
"""

from collections.abc import Sequence
from urllib.parse import urlencode

from starlette.responses import Response

from largesse.base.email import typed_key
from largesse.base.errors import NotFound, TooManyRequests
from largesse.base.i18n.languages import text
from largesse.base.settings import ENVIRONMENTS
from largesse.base.text import trimmed
from largesse.customers.passwords import LONGEST, SHORTEST, weakness
from largesse.customers.sessions import list_memberships
from largesse.customers.sign_in import Refused, SignInStep
from largesse.customers.sign_in_links import Link
from largesse.db.scope import LOOKUP
from largesse.web.console.context import PageContext, RequestContext
from largesse.web.console.people import ROLE_NAMES

WEAK = {
    "short": text("Use at least %(shortest)s characters. A few words work well."),
    "long": text("Use at most %(longest)s characters."),
    "common": text("This password is too easy to guess. Use a few words that only you would put together."),
}


async def sign_in(context: PageContext) -> Response:
    """Shows the form for address and password. Continues to the page in `next` if somebody has signed in, as in another tab."""
    next_page = context.query("next")
    return context.see(context.own_path(next_page)) if context.session else context.page("sign_in.html", next=next_page)


async def signed_in(context: PageContext) -> Response:
    """Signs in. A wrong address and a wrong password get the same response."""
    form = context.form
    email = typed_key(trimmed(form["email"]))  # browsers send an international domain in its `xn--` form
    try:
        secret = await context.users.signing_in.by_password(email, form["password"], context.origin)
    except Refused:
        form.error("password", context.say("The address or the password is not right."))
        return context.page("sign_in.html", status=403, next=form["next"])
    context.begin(secret)
    return context.see(context.own_path(form["next"]))


async def forgot(context: RequestContext) -> Response:
    """Shows the form that requests a link by mail."""
    return context.page("forgot.html", is_asked=False, can_mail=context.can_mail)


async def ask_link(context: RequestContext) -> Response:
    """Mails a link for a new password. A known and an unknown address get the same response."""
    email = context.form.email("email")
    if context.form.errors:
        return context.page("forgot.html", is_asked=False, can_mail=context.can_mail)
    await context.services.signing_in.forget_password(email, context.origin)
    return context.page("forgot.html", is_asked=True, can_mail=context.can_mail)


async def sign_out(context: PageContext) -> Response:
    """Ends the session."""
    if context.session is not None:
        await context.users.signing_in.sign_out(context.session)
    context.end()
    return context.see(f"{context.site}/sign-in")


async def link(context: RequestContext) -> Response:
    """Shows what a link does. Opening it does not use it up, because mail scanners open links too."""
    try:
        found = await _find(context)
    except NotFound:
        return context.page("link_ended.html", status=404)
    return _link_page(context, found)


async def follow(context: RequestContext) -> Response:
    """Uses a link: signs in, sets a new password, or accepts an invitation."""
    signing_in, secret = context.services.signing_in, context.request.path_params["secret"]
    try:
        found = await _find(context)
        if found.kind == "sign_in":
            context.begin(await signing_in.by_link(secret, context.origin))
            return context.see("/app")
        if _is_theirs(context, found) or (found.is_mailed and not found.chooses_password):
            return await _take_up(context, secret, found)
        password = new_password(context, found.email)
        if password is None:
            return _link_page(context, found)
        if not found.chooses_password:
            return await _take_up(context, secret, found)
        context.begin(await signing_in.by_new_password(secret, password, context.origin))
    except NotFound:
        return context.page("link_ended.html", status=404)
    return context.see("/app")


async def customers(context: RequestContext) -> Response:
    """Shows the customers that the person can choose from, with their role at each."""
    assert context.session is not None, "only for a signed-in person"
    async with context.database.connection(LOOKUP) as connection:
        memberships = await list_memberships(connection, context.session.person_id)
    choices = [(one.user_id, f"{one.customer_name} · {context.say(ROLE_NAMES[one.role])}") for one in memberships]
    return context.page("customers.html", choices=choices, next=context.query("next"))


async def choose_customer(context: RequestContext) -> Response:
    """Chooses the customer that the pages show, and continues to the page in `next`. Raises NotFound for one that the person does not belong to."""
    assert context.session is not None, "only for a signed-in person"
    chosen = context.form.number("user")
    if chosen is None or not await context.services.signing_in.choose(context.session, chosen, context.origin):
        raise NotFound("There is no such customer.")
    return context.see(context.own_path(context.form["next"]))


async def switch_environment(context: RequestContext) -> Response:
    """Chooses the environment that the pages show, and continues to the page in `next`."""
    environment = context.form.choice("environment", ENVIRONMENTS)
    if not context.form.errors:
        await context.services.security.choose_environment(context.actor, environment)
    return context.see(context.own_path(context.form["next"]))


async def nothing(context: PageContext) -> Response:
    """Redirects an address with a final slash to its page. Raises NotFound for other unknown paths below the root of the pages."""
    path = context.request.url.path
    if path.endswith("/"):
        return context.see(path.rstrip("/"))
    raise NotFound(path)


def new_password(context: PageContext, email: str, field: str = "password") -> str | None:
    """Returns the new password in a form; None, with an error in the form, if it is too weak."""
    password = context.form[field]
    weak = weakness(password, email)
    if weak:
        context.form.error(field, context.say(WEAK[weak], shortest=SHORTEST, longest=LONGEST))
        return None
    return password


def _is_theirs(context: RequestContext, found: Link) -> bool:
    """Returns whether the link is an invitation that the signed-in person can accept without a password."""
    session = context.session
    return (
        session is not None
        and session.person_id == found.person_id
        and not session.awaits_second_step
        and found.kind == "invitation"
    )


def _link_page(context: RequestContext, found: Link, *, status: int | None = None) -> Response:
    """Returns the page of a link. Only a mailed link shows whether the address has a password: others may see a link that was passed on."""
    return context.page("link.html", status=status, link=found, is_theirs=_is_theirs(context, found))


async def _find(context: RequestContext) -> Link:
    return await context.services.signing_in.look_at(context.request.path_params["secret"], context.origin)


async def _take_up(context: RequestContext, secret: str, found: Link) -> Response:
    """Accepts an invitation for the signed-in person, or signs in with the password in the form first."""
    signing_in = context.services.signing_in
    if context.session is not None and await signing_in.take_up(secret, context.session, context.origin):
        return context.see("/app", context.say("Welcome to %(customer)s.", customer=found.customer_name))
    try:
        began = await signing_in.by_password(found.email, context.form["password"], context.origin)
    except (Refused, TooManyRequests):
        context.form.error("password", context.say("The password is not correct."))
        return _link_page(context, found, status=403)
    context.begin(began)
    session = await signing_in.find(began)
    if session is None or not await signing_in.take_up(secret, session, context.origin):
        # The person takes the second step first, and then opens the link again.
        return context.see(f"/app/second-step?{urlencode({'next': f'/app/link/{secret}'})}")
    return context.see("/app")


PROOF = "proof"  # a form with this field contains a proof
PROOF_TITLE = text("Confirm it's you")
_CHOOSE = text("Choose a password")
MOST_PROOF_BYTES = 4096  # added by the confirmation form to the form that it carries
MOST_PROOF_FIELDS = 3
_ADDED = frozenset({PROOF, "passkey", "username"})
_SECRET = frozenset({"password", "code", "passkey"})
NOT_CARRIED = _SECRET | _ADDED | {"token"}


async def ask_proof(context: PageContext) -> Response:
    """Asks to confirm the identity before the page in `next`."""
    return await _asking(context, f"{context.site}/prove", [("next", context.query("next"))])


async def prove(context: PageContext) -> Response:
    """Confirms the identity and continues to the page in `next`."""
    context.require_proof()
    return context.see(context.own_path(context.form["next"]))


async def ask_first(context: PageContext) -> Response:
    """Asks to confirm the identity before the page or the form of the request. Carries the form along."""
    if context.request.method == "GET":
        return context.see(f"{context.site}/prove?" + urlencode({"next": context.address}))
    carried = context.form.without(NOT_CARRIED).fields
    has_secret = PROOF not in context.form and any(name in _SECRET for name, _ in context.form.fields)
    return await _asking(context, context.address, carried, has_secret=has_secret)


async def take_proof(context: PageContext) -> Response | None:
    """Checks the proof in a form and removes its fields. Returns the page that asks again if the proof is wrong, otherwise None."""
    session = context.session
    if PROOF not in context.form or session is None or session.person is None or session.awaits_second_step:
        return None
    if not session.person.is_proved:
        signing_in = context.users.signing_in
        try:
            if session.can_prove:
                await signing_in.prove(
                    session, SignInStep(context.form[PROOF], context.form["passkey"]), context.origin
                )
            elif password := new_password(context, session.email, PROOF):
                await context.users.security.choose_password(context.actor, password)
        except Refused:
            refused(context, PROOF)
        if context.form.errors:
            return await ask_first(context)
        context.session = await signing_in.find(context.cookie) or session
    context.form = context.form.without(_ADDED)
    return None


async def asked(context: PageContext) -> str | None:
    """Returns the options with which the browser asks for a passkey, as JSON; None if the person has none."""
    assert context.session is not None, "only for a signed-in person"
    return await context.users.security.ask_passkey(context.session)


def refused(context: PageContext, typed: str) -> None:
    """Adds an error to the form: the second step, or the field `typed`, is wrong."""
    context.form.error("passkey" if context.form["passkey"] else typed, context.say("That is not correct. Try again."))


async def _asking(
    context: PageContext, action: str, carried: Sequence[tuple[str, str]], *, has_secret: bool = False
) -> Response:
    can_prove = context.session is None or context.session.can_prove
    return context.page(
        "prove.html",
        title=context.say(PROOF_TITLE if can_prove else _CHOOSE),
        action=action,
        carried=carried,
        has_secret=has_secret,
        asked=await asked(context),
    )
