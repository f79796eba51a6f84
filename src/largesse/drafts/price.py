"""The price of a draft, line by line."""

from __future__ import annotations

import msgspec

from largesse.catalogue.products import Product
from largesse.orders.quoting import Quote


class PriceLines(msgspec.Struct, frozen=True):
    """What each code costs, and all of them, in minor units of `currency`."""

    currency: str
    value_minor: int
    postage_minor: int  # nothing of a digital gift
    vat_minor: int  # on value and postage; nothing of a digital gift
    count: int
    total_minor: int


def price_lines(quote: Quote, product: Product | None, country: str) -> PriceLines:
    """The lines of a quote; `product` is the one sent, None for a collection.

    VAT is what is left of the price: it is rounded together with value and postage, so that the lines add up.
    """
    unit_minor = quote.total_minor // quote.code_count
    postage_minor = 0
    if product is not None and not product.is_digital:
        postage_minor = product.postage_minor[country]
    return PriceLines(
        quote.currency,
        quote.value_minor,
        postage_minor,
        unit_minor - quote.value_minor - postage_minor,
        quote.code_count,
        quote.total_minor,
    )
