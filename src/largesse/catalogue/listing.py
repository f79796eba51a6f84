"""The items of lists: gifts with their serialized form, which is made at first use, and the filters over them.

`web` provides the Serializer, once for each process.
"""

from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Protocol, TypeVar

from largesse.base.money import exponent
from largesse.base.text import has_words, search_words
from largesse.catalogue.model import Collection, Product, least_collection_minor, least_gift_minor

# The serialized form, ready to be sent. The catalogue stores it and never reads it.
Serialized = bytes


class Serializer(Protocol):
    """Serializes gifts for callers. A snapshot stores the result, as it is used again and again."""

    def product(self, product: Product, country: str) -> Serialized:
        """Serializes a product as it is sold in `country`. It must be sold there."""

    def collection(self, collection: Collection) -> Serialized:
        """Serializes a collection."""

    def listed(self, serialized: Sequence[Serialized]) -> Serialized:
        """Serializes a list of serialized gifts."""


# More than any gift can cost. A caller's number is capped here, so that its arithmetic fits the context's 28 digits.
_MOST = Decimal(10**20)
_FLOOR = Context(rounding=ROUND_FLOOR)
_EVERYWHERE = ""  # replaces the country if the result is the same in all countries


class ProductItem:
    """A product in a list. A digital product has the same serialized form in all of its countries."""

    __slots__ = ("_least_minor", "_serialized", "_serializer", "currency", "id", "name", "product")

    def __init__(self, product: Product, serializer: Serializer) -> None:
        self.id = product.id
        self.name = product.name
        self.currency = product.currency
        self.product = product
        self._serializer = serializer
        # By country. Made at first use, because most products are never listed in most countries.
        self._serialized: dict[str, Serialized] | None = None
        self._least_minor: dict[str, int | None] | None = None

    def least_minor(self, country: str) -> int | None:
        """Returns the lowest amount for which it can be sent in the country, in minor units; None if it cannot be sent."""
        if self.product.is_digital:
            return least_gift_minor(self.product, country)
        if self._least_minor is None:
            self._least_minor = {}
        if country not in self._least_minor:
            self._least_minor[country] = least_gift_minor(self.product, country)
        return self._least_minor[country]

    def serialized(self, country: str) -> Serialized:
        """Returns its serialized form in the country, made at first use."""
        key = _EVERYWHERE if self.product.is_digital else country
        if self._serialized is None:
            self._serialized = {}
        if key not in self._serialized:
            self._serialized[key] = self._serializer.product(self.product, country)
        return self._serialized[key]


class CollectionItem:
    """A collection in a list."""

    __slots__ = ("_serialized", "_serializer", "collection", "currency", "id", "name")

    def __init__(self, collection: Collection, serializer: Serializer) -> None:
        self.id = collection.id
        self.name = collection.name
        self.currency = collection.currency
        self.collection = collection
        self._serializer = serializer
        self._serialized: Serialized | None = None

    @property
    def least_minor(self) -> int | None:
        """Returns the lowest amount for which it can be sent, in minor units; 0 if any positive amount is allowed."""
        return least_collection_minor(self.collection)

    @property
    def serialized(self) -> Serialized:
        """Returns its serialized form, made at first use."""
        if self._serialized is None:
            self._serialized = self._serializer.collection(self.collection)
        return self._serialized


AnyItem = TypeVar("AnyItem", ProductItem, CollectionItem)


def in_currency(items: Iterable[AnyItem], currency: str) -> list[AnyItem]:
    """Returns the items in one currency, an ISO 4217 code in upper case."""
    return [item for item in items if item.currency == currency]


def named(items: Iterable[AnyItem], keyword: str) -> list[AnyItem]:
    """Returns the items whose name contains each word of `keyword`. Ignores letter case and accents."""
    words = search_words(keyword)
    return [item for item in items if has_words(item.name, words)]


def costing_at_most(
    items: Sequence[AnyItem], amount: Decimal, least_minor: Callable[[AnyItem], int | None]
) -> list[AnyItem]:
    """Returns the items that can be sent for at most `amount` major units of their own currency.

    `least_minor` returns the lowest amount for which an item can be sent.
    """
    if amount <= 0:
        return []
    limits_minor = {currency: _whole_minor(amount, currency) for currency in {item.currency for item in items}}
    return [item for item in items if (least := least_minor(item)) is not None and least <= limits_minor[item.currency]]


def _whole_minor(amount: Decimal, currency: str) -> int:
    """Returns the whole minor units in `amount`, rounded down. Prices are whole, so they can be compared with these."""
    minor = _FLOOR.scaleb(min(amount, _MOST), exponent(currency))
    return int(_FLOOR.to_integral_value(minor))
