"""Step-up: confirms who the person is before an important request, if they signed in a while ago.

After a GET, the person continues to the page. A posted form is carried along: the confirmation form contains its hidden fields and its token.
It posts to the same address, where every check runs again. Secrets are not carried: the person types them again. A form with
files never asks for proof, because files cannot be carried.

A person who came by a link and has no password yet cannot confirm who they are. They choose a password instead.
"""

from collections.abc import Sequence
from urllib.parse import urlencode

from starlette.responses import Response

from largesse.base.i18n.languages import text
from largesse.customers.sign_in import Refused, SignInStep
from largesse.web.console.context import PageContext
from largesse.web.console.sign_in import new_password

PROOF = "proof"  # a form with this field contains a proof
TITLE = text("Confirm it's you")
_CHOOSE = text("Choose a password")
MOST_BYTES = 4096  # added by the confirmation form to the form that it carries
MOST_FIELDS = 3
_ADDED = frozenset({PROOF, "passkey", "username"})
_SECRET = frozenset({"password", "code", "passkey"})
NOT_CARRIED = _SECRET | _ADDED | {"token"}


async def ask(context: PageContext) -> Response:
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
        signing_in = context.signing_in
        try:
            if session.can_prove:
                await signing_in.prove(
                    session, SignInStep(context.form[PROOF], context.form["passkey"]), context.origin
                )
            elif password := new_password(context, session.email, PROOF):
                await context.security.choose_password(context.actor, password)
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
    return await context.security.ask_passkey(context.session)


def refused(context: PageContext, typed: str) -> None:
    """Adds an error to the form: the second step, or the field `typed`, is wrong."""
    context.form.error("passkey" if context.form["passkey"] else typed, context.say("That is not correct. Try again."))


async def _asking(
    context: PageContext, action: str, carried: Sequence[tuple[str, str]], *, has_secret: bool = False
) -> Response:
    can_prove = context.session is None or context.session.can_prove
    return context.page(
        "prove.html",
        title=context.say(TITLE if can_prove else _CHOOSE),
        action=action,
        carried=carried,
        has_secret=has_secret,
        asked=await asked(context),
    )
