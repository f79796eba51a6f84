"""The catalogue in memory: immutable, at one version, with its collections and the serialized form of each gift."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from operator import attrgetter
from typing import NamedTuple, overload

from largesse.base.cooperative import Steps
from largesse.base.errors import NotFound
from largesse.base.recently_used import RecentlyUsed
from largesse.catalogue.listing import CollectionItem, ProductItem, Serialized, Serializer, costing_at_most, in_currency
from largesse.catalogue.model import Collection, Product
from largesse.catalogue.products import Filters, Products, ProductsBuilder, finish

_PAGES_BYTES = 16 * 2**20
_MAX_CACHED = 1_000
_BY_ID = attrgetter("id")


class _Listed(NamedTuple):
    """A serialized list of collections, and its collections."""

    curated: Collections
    own: Collections
    serialized: Serialized


class Snapshot:
    """The catalogue at one version. Countries and currencies are in upper case.

    Returns None for everything that a caller may not see: unknown, inactive, not sold in the country, or somebody else's. The shared catalogue has
    only curated collections. `with_own` adds those of a customer.
    """

    __slots__ = ("_curated", "_lists", "_own", "_products", "_serializer", "version")

    def __init__(
        self,
        version: int,
        products: Products,
        curated: Collections,
        serializer: Serializer,
        own: Collections | None = None,
        lists: RecentlyUsed[Hashable, _Listed] | None = None,
    ) -> None:
        self.version = version
        self._products = products
        self._curated = curated
        self._own = Collections((), serializer) if own is None else own
        self._serializer = serializer
        # Successive snapshots share it. Each entry names its source, so that an outdated one is noticed.
        self._lists: RecentlyUsed[Hashable, _Listed] = (
            RecentlyUsed(max_entries=_MAX_CACHED, max_total=_PAGES_BYTES, weigh=lambda one: len(one.serialized))
            if lists is None
            else lists
        )

    @classmethod
    def of(
        cls, version: int, products: Iterable[Product], collections: Iterable[Collection], serializer: Serializer
    ) -> Snapshot:
        """Returns a snapshot of products and collections, given in any order."""
        builder = ProductsBuilder(serializer)
        for product in sorted(products, key=_BY_ID):
            builder.add(product)
        every = list(collections)
        curated = Collections.of((one for one in every if one.customer_id is None), serializer)
        own = Collections.of((one for one in every if one.customer_id is not None), serializer)
        return cls(version, finish(builder.finishing()), curated, serializer, own)

    def with_own(self, own: Collections) -> Snapshot:
        """Returns this snapshot with a customer's own collections added."""
        return Snapshot(self.version, self._products, self._curated, self._serializer, own, self._lists)

    def changed(
        self, version: int, products: Mapping[int, Product | None], collections: Mapping[int, Collection | None]
    ) -> Steps[Snapshot]:
        """Returns the catalogue at a later version, with changed products and curated collections by id. None removes one."""
        changed = yield from self._products.changed(products)
        curated = self._curated.changed(collections)
        return Snapshot(version, changed, curated, self._serializer, lists=self._lists)

    def follows(self, former: Snapshot) -> bool:
        """Returns whether this snapshot was made from `former` by changes, so that the two share the rest."""
        return self._lists is former._lists

    def parts(self) -> list[object]:
        """Returns the parts of the products (`Products.parts`)."""
        return self._products.parts()

    def product(self, product_id: int, country: str, customer_id: int) -> Product | None:
        """Returns the product if it is sold in `country` to this customer."""
        return self._products.find(product_id, country, customer_id)

    def serialized_product(self, product_id: int, country: str, customer_id: int) -> Serialized:
        """Returns the serialized product. Raises NotFound unless it is sold in `country` to this customer."""
        serialized = self._products.serialized(product_id, country, customer_id)
        if serialized is None:
            raise NotFound(f"There is no product {product_id} available in {country}.")
        return serialized

    def serialized_products(self, customer_id: int, filters: Filters, page: int = 1, limit: int = 100) -> Serialized:
        """Returns a page (1-based) of the customer's products, by id, serialized."""
        return self._products.serialized_page(customer_id, filters, page, limit)

    def products(self, customer_id: int, filters: Filters) -> Sequence[Product]:
        """Returns the customer's products, by id."""
        return _ProductsOf(self._products.find_all(customer_id, filters))

    def preparing(self, customer_id: int, filters: Filters) -> Steps[bool]:
        """Computes what `products`, `serialized_products` and `currencies` will return. Returns True."""
        yield from self._products.filtering(customer_id, filters)
        yield from self._products.counting(filters.country)
        return True

    def countries(self, customer_id: int) -> list[str]:
        """Returns the countries in which something is sold to the customer."""
        return self._products.countries(customer_id)

    def currencies(self, customer_id: int, country: str) -> Counter[str]:
        """Returns how many products are sold to the customer in the country in each currency."""
        return self._products.currencies(customer_id, country)

    def collections(self, customer_id: int) -> Sequence[Collection]:
        """Returns all curated collections and the customer's own, by id."""
        return [item.collection for item in self._sold_to(customer_id)]

    def collection(self, collection_id: int, customer_id: int) -> Collection | None:
        """Returns the collection if it is curated or this customer's own."""
        item = self._collection(collection_id, customer_id)
        return None if item is None else item.collection

    def serialized_collection(self, collection_id: int, customer_id: int) -> Serialized:
        """Returns the serialized collection. Raises NotFound unless it is curated or this customer's own."""
        item = self._collection(collection_id, customer_id)
        if item is None:
            raise NotFound(f"There is no collection {collection_id}.")
        return item.serialized

    def serialized_collections(
        self, customer_id: int, country: str | None = None, currency: str | None = None, amount: Decimal | None = None
    ) -> Serialized:
        """Returns all curated collections and the customer's own, by id, serialized."""
        key = (customer_id if len(self._own) else None, country, currency, amount)
        cached = self._lists.get(key)
        if cached is not None and cached.curated is self._curated and (key[0] is None or cached.own is self._own):
            return cached.serialized
        items = self._sold_to(customer_id)
        if country is not None:
            items = [item for item in items if item.collection.country == country]
        if currency is not None:
            items = in_currency(items, currency)
        if amount is not None:
            items = costing_at_most(items, amount, lambda item: item.least_minor)
        serialized = self._serializer.listed([item.serialized for item in items])
        self._lists.put(key, _Listed(self._curated, self._own, serialized))
        return serialized

    def has_gift(self, product_id: int | None, collection_id: int | None) -> bool:
        """Returns whether the product or collection of a customer's template is still in the catalogue, also if the customer may not send it."""
        in_catalogue = self._curated.get(collection_id) or self._own.get(collection_id)
        return self._products.has(product_id) or in_catalogue is not None

    def _collection(self, collection_id: int, customer_id: int) -> CollectionItem | None:
        item = self._curated.get(collection_id) or self._own.get(collection_id)
        return item if item is not None and item.collection.sold_to(customer_id) else None

    def _sold_to(self, customer_id: int) -> list[CollectionItem]:
        return sorted([*self._curated.sold_to(customer_id), *self._own.sold_to(customer_id)], key=_BY_ID)


