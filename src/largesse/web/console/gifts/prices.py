"""What the gift of a template costs today, and whether that is the price with which the template was saved."""

import msgspec

from largesse.base.errors import InvalidRequest
from largesse.base.money import to_number
from largesse.catalogue.model import Product, can_be_sent, gift_price
from largesse.catalogue.snapshot import Snapshot
from largesse.orders.request import DEFAULT_COUNTRY
from largesse.templates.store import Template


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
