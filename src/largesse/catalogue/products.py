"""The products of a snapshot. They are immutable. A changed copy shares everything that has not changed.

The list of a country is divided into chunks. Results, such as the products with a word in their name, are cached for each chunk: after a change
only changed chunks are searched again. Long computations are generators that yield where they may pause.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from decimal import Decimal
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar

from largesse.base.cooperative import Steps
from largesse.base.recently_used import RecentlyUsed
from largesse.catalogue.listing import ProductItem, Serialized, Serializer, costing_at_most, in_currency, named
from largesse.catalogue.model import Product
from largesse.catalogue.sorted_chunks import CHUNK, SortedChunks

Value = TypeVar("Value")
Items = SortedChunks[ProductItem]

# Bounds of the cached results, in bytes, in items, and in number. They need bounds, as callers choose the filters.
_PAGES_BYTES = 16 * 2**20
_LISTS_ITEMS = 500_000
_MAX_CACHED = 1_000

_BY_ID = attrgetter("id")
_CURRENCY = attrgetter("currency")
_NONE: Items = SortedChunks()


class Filters(NamedTuple):
    """Selects the products of a country: those that can be sent for `amount`, in major units, or less, and with the words of `keyword` in their name."""

    country: str
    currency: str | None = None
    amount: Decimal | None = None
    keyword: str | None = None


class _Buckets(Generic[Value]):
    """An immutable map of integers. A changed copy shares all buckets but one."""

    __slots__ = ("_buckets",)

    def __init__(self, buckets: dict[int, dict[int, Value]]) -> None:
        self._buckets = buckets

    def get(self, key: int) -> Value | None:
        bucket = self._buckets.get(key // CHUNK)
        return None if bucket is None else bucket.get(key)

    def put(self, key: int, value: Value | None) -> _Buckets[Value]:
        """Returns a map with the value, or without the key if the value is None."""
        bucket = dict(self._buckets.get(key // CHUNK, {}))
        if value is None:
            bucket.pop(key, None)
        else:
            bucket[key] = value
        return _Buckets({**self._buckets, key // CHUNK: bucket})

    def parts(self) -> list[object]:
        return list(self._buckets.values())


class _Derived(NamedTuple):
    """The result for a list, and for each of its chunks by the chunk's id(). `source` holds the chunks in memory, so that ids stay valid."""

    source: Items
    parts: dict[int, Any]
    whole: Any
    weight: int


class _Page(NamedTuple):
    source: Items
    serialized: Serialized


class _Extended(NamedTuple):
    """The list of products that everybody may send together with those of one customer."""

    source: Items
    own: tuple[ProductItem, ...]
    whole: Items


class _Memory:
    """The cache of lists. Snapshots share it: each checks that an entry was made from its own list."""

    def __init__(self) -> None:
        self.derived: RecentlyUsed[Hashable, _Derived] = RecentlyUsed(
            max_entries=_MAX_CACHED, max_total=_LISTS_ITEMS, weigh=lambda one: one.weight
        )
        self.extended: RecentlyUsed[Hashable, _Extended] = RecentlyUsed(
            max_entries=_MAX_CACHED, max_total=_LISTS_ITEMS, weigh=lambda one: len(one.own) * CHUNK
        )
        self.pages: RecentlyUsed[Hashable, _Page] = RecentlyUsed(
            max_entries=_MAX_CACHED, max_total=_PAGES_BYTES, weigh=lambda one: len(one.serialized)
        )


