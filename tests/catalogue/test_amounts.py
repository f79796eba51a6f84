"""Which amounts are allowed, on both sides of each edge."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from largesse.base.errors import InvalidRequest
from largesse.base.money import MAX_AMOUNT, to_number
from largesse.catalogue.model import (
    Collection,
    Price,
    Product,
    collection_price,
    gift_price,
    least_collection_minor,
    least_gift_minor,
)
from largesse.catalogue.typed import Names, read_collection

GB = frozenset({"GB"})
TREATS = {"name": "Treats", "country": "GB", "products": "coffee"}


def digital(**fields: Any) -> Product:
    return Product(**({"id": 7, "name": "Voucher", "is_digital": True, "currency": "GBP", "countries": GB} | fields))


def physical(**fields: Any) -> Product:
    terms = {
        "cost_minor": 3500,
        "markup_percent": Decimal(10),
        "postage_minor": {"GB": 495},
        "vat_percent": {"GB": Decimal(20)},
    }
    return Product(**({"id": 8, "name": "Hamper", "is_digital": False, "currency": "GBP"} | terms | fields))


def collection(**fields: Any) -> Collection:
    return Collection(**({"id": 9, "name": "Treats", "country": "GB", "currency": "GBP"} | fields))


CHOICES = digital(denominations_minor=(500, 1000, 2500))
SINGLE = digital(denominations_minor=(1000,))
RANGE = digital(range_minor=(500, 20000))
HAMPER = physical()
CURATED = collection(value_points_minor=(1000, 2500, 5000))
OPEN_CURATED = collection(value_points_minor=(1000, 5000), allow_custom_value=True)
CUSTOM = collection(customer_id=1, value_minor=2500)


@pytest.mark.parametrize(
    ("product", "value", "value_minor", "unit_cost_minor"),
    [
        (CHOICES, 5, 500, 500),
        (CHOICES, 10.0, 1000, 1000),
        (CHOICES, 25, 2500, 2500),
        (SINGLE, None, 1000, 1000),
        (SINGLE, 10, 1000, 1000),
        (RANGE, 5, 500, 500),
        (RANGE, 5.01, 501, 501),
        (RANGE, 199.99, 19999, 19999),
        (RANGE, 200, 20000, 20000),
        (HAMPER, None, 3850, 5214),
        (HAMPER, 38.5, 3850, 5214),
        (digital(currency="JPY", denominations_minor=(500, 1000)), 500, 500, 500),
        (digital(currency="KWD", range_minor=(1500, 9999)), 1.501, 1501, 1501),
        (digital(currency="KWD", range_minor=(1500, 9999)), 9.999, 9999, 9999),
        (physical(currency="JPY", postage_minor={"GB": 500}), None, 3850, 5220),
    ],
)
def test_gift_at_an_allowed_value(
    product: Product, value: float | None, value_minor: int, unit_cost_minor: int
) -> None:
    assert gift_price(product, "GB", value) == Price(product.currency, value_minor, unit_cost_minor)


@pytest.mark.parametrize(
    ("product", "value", "detail"),
    [
        (CHOICES, None, "`value` is required: one of 5.00, 10.00, 25.00."),
        (CHOICES, 4.99, "`value` must be one of 5.00, 10.00, 25.00."),
        (CHOICES, 7, "`value` must be one of 5.00, 10.00, 25.00."),
        (CHOICES, 10.001, "`value` must have at most 2 decimals in GBP."),
        (SINGLE, 10.01, "`value` must be 10.00 or left out."),
        (SINGLE, 0, "`value` must be 10.00 or left out."),
        (RANGE, None, "`value` is required: 5.00 to 200.00."),
        (RANGE, 4.99, "`value` must be from 5.00 to 200.00."),
        (RANGE, 200.01, "`value` must be from 5.00 to 200.00."),
        (RANGE, -10, "`value` must be from 5.00 to 200.00."),
        (RANGE, -MAX_AMOUNT - 1, "`value` must be from 5.00 to 200.00."),
        (RANGE, 10.005, "`value` must have at most 2 decimals in GBP."),
        (RANGE, float("nan"), "`value` must be a finite number."),
        (RANGE, float("inf"), "`value` must be a finite number."),
        (RANGE, 10**400, f"`value` must be at most {MAX_AMOUNT}."),
        (HAMPER, 52.14, "`value` must be 38.50 or left out."),
        (HAMPER, 38.501, "`value` must have at most 2 decimals in GBP."),
        (digital(currency="JPY", range_minor=(500, 1000)), 500.5, "`value` must have no decimals in JPY."),
        (digital(currency="KWD", range_minor=(1500, 9999)), 1.499, "`value` must be from 1.50 to 9.999."),
        (digital(currency="KWD", range_minor=(1500, 9999)), 1.5001, "`value` must have at most 3 decimals in KWD."),
        (digital(), 10, "`product_id` 7 has no amount it can be sent for."),
    ],
)
def test_gift_at_a_value_it_cannot_be_sent_for(product: Product, value: float | None, detail: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        gift_price(product, "GB", value)
    assert refused.value.detail == detail


@pytest.mark.parametrize("product", [CHOICES, HAMPER])
def test_gift_in_a_country_it_is_not_sold_in(product: Product) -> None:
    with pytest.raises(InvalidRequest, match=r"`product_id` \d is not available in IE\."):
        gift_price(product, "IE", None)


def test_many_denominations_are_named_by_their_ends() -> None:
    product = digital(denominations_minor=tuple(range(100, 4100, 100)))
    with pytest.raises(InvalidRequest, match=r"one of the 40 amounts listed with the gift, 1\.00 to 40\.00"):
        gift_price(product, "GB", 0.5)


@pytest.mark.parametrize(
    ("chosen", "value", "value_minor"),
    [
        (CURATED, 10, 1000),
        (CURATED, 50.0, 5000),
        (OPEN_CURATED, 0.01, 1),
        (OPEN_CURATED, 9.99, 999),
        (OPEN_CURATED, 50.01, 5001),
        (OPEN_CURATED, MAX_AMOUNT, MAX_AMOUNT * 100),
        (collection(allow_custom_value=True, currency="JPY"), 1, 1),
        (collection(allow_custom_value=True, currency="KWD"), 0.001, 1),
        (CUSTOM, None, 2500),
        (CUSTOM, 25, 2500),
        (CUSTOM, 7.123, 2500),
        (CUSTOM, -1, 2500),
        (CUSTOM, float("nan"), 2500),
        (CUSTOM, 10**400, 2500),
    ],
)
def test_collection_at_an_allowed_value(chosen: Collection, value: float | None, value_minor: int) -> None:
    assert collection_price(chosen, value) == Price(chosen.currency, value_minor, value_minor)


@pytest.mark.parametrize(
    ("chosen", "value", "detail"),
    [
        (CURATED, None, "`value` is required: one of 10.00, 25.00, 50.00."),
        (CURATED, 9.99, "`value` must be one of 10.00, 25.00, 50.00."),
        (CURATED, 20, "`value` must be one of 10.00, 25.00, 50.00."),
        (CURATED, 10.001, "`value` must have at most 2 decimals in GBP."),
        (OPEN_CURATED, None, "`value` is required: any amount above 0."),
        (OPEN_CURATED, 0, "`value` must be more than 0."),
        (OPEN_CURATED, -0.0, "`value` must be more than 0."),
        (OPEN_CURATED, -0.01, "`value` must be more than 0."),
        (OPEN_CURATED, 0.001, "`value` must have at most 2 decimals in GBP."),
        (OPEN_CURATED, MAX_AMOUNT + 1, f"`value` must be at most {MAX_AMOUNT}."),
        (collection(allow_custom_value=True, currency="JPY"), 0.5, "`value` must have no decimals in JPY."),
        (collection(), 10, "`collection_id` 9 has no amount it can be sent for."),
    ],
)
def test_collection_at_a_value_it_cannot_be_sent_for(chosen: Collection, value: float | None, detail: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        collection_price(chosen, value)
    assert refused.value.detail == detail


currencies = st.sampled_from(["GBP", "JPY", "KWD"])
amounts_minor = st.integers(1, 10**9)


@given(currencies, amounts_minor, amounts_minor, amounts_minor)
def test_range_takes_all_amounts_in_it_and_no_other(currency: str, one: int, other: int, value_minor: int) -> None:
    lowest, highest = sorted((one, other))
    product = digital(currency=currency, range_minor=(lowest, highest))
    value = to_number(value_minor, currency)
    if lowest <= value_minor <= highest:
        assert gift_price(product, "GB", value) == Price(currency, value_minor, value_minor)
    else:
        with pytest.raises(InvalidRequest):
            gift_price(product, "GB", value)


@given(currencies, st.sets(amounts_minor, min_size=1), st.data())
def test_each_listed_number_comes_back_as_its_minor_units(currency: str, points: set[int], data: Any) -> None:
    """A caller may send any number of the catalogue back, however a double holds it."""
    ascending = tuple(sorted(points))
    value_minor = data.draw(st.sampled_from(ascending))
    value = to_number(value_minor, currency)
    assert gift_price(digital(currency=currency, denominations_minor=ascending), "GB", value).value_minor == value_minor
    curated = collection(currency=currency, value_points_minor=ascending)
    assert collection_price(curated, value).value_minor == value_minor


@pytest.mark.parametrize(
    ("product", "least"), [(CHOICES, 500), (SINGLE, 1000), (RANGE, 500), (HAMPER, 5214), (digital(), None)]
)
def test_least_of_a_gift(product: Product, least: int | None) -> None:
    assert least_gift_minor(product, "GB") == least


@pytest.mark.parametrize(
    ("chosen", "least"), [(CURATED, 1000), (OPEN_CURATED, 0), (CUSTOM, 2500), (collection(), None)]
)
def test_least_of_a_collection(chosen: Collection, least: int | None) -> None:
    assert least_collection_minor(chosen) == least


@pytest.mark.parametrize(
    ("typed", "currency", "said"),
    [
        ("1 500", "GBP", "1 500 is not an amount in GBP, such as 4.95."),
        ("1 250, 2\u202f500", "GBP", "1 250 is not an amount in GBP, such as 4.95."),
        ("500.50", "JPY", "500.50 is not an amount in JPY, such as 500."),
    ],
)
def test_an_amount_with_a_blank_is_not_read_as_two(typed: str, currency: str, said: str) -> None:
    names = Names({}, {"coffee": (1, currency)})
    with pytest.raises(InvalidRequest) as caught:
        read_collection({**TREATS, "value_points": typed}, names, currency=currency)
    assert said in caught.value.detail
    assert read_collection({**TREATS, "value_points": "1 50"}, names, currency=currency).value_points_minor
