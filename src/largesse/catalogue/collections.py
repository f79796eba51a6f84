"""The collections of a snapshot, those that all customers may send or one customer's own: immutable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter

from largesse.catalogue.listing import CollectionItem, Serializer
from largesse.catalogue.model import Collection

_BY_ID = attrgetter("id")


class Collections:
    """Collections by id."""

    __slots__ = ("_by_id", "_serializer", "weight")

    def __init__(self, items: Iterable[CollectionItem], serializer: Serializer) -> None:
        self._by_id = {item.id: item for item in sorted(items, key=_BY_ID)}
        self._serializer = serializer
        # What they take in memory, roughly: a collection as much as ten of its products' ids.
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
