"""Shared by the pages of a send: the open draft, its gift, the price of a template's gift, and the layout of a step."""

from datetime import datetime

import msgspec
from starlette.responses import Response

from largesse.base.errors import InvalidRequest, NotFound
from largesse.base.i18n.languages import text
from largesse.base.money import to_number
from largesse.catalogue.model import Collection, Product, can_be_sent, gift_price
from largesse.catalogue.snapshot import Snapshot
from largesse.customers.authenticator import Caller, person_calls, viewer_calls
from largesse.drafts.model import Draft, DraftContent
from largesse.drafts.store import read_draft
from largesse.orders.options import Options
from largesse.orders.order import Gift
from largesse.orders.request import DEFAULT_COUNTRY
from largesse.templates.store import Template, read_template
from largesse.web.console.context import RequestContext

STEPS = (
    ("gift", text("Gift")),
    ("recipients", text("Recipients")),
    ("message", text("Message")),
    ("delivery", text("When and who pays")),
    ("review", text("Review")),
)


# Further pages of a step.
_BELONGING = {"contacts": "recipients"}


class NewPrice(msgspec.Struct, frozen=True):
    """Another price than the one with which a template was saved, in minor units of its currency."""

    before_minor: int  # face values; of a parcel without postage and VAT
    value_minor: int
    cost_minor: int  # what a gift costs today, with postage and VAT
    is_parcel: bool

    @property
    def seen(self) -> str:
        """The text that a form carries, so that it saves only the price that was shown."""
        return f"{self.value_minor}/{self.cost_minor}"


def new_price(snapshot: Snapshot, customer_id: int, template: Template) -> NewPrice | None:
    """Returns today's price of a template's gift; None if it is the saved one, has to be chosen, or the gift cannot be sent at all."""
    product = _product(snapshot, customer_id, template)
    if product is None or product.currency != template.currency:
        return None
    try:
        price = gift_price(product, template.country or DEFAULT_COUNTRY, None)
    except InvalidRequest:
        return None
    if price.value_minor == template.value_minor:
        return None
    return NewPrice(template.value_minor, price.value_minor, price.unit_cost_minor, not product.is_digital)


def is_sendable(snapshot: Snapshot, customer_id: int, template: Template) -> bool:
    """Returns whether the gift of a template can be sent, at its value."""
    country = template.country or DEFAULT_COUNTRY
    gift = (
        snapshot.product(template.product_id, country, customer_id)
        if template.product_id
        else snapshot.collection(template.collection_id or 0, customer_id)
    )
    return gift is not None and can_be_sent(gift, customer_id, country, template.currency, template.value_minor)


def cost_minor(snapshot: Snapshot, customer_id: int, template: Template) -> int:
    """Returns what the gift of a template costs, with postage and VAT; its value if it cannot be sent."""
    product = _product(snapshot, customer_id, template)
    if product is None or not is_sendable(snapshot, customer_id, template):
        return template.value_minor
    value = to_number(template.value_minor, template.currency)
    return gift_price(product, template.country or DEFAULT_COUNTRY, value).unit_cost_minor


def _product(snapshot: Snapshot, customer_id: int, template: Template) -> Product | None:
    return snapshot.product(template.product_id or 0, template.country or DEFAULT_COUNTRY, customer_id)


class Chosen(msgspec.Struct, frozen=True):
    """The gift of a draft, as pages show it."""

    gift: Gift
    options: Options  # the draft's options, completed from its template
    name: str
    product: Product | None
    collection: Collection | None
    claim_by: datetime | None = None  # the claim-by date of its order


class Repriced(msgspec.Struct, frozen=True):
    """The template of a draft, whose gift has another price than when the template was saved."""

    template: Template
    new_price: NewPrice


class Open(msgspec.Struct, frozen=True):
    """A draft that a person has open."""

    caller: Caller
    draft: Draft
    snapshot: Snapshot

    @property
    def content(self) -> DraftContent:
        """The values entered so far."""
        return self.draft.content

    @property
    def path(self) -> str:
        """The path of the draft's pages."""
        return f"/app/send/{self.draft.id}"


async def person_as_caller(context: RequestContext) -> Caller:
    """Returns the person as the caller of an order. Raises Unauthorized if they were just removed."""
    person = context.person
    async with context.database.connection(person.scope) as connection:
        if person.is_of_staff:
            return await viewer_calls(connection, person.principal)
        return await person_calls(
            connection,
            user_id=person.user_id,
            customer_id=person.customer_id,
            environment=person.environment,
            session_id=person.session_id,
            address=context.origin.address,
        )


async def caller_and_catalogue(context: RequestContext) -> tuple[Caller, Snapshot]:
    """Returns the person as the caller of an order, and the current catalogue. Raises Unauthorized if they were just removed."""
    caller = await person_as_caller(context)
    return caller, await context.services.catalogue.of(caller)


async def open_draft(context: RequestContext, draft_id: str | None = None, *, of_campaign: bool = False) -> Open:
    """Returns the draft of the path, or of `draft_id`. Raises NotFound if it is not the person's, or was sent.

    Opens the draft of a campaign only with `of_campaign`: only the pages of the campaign change it.
    """
    caller = await person_as_caller(context)
    draft = await context.read(read_draft, caller.principal, draft_id or context.request.path_params["draft"])
    if draft.content.is_campaign and not of_campaign:
        raise NotFound("A campaign's draft is changed on the page of the campaign.")
    return Open(caller, draft, await context.services.catalogue.of(caller))


async def change(context: RequestContext, opened: Open, **fields: object) -> None:
    """Saves fields of the draft. Raises NotFound, and ReadAgain if they have changed since it was opened."""
    await context.services.drafts.change(context.actor, opened.draft.id, opened.content, **fields)


async def chosen(context: RequestContext, opened: Open) -> Chosen | None:
    """Returns the gift of the draft; None if none is chosen, or it can no longer be sent."""
    if opened.content.choice is None:
        return None
    try:
        gift, options = await context.services.drafts.gift(opened.caller, opened.draft)
    except InvalidRequest:
        return None
    customer_id = opened.caller.principal.customer_id
    product = collection = None
    if gift.product_id is not None:
        product = opened.snapshot.product(gift.product_id, gift.country, customer_id)
    if gift.collection_id is not None:
        collection = opened.snapshot.collection(gift.collection_id, customer_id)
    sold = product or collection
    return (
        None
        if sold is None
        else Chosen(gift, options, sold.name, product, collection, opened.draft.claim_by(opened.caller))
    )


async def step(
    context: RequestContext, opened: Open, name: str, *, status: int | None = None, **values: object
) -> Response:
    """Returns the page of a step, or a further page of a step."""
    at = _BELONGING.get(name, name)
    campaign = values.pop("campaign", None)
    gift = values.pop("chosen", None) or await chosen(context, opened)
    return context.page(
        f"send/{name}.html",
        status=status,
        steps=[(one, context.say(title)) for one, title in STEPS],
        step=at,
        step_title=context.say(dict(STEPS)[at]),
        draft=opened.draft,
        content=opened.content,
        chosen=gift,
        repriced=None if gift or campaign else await _repriced(context, opened),
        campaign=campaign,
        send_path=opened.path,
        **values,
    )


async def _repriced(context: RequestContext, opened: Open) -> Repriced | None:
    """Returns the template of the draft if its gift has another price now."""
    principal, template_id = opened.caller.principal, opened.content.template_id
    template = await context.read(read_template, principal, template_id) if template_id else None
    found = new_price(opened.snapshot, principal.customer_id, template) if template else None
    return Repriced(template, found) if template and found else None
