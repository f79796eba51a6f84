"""What a physical gift costs, in whole minor units.

    value = cost marked up, rounded half up to the minor unit
    total = marked-up cost and postage with the country's VAT on both, rounded half up once per code

All is exact until that one rounding: no binary floats, and no penny lost or made on the way.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from largesse.catalogue.products import Product

_NO_VAT = Decimal(0)


def marked_up_minor(product: Product) -> int:
    """The value of a physical gift: its cost marked up, without postage and VAT."""
    return _round_half_up(_marked_up(product))


def delivered_minor(product: Product, country: str) -> int:
    """The delivered total of a physical gift in `country`, one it is sold in (else KeyError)."""
    net_minor = _marked_up(product) + product.postage_minor[country]
    return _round_half_up(net_minor * (100 + Fraction(product.vat_percent.get(country, _NO_VAT))) / 100)


def _marked_up(product: Product) -> Fraction:
    return product.cost_minor * (100 + Fraction(product.markup_percent)) / 100


def _round_half_up(minor: Fraction) -> int:
    return math.floor(minor + Fraction(1, 2))
