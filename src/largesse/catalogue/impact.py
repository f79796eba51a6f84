"""The templates and collections that a change of a product or a collection breaks, shown before it is published."""

from collections.abc import Sequence

import msgspec

from largesse.catalogue import draft_store as store
from largesse.catalogue.content import Content, ProductContent
from largesse.catalogue.draft_store import Edited
from largesse.catalogue.model import Collection, can_be_sent, can_become, collection_from_row
from largesse.db.pool import Connection, Row

MOST_LOOKED_AT = 1_000  # most templates that are checked, and most collections


class LostTemplate(msgspec.Struct, frozen=True):
    """A template that can be sent now, but not after the change."""

    id: int
    customer: str  # the key of the customer
    name: str
    value_minor: int
    currency: str


class LostChoice(msgspec.Struct, frozen=True):
    """A collection that offers the product now, but not at `values_minor` after the change. Empty means that it offers it at no value."""

    id: int
    name: str
    values_minor: Sequence[int]
    currency: str


class Impact(msgspec.Struct, frozen=True):
    """What a change breaks. `is_partial` means that not all templates or collections were checked."""

    templates: Sequence[LostTemplate] = ()
    collections: Sequence[LostChoice] = ()
    is_partial: bool = False

    def __bool__(self) -> bool:
        return bool(self.templates or self.collections or self.is_partial)


async def read_impact(connection: Connection, edited: Edited) -> Impact:
    """Returns what publishing the draft would break."""
    if edited.draft is None:
        return Impact()
    if isinstance(edited.content, ProductContent):
        rows = await connection.fetch(store.TEMPLATES_OF_PRODUCT, edited.id, MOST_LOOKED_AT + 1)
        collections = await connection.fetch(store.COLLECTIONS_OF_PRODUCT, edited.id, MOST_LOOKED_AT + 1)
    else:
        rows = await connection.fetch(store.TEMPLATES_OF_COLLECTION, edited.id, MOST_LOOKED_AT + 1)
        collections = []
    lost = [
        row
        for row in rows[:MOST_LOOKED_AT]
        if _can_be_sent(row, edited.content, edited.id) and not _can_be_sent(row, edited.newest, edited.id)
    ]
    return Impact(
        [LostTemplate(row["id"], row["customer"], row["name"], row["value_minor"], row["currency"]) for row in lost],
        _lost_choices(edited, [collection_from_row(row) for row in collections[:MOST_LOOKED_AT]]),
        len(rows) > MOST_LOOKED_AT or len(collections) > MOST_LOOKED_AT,
    )


def _can_be_sent(template: Row, content: Content, object_id: int) -> bool:
    """Returns whether a template of a gift can be sent when the gift has this content."""
    gift = content.as_product(object_id) if isinstance(content, ProductContent) else content.as_collection(object_id)
    return content.active and can_be_sent(
        gift, template["customer_id"], template["country"] or "", template["currency"], template["value_minor"]
    )


def _lost_choices(edited: Edited, collections: Sequence[Collection]) -> list[LostChoice]:
    before, after = edited.content, edited.newest
    if not isinstance(before, ProductContent) or not isinstance(after, ProductContent):
        return []
    lost = []
    for one in collections:
        points = one.value_points_minor if one.value_minor is None else (one.value_minor,)
        gone = [minor for minor in points if _offers(before, one, minor) and not _offers(after, one, minor)]
        if gone:
            lost.append(LostChoice(one.id, one.name, gone if len(gone) < len(points) else (), one.currency))
    return lost


def _offers(content: ProductContent, collection: Collection, value_minor: int) -> bool:
    product = content.as_product(0)
    owner = collection.customer_id
    if product.customer_ids is not None and owner is None:
        # A curated collection offers the product to the customers it is sold to.
        owner = next(iter(product.customer_ids), 0)
    return content.active and can_become(product, collection.country, collection.currency, value_minor, owner or 0)
