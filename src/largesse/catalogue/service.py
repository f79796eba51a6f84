"""Operations on a customer's own collections: create, change and remove them."""

from collections.abc import Sequence
from typing import Any

from largesse.base.errors import InvalidRequest, existing
from largesse.base.money import canonical
from largesse.catalogue import store
from largesse.catalogue.model import Collection
from largesse.catalogue.store import OwnCollection
from largesse.customers.actor import Actor, Transaction, require_same
from largesse.customers.roles import Right

MOST_COLLECTIONS = 200
MOST_PRODUCTS = 100  # products in one collection
MAX_NAME = 200


class TooManyCollections(InvalidRequest, rule=f"A customer has at most {MOST_COLLECTIONS} collections of its own."):
    """The customer has as many own collections as it may."""


async def create_collection(actor: Actor, new: OwnCollection) -> int:
    """Creates a collection and returns its id. Raises TooManyCollections."""
    async with actor.transaction(Right.TEMPLATES) as transaction:
        if await store.count_collections(transaction.connection, actor.customer_id) >= MOST_COLLECTIONS:
            raise TooManyCollections
        collection_id = await store.insert_collection(transaction.connection, actor.customer_id, new)
        after = {
            "name": new.name,
            "value": canonical(new.value_minor, new.currency),
            "currency": new.currency,
            "country": new.country,
            "products": len(new.product_ids),
        }
        await transaction.record("collection.created", f"collection {collection_id}", after=after)
    return collection_id


async def change_collection(
    actor: Actor, collection_id: int, name: str, product_ids: Sequence[int], seen: Collection | None = None
) -> None:
    """Renames a collection and replaces its products. Recipients who have not chosen yet choose from the new ones.

    Raises NotFound, and ReadAgain if its name or products are not those of `seen` any more.
    """
    async with actor.transaction(Right.TEMPLATES) as transaction:
        before = await _lock(transaction, collection_id)
        now = (before["name"], tuple(before.pop("product_ids")))
        require_same(seen and (seen.name, seen.product_ids), now)
        await transaction.connection.execute(
            store.UPDATE_OWN, actor.customer_id, collection_id, name, list(product_ids)
        )
        after = {"name": name, "products": len(product_ids)}
        await transaction.record("collection.changed", f"collection {collection_id}", before=before, after=after)


async def remove_collection(actor: Actor, collection_id: int) -> None:
    """Removes a collection. It can no longer be sent. Recipients who have it can still choose. Raises NotFound."""
    async with actor.transaction(Right.TEMPLATES) as transaction:
        before = await _lock(transaction, collection_id)
        del before["product_ids"]
        await transaction.connection.execute(store.REMOVE_OWN, actor.customer_id, collection_id)
        await transaction.record("collection.removed", f"collection {collection_id}", before=before)


async def _lock(transaction: Transaction, collection_id: int) -> dict[str, Any]:
    """Locks a collection, and returns its values for the audit log, and the ids of its products. Raises NotFound."""
    row = existing(
        await transaction.connection.fetchrow(store.LOCK_OWN, transaction.actor.customer_id, collection_id),
        "There is no such collection.",
    )
    return dict(row)