class _ProductsOf(Sequence[Product]):
    """A sequence of the products of listed items."""

    def __init__(self, items: Sequence[ProductItem]) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Product]:
        return (item.product for item in self._items)

    @overload
    def __getitem__(self, at: int) -> Product: ...

    @overload
    def __getitem__(self, at: slice) -> list[Product]: ...

    def __getitem__(self, at: int | slice) -> Product | list[Product]:
        if isinstance(at, slice):
            return [item.product for item in self._items[at]]
        return self._items[at].product


class Collections:
    """Collections by id."""

    __slots__ = ("_by_id", "_serializer", "weight")

    def __init__(self, items: Iterable[CollectionItem], serializer: Serializer) -> None:
        self._by_id = {item.id: item for item in sorted(items, key=_BY_ID)}
        self._serializer = serializer
        # A rough measure of the memory: a collection counts as much as ten ids of products.
        self.weight = sum(10 + len(item.collection.product_ids) for item in self._by_id.values())

    @classmethod
    def of(cls, collections: Iterable[Collection], serializer: Serializer) -> Collections:
        """Returns the collections, given in any order."""
        return cls([CollectionItem(collection, serializer) for collection in collections], serializer)

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, collection_id: int | None) -> CollectionItem | None:
        """Returns the collection with the id, also if the customer may not send it."""
        return None if collection_id is None else self._by_id.get(collection_id)

    def sold_to(self, customer_id: int) -> list[CollectionItem]:
        """Returns the collections that the customer may send, by id."""
        return [item for item in self._by_id.values() if item.collection.sold_to(customer_id)]

    def changed(self, changes: Mapping[int, Collection | None]) -> Collections:
        """Returns the collections with changes by id. None removes one."""
        if not changes:
            return self
        left = (item for item in self._by_id.values() if item.id not in changes)
        new = (CollectionItem(one, self._serializer) for one in changes.values() if one is not None)
        return Collections([*left, *new], self._serializer)
