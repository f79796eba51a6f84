"""Which amounts a gift or collection can be sent for (docs/contract.md, Sending)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from largesse.base.errors import InvalidRequest
from largesse.base.money import AmountError, canonical, to_minor
from largesse.catalogue.collections import Collection
from largesse.catalogue.prices import delivered_minor, marked_up_minor
from largesse.catalogue.products import Product

_MOST_LISTED = 30  # amounts named in an error; more are given by their ends


@dataclass(frozen=True, slots=True)
class Price:
    """What one code is worth and what is charged for it, in minor units of `currency`."""

    currency: str
    value_minor: int
    unit_cost_minor: int


def gift_price(product: Product, country: str, value: float | None) -> Price:
    """The price of one code of `product` sent in `country` at `value` (major units; None when not given).

    Raises InvalidRequest, naming the limit, when it cannot be sent so.
    """
    currency = product.currency
    if not product.sold_in(country):
        raise InvalidRequest(f"`product_id` {product.id} is not available in {country}.")
    if not product.is_digital:
        value_minor = _implied(value, marked_up_minor(product), currency)
        return Price(currency, value_minor, delivered_minor(product, country))
    if len(product.denominations_minor) == 1:
        value_minor = _implied(value, product.denominations_minor[0], currency)
    elif product.denominations_minor:
        value_minor = _one_of(value, product.denominations_minor, currency)
    elif product.range_minor is not None:
        value_minor = _within(value, product.range_minor, currency)
    else:
        raise InvalidRequest(f"`product_id` {product.id} has no amount it can be sent for.")
    return Price(currency, value_minor, value_minor)


def collection_price(collection: Collection, value: float | None) -> Price:
    """The price of one code of `collection` at `value` (major units; ignored for a custom collection).

    Raises InvalidRequest, naming the limit, when it cannot be sent so.
    """
    currency = collection.currency
    if collection.value_minor is not None:
        value_minor = collection.value_minor
    elif collection.allow_custom_value:
        value_minor = _positive(value, currency)
    elif collection.value_points_minor:
        value_minor = _one_of(value, collection.value_points_minor, currency)
    else:
        raise InvalidRequest(f"`collection_id` {collection.id} has no amount it can be sent for.")
    return Price(currency, value_minor, value_minor)


def least_gift_minor(product: Product, country: str) -> int | None:
    """The least `product` can be sent for in `country`, where it is sold; None when for nothing at all."""
    if not product.is_digital:
        return delivered_minor(product, country)
    return None if product.limits_minor is None else product.limits_minor[0]


def least_collection_minor(collection: Collection) -> int | None:
    """The least `collection` can be sent for: 0 where any positive amount will do; None when for nothing at all."""
    if collection.value_minor is not None:
        return collection.value_minor
    if collection.allow_custom_value:
        return 0
    return collection.value_points_minor[0] if collection.value_points_minor else None


def can_become(product: Product, country: str, currency: str, value_minor: int, customer_id: int) -> bool:
    """Whether who chooses a gift of that value in `country` can have `product`, from that customer.

    A digital one must be sold at exactly that value, a physical one must be covered by it, delivery and tax included.
    """
    if product.currency != currency or not product.sold_in(country):
        return False
    if not product.sold_to(customer_id):
        return False
    if not product.is_digital:
        return delivered_minor(product, country) <= value_minor
    if product.denominations_minor:
        return value_minor in product.denominations_minor
    return product.range_minor is not None and product.range_minor[0] <= value_minor <= product.range_minor[1]


def _implied(value: float | None, implied_minor: int, currency: str) -> int:
    if value is not None and _minor(value, currency) != implied_minor:
        raise InvalidRequest(f"`value` must be {canonical(implied_minor, currency)} or left out.")
    return implied_minor


def _one_of(value: float | None, allowed_minor: Sequence[int], currency: str) -> int:
    if value is None:
        raise InvalidRequest(f"`value` is required: {_listed(allowed_minor, currency)}.")
    value_minor = _minor(value, currency)
    if value_minor not in allowed_minor:
        raise InvalidRequest(f"`value` must be {_listed(allowed_minor, currency)}.")
    return value_minor


def _within(value: float | None, range_minor: tuple[int, int], currency: str) -> int:
    lowest, highest = range_minor
    limits = f"{canonical(lowest, currency)} to {canonical(highest, currency)}"
    if value is None:
        raise InvalidRequest(f"`value` is required: {limits}.")
    value_minor = _minor(value, currency)
    if not lowest <= value_minor <= highest:
        raise InvalidRequest(f"`value` must be from {limits}.")
    return value_minor


def _positive(value: float | None, currency: str) -> int:
    if value is None:
        raise InvalidRequest("`value` is required: any amount above 0.")
    value_minor = _minor(value, currency)
    if value_minor <= 0:
        raise InvalidRequest("`value` must be more than 0.")
    return value_minor


def _minor(value: float, currency: str) -> int:
    try:
        return to_minor(value, currency)
    except AmountError as error:
        raise InvalidRequest(f"`value` {error}.") from None


def _listed(allowed_minor: Sequence[int], currency: str) -> str:
    if len(allowed_minor) > _MOST_LISTED:
        ends = f"{canonical(allowed_minor[0], currency)} to {canonical(allowed_minor[-1], currency)}"
        return f"one of the {len(allowed_minor)} amounts listed with the gift, {ends}"
    return "one of " + ", ".join(canonical(minor, currency) for minor in allowed_minor)
