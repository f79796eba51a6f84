"""The page of a customer's brand: colour, texts, logo and own wrappings, with a sample mail and claim page."""

from typing import Annotated

import msgspec
from starlette.responses import Response

from largesse.base.i18n.languages import LANGUAGES, Language, text
from largesse.branding import model
from largesse.branding.model import Brand, BrandFault
from largesse.branding.service import BrandContent, WrappingContent, add_wrapping, remove_wrapping, set_brand, set_logo
from largesse.catalogue.pictures import MAX_BYTES, MAX_SIDE, MIN_SIDE
from largesse.mail.letter import GIFT, VOUCHER, Letter
from largesse.mail.letter import show as show_letter
from largesse.orders.options import DEFAULT_WRAPPING
from largesse.web.claim.pages import Previews
from largesse.web.claim.rendering import brand_styles
from largesse.web.console.context import RequestContext
from largesse.web.console.form import REQUIRED, Text
from largesse.web.console.send.message import own_wrappings
from largesse.web.console.send.preview import HIDDEN, brand_of, mail_page, of_claim
from largesse.web.kit.pages import page, public_path
from largesse.web.kit.security import OF_FORMS_WITH_FRAMES

HERE = "/app/branding"
TITLE = text("Branding")
_COLOUR = text("Type a colour of three or six hexadecimal digits, such as #17605b.")
_PICTURE = text("Choose a PNG or JPEG file of at most %(most)s KB, from %(least)s to %(side)s pixels each way.")
_WRONG = {
    "logo": _PICTURE,
    "picture": _PICTURE,
    "colour": _COLOUR,
    "paper": _COLOUR,
    "ribbon": _COLOUR,
    "subject": text("The only placeholder here is {sender}."),
    "reply_to": text("Type an e-mail address with letters from A to Z, such as name@example.com."),
    "name": text("There is a wrapping with that name, or there are %(wrappings)s already."),
}
PATTERN_NAMES = {
    "dots": text("Dots"),
    "confetti": text("Confetti"),
    "balloons": text("Balloons"),
    "hearts": text("Hearts"),
    "snow": text("Snow"),
    "pinstripes": text("Pinstripes"),
    "stars": text("Stars"),
    "diamonds": text("Diamonds"),
    "leaves": text("Foliage"),
}


class BrandForm(msgspec.Struct):
    """The texts and the colour of a brand."""

    colour: Annotated[str, Text(20, required=False)]
    sender_name: Annotated[str, Text(model.MOST_SENDER_NAME, required=False)]
    reply_to: Annotated[str, Text(254, required=False)]
    subject: Annotated[str, Text(model.MOST_SUBJECT, required=False)]
    footer: Annotated[str, Text(model.MOST_FOOTER, required=False, lines=True)]


class WrappingForm(msgspec.Struct):
    """A new wrapping of the customer."""

    name: Annotated[str, Text(model.MOST_WRAPPING_NAME)]
    pattern: Annotated[str, Text(20)]
    paper: Annotated[str, Text(20)]
    ribbon: Annotated[str, Text(20)]


async def show(context: RequestContext) -> Response:
    """Shows the brand."""
    brand = await brand_of(context)
    letter = _sample(context, brand)
    response = context.page(
        "branding.html",
        brand=brand,
        now=_now(brand),
        wrappings=own_wrappings(context, brand),
        shown=show_letter(letter, context.services.settings.mail_from),
        shown_in=_language(context),
        languages=LANGUAGES.values(),
        patterns=[(key, context.say(name)) for key, name in PATTERN_NAMES.items()],
        most_kb=MAX_BYTES // 1024,
        least_side=MIN_SIDE,
        most_side=MAX_SIDE,
        most_wrappings=model.MOST_WRAPPINGS,
        most_name=model.MOST_SENDER_NAME,
        most_subject=model.MOST_SUBJECT,
        most_footer=model.MOST_FOOTER,
        most_wrapping_name=model.MOST_WRAPPING_NAME,
    )
    response.headers.update(OF_FORMS_WITH_FRAMES)
    return response


