"""The catalogue: products, collections, which amounts they can be sent for, and a snapshot of it all in memory.

Start with `products` and `collections`, what is sold as the database has it. `prices` is what a physical gift costs delivered;
`amounts` decides whether a gift can be sent for an amount in a country, and what that costs. `shapes` is the JSON of both.

Requests never read the catalogue from the database: `snapshot` holds all of one version, `cache` loads a new one when a request
has seen a newer version, `listing` has the items that lists and filters are made of, `recent` remembers the filtered lists
asked for last; `telling` is how callers are told, which those who speak to them say. `saving` writes what a world file describes,
`own` the collections that people make.

`pictures` are kept by their content, once `images` has looked what they are; `details` are the texts that people are told of a product.
"""

from largesse.catalogue.amounts import Price, collection_price, gift_price
from largesse.catalogue.cache import Catalogue, load_snapshot
from largesse.catalogue.collections import Collection
from largesse.catalogue.details import NOTHING_SAID, Details, read_details
from largesse.catalogue.own import (
    OwnCollection,
    TooManyCollections,
    add_collection,
    change_collection,
    remove_collection,
)
from largesse.catalogue.pictures import Picture, picture_path, save_pictures
from largesse.catalogue.products import Product
from largesse.catalogue.saving import save_collections, save_products
from largesse.catalogue.snapshot import Snapshot
from largesse.catalogue.telling import Telling, Told

__all__ = [
    "NOTHING_SAID",
    "Catalogue",
    "Collection",
    "Details",
    "OwnCollection",
    "Picture",
    "Price",
    "Product",
    "Snapshot",
    "Telling",
    "Told",
    "TooManyCollections",
    "add_collection",
    "change_collection",
    "collection_price",
    "gift_price",
    "load_snapshot",
    "picture_path",
    "read_details",
    "remove_collection",
    "save_collections",
    "save_pictures",
    "save_products",
]
