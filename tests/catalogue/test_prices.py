"""Physical prices, against exact fractions."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from largesse.catalogue.model import Product, delivered_minor, marked_up_minor

percents = st.decimals(min_value=0, max_value=400, places=4)


def hamper(
    *, cost_minor: int, markup: Decimal | str, postage_minor: int, vat: Decimal | str | None, currency: str = "GBP"
) -> Product:
    return Product(
        id=1,
        name="Hamper",
        is_digital=False,
        currency=currency,
        cost_minor=cost_minor,
        markup_percent=Decimal(markup),
        postage_minor={"GB": postage_minor},
        vat_percent={} if vat is None else {"GB": Decimal(vat)},
    )


def half_up(exact: Fraction) -> int:
    return math.floor(exact + Fraction(1, 2))


@pytest.mark.parametrize(
    ("cost_minor", "markup", "postage_minor", "vat", "value_minor", "total_minor"),
    [
        (3500, "10", 495, "20", 3850, 5214),
        (3000, "10", 495, "20", 3300, 4554),
        (3000, "10", 495, None, 3300, 3795),
        (3000, "0", 0, "0", 3000, 3000),
        (5, "10", 0, "0", 6, 6),  # 5.5 is halfway: up
        (4, "10", 0, "0", 4, 4),  # 4.4
        (10, "0", 5, "10", 10, 17),  # 16.5 is halfway: up
        (1000, "12.345", 0, "0", 1123, 1123),  # 1123.45
        (1000, "12.35", 0, "5.5", 1124, 1185),  # 1123.5, and 1185.2925: the total is rounded once, not the value first
    ],
)
def test_price_to_the_minor_unit(
    cost_minor: int, markup: str, postage_minor: int, vat: str | None, value_minor: int, total_minor: int
) -> None:
    product = hamper(cost_minor=cost_minor, markup=markup, postage_minor=postage_minor, vat=vat)
    assert marked_up_minor(product) == value_minor
    assert delivered_minor(product, "GB") == total_minor


@given(st.integers(1, 10**12), percents, st.integers(0, 10**8), percents)
def test_price_is_the_exact_one_rounded_half_up(
    cost_minor: int, markup: Decimal, postage_minor: int, vat: Decimal
) -> None:
    product = hamper(cost_minor=cost_minor, markup=markup, postage_minor=postage_minor, vat=vat)
    marked_up = cost_minor * (1 + Fraction(markup) / 100)
    assert marked_up_minor(product) == half_up(marked_up)
    assert delivered_minor(product, "GB") == half_up((marked_up + postage_minor) * (1 + Fraction(vat) / 100))


def test_percent_of_any_length_is_exact() -> None:
    # Half a minor unit less 10**-40: a context of 28 digits would round it up.
    product = hamper(cost_minor=1, markup="49." + "9" * 40, postage_minor=0, vat="0")
    assert marked_up_minor(product) == 1


def test_vat_of_another_country_is_not_charged() -> None:
    product = Product(
        id=1,
        name="Hamper",
        is_digital=False,
        currency="GBP",
        cost_minor=1000,
        postage_minor={"GB": 100, "IE": 200},
        vat_percent={"IE": Decimal(23)},
    )
    assert delivered_minor(product, "GB") == 1100
    assert delivered_minor(product, "IE") == 1476