async def save(context: RequestContext) -> Response:
    """Saves the colour and the texts."""
    brand = await brand_of(context)
    context.form.keep_others(_now(brand))
    said = context.form.read(BrandForm)
    if not context.form.errors:
        try:
            await set_brand(context.actor, BrandContent(**msgspec.structs.asdict(said)), brand)
        except BrandFault as fault:
            _note(context, fault)
    if context.form.errors:
        return await show(context)
    return context.see(HERE, context.say("Saved. Mail that leaves from now on has it."))


async def save_logo(context: RequestContext) -> Response:
    """Saves an uploaded logo."""
    content = context.files.get("logo", b"")
    if not content:
        context.form.error("logo", context.say(REQUIRED))
    else:
        try:
            await set_logo(context.actor, content)
        except BrandFault as fault:
            _note(context, fault)
    if context.form.errors:
        return await show(context)
    return context.see(HERE, context.say("The logo was saved."))


async def remove_logo(context: RequestContext) -> Response:
    """Removes the logo."""
    await set_logo(context.actor, b"")
    return context.see(HERE, context.say("The logo was removed."))


async def add_own(context: RequestContext) -> Response:
    """Adds a wrapping."""
    said = context.form.read(WrappingForm)
    context.form.choice("pattern", model.PATTERNS)
    if not context.form.errors:
        content = WrappingContent(said.name, said.pattern, said.paper, said.ribbon, context.files.get("picture", b""))
        try:
            await add_wrapping(context.actor, content)
        except BrandFault as fault:
            _note(context, fault)
    if context.form.errors:
        return await show(context)
    return context.see(f"{HERE}#wrappings", context.say("The wrapping %(name)s was added.", name=said.name))


async def remove_own(context: RequestContext) -> Response:
    """Removes a wrapping. Raises NotFound."""
    await remove_wrapping(context.actor, context.request.path_params["key"])
    return context.see(f"{HERE}#wrappings", context.say("The wrapping was removed."))


async def mail(context: RequestContext) -> Response:
    """Returns a sample mail with the brand, as a separate document for a frame."""
    letter = _sample(context, await brand_of(context))
    return mail_page(show_letter(letter, context.services.settings.mail_from).html)


async def claim(context: RequestContext) -> Response:
    """Returns a sample claim page with the brand, as a separate document for a frame."""
    brand = await brand_of(context)
    html = Previews(context.services.settings).link(
        _language(context), environment=context.person.environment, sender=context.person.name, brand=brand
    )
    return page(html, of_claim(brand_styles(brand, None)))


def _now(brand: Brand) -> dict[str, str]:
    """Returns what the fields of the colour and the texts show."""
    return {name: getattr(brand, name) or "" for name in BrandForm.__struct_fields__}


def _note(context: RequestContext, fault: BrandFault) -> None:
    """Adds an error to the form for each part of the brand that is wrong."""
    number = context.language.number
    limits = {"most": number(MAX_BYTES // 1024), "least": number(MIN_SIDE), "side": number(MAX_SIDE)}
    for part, detail in fault.parts.items():
        said = _WRONG.get(part)
        context.form.error(part, context.say(said, wrappings=model.MOST_WRAPPINGS, **limits) if said else detail)


def _language(context: RequestContext) -> Language:
    return LANGUAGES.get(context.query("lang")) or context.language


def _sample(context: RequestContext, brand: Brand) -> Letter:
    """Returns a sample mail, with a placeholder for the code."""
    return Letter(
        kind=GIFT,
        reference="",
        edition=0,
        environment=context.person.environment,
        language=_language(context),
        email=context.person.email,
        name=None,
        sender=context.person.name,
        message=context.say("Thank you for everything you did this year."),
        wrapping_key=DEFAULT_WRAPPING,
        gift=context.say("A gift of your choice"),
        comes_as=VOUCHER,
        value_minor=2500,
        currency="EUR",
        expiry_days=None,
        recipients=1,
        codes=[HIDDEN],
        brand=brand,
        pictures=public_path(context.services.settings.public_url),
    )
