"""Completes an order: with its gift from the catalogue, and with values of the template and the customer's defaults for fields left out."""

import msgspec

from largesse.base.errors import InvalidRequest
from largesse.catalogue.model import Price, collection_price, gift_price
from largesse.catalogue.snapshot import Snapshot
from largesse.customers.authenticator import Caller
from largesse.customers.principal import Principal
from largesse.orders.follow_ups import read_defaults
from largesse.orders.options import Options
from largesse.orders.order import Gift
from largesse.orders.request import DEFAULT_COUNTRY, CollectionChoice, OrderSpec, ProductChoice
from largesse.templates.store import Template


def gift_of_product(snapshot: Snapshot, principal: Principal, choice: ProductChoice) -> Gift:
    """Returns the product at the value that was asked for. Raises InvalidRequest when the customer cannot send it."""
    country = choice.country.upper()
    product = snapshot.product(choice.product_id, country, principal.customer_id)
    if product is None:
        meant = " The United Kingdom is GB." if country == "UK" else ""
        raise InvalidRequest(f"`product_id` names no product available in {country}.{meant}")
    return _product_gift(product.id, country, gift_price(product, country, choice.value), template_id=None)


def gift_of_collection(snapshot: Snapshot, principal: Principal, choice: CollectionChoice) -> Gift:
    """Returns the collection at the value that was asked for. Raises InvalidRequest when the customer cannot send it."""
    collection = snapshot.collection(choice.collection_id, principal.customer_id)
    if collection is None:
        raise InvalidRequest("`collection_id` names no collection available.")
    price = collection_price(collection, choice.value)
    return _collection_gift(collection.id, collection.country, price, template_id=None)


def gift_of_template(snapshot: Snapshot, principal: Principal, template: Template) -> Gift:
    """Returns the template's gift at the template's value. Raises InvalidRequest when it can no longer be sent."""
    try:
        gift = _priced_template(snapshot, principal, template)
    except InvalidRequest as refusal:
        raise InvalidRequest(f"`template_id` names a template that cannot be sent: {refusal.detail}") from None
    if gift is None:
        raise InvalidRequest("`template_id` names a template whose gift is no longer available.")
    return gift


def _priced_template(snapshot: Snapshot, principal: Principal, template: Template) -> Gift | None:
    if template.product_id is not None:
        country = template.country or DEFAULT_COUNTRY
        product = snapshot.product(template.product_id, country, principal.customer_id)
        if product is None:
            return None
        price = gift_price(product, country, template.value)
        return _product_gift(product.id, country, price, template_id=template.id)
    collection = snapshot.collection(template.collection_id or 0, principal.customer_id)
    if collection is None:
        return None
    price = collection_price(collection, template.value)
    return _collection_gift(collection.id, collection.country, price, template_id=template.id)


def _product_gift(product_id: int, country: str, price: Price, *, template_id: int | None) -> Gift:
    return Gift(
        "gift", product_id, None, template_id, country, price.currency, price.value_minor, price.unit_cost_minor
    )


def _collection_gift(collection_id: int, country: str, price: Price, *, template_id: int | None) -> Gift:
    return Gift(
        "gifts", None, collection_id, template_id, country, price.currency, price.value_minor, price.unit_cost_minor
    )


def with_template(spec: OrderSpec, template: Template, plan: str, *, has_texts: bool) -> OrderSpec:
    """Returns `spec` completed from the template. With `has_texts` it has all its texts, so that those left out stay empty."""
    options = Options()
    if not has_texts:
        options = Options(wrapping_key=template.wrapping_key, from_name=template.from_name, message=template.message)
    expiry_after_days = template.expiry_after_days if plan == "enterprise" else None
    return msgspec.structs.replace(
        spec, options=spec.options.or_else(options), expiry_after_days=spec.expiry_after_days or expiry_after_days
    )


def with_default(caller: Caller, spec: OrderSpec) -> OrderSpec:
    """Returns `spec` with the customer's defaults for fields left out, if they apply to orders of API keys. For people, returns it unchanged."""
    if caller.follow_up is None or caller.principal.user_id is not None:
        return spec
    defaults = read_defaults(caller.follow_up)
    if not defaults.of_api:
        return spec
    days = spec.reminder_days
    if days is None and spec.recipients:
        days = defaults.reminder_days
    claim_by = spec.claim_by or defaults.claim_by(spec.scheduled_for or caller.now)
    return msgspec.structs.replace(spec, claim_by=claim_by, reminder_days=days)
