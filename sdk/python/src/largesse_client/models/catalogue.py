"""What can be sent: products, collections, templates, and how they are wrapped."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal

from largesse_client.models.opening import Shape, Word
from largesse_client.models.orders import GiftSelectionType


class Product(Shape, frozen=True, kw_only=True):
    """A product that can be sent. `value` is needed when sending it where `requires_amount`: one of `denominations`, or when
    those are empty from `min_amount` to `max_amount`. `total_price` is a physical gift's, delivered. `picture` is an address."""

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
    """A product with what is said of it, each text with line breaks."""

    description: str | None = None
    how_to_redeem: str | None = None
    terms: str | None = None


class CollectionKind(Word):
    """`curated`: for everybody, with value points; `custom`: the customer's own, of one value."""

    CURATED = "curated"
    CUSTOM = "custom"


class Collection(Shape, frozen=True, kw_only=True):
    """A collection that recipients choose from. `value` is needed when sending it where `requires_value`: one of `value_points`,
    or any positive amount with `allow_custom_value`."""

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
    """A saved preset. `currency` is None when its gift has since been deleted."""

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
    """How a gift can be wrapped; `aliases` name the same one."""

    key: str
    label: str
    aliases: tuple[str, ...]
