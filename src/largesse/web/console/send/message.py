"""The message step of a send: wrapping, sender and message, beside previews of the mail and the claim page."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import msgspec
from markupsafe import Markup
from msgspec.structs import replace
from starlette.responses import Response

from largesse.base.i18n.languages import text
from largesse.branding.model import Brand
from largesse.contacts.groups import list_fields
from largesse.orders import placeholders
from largesse.orders.options import (
    DEFAULT_WRAPPING,
    MAX_FROM_NAME,
    MAX_MESSAGE,
    MAX_WRAPPING_KEY,
    Options,
    known_wrapping,
)
from largesse.web.claim.rendering import draw_own_wrapping, draw_wrapping
from largesse.web.console.context import RequestContext
from largesse.web.console.form import Text
from largesse.web.console.send import preview
from largesse.web.console.send.opening import Chosen, Open, change, chosen, open_draft, step
from largesse.web.kit.pages import public_path
from largesse.web.kit.security import OF_FORMS_WITH_FRAMES

# The names of the wrappings.
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


_BUILT_IN = {
    placeholders.FIRST_NAME: text("First name"),
    placeholders.NAME: text("Name"),
    placeholders.COMPANY: text("Your company"),
}
_UNKNOWN = text("Unknown: %(placeholders)s. Choose from the placeholders below.")


class MessageForm(msgspec.Struct):
    """The wrapping of a gift, its sender and their message."""

    wrapping_key: Annotated[str, Text(MAX_WRAPPING_KEY)]
    from_name: Annotated[str, Text(MAX_FROM_NAME, required=False)]
    message: Annotated[str, Text(MAX_MESSAGE, required=False, lines=True)]


class OfferedWrapping(NamedTuple):
    """A wrapping to choose, with its drawing."""

    key: str
    name: str
    drawn: Markup


async def offered_wrappings(context: RequestContext) -> list[OfferedWrapping]:
    """Returns the wrappings to choose from, the customer's own first."""
    own = own_wrappings(context, await preview.brand_of(context))
    return [*own, *(OfferedWrapping(key, context.say(name), draw_wrapping(key)) for key, name in NAMES.items())]


def own_wrappings(context: RequestContext, brand: Brand) -> list[OfferedWrapping]:
    """Returns the customer's own wrappings."""
    base = public_path(context.services.settings.public_url)
    return [OfferedWrapping(one.key, one.name, draw_own_wrapping(one, base)) for one in brand.wrappings]


def chosen_wrapping(key: str | None, offered: Sequence[OfferedWrapping]) -> str:
    """Returns `key` if it is offered, otherwise the built-in wrapping that it names, otherwise the default."""
    return key if key in {one.key for one in offered} else known_wrapping(key or DEFAULT_WRAPPING)


def check_wrapping(context: RequestContext, offered: Sequence[OfferedWrapping]) -> None:
    """Adds an error to the form if its wrapping is not offered."""
    context.form.choice("wrapping_key", [one.key for one in offered])


async def write(context: RequestContext) -> Response:
    """Shows the form with previews of the draft."""
    return await _show(context, await open_draft(context))


async def take(context: RequestContext) -> Response:
    """Saves wrapping, sender and message. Then sends a test, shows the previews, or goes to the next step."""
    opened, form = await open_draft(context), context.form
    offered = await offered_wrappings(context)
    form.keep_others(_shown(await chosen(context, opened), offered), {one.key: one.name for one in offered})
    said = form.read(MessageForm)
    check_wrapping(context, offered)
    if unknown := placeholders.unknown_placeholders(
        said.message, [name for name, _ in await offered_placeholders(context)]
    ):
        form.error("message", context.say(_UNKNOWN, placeholders=", ".join(unknown)))
    if form.errors:
        return await _show(context, opened)
    texts = {"wrapping_key": said.wrapping_key, "from_name": said.from_name or None, "message": said.message or None}
    await change(context, opened, has_texts=True, **texts)
    if form["then"] == "try":
        return await _tried(context, await open_draft(context))
    return context.see(f"{opened.path}/{'message' if form['then'] == 'look' else 'delivery'}")


async def mail(context: RequestContext) -> Response:
    """Returns the preview of the mail, as a separate document for a frame."""
    opened = await open_draft(context)
    return await preview.mail_document(context, *await _to_first(context, opened))


async def claim(context: RequestContext) -> Response:
    """Returns the preview of the claim page, as a separate document for a frame."""
    opened = await open_draft(context)
    return await preview.claim_document(context, *await _to_first(context, opened))


async def _tried(context: RequestContext, opened: Open) -> Response:
    """Sends the current mail to the person, as a test."""
    (said, _), here = await _to_first(context, opened), f"{opened.path}/message"
    if said is None or opened.content.code_quantity is not None:
        return context.see(here)
    return context.see(here, await preview.send_test(context, said))


def _shown(said: Chosen | None, offered: Sequence[OfferedWrapping]) -> dict[str, str]:
    """Returns what the fields show."""
    options = said.options if said else Options()
    return {
        "wrapping_key": chosen_wrapping(options.wrapping_key, offered),
        "from_name": options.from_name or "",
        "message": options.message or "",
    }


async def _show(context: RequestContext, opened: Open) -> Response:
    said = await chosen(context, opened)
    language = preview.language_of(context, said) if said else context.language
    # The previews show what is saved, which is not what a refused form holds.
    shown = await preview.letter_shown(context, said, language, None) if said and not context.form.errors else None
    wrappings = await offered_wrappings(context)
    now = _shown(said, wrappings)
    response = await step(
        context,
        opened,
        "message",
        chosen=said,
        wrappings=wrappings,
        wrapping=chosen_wrapping(context.form["wrapping_key"] or now["wrapping_key"], wrappings),
        now=now,
        shown=shown,
        placeholders=await offered_placeholders(context),
        may_try=said is not None and preview.may_try(context),
        shown_in=language,
        is_batch=opened.content.code_quantity is not None,
        most_name=MAX_FROM_NAME,
        most_message=MAX_MESSAGE,
    )
    response.headers.update(OF_FORMS_WITH_FRAMES)
    return response


async def _to_first(context: RequestContext, opened: Open) -> tuple[Chosen | None, str | None]:
    """Returns the gift with its message as the first recipient reads it, and their name."""
    principal, said = opened.caller.principal, await chosen(context, opened)
    checked = await context.services.drafts.rows.checked(principal, opened.draft)
    first = checked.recipients[:1]
    name = first[0].name if first else None
    if said is None or said.options.message is None or not placeholders.has_placeholders(said.options.message):
        return said, name
    message = placeholders.fill_for_nobody(principal, said.options.message)
    if first:
        (message,) = await context.read(placeholders.fill_in, principal, said.options.message, first)
    return replace(said, options=msgspec.structs.replace(said.options, message=message or None)), name


async def offered_placeholders(context: RequestContext) -> list[tuple[str, str]]:
    """Returns the placeholders that a message may have, each with its label."""
    fields = await context.read(list_fields, context.customer)
    return [*((name, context.say(said)) for name, said in _BUILT_IN.items()), *((one.key, one.name) for one in fields)]
