"""Signing in and out, links that may be used once, and choosing for which customer and environment the pages are."""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.responses import Response

from largesse.base.errors import NotFound, TooManyRequests
from largesse.base.i18n.templates import text
from largesse.base.settings import ENVIRONMENTS
from largesse.customers.passwords import LONGEST, SHORTEST, weakness
from largesse.customers.sessions import choose_environment, end_session, list_memberships
from largesse.customers.sign_in import Refused
from largesse.customers.sign_in_links import Link
from largesse.db.scope import LOOKUP
from largesse.web.console.context import Visit

WEAK = {
    "short": text("At least %(shortest)s characters, please: a few words are good."),
    "long": text("At most %(longest)s characters, please."),
    "common": text("This one is too easy to guess. A few words that belong to nobody else are good."),
}


async def sign_in(visit: Visit) -> Response:
    """The form for address and password."""
    return visit.see("/app") if visit.session else visit.page("sign_in.html", next=visit.query("next"))


async def signed_in(visit: Visit) -> Response:
    """Signs in; the same is said of a wrong address and of a wrong password."""
    form = visit.form
    try:
        secret = await visit.services.signing_in.by_password(
            form["email"].strip(), form["password"], visit.origin
        )
    except Refused:
        form.error("password", visit.say("The address or the password is not right."))
        return visit.page("sign_in.html", status=403, next=form["next"])
    visit.begin(secret)
    return visit.see(own_path(form["next"]))


async def forgot(visit: Visit) -> Response:
    """The form for an address that a link is mailed to."""
    return visit.page("forgot.html", is_asked=False, can_mail=_can_mail(visit))


async def ask_link(visit: Visit) -> Response:
    """Has a link for a new password mailed; says the same whether somebody signs in by the address."""
    email = visit.form.email("email")
    if visit.form.errors:
        return visit.page("forgot.html", status=422, is_asked=False, can_mail=_can_mail(visit))
    await visit.services.signing_in.forget_password(email, visit.origin)
    return visit.page("forgot.html", is_asked=True, can_mail=_can_mail(visit))


async def sign_out(visit: Visit) -> Response:
    """Ends the session."""
    if visit.session is not None:
        async with visit.services.database.connection(LOOKUP) as connection:
            await end_session(connection, visit.session.id)
    visit.end()
    return visit.see("/app/sign-in")


async def link(visit: Visit) -> Response:
    """What a link lets do. Looking uses nothing up: scanners of mail look, too."""
    try:
        found = await _find(visit)
    except NotFound:
        return visit.page("link_ended.html", status=404)
    return _link_page(visit, found)


async def follow(visit: Visit) -> Response:
    """Uses a link: signs in by it, with a new password where it asks for one, or takes an invitation up."""
    signing_in, secret = visit.services.signing_in, visit.request.path_params["secret"]
    try:
        found = await _find(visit)
        if found.kind == "sign_in":
            visit.begin(await signing_in.by_link(secret, visit.origin))
            return visit.see("/app")
        if _is_theirs(visit, found) or (found.is_mailed and not found.chooses_password):
            return await _take_up(visit, secret, found)
        password = new_password(visit, found.email)
        if password is None:
            return _link_page(visit, found, status=422)
        if not found.chooses_password:
            return await _take_up(visit, secret, found)
        visit.begin(await signing_in.by_new_password(secret, password, visit.origin))
    except NotFound:
        return visit.page("link_ended.html", status=404)
    return visit.see("/app")


async def customers(visit: Visit) -> Response:
    """The customers there are to choose from."""
    assert visit.session is not None, "for who is signed in"
    async with visit.database.connection(LOOKUP) as connection:
        memberships = await list_memberships(connection, visit.session.person_id)
    return visit.page("customers.html", memberships=memberships)


async def choose_customer(visit: Visit) -> Response:
    """Makes the pages those of one customer. Raises NotFound for another's."""
    assert visit.session is not None, "for who is signed in"
    chosen = visit.form["user"]
    is_number = chosen.isascii() and chosen.isdigit() and len(chosen) < 10
    if not is_number or not await visit.services.signing_in.choose(visit.session, int(chosen), visit.origin):
        raise NotFound("There is no such customer.")
    return visit.see("/app")


async def switch_environment(visit: Visit) -> Response:
    """Makes the pages those of the other environment."""
    environment = visit.form.choice("environment", ENVIRONMENTS)
    if not visit.form.errors:
        async with visit.writing(changes_access=True) as connection:
            await choose_environment(connection, visit.person.session_id, environment)
    return visit.see("/app")


async def nothing(visit: Visit) -> Response:
    """For every address below ours that there is not. Raises NotFound."""
    raise NotFound(visit.request.url.path)


def new_password(visit: Visit, email: str, field: str = "password") -> str | None:
    """The new password of a form; None where something is wrong with it, which is noted there."""
    password = visit.form[field]
    weak = weakness(password, email)
    if weak:
        visit.form.error(field, visit.say(WEAK[weak], shortest=SHORTEST, longest=LONGEST))
        return None
    return password


def own_path(given: str) -> str:
    """A page of ours to go to, as a form names it; the first one for whatever is none."""
    is_ours = given == "/app" or given.startswith(("/app/", "/app?"))
    is_plain = given.isascii() and given.isprintable() and not {"\\", "#", "//", ".."} & _parts(given)
    return given if is_ours and is_plain and len(given) < 1_000 else "/app"


def _parts(given: str) -> set[str]:
    return {*given, *(given[at : at + 2] for at in range(len(given)))}


def _can_mail(visit: Visit) -> bool:
    return visit.services.settings.smtp_url is not None


def _is_theirs(visit: Visit, found: Link) -> bool:
    """Whether it is an invitation that who is signed in takes up by one click."""
    session = visit.session
    return (
        session is not None
        and session.person_id == found.person_id
        and not session.awaits_second_step
        and found.kind == "invitation"
    )


def _link_page(visit: Visit, found: Link, *, status: int = 200) -> Response:
    """The page of a link. Only where nobody but the owner of the address can see it does it say whether there is a password."""
    return visit.page("link.html", status=status, link=found, is_theirs=_is_theirs(visit, found))


async def _find(visit: Visit) -> Link:
    return await visit.services.signing_in.look_at(visit.request.path_params["secret"], visit.origin)


async def _take_up(visit: Visit, secret: str, found: Link) -> Response:
    """Takes an invitation up as who belongs to a customer already: signed in, or with the password they have."""
    signing_in = visit.services.signing_in
    if visit.session is not None and await signing_in.take_up(secret, visit.session, visit.origin):
        return visit.see("/app", visit.say("Welcome to %(customer)s.", customer=found.customer_name))
    try:
        began = await signing_in.by_password(found.email, visit.form["password"], visit.origin)
    except (Refused, TooManyRequests):
        visit.form.error("password", visit.say("That is not the password you sign in with."))
        return _link_page(visit, found, status=403)
    visit.begin(began)
    session = await signing_in.find(began)
    if session is None or not await signing_in.take_up(secret, session, visit.origin):
        # The second step comes first, and then the link once more.
        return visit.see(f"/app/second-step?{urlencode({'next': f'/app/link/{secret}'})}")
    return visit.see("/app")
