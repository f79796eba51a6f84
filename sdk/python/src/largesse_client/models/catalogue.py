"""Products, collections, templates and wrappings."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal

from largesse_client.models.opening import Shape, Word
from largesse_client.models.orders import GiftSelectionType


class Product(Shape, frozen=True, kw_only=True):
    """A product that can be sent. If `requires_amount`, sending it needs a `value`: one of `denominations`, or from `min_amount` to
    `max_amount` if those are empty. `total_price` is the price of a physical gift with delivery. `picture` is an address."""

    id: int
    name: str
    is_digital: bool
    currency: str
    currency_prefix: str
    total_price: Decimal | None
    denominations: tuple[Decimal, ...]
    denomination_choices: Mapping[str, str]
    min_amount: Decimal | None
    max_amount: Decimal | None
    requires_amount: bool
    label: str
    picture: str | None = None


class ProductInFull(Product, frozen=True, kw_only=True):
    """A product with its texts, which have line breaks."""

    description: str | None = None
    how_to_redeem: str | None = None
    terms: str | None = None


class CollectionKind(Word):
    """The kind of a collection: `curated` (for all customers, with value points) or `custom` (the customer's own, with one value)."""

    CURATED = "curated"
    CUSTOM = "custom"


class Collection(Shape, frozen=True, kw_only=True):
    """A collection that recipients choose from. If `requires_value`, sending it needs a `value`: one of `value_points`, or any
    positive amount with `allow_custom_value`."""

    id: int
    name: str
    kind: CollectionKind
    country: str
    currency: str
    currency_prefix: str
    value: Decimal | None
    requires_value: bool
    allow_custom_value: bool
    value_points: tuple[Decimal, ...]
    value_choices: Mapping[str, str] | None
    min_value: Decimal | None
    max_value: Decimal | None
    label: str


class Template(Shape, frozen=True, kw_only=True):
    """A saved preset. `currency` is None if its gift was deleted."""

    id: int
    name: str | None
    gift_selection_type: GiftSelectionType | None
    gift_product_id: int | None
    gifts_collection_id: int | None
    gift_name: str | None
    value: Decimal
    currency: str | None
    country: str | None
    wrapping_key: str | None
    from_name: str | None
    message: str | None
    expiry_after_days: int | None
    creation_date: datetime


class Wrapping(Shape, frozen=True, kw_only=True):
    """A wrapping of gifts. `aliases` are other keys for it."""

    key: str
    label: str
    aliases: tuple[str, ...]
