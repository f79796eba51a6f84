"""Wrapping, sender and message; beside it the mail and the claim page as their recipient will see them."""

from __future__ import annotations

from starlette.responses import Response

from largesse.base.i18n.templates import text
from largesse.orders.options import DEFAULT_WRAPPING, MAX_FROM_NAME, MAX_MESSAGE, WRAPPINGS
from largesse.web.console.context import Visit
from largesse.web.console.send.opening import Open, change, chosen, open_draft, step
from largesse.web.console.send.preview import claim_document, language_of, letter_shown, mail_document
from largesse.web.console.send.test_mail import may_try, send_test
from largesse.web.kit.security import OF_FORMS_WITH_FRAMES

# How wrappings are called.
NAMES = {
    "default": text("Plain"),
    "confetti": text("Confetti"),
    "birthday": text("Birthday"),
    "thank-you": text("Thank you"),
    "winter": text("Winter"),
    "elegant": text("Elegant"),
    "stars": text("Stars"),
    "gold": text("Gold"),
    "garden": text("Garden"),
}


async def write(visit: Visit) -> Response:
    """The form, with what it will look like so far."""
    return await _show(visit, await open_draft(visit))


async def take(visit: Visit) -> Response:
    """Takes wrapping, sender and message; then shows them, or goes on."""
    opened, form = await open_draft(visit), visit.form
    wrapping = form.choice("wrapping_key", WRAPPINGS)
    from_name = form.text("from_name", MAX_FROM_NAME, required=False)
    message = form.text("message", MAX_MESSAGE, required=False, lines=True)
    if form.errors:
        return await _show(visit, opened, status=422)
    await change(visit, opened, wrapping_key=wrapping, from_name=from_name or None, message=message or None)
    if form["then"] == "try":
        return await _tried(visit, await open_draft(visit))
    return visit.see(f"{opened.path}/{'message' if form['then'] == 'look' else 'delivery'}")


async def mail(visit: Visit) -> Response:
    """The mail, as a document of its own."""
    opened = await open_draft(visit)
    return await mail_document(visit, await chosen(visit, opened), await _name(visit, opened))


async def claim(visit: Visit) -> Response:
    """The claim page, as a document of its own."""
    opened = await open_draft(visit)
    return claim_document(visit, await chosen(visit, opened), await _name(visit, opened))


async def _tried(visit: Visit, opened: Open) -> Response:
    """Sends them the mail as it is now, as a test."""
    said, here = await chosen(visit, opened), f"{opened.path}/message"
    if said is None or opened.content.code_quantity is not None:
        return visit.see(here)
    return visit.see(here, await send_test(visit, said))


async def _show(visit: Visit, opened: Open, *, status: int = 200) -> Response:
    said = await chosen(visit, opened)
    language = language_of(visit, said) if said else visit.language
    shown = None if said is None else await letter_shown(visit, said, language, None)
    options = said.options if said else None
    response = await step(
        visit,
        opened,
        "message",
        status=status,
        chosen=said,
        wrappings=WRAPPINGS,
        wrapping_names={key: visit.say(name) for key, name in NAMES.items()},
        wrapping=visit.form["wrapping_key"]
        or (options.wrapping_key if options and options.wrapping_key in WRAPPINGS else DEFAULT_WRAPPING),
        from_name=(options.from_name if options else None) or "",
        message=(options.message if options else None) or "",
        shown=shown,
        may_try=shown is not None and may_try(visit),
        shown_in=language,
        is_batch=opened.content.code_quantity is not None,
        most_name=MAX_FROM_NAME,
        most_message=MAX_MESSAGE,
    )
    response.headers.update(OF_FORMS_WITH_FRAMES)
    return response


async def _name(visit: Visit, opened: Open) -> str | None:
    """The name of the first recipient."""
    checked = await visit.services.drafts.recipients(opened.caller.principal, opened.draft)
    return checked.recipients[0].name if checked.recipients else None
