"""A bounded memory of what was asked for last.

The catalogue in memory: immutable, of one version, with the serialized form of each gift, made once.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Hashable, Iterable, Sequence, Sized
from decimal import Decimal
from operator import attrgetter
from typing import Generic, TypeVar

from largesse.base.errors import NotFound
from largesse.catalogue.listing import (
    CollectionItem,
    ProductItem,
    Serialized,
    Serializer,
    costing_at_most,
    in_currency,
    named,
)
from largesse.catalogue.model import Collection, Product

Cached = TypeVar("Cached", bound=Sized)


class RecentlyUsed(Generic[Cached]):
    """Keeps the most recently used values: `max_entries` at most, whose lengths add up to at most `max_total`."""

    def __init__(self, *, max_total: int, max_entries: int) -> None:
        self._max_total = max_total
        self._max_entries = max_entries
        self._total = 0
        self._kept: OrderedDict[Hashable, Cached] = OrderedDict()

    def get(self, key: Hashable) -> Cached | None:
        """Returns the value of the key, now the most recent; None where there is none."""
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
        return kept

    def put(self, key: Hashable, value: Cached) -> None:
        """Keeps `value` under a new key, dropping the longest unused; a value longer than the whole cache is not stored."""
        if len(value) > self._max_total:
            return
        self._kept[key] = value
        self._total += len(value)
        while self._total > self._max_total or len(self._kept) > self._max_entries:
            _, dropped = self._kept.popitem(last=False)
            self._total -= len(dropped)


# Bounds of what one snapshot keeps: pages by their length, filtered lists by the items in them, and
# both by number, for callers choose the filters.
_PAGES_BYTES = 16 * 2**20
_LISTS_ITEMS = 500_000
_MAX_KEPT = 1_000
_BY_ID = attrgetter("id")


class Snapshot:
    """The catalogue at one version. Countries and currencies are asked for in upper case.

    What a caller may not see (unknown, inactive, not sold in the country, somebody else's) is None alike.
    """

    def __init__(
        self, version: int, products: Iterable[Product], collections: Iterable[Collection], telling: Serializer
    ) -> None:
        self.version = version
        self._products = _Products(products, telling)
        self._collections = _Collections(collections, telling)

    def product(self, product_id: int, country: str, customer_id: int) -> Product | None:
        """The product, when it is sold in `country` to this customer."""
        return self._products.find(product_id, country, customer_id)

    def tell_product(self, product_id: int, country: str, customer_id: int) -> Serialized:
        """The serialized product. Raises NotFound unless it is sold in `country` to this customer."""
        told = self._products.tell(product_id, country, customer_id)
        if told is None:
            raise NotFound(f"There is no product {product_id} available in {country}.")
        return told

    def tell_products(
        self,
        customer_id: int,
        country: str,
        currency: str | None = None,
        amount: Decimal | None = None,
        keyword: str | None = None,
        page: int = 1,
        limit: int = 100,
    ) -> Serialized:
        """A page (1-based) of the customer's products in `country`, by id, serialized.

        `amount`, in major units, keeps what can be sent for that or less; `keyword` what has it in its name.
        """
        return self._products.tell_page(customer_id, (country, currency, amount, keyword), page, limit)

    def products(
        self,
        customer_id: int,
        country: str,
        currency: str | None = None,
        amount: Decimal | None = None,
        keyword: str | None = None,
    ) -> Sequence[Product]:
        """The customer's products in `country`, by id, by the filters of `tell_products`."""
        return self._products.find_all(customer_id, (country, currency, amount, keyword))

    def countries(self, customer_id: int) -> list[str]:
        """The countries that something is sold in to the customer."""
        return self._products.countries(customer_id)

    def collections(self, customer_id: int) -> Sequence[Collection]:
        """All curated collections and the customer's own, by id."""
        return self._collections.find_all(customer_id)

    def collection(self, collection_id: int, customer_id: int) -> Collection | None:
        """The collection, when it is curated or this customer's own."""
        return self._collections.find(collection_id, customer_id)

    def tell_collection(self, collection_id: int, customer_id: int) -> Serialized:
        """The serialized collection. Raises NotFound unless it is curated or this customer's own."""
        told = self._collections.tell(collection_id, customer_id)
        if told is None:
            raise NotFound(f"There is no collection {collection_id}.")
        return told

    def tell_collections(
        self, customer_id: int, country: str | None = None, currency: str | None = None, amount: Decimal | None = None
    ) -> Serialized:
        """All curated collections and the customer's own, by id, serialized."""
        return self._collections.tell_list(customer_id, country, currency, amount)

    def has_gift(self, product_id: int | None, collection_id: int | None) -> bool:
        """Whether the product or collection of a template is still in the catalogue, no matter who may send it."""
        return self._products.has(product_id) or self._collections.has(collection_id)


_Filters = tuple[str, str | None, Decimal | None, str | None]  # country, currency, amount, keyword


class _Products:
    def __init__(self, products: Iterable[Product], telling: Serializer) -> None:
        self._telling = telling
        self._by_id: dict[int, Product] = {}
        self._digital: dict[int, ProductItem] = {}
        self._physical: dict[tuple[int, str], ProductItem] = {}
        self._open: dict[str, list[ProductItem]] = defaultdict(list)
        self._restricted: dict[tuple[int, str], list[ProductItem]] = defaultdict(list)
        self._named_customers: set[int] = set()
        self._lists: RecentlyUsed[list[ProductItem]] = RecentlyUsed(max_total=_LISTS_ITEMS, max_entries=_MAX_KEPT)
        self._pages: RecentlyUsed[Serialized] = RecentlyUsed(max_total=_PAGES_BYTES, max_entries=_MAX_KEPT)
        for product in sorted(products, key=_BY_ID):
            self._add(product)

    def _add(self, product: Product) -> None:
        self._by_id[product.id] = product
        for country in product.sold_countries:
            item = self._new_item(product, country)
            if product.customer_ids is None:
                self._open[country].append(item)
                continue
            for customer_id in product.customer_ids:
                self._named_customers.add(customer_id)
                self._restricted[customer_id, country].append(item)

    def _new_item(self, product: Product, country: str) -> ProductItem:
        """The item of a product in a country; one for all countries where nothing in it depends on them."""
        if not product.is_digital:
            item = self._physical[product.id, country] = ProductItem(product, country, self._telling)
            return item
        if product.id not in self._digital:
            self._digital[product.id] = ProductItem(product, country, self._telling)
        return self._digital[product.id]

    def has(self, product_id: int | None) -> bool:
        return product_id in self._by_id

    def find(self, product_id: int, country: str, customer_id: int) -> Product | None:
        product = self._by_id.get(product_id)
        if product is None or not product.sold_in(country) or not product.sold_to(customer_id):
            return None
        return product

    def tell(self, product_id: int, country: str, customer_id: int) -> Serialized | None:
        product = self.find(product_id, country, customer_id)
        if product is None:
            return None
        item = self._digital[product.id] if product.is_digital else self._physical[product.id, country]
        return item.told

    def find_all(self, customer_id: int, filters: _Filters) -> list[Product]:
        scope = customer_id if customer_id in self._named_customers else None
        return [self._by_id[item.id] for item in self._matching(scope, filters)]

    def countries(self, customer_id: int) -> list[str]:
        own = (country for owner, country in self._restricted if owner == customer_id)
        return sorted({*self._open, *own})

    def tell_page(self, customer_id: int, filters: _Filters, page: int, limit: int) -> Serialized:
        # Customers whom no product names see the same, so they share the cached list.
        scope = customer_id if customer_id in self._named_customers else None
        key = (scope, filters, page, limit)
        told = self._pages.get(key)
        if told is None:
            start = (page - 1) * limit
            items = self._matching(scope, filters)[start : start + limit]
            told = self._telling.listed([item.told for item in items])
            if items:  # pages past the end are without number
                self._pages.put(key, told)
        return told

    def _matching(self, scope: int | None, filters: _Filters) -> Sequence[ProductItem]:
        country, currency, amount, keyword = filters
        if scope is None and currency is None and amount is None and not keyword:
            return self._open.get(country, ())
        items = self._lists.get((scope, filters))
        if items is None:
            items = self._visible(scope, country)
            if currency is not None:
                items = in_currency(items, currency)
            if keyword:
                items = named(items, keyword)
            if amount is not None:
                items = costing_at_most(items, amount)
            self._lists.put((scope, filters), items)
        return items

    def _visible(self, scope: int | None, country: str) -> list[ProductItem]:
        items = self._open.get(country, [])
        own = [] if scope is None else self._restricted.get((scope, country), [])
        return sorted([*items, *own], key=_BY_ID) if own else items


class _Collections:
    def __init__(self, collections: Iterable[Collection], telling: Serializer) -> None:
        self._telling = telling
        self._by_id: dict[int, CollectionItem] = {}
        self._curated: list[CollectionItem] = []
        self._custom: dict[int, list[CollectionItem]] = defaultdict(list)
        self._lists: RecentlyUsed[Serialized] = RecentlyUsed(max_total=_PAGES_BYTES, max_entries=_MAX_KEPT)
        for collection in sorted(collections, key=_BY_ID):
            item = self._by_id[collection.id] = CollectionItem(collection, telling)
            if collection.customer_id is None:
                self._curated.append(item)
            else:
                self._custom[collection.customer_id].append(item)

    def has(self, collection_id: int | None) -> bool:
        return collection_id in self._by_id

    def find(self, collection_id: int, customer_id: int) -> Collection | None:
        item = self._by_id.get(collection_id)
        return item.collection if item is not None and item.collection.sold_to(customer_id) else None

    def find_all(self, customer_id: int) -> list[Collection]:
        items = (*self._curated, *self._custom.get(customer_id, ()))
        return [item.collection for item in sorted(items, key=_BY_ID)]

    def tell(self, collection_id: int, customer_id: int) -> Serialized | None:
        collection = self.find(collection_id, customer_id)
        return None if collection is None else self._by_id[collection.id].told

    def tell_list(
        self, customer_id: int, country: str | None, currency: str | None, amount: Decimal | None
    ) -> Serialized:
        own = self._custom.get(customer_id, [])
        key = (customer_id if own else None, country, currency, amount)
        told = self._lists.get(key)
        if told is None:
            items = sorted([*self._curated, *own], key=_BY_ID)
            if country is not None:
                items = [item for item in items if item.collection.country == country]
            if currency is not None:
                items = in_currency(items, currency)
            if amount is not None:
                items = costing_at_most(items, amount)
            told = self._telling.listed([item.told for item in items])
            self._lists.put(key, told)
        return told
