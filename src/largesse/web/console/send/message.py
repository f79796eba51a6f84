"""Wrapping, sender and message; beside it the mail and the claim page as their recipient will see them."""

from __future__ import annotations

from starlette.responses import Response

from largesse.base.i18n import LANGUAGES, Language, language_of_country, text
from largesse.delivery.mail.letter import CHOICE, GIFT, PARCEL, VOUCHER, Letter, LetterCode, Shown, show
from largesse.orders import MAX_FROM_NAME, MAX_MESSAGE
from largesse.orders.wrappings import DEFAULT_WRAPPING, WRAPPINGS
from largesse.web.claim.preview import Previews
from largesse.web.console.send.opening import Chosen, Open, change, chosen, open_draft, step
from largesse.web.console.visit import Visit
from largesse.web.kit.pages import page
from largesse.web.kit.security import OF_FORMS_WITH_FRAMES, content_policy, page_headers
from largesse.web.kit.styles import with_named_styles

_OF_CLAIM = page_headers(content_policy(style_src="'self'", img_src="'self'", frame_ancestors="'self'"))
_HIDDEN = LetterCode("\N{BULLET}" * 4 + "-" + "\N{BULLET}" * 4, "\N{BULLET}" * 6, "#")


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
    return visit.see(f"{opened.path}/{'message' if form['then'] == 'look' else 'delivery'}")


async def mail(visit: Visit) -> Response:
    """The mail, as a document of its own."""
    opened = await open_draft(visit)
    said = await chosen(visit, opened)
    if said is None:
        return _mail("")
    name = await _name(visit, opened)
    return _mail(_letter(visit, opened, said, _language(visit, said), name).html)


async def claim(visit: Visit) -> Response:
    """The claim page, as a document of its own."""
    opened = await open_draft(visit)
    said = await chosen(visit, opened)
    if said is None:
        return page("", _OF_CLAIM)
    html = Previews(visit.services.settings).link(
        _language(visit, said),
        environment=visit.person.environment,
        wrapping=said.options.wrapping_key,
        sender=said.options.from_name,
        recipient=await _name(visit, opened),
    )
    return page(html, _OF_CLAIM)


def _mail(html: str) -> Response:
    """A mail as a page, which runs nothing, loads nothing, and leads nowhere."""
    document, styles = with_named_styles(html)
    policy = content_policy(style_src=styles, frame_ancestors="'self'")
    return page(document, page_headers(f"{policy}; sandbox"))


async def _show(visit: Visit, opened: Open, *, status: int = 200) -> Response:
    said = await chosen(visit, opened)
    language = _language(visit, said) if said else visit.language
    shown = None if said is None else _letter(visit, opened, said, language, None)
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
        shown_in=language,
        is_batch=opened.content.code_quantity is not None,
        most_name=MAX_FROM_NAME,
        most_message=MAX_MESSAGE,
    )
    response.headers.update(OF_FORMS_WITH_FRAMES)
    return response


def _language(visit: Visit, said: Chosen) -> Language:
    """The language asked for, else that of the country the gift is for, which is the mail's."""
    return LANGUAGES.get(visit.query("lang")) or language_of_country(said.gift.country)


def _letter(visit: Visit, opened: Open, said: Chosen, language: Language, name: str | None) -> Shown:
    gift, options = said.gift, said.options
    is_parcel = said.product is not None and not said.product.is_digital
    letter = Letter(
        kind=GIFT,
        reference=opened.draft.id,
        edition=0,
        environment=visit.person.environment,
        language=language,
        email=visit.person.email,
        name=name,
        sender=options.from_name,
        message=options.message,
        wrapping_key=options.wrapping_key or DEFAULT_WRAPPING,
        gift=said.name,
        comes_as=CHOICE if said.collection else PARCEL if is_parcel else VOUCHER,
        value_minor=None if is_parcel else gift.value_minor,
        currency=gift.currency,
        expiry_days=None,
        recipients=1,
        codes=[_HIDDEN],
    )
    return show(letter, visit.services.settings.mail_from)


async def _name(visit: Visit, opened: Open) -> str | None:
    """The name of the first recipient."""
    checked = await visit.services.drafts.recipients(opened.caller.principal, opened.draft)
    return checked.recipients[0].name if checked.recipients else None