class Products:
    """Products by id, by country, and by customer if they are sold only to some."""

    __slots__ = ("_by_id", "_memory", "_named", "_open", "_serializer")

    def __init__(
        self,
        by_id: _Buckets[ProductItem],
        open_: dict[str, Items],
        named_: _Buckets[tuple[ProductItem, ...]],
        serializer: Serializer,
        memory: _Memory,
    ) -> None:
        self._by_id = by_id
        self._open = open_
        self._named = named_
        self._serializer = serializer
        self._memory = memory

    def has(self, product_id: int | None) -> bool:
        """Returns whether the product exists, also if the customer may not send it."""
        return product_id is not None and self._by_id.get(product_id) is not None

    def find(self, product_id: int, country: str, customer_id: int) -> Product | None:
        """Returns the product if it is sold in the country to the customer."""
        item = self._find(product_id, country, customer_id)
        return None if item is None else item.product

    def serialized(self, product_id: int, country: str, customer_id: int) -> Serialized | None:
        """Returns the product that `find` returns, serialized."""
        item = self._find(product_id, country, customer_id)
        return None if item is None else item.serialized(country)

    def find_all(self, customer_id: int, filters: Filters) -> Items:
        """Returns the products that the customer may send in the country, filtered."""
        return finish(self.filtering(customer_id, filters))

    def serialized_page(self, customer_id: int, filters: Filters, page: int, limit: int) -> Serialized:
        """Returns a page (1-based) of these products, serialized."""
        found = self.find_all(customer_id, filters)
        # All customers without own products see the same page, so they share it.
        key = (customer_id if self._named.get(customer_id) else None, filters, page, limit)
        cached = self._memory.pages.get(key)
        if cached is not None and cached.source is found:
            return cached.serialized
        start = (page - 1) * limit
        items = found[start : start + limit]
        serialized = self._serializer.listed([item.serialized(filters.country) for item in items])
        if items:  # empty pages are not stored: callers may ask for any number of them
            self._memory.pages.put(key, _Page(found, serialized))
        return serialized

    def countries(self, customer_id: int) -> list[str]:
        """Returns the countries in which something is sold to the customer."""
        own = (item.product.sold_countries for item in self._named.get(customer_id) or ())
        return sorted({*self._open, *(country for countries in own for country in countries)})

    def currencies(self, customer_id: int, country: str) -> Counter[str]:
        """Returns how many products are sold to the customer in the country in each currency."""
        own = (item.currency for item in self._named.get(customer_id) or () if item.product.sold_in(country))
        return finish(self.counting(country)) + Counter(own)

    def filtering(self, customer_id: int, filters: Filters) -> Steps[Items]:
        """Computes and caches the result of `find_all`."""
        country, *chosen = filters
        found = self._open.get(country, _NONE)
        if any(one is not None and one != "" for one in chosen):
            found = yield from self._derive(filters, found, lambda chunk: _passing(chunk, filters), _join)
        own = self._named.get(customer_id)
        return self._extended(customer_id, filters, found, own) if own else found

    def counting(self, country: str) -> Steps[Counter[str]]:
        """Counts the currencies of the products that everybody may send."""
        found = self._open.get(country, _NONE)
        counted: Counter[str] = yield from self._derive(("currencies", country), found, _count_currencies, _sum)
        return counted

    def changed(self, changes: Mapping[int, Product | None]) -> Steps[Products]:
        """Returns the products with changes by id. None removes one."""
        by_id, open_, named_ = self._by_id, dict(self._open), self._named
        for product_id, product in changes.items():
            former = by_id.get(product_id)
            if former is not None and former.product == product:
                continue
            item = None if product is None else ProductItem(product, self._serializer)
            by_id = by_id.put(product_id, item)
            for country in _open_countries(former) | _open_countries(item):
                listed = open_.get(country, _NONE)
                is_sold = item is not None and country in _open_countries(item)
                open_[country] = listed.put(item) if item is not None and is_sold else listed.drop(product_id)
                yield
            for customer_id in _customers(former) | _customers(item):
                own = [one for one in named_.get(customer_id) or () if one.id != product_id]
                if item is not None and customer_id in _customers(item):
                    insort(own, item, key=_BY_ID)
                named_ = named_.put(customer_id, tuple(own) or None)
                yield
            yield
        open_ = {country: listed for country, listed in open_.items() if listed.chunks}
        return Products(by_id, open_, named_, self._serializer, self._memory)

    def parts(self) -> list[object]:
        """Returns the parts of the structure, to be freed one after the other from the end, as freeing all at once takes too long."""
        lists = (chunk for listed in self._open.values() for chunk in listed.chunks)
        return [*self._by_id.parts(), *self._named.parts(), *lists]

    def _find(self, product_id: int, country: str, customer_id: int) -> ProductItem | None:
        item = self._by_id.get(product_id)
        if item is None or not item.product.sold_in(country) or not item.product.sold_to(customer_id):
            return None
        return item

    def _derive(
        self,
        key: Hashable,
        source: Items,
        of_chunk: Callable[[list[ProductItem]], Any],
        join: Callable[[Iterable[Any]], Any],
    ) -> Steps[Any]:
        """Returns the joined results of the chunks. Reuses the results of unchanged chunks."""
        former = self._memory.derived.get(key)
        if former is not None and former.source is source:
            return former.whole
        known = {} if former is None else former.parts
        parts: dict[int, Any] = {}
        for chunk in source.chunks:
            part = known.get(id(chunk))
            if part is None:
                part = of_chunk(chunk)
                yield
            parts[id(chunk)] = part
        whole = join(parts.values())
        self._memory.derived.put(key, _Derived(source, parts, whole, len(parts) + sum(map(len, parts.values()))))
        return whole

    def _extended(self, customer_id: int, filters: Filters, found: Items, own: tuple[ProductItem, ...]) -> Items:
        cached = self._memory.extended.get((customer_id, filters))
        if cached is not None and cached.source is found and cached.own is own:
            return cached.whole
        whole = found
        for item in _passing([item for item in own if item.product.sold_in(filters.country)], filters):
            whole = whole.put(item)
        self._memory.extended.put((customer_id, filters), _Extended(found, own, whole))
        return whole


