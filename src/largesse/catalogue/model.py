"""Products, collections, and the amounts for which they can be sent (docs/contract.md, Sending).

A product is one gift, digital or physical. From a collection, the recipient chooses a gift. Long texts about products are not in the
snapshot. They are read when they are shown.

The price of a physical gift, in whole minor units:

    value = cost marked up, rounded half up to the minor unit
    total = marked-up cost and postage with the country's VAT on both, rounded half up once per code

Everything is exact until that one rounding. There are no binary floats.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar

import msgspec

from largesse.base.errors import InvalidRequest
from largesse.base.money import AmountError, canonical, to_minor, to_number
from largesse.db.pool import Row
from largesse.db.statements import members_of

STOCK = "stock"  # the name under which a product's suppliers list the installation's own stock
MAX_DESCRIPTION = 500
MAX_HOW_TO_REDEEM = 1_000
MAX_TERMS = 4_000


class Details(msgspec.Struct, frozen=True):
    """Texts about a product, with line breaks, in the language of its name; None if there are none."""

    description: str | None = None
    how_to_redeem: str | None = None
    terms: str | None = None


NOTHING_SAID = Details()


_NO_VAT = Decimal(0)


def marked_up_minor(product: Product) -> int:
    """Returns the value of a physical gift: its cost with markup, without postage and VAT."""
    return _round_half_up(_marked_up(product))


def delivered_minor(product: Product, country: str) -> int:
    """Returns the delivered total of a physical gift in `country`. Raises KeyError if it is not sold there."""
    net_minor = _marked_up(product) + product.postage_minor[country]
    return _round_half_up(net_minor * (100 + Fraction(product.vat_percent.get(country, _NO_VAT))) / 100)


def _marked_up(product: Product) -> Fraction:
    return product.cost_minor * (100 + Fraction(product.markup_percent)) / 100


def _round_half_up(minor: Fraction) -> int:
    return math.floor(minor + Fraction(1, 2))


_POSTAGE = msgspec.json.Decoder(dict[str, int])
_VAT = msgspec.json.Decoder(dict[str, Decimal])


class Product(msgspec.Struct, frozen=True):
    """A gift, as in the database.

    A digital gift is sold in `countries`. It is sent at one of `denominations_minor` (ascending), or if there are none, at any amount of
    `range_minor`. A physical gift has the price `cost_minor` with markup, and is sold where postage is known.
    """

    id: int
    name: str
    is_digital: bool
    currency: str
    countries: frozenset[str] = frozenset()
    denominations_minor: tuple[int, ...] = ()
    range_minor: tuple[int, int] | None = None
    cost_minor: int = 0
    markup_percent: Decimal = Decimal(0)
    postage_minor: Mapping[str, int] = {}  # by country
    vat_percent: Mapping[str, Decimal] = {}  # by country; a missing country has no VAT
    customer_ids: frozenset[int] | None = None  # None: sold to all customers
    picture: str | None = None  # the name of the picture (`catalogue.pictures`)
    suppliers: tuple[str, ...] = (STOCK,)  # the suppliers of its vouchers, in the order in which they are asked

    @property
    def sold_countries(self) -> frozenset[str]:
        """The countries where it is sold: ISO 3166-1 alpha-2 codes."""
        if self.is_digital:
            return self.countries
        return frozenset(self.postage_minor)

    @property
    def limits_minor(self) -> tuple[int, int] | None:
        """The lowest and the highest amount at which it can be sent; None for a physical gift, which has one price."""
        if self.denominations_minor:
            return self.denominations_minor[0], self.denominations_minor[-1]
        return self.range_minor

    @property
    def is_bought(self) -> bool:
        """Whether suppliers sell its vouchers, alone or in addition to the stock."""
        return any(name != STOCK for name in self.suppliers)

    def sold_in(self, country: str) -> bool:
        """Returns whether it is sold in a country (ISO 3166-1 alpha-2), faster than `sold_countries`."""
        return country in (self.countries if self.is_digital else self.postage_minor)

    def sold_to(self, customer_id: int) -> bool:
        """Returns whether a customer may send it."""
        return self.customer_ids is None or customer_id in self.customer_ids


Value = TypeVar("Value")


class ProductReader:
    """Makes products from rows of `products`, whose jsonb columns are text. Products of one reader share equal values."""

    def __init__(self) -> None:
        self._shared: dict[Hashable, Any] = {}

    def __call__(self, row: Row) -> Product:
        """Returns the product of a row."""
        lowest, highest = row["min_amount_minor"], row["max_amount_minor"]
        customer_ids = row["customer_ids"]
        return Product(
            id=row["id"],
            name=row["name"],
            is_digital=row["is_digital"],
            currency=sys.intern(row["currency"]),
            countries=self._share(_codes, tuple(row["countries"])),
            denominations_minor=self._share(_ascending, tuple(row["denominations_minor"])),
            range_minor=None if lowest is None or highest is None else (lowest, highest),
            cost_minor=row["cost_minor"] or 0,
            markup_percent=row["markup_percent"] or _NO_PERCENT,
            postage_minor=self._share(_POSTAGE.decode, row["postage_minor"]),
            vat_percent=self._share(_VAT.decode, row["vat_percent"]),
            customer_ids=None if customer_ids is None else frozenset(customer_ids),
            picture=row["picture"],
            suppliers=self._share(tuple, tuple(row["suppliers"])),
        )

    def _share(self, make: Callable[[Any], Value], of: Hashable) -> Value:
        made: Value | None = self._shared.get((make, of))
        if made is None:
            made = self._shared[make, of] = make(of)
        return made


def product_from_row(row: Row) -> Product:
    """Returns the product of a single row of `products`."""
    return ProductReader()(row)


def _codes(countries: Iterable[str]) -> frozenset[str]:
    return frozenset(map(sys.intern, countries))


def _ascending(amounts_minor: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(set(amounts_minor)))


_NO_PERCENT = Decimal(0)


class Collection(msgspec.Struct, frozen=True):
    """A collection, as in the database.

    A curated collection (`customer_id` None) is sent at one of `value_points_minor` (ascending), or at any positive amount with
    `allow_custom_value`. A custom collection belongs to a customer, and is always sent at `value_minor`.
    """

    id: int
    name: str
    country: str
    currency: str
    customer_id: int | None = None
    value_minor: int | None = None
    value_points_minor: tuple[int, ...] = ()
    allow_custom_value: bool = False
    product_ids: tuple[int, ...] = ()

    @property
    def kind(self) -> str:
        """`custom` or `curated`."""
        return "curated" if self.customer_id is None else "custom"

    def sold_to(self, customer_id: int) -> bool:
        """Returns whether a customer may send it. All may send a curated collection, and only its owner a custom one."""
        return self.customer_id is None or self.customer_id == customer_id


def collection_from_row(row: Row) -> Collection:
    """Returns the collection of a row of `collections`."""
    lists = {"value_points_minor": _ascending(row["value_points_minor"]), "product_ids": tuple(row["product_ids"])}
    return Collection(**members_of(Collection, row) | lists)


_MOST_LISTED = 30  # amounts that an error lists; if there are more, it names the lowest and the highest


class Price(msgspec.Struct, frozen=True):
    """The value of one code and its price, in minor units of `currency`."""

    currency: str
    value_minor: int
    unit_cost_minor: int


def gift_price(product: Product, country: str, value: float | None) -> Price:
    """Returns the price of one code of `product` sent in `country` at `value` (major units; None if not given).

    Raises InvalidRequest with the limit if it cannot be sent at that value.
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
    """Returns the price of one code of `collection` at `value` (major units; ignored for a custom collection).

    Raises InvalidRequest with the limit if it cannot be sent at that value.
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


def can_be_sent(gift: Product | Collection, customer_id: int, country: str, currency: str, value_minor: int) -> bool:
    """Returns whether a customer can send a gift in `country` at a value, as a template names them."""
    if gift.currency != currency or not gift.sold_to(customer_id):
        return False
    value = to_number(value_minor, currency)
    try:
        price = gift_price(gift, country, value) if isinstance(gift, Product) else collection_price(gift, value)
    except InvalidRequest:
        return False
    return price.value_minor == value_minor


def least_gift_minor(product: Product, country: str) -> int | None:
    """Returns the lowest amount for which `product` can be sent in `country`; None if it cannot be sent. It must be sold there."""
    if not product.is_digital:
        return delivered_minor(product, country)
    return None if product.limits_minor is None else product.limits_minor[0]


def least_collection_minor(collection: Collection) -> int | None:
    """Returns the lowest amount for which `collection` can be sent: 0 if any positive amount is allowed; None if it cannot be sent."""
    if collection.value_minor is not None:
        return collection.value_minor
    if collection.allow_custom_value:
        return 0
    return collection.value_points_minor[0] if collection.value_points_minor else None


def can_become(product: Product, country: str, currency: str, value_minor: int, customer_id: int) -> bool:
    """Returns whether a recipient in `country` can choose `product` for a gift of that value from the customer.

    A digital product must be sold at exactly that value. The value must cover a physical product with delivery and tax.
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
    if value < 0:  # always too little: its refusal names the gift's own limits
        return -1
    try:
        return to_minor(value, currency)
    except AmountError as error:
        raise InvalidRequest(f"`value` {error}.") from None


def _listed(allowed_minor: Sequence[int], currency: str) -> str:
    if len(allowed_minor) > _MOST_LISTED:
        ends = f"{canonical(allowed_minor[0], currency)} to {canonical(allowed_minor[-1], currency)}"
        return f"one of the {len(allowed_minor)} amounts listed with the gift, {ends}"
    return "one of " + ", ".join(canonical(minor, currency) for minor in allowed_minor)
