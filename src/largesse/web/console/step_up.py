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
from largesse.customers.sign_in import Refused, Step
from largesse.web.console.context import Visit
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


async def ask(visit: Visit) -> Response:
    """Asks before the page that `next` names."""
    return await _asking(visit, "/app/prove", [("next", visit.query("next"))])


async def prove(visit: Visit) -> Response:
    """Goes on to that page, once the proof that the form came with was taken."""
    visit.require_proof()
    return visit.see(own_path(visit.form["next"]))


async def ask_first(visit: Visit) -> Response:
    """Asks before the page or the form that the request is about; a form is carried along."""
    if visit.request.method == "GET":
        return visit.see("/app/prove?" + urlencode({"next": visit.address}))
    carried = visit.form.without(NOT_CARRIED).fields
    has_secret = PROOF not in visit.form and any(name in _SECRET for name, _ in visit.form.fields)
    return await _asking(visit, visit.address, carried, has_secret=has_secret)


async def take_proof(visit: Visit) -> Response | None:
    """Takes the proof that a form came with, and leaves the form that was carried; what is asked again where it was not right."""
    session = visit.session
    if PROOF not in visit.form or session is None or session.person is None or session.awaits_second_step:
        return None
    if not session.person.is_proved:
        signing_in = visit.services.signing_in
        try:
            if session.can_prove:
                await signing_in.prove(session, Step(visit.form[PROOF], visit.form["passkey"]), visit.origin)
            elif password := new_password(visit, session.email, PROOF):
                await signing_in.choose_password(session.person, password, visit.origin)
        except Refused:
            refused(visit, PROOF)
        if visit.form.errors:
            return await ask_first(visit)
        visit.session = await signing_in.find(visit.cookie) or session
    visit.form = visit.form.without(_ADDED)
    return None


def refused(visit: Visit, typed: str) -> None:
    """Notes beside what was shown of a second step that it was not right."""
    visit.form.error("passkey" if visit.form["passkey"] else typed, visit.say(_NOT_THEM))


async def _asking(
    visit: Visit, action: str, carried: Sequence[tuple[str, str]], *, has_secret: bool = False
) -> Response:
    can_prove = visit.session is None or visit.session.can_prove
    return visit.page(
        "prove.html",
        status=422 if visit.form.errors else 200,
        title=visit.say(TITLE if can_prove else _CHOOSE),
        action=action,
        carried=carried,
        has_secret=has_secret,
        asked=await asked(visit),
    )
