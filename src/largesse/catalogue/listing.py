"""How the catalogue is serialized for callers: `web` says so, once for a process.

What lists are made of: gifts in their serialized form, made at first use, and the filters over them.
"""

from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Protocol, TypeVar

from largesse.base.money import exponent
from largesse.base.text import has_words, search_words
from largesse.catalogue.model import Collection, Product, least_collection_minor, least_gift_minor

# The serialized form, ready to be sent. The catalogue keeps it and never looks into it.
Serialized = bytes


class Serializer(Protocol):
    """Serializes gifts for callers. A snapshot stores the result, as it is used again and again."""

    def product(self, product: Product, country: str) -> Serialized:
        """Serializes a product as sold in `country`, one it is sold in."""

    def collection(self, collection: Collection) -> Serialized:
        """Serializes a collection."""

    def listed(self, serialized: Sequence[Serialized]) -> Serialized:
        """Serializes a list of serialized gifts."""


# More than any gift can cost; keeps the arithmetic on a caller's number within the context's 28 digits.
_MOST = Decimal(10**20)
_FLOOR = Context(rounding=ROUND_FLOOR)
_EVERYWHERE = ""  # in place of a country, where nothing depends on it


class ProductItem:
    """A product as listed. A digital one has one form in all of its countries."""

    __slots__ = ("_least_minor", "_serialized", "_serializer", "currency", "id", "name", "product")

    def __init__(self, product: Product, serializer: Serializer) -> None:
        self.id = product.id
        self.name = product.name
        self.currency = product.currency
        self.product = product
        self._serializer = serializer
        # By country; made at first use, because most products are never listed in most countries.
        self._serialized: dict[str, Serialized] | None = None
        self._least_minor: dict[str, int | None] | None = None

    def least_minor(self, country: str) -> int | None:
        """Returns the least it can be sent for in the country, in minor units; None when for nothing at all."""
        if self.product.is_digital:
            return least_gift_minor(self.product, country)
        if self._least_minor is None:
            self._least_minor = {}
        if country not in self._least_minor:
            self._least_minor[country] = least_gift_minor(self.product, country)
        return self._least_minor[country]

    def serialized(self, country: str) -> Serialized:
        """Its serialized form in the country, made at first use."""
        key = _EVERYWHERE if self.product.is_digital else country
        if self._serialized is None:
            self._serialized = {}
        if key not in self._serialized:
            self._serialized[key] = self._serializer.product(self.product, country)
        return self._serialized[key]


class CollectionItem:
    """A collection as listed."""

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
        """The least it can be sent for, in minor units; 0 where any positive amount will do."""
        return least_collection_minor(self.collection)

    @property
    def serialized(self) -> Serialized:
        """Its serialized form, encoded at first use."""
        if self._serialized is None:
            self._serialized = self._serializer.collection(self.collection)
        return self._serialized


AnyItem = TypeVar("AnyItem", ProductItem, CollectionItem)


def in_currency(items: Iterable[AnyItem], currency: str) -> list[AnyItem]:
    """Returns the items of one currency, an ISO 4217 code in capitals."""
    return [item for item in items if item.currency == currency]


def named(items: Iterable[AnyItem], keyword: str) -> list[AnyItem]:
    """Returns the items whose name contains each word of `keyword`, without regard to letter case and accents."""
    words = search_words(keyword)
    return [item for item in items if has_words(item.name, words)]


def costing_at_most(
    items: Sequence[AnyItem], amount: Decimal, least_minor: Callable[[AnyItem], int | None]
) -> list[AnyItem]:
    """Returns the items that can be sent for at most `amount` major units of their own currency. `least_minor` returns the least that each costs."""
    if amount <= 0:
        return []
    limits_minor = {currency: _whole_minor(amount, currency) for currency in {item.currency for item in items}}
    return [item for item in items if (least := least_minor(item)) is not None and least <= limits_minor[item.currency]]


def _whole_minor(amount: Decimal, currency: str) -> int:
    """Returns the whole minor units in `amount`. A price is at most the amount exactly if it is at most these."""
    minor = _FLOOR.scaleb(min(amount, _MOST), exponent(currency))
    return int(_FLOOR.to_integral_value(minor))
