"""Previews of the mail and the claim page of a gift, each a separate document to show in a frame, and a test mail to the sender."""

from collections.abc import Mapping
from datetime import date

import msgspec
from msgspec.structs import replace
from starlette.responses import Response

from largesse.base import clock
from largesse.base.errors import TooManyRequests
from largesse.base.i18n.languages import LANGUAGES, Language, language_of_country
from largesse.base.zones import last_whole_day
from largesse.branding.model import Brand
from largesse.branding.service import read_brand
from largesse.catalogue.model import NOTHING_SAID
from largesse.catalogue.pictures import picture_path
from largesse.catalogue.store import read_details
from largesse.customers.sign_in_limits import Allowance, spend
from largesse.mail.letter import CHOICE, GIFT, PARCEL, VOUCHER, Letter, LetterCode, Shown, show, write
from largesse.mail.service import send_test_mail
from largesse.orders.options import DEFAULT_WRAPPING
from largesse.web.claim.pages import Previews
from largesse.web.claim.rendering import brand_styles
from largesse.web.console.context import RequestContext
from largesse.web.console.send.opening import Chosen
from largesse.web.kit.pages import page, public_path
from largesse.web.kit.security import content_policy, named_style, page_headers, with_named_styles

HIDDEN = LetterCode("\N{BULLET}" * 4 + "-" + "\N{BULLET}" * 4, "\N{BULLET}" * 6, "#")


class Held(msgspec.Struct, frozen=True):
    """Previews of a gift that is not saved yet: whole documents, which a page embeds in frames (`srcdoc`)."""

    sender: str
    subject: str
    mail: str
    claim: str
    styles: str  # the sources of both documents' styles, for the page's content policy


def language_of(context: RequestContext, said: Chosen) -> Language:
    """Returns the language in the address, otherwise the language of the gift's country, in which the mail is sent."""
    return LANGUAGES.get(context.query("lang")) or language_of_country(said.gift.country)


async def mail_document(context: RequestContext, said: Chosen | None, name: str | None) -> Response:
    """Returns the mail to a recipient with that name; empty if no gift is chosen."""
    html = ""
    if said is not None:
        html = (await letter_shown(context, said, language_of(context, said), name)).html
    return mail_page(html)


def mail_page(html: str) -> Response:
    """Returns a mail for a frame. It runs no scripts, loads only our pictures, and its links do not work."""
    document, styles = with_named_styles(html)
    policy = content_policy(style_src=styles, img_src="'self'", frame_ancestors="'self'")
    return page(document, page_headers(f"{policy}; sandbox"))


async def claim_document(context: RequestContext, said: Chosen | None, name: str | None) -> Response:
    """Returns the page behind the claim link; empty if no gift is chosen."""
    if said is None:
        return page("", of_claim(""))
    brand = await brand_of(context)
    shown = _claim_page(context, said, language_of(context, said), name, brand)
    return page(shown, of_claim(brand_styles(brand, said.options.wrapping_key)))


def of_claim(styles: str) -> Mapping[str, str]:
    """Returns the headers of a claim page in a frame. They allow the styles of its brand."""
    return page_headers(
        content_policy(style_src=f"'self' {named_style(styles)}".strip(), img_src="'self'", frame_ancestors="'self'")
    )


async def brand_of(context: RequestContext) -> Brand:
    """Returns the brand of the person's customer."""
    return await context.read(read_brand, context.person.customer_id)


async def held(context: RequestContext, said: Chosen, language: Language) -> Held:
    """Returns the previews of a gift, for a recipient without a name."""
    shown = await letter_shown(context, said, language, None)
    mail, styles = with_named_styles(shown.html)
    brand = await brand_of(context)
    named = f"{styles} {named_style(brand_styles(brand, said.options.wrapping_key))}".strip()
    return Held(shown.sender, shown.subject, mail, _claim_page(context, said, language, None, brand), named)


async def letter_shown(context: RequestContext, said: Chosen, language: Language, name: str | None) -> Shown:
    """Returns the rendered mail."""
    return show(await letter_of(context, said, language, name), context.services.settings.mail_from)


async def letter_of(context: RequestContext, said: Chosen, language: Language, name: str | None) -> Letter:
    """Returns the mail to a recipient with that name, with a placeholder for the code."""
    gift, options, product = said.gift, said.options, said.product
    is_parcel = product is not None and not product.is_digital
    details = NOTHING_SAID
    # Paths of pictures have no host: the page may be open under any of our host names.
    base = public_path(context.services.settings.public_url)
    if product is not None:
        details = (await context.read(read_details, [product.id])).get(product.id, details)
    return Letter(
        kind=GIFT,
        reference="",
        edition=0,
        environment=context.person.environment,
        language=language,
        email=context.person.email,
        name=name,
        sender=options.from_name,
        message=options.message,
        wrapping_key=options.wrapping_key or DEFAULT_WRAPPING,
        gift=said.name,
        comes_as=CHOICE if said.collection else PARCEL if is_parcel else VOUCHER,
        value_minor=None if is_parcel else gift.value_minor,
        currency=gift.currency,
        expiry_days=None,
        claim_by=_last_day(said),
        recipients=1,
        codes=[HIDDEN],
        picture=base + picture_path(product.picture) if product and product.picture else None,
        details=details,
        brand=await brand_of(context),
        pictures=base,
    )


def _last_day(said: Chosen) -> date | None:
    """Returns the last day on which the gift can be claimed; None without a claim-by date."""
    return said.claim_by and last_whole_day(said.claim_by, said.gift.country)


def _claim_page(context: RequestContext, said: Chosen, language: Language, name: str | None, brand: Brand) -> str:
    return Previews(context.services.settings).link(
        language,
        environment=context.person.environment,
        wrapping=said.options.wrapping_key,
        sender=said.options.from_name,
        recipient=name,
        until=_last_day(said),
        brand=brand,
    )


def may_try(context: RequestContext) -> bool:
    """Returns whether a test mail can be delivered, to a mail server or to the captured mailbox."""
    return context.services.settings.smtp_url is not None or _is_captured(context)


async def send_test(context: RequestContext, said: Chosen) -> str:
    """Mails the gift to the person, marked as a test, and returns the notice. In test mode the mail is captured, like all mail."""
    person, services = context.person, context.services
    if not may_try(context):
        return context.say("No mail server is set here: nothing was sent.")
    try:
        await spend(services.database, services.vault, Allowance.TESTS, b"%d" % person.person_id)
    except TooManyRequests:
        return context.say("Too many attempts. Wait a minute and try again.")
    public_url, at = services.settings.public_url_of(person.environment), clock.now().timestamp()
    letter = await letter_of(context, said, language_of(context, said), person.name)
    test = replace(
        letter,
        is_test=True,
        edition=int(at * 1000),  # so that mail programs show each test mail separately
        codes=[replace(code, link=f"{public_url}/claim") for code in letter.codes],
        pictures=public_url,
        picture=public_url + picture_path(said.product.picture) if said.product and said.product.picture else None,
    )
    written = write(test, services.settings.mail_from, at=at)
    is_captured = _is_captured(context)
    await send_test_mail(
        context.actor, services.vault, written, recipient=person.email, subject=test.subject, is_captured=is_captured
    )
    if not is_captured:
        return context.say("A test mail to %(email)s is on its way.", email=person.email)
    return context.say("A test mail to %(email)s is in the test mailbox.", email=person.email)


def _is_captured(context: RequestContext) -> bool:
    return context.person.environment == "staging" or context.services.captures
