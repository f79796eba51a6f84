"""Asking who signed in a while ago whether it is still them, before what matters is done.

Who asked for a page goes on to it. A form that was posted is carried along: its fields stand hidden in the form that asks, which goes where the
first one went and has its token, so that it meets every guard again; then it is carried out. What is secret in it is not carried, and asked for
once more. No form with files asks for proof: none could be carried.

Who was let in by a link and has no password yet has nothing to show. They choose one, the first time that it matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from starlette.responses import Response

from largesse.base.i18n.templates import text
from largesse.customers.sign_in import Refused, SignInStep
from largesse.web.console.context import RequestContext
from largesse.web.console.passkeys import asked
from largesse.web.console.sign_in import new_password, own_path

PROOF = "proof"  # the field by which a form is one that proves
TITLE = text("Is it still you?")
_CHOOSE = text("Choose a password")
MOST_BYTES = 4096  # of what the form that asks adds to the one it carries
MOST_FIELDS = 3
_ADDED = frozenset({PROOF, "passkey", "username"})
_SECRET = frozenset({"password", "code", "passkey"})
NOT_CARRIED = _SECRET | _ADDED | {"token"}
_NOT_THEM = text("That is not right. Try again.")


async def ask(context: RequestContext) -> Response:
    """Asks before the page that `next` names."""
    return await _asking(context, "/app/prove", [("next", context.query("next"))])


async def prove(context: RequestContext) -> Response:
    """Goes on to that page, once the proof that the form came with was taken."""
    context.require_proof()
    return context.see(own_path(context.form["next"]))


async def ask_first(context: RequestContext) -> Response:
    """Asks before the page or the form that the request is about; a form is carried along."""
    if context.request.method == "GET":
        return context.see("/app/prove?" + urlencode({"next": context.address}))
    carried = context.form.without(NOT_CARRIED).fields
    has_secret = PROOF not in context.form and any(name in _SECRET for name, _ in context.form.fields)
    return await _asking(context, context.address, carried, has_secret=has_secret)


async def take_proof(context: RequestContext) -> Response | None:
    """Takes the proof that a form came with, and leaves the form that was carried; what is asked again where it was not right."""
    session = context.session
    if PROOF not in context.form or session is None or session.person is None or session.awaits_second_step:
        return None
    if not session.person.is_proved:
        signing_in = context.services.signing_in
        try:
            if session.can_prove:
                await signing_in.prove(
                    session, SignInStep(context.form[PROOF], context.form["passkey"]), context.origin
                )
            elif password := new_password(context, session.email, PROOF):
                await context.services.security.choose_password(context.actor, password)
        except Refused:
            refused(context, PROOF)
        if context.form.errors:
            return await ask_first(context)
        context.session = await signing_in.find(context.cookie) or session
    context.form = context.form.without(_ADDED)
    return None


def refused(context: RequestContext, typed: str) -> None:
    """Notes beside what was shown of a second step that it was not right."""
    context.form.error("passkey" if context.form["passkey"] else typed, context.say(_NOT_THEM))


async def _asking(
    context: RequestContext, action: str, carried: Sequence[tuple[str, str]], *, has_secret: bool = False
) -> Response:
    can_prove = context.session is None or context.session.can_prove
    return context.page(
        "prove.html",
        status=422 if context.form.errors else 200,
        title=context.say(TITLE if can_prove else _CHOOSE),
        action=action,
        carried=carried,
        has_secret=has_secret,
        asked=await asked(context),
    )
