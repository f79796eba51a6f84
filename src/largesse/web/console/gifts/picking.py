"""The picked gift and its amount, for sending it and for a template of it."""

from collections.abc import Callable
from typing import Any

import msgspec

from largesse.base.errors import InvalidRequest, NotFound
from largesse.base.money import to_number
from largesse.catalogue.model import Collection, Product
from largesse.catalogue.snapshot import Snapshot
from largesse.customers.authenticator import Caller
from largesse.drafts.model import Draft, DraftContent
from largesse.orders.order import Gift
from largesse.orders.request import DEFAULT_COUNTRY, Choice, CollectionChoice, ProductChoice, TemplateChoice
from largesse.templates.store import Template, read_template
from largesse.web.console.context import RequestContext, typed_amount
from largesse.web.console.gifts.browsing import delivered
from largesse.web.kit.query import Whole


class Picked(msgspec.Struct, frozen=True):
    """A picked gift: a product, a collection or a template. Exactly one of the three is set."""

    country: str
    product: Product | None = None
    collection: Collection | None = None
    template: Template | None = None

    @property
    def currency(self) -> str:
        """The currency of its amounts."""
        named = self.product or self.collection or self.template
        assert named is not None, "one of the three was picked"
        return named.currency

    @property
    def needs_amount(self) -> bool:
        """Whether it can be sent for more than one amount."""
        if self.product is not None:
            return self.product.is_digital and len(self.product.denominations_minor) != 1
        return self.collection is not None and self.collection.value_minor is None


async def read_picked(
    context: RequestContext, caller: Caller, snapshot: Snapshot, given: Callable[[str], str]
) -> Picked:
    """Returns the gift that `given` names by product (and country), collection or template. Raises NotFound."""
    customer_id = caller.principal.customer_id
    country = given("country").upper() or DEFAULT_COUNTRY
    picked = None
    if number := id_of(given("product")):
        product = snapshot.product(number, country, customer_id)
        picked = Picked(country, product=product) if product else None
    elif number := id_of(given("collection")):
        collection = snapshot.collection(number, customer_id)
        picked = Picked(collection.country, collection=collection) if collection else None
    elif number := id_of(given("template")):
        template = await context.read(read_template, caller.principal, number)
        picked = Picked(template.country or country, template=template) if template else None
    if picked is None:
        raise NotFound("There is no such gift.")
    return picked


async def priced(context: RequestContext, caller: Caller, picked: Picked) -> tuple[Choice, Gift | None]:
    """Returns the gift with the typed amount, and its price. If the amount is wrong, adds an error to the form; the price is then None."""
    choice = _choice(context, picked)
    if context.form.errors:
        return choice, None
    draft = Draft("", DraftContent().chosen(choice), caller.now)
    try:
        gift, _ = await context.services.drafts.gift(caller, draft)
    except InvalidRequest:
        context.form.error("value", context.say("It cannot be sent for this amount."))
        return choice, None
    return choice, gift


def amount_values(context: RequestContext, picked: Picked) -> dict[str, Any]:
    """Returns the values of the amount field: the amounts to choose from, or their range."""
    product, collection = picked.product, picked.collection
    offered: tuple[int, ...] = ()
    if product is not None:
        offered = product.denominations_minor
    elif collection is not None and not collection.allow_custom_value:
        offered = collection.value_points_minor
    currency = picked.currency
    return {
        "picked": picked,
        "needs_amount": picked.needs_amount,
        "offered": [
            (context.language.typed(minor, currency), context.language.amount(minor, currency)) for minor in offered
        ],
        "range": product.range_minor if product else None,
        "currency": currency,
        "country_name": context.language.country(picked.country),
        "delivered": delivered,
    }


def id_of(given: str) -> int | None:
    """Returns the id in a field or parameter; None if it is not an id."""
    return Whole().read(given)


def _choice(context: RequestContext, picked: Picked) -> Choice:
    if picked.template is not None:
        return TemplateChoice(picked.template.id)
    has_value = picked.needs_amount or context.form["value"].strip()
    value = to_number(typed_amount(context, "value", picked.currency), picked.currency) if has_value else None
    if picked.product is not None:
        return ProductChoice(picked.product.id, value, picked.country)
    assert picked.collection is not None, "one of the three was picked"
    return CollectionChoice(picked.collection.id, value)
