"""The catalogue: products, collections, which amounts they can be sent for, and a snapshot of it all in memory."""

from largesse.catalogue.amounts import Price, collection_price, gift_price
from largesse.catalogue.cache import Catalogue, load_snapshot
from largesse.catalogue.collections import Collection
from largesse.catalogue.products import Product
from largesse.catalogue.saving import save_collections, save_products
from largesse.catalogue.snapshot import Snapshot
from largesse.catalogue.telling import Telling, Told

__all__ = [
    "Catalogue",
    "Collection",
    "Price",
    "Product",
    "Snapshot",
    "Telling",
    "Told",
    "collection_price",
    "gift_price",
    "load_snapshot",
    "save_collections",
    "save_products",
]