class ProductsBuilder:
    """Builds the products of a whole catalogue, which are added one by one in the order of their ids."""

    def __init__(self, serializer: Serializer) -> None:
        self._serializer = serializer
        self._by_id: dict[int, dict[int, ProductItem]] = defaultdict(dict)
        self._open: dict[str, list[list[ProductItem]]] = defaultdict(list)
        self._named: dict[int, list[ProductItem]] = defaultdict(list)

    def add(self, product: Product) -> None:
        """Adds the next product."""
        item = ProductItem(product, self._serializer)
        self._by_id[product.id // CHUNK][product.id] = item
        for country in _open_countries(item):
            chunks = self._open[country]
            if not chunks or len(chunks[-1]) == CHUNK:
                chunks.append([])
            chunks[-1].append(item)
        for customer_id in _customers(item):
            self._named[customer_id].append(item)

    def finishing(self) -> Steps[Products]:
        """Returns the products."""
        named_: dict[int, dict[int, tuple[ProductItem, ...]]] = defaultdict(dict)
        for customer_id, items in self._named.items():
            named_[customer_id // CHUNK][customer_id] = tuple(items)
            yield
        open_ = {country: SortedChunks(chunks) for country, chunks in self._open.items()}
        return Products(_Buckets(dict(self._by_id)), open_, _Buckets(dict(named_)), self._serializer, _Memory())


def finish(steps: Steps[Value]) -> Value:
    """Runs a computation without pauses, and returns its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Value = end.value
            return result


def _open_countries(item: ProductItem | None) -> frozenset[str]:
    """Returns the countries in which all customers may send the item."""
    return frozenset() if item is None or item.product.customer_ids is not None else item.product.sold_countries


def _customers(item: ProductItem | None) -> frozenset[int]:
    """Returns the customers who may send the item, if it is sold only to some; otherwise an empty set."""
    return frozenset() if item is None else item.product.customer_ids or frozenset()


def _passing(items: list[ProductItem], filters: Filters) -> list[ProductItem]:
    country, currency, amount, keyword = filters
    if currency is not None:
        items = in_currency(items, currency)
    if keyword:
        items = named(items, keyword)
    if amount is not None:
        items = costing_at_most(items, amount, lambda item: item.least_minor(country))
    return items


def _join(parts: Iterable[list[ProductItem]]) -> Items:
    return SortedChunks([part for part in parts if part])


def _count_currencies(chunk: list[ProductItem]) -> Counter[str]:
    return Counter(map(_CURRENCY, chunk))


def _sum(parts: Iterable[Counter[str]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return total
