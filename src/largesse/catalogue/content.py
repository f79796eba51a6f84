"""The content of products and collections that the back office changes, and the faults in it.

Forms and CSV files have the same texts under the same names, so both are read here. All faults are found at once, each with its field.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

import msgspec

from largesse.base.errors import InvalidRequest
from largesse.catalogue.model import STOCK, Collection, Product
from largesse.db.statements import members_of

# The faults of a field, in English. `web.office.catalogue_shown` has the other languages.
REQUIRED = "Fill this in."
TOO_LONG = "This has %(found)s characters. At most %(most)s are allowed."
TOO_MANY = "This has %(found)s entries. At most %(most)s are allowed."
UNFIT = "This has characters that are not allowed. Type it again."
NO_COUNTRY = "Name at least one country, such as GB."
UNKNOWN_COUNTRY = "%(what)s is not the code of a country, such as GB."
NO_AMOUNT = "%(what)s is not an amount in %(currency)s, such as %(example)s."
NO_PERCENT = "%(what)s is not a percentage from 0 to 1000 with at most 4 decimals."
ZERO = "An amount must be more than 0."
TOO_MUCH = "An amount must be at most %(most)s."
TWICE = "%(what)s comes twice."
NO_AMOUNTS = "A gift needs amounts: type some, or a lowest and a highest one."
BOTH_AMOUNTS = "Type either amounts, or a lowest and a highest one."
NO_RANGE = "Type both the lowest and the highest amount."
WRONG_RANGE = "The lowest amount must be at most the highest one."
NO_PAIRS = "Type a country and an amount for each, such as GB 4.95."
UNKNOWN_CUSTOMER = "There is no customer %(what)s."
UNKNOWN_PRODUCT = "There is no product %(what)s."
UNKNOWN_SUPPLIER = "%(what)s is not the name of a supplier."
NO_PRODUCTS = "Name at least one product by its key."
OTHER_CURRENCY = "The product %(what)s has another currency."
NO_POINTS = "Type the amounts that can be chosen, or allow any amount."
TOO_EXPENSIVE = "Delivered in %(what)s it costs more than %(most)s."
NOT_YES = "Type yes or no."
FAULTS = (
    REQUIRED, TOO_LONG, TOO_MANY, UNFIT, NO_COUNTRY, UNKNOWN_COUNTRY, NO_AMOUNT, NO_PERCENT, ZERO, TOO_MUCH, TWICE, NO_AMOUNTS,
    BOTH_AMOUNTS, NO_RANGE, WRONG_RANGE, NO_PAIRS, UNKNOWN_CUSTOMER, UNKNOWN_PRODUCT, UNKNOWN_SUPPLIER, NO_PRODUCTS, OTHER_CURRENCY,
    NO_POINTS, TOO_EXPENSIVE, NOT_YES,
)  # fmt: skip


class Fault(NamedTuple):
    """A fault of a field: a text of FAULTS, and its values."""

    field: str
    said: str
    values: Mapping[str, object] = {}

    @property
    def english(self) -> str:
        """Returns the sentence in English."""
        return self.said % self.values


class Faulty(InvalidRequest):
    """A product or a collection is invalid: `faults` says why."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__(" ".join(f"`{fault.field}`: {fault.english}" for fault in faults)[:1_000])
        self.faults = faults


class ProductContent(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a product that is published. Its fields have the names of columns."""

    name: str
    is_digital: bool
    currency: str
    countries: tuple[str, ...] = ()
    denominations_minor: tuple[int, ...] = ()
    min_amount_minor: int | None = None
    max_amount_minor: int | None = None
    cost_minor: int | None = None
    markup_percent: Decimal | None = None
    postage_minor: dict[str, int] = {}
    vat_percent: dict[str, Decimal] = {}
    customer_ids: tuple[int, ...] | None = None
    active: bool = True
    picture: str | None = None
    description: str | None = None
    how_to_redeem: str | None = None
    terms: str | None = None
    suppliers: tuple[str, ...] = (STOCK,)

    def as_product(self, product_id: int) -> Product:
        """Returns the content as a product of the catalogue."""
        lowest, highest = self.min_amount_minor, self.max_amount_minor
        made = {
            "countries": frozenset(self.countries),
            "range_minor": None if lowest is None or highest is None else (lowest, highest),
            "cost_minor": self.cost_minor or 0,
            "markup_percent": self.markup_percent or Decimal(0),
            "customer_ids": None if self.customer_ids is None else frozenset(self.customer_ids),
        }
        return Product(id=product_id, **members_of(Product, self) | made)


class CollectionContent(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a curated collection that is published. Its fields have the names of columns."""

    name: str
    country: str
    currency: str
    value_points_minor: tuple[int, ...] = ()
    allow_custom_value: bool = False
    product_ids: tuple[int, ...] = ()
    active: bool = True

    def as_collection(self, collection_id: int) -> Collection:
        """Returns the content as a collection of the catalogue."""
        return Collection(id=collection_id, **members_of(Collection, self))


Content = ProductContent | CollectionContent
_encode = msgspec.json.Encoder(decimal_format="number").encode
_TYPES: Mapping[str, type[Content]] = {"product": ProductContent, "collection": CollectionContent}
KINDS = tuple(_TYPES)


def decode(kind: str, text: str) -> Content:
    """Decodes content from the JSON of a row or a draft."""
    return msgspec.json.decode(text, type=_TYPES[kind])


def encode(content: Content) -> str:
    """Returns the content as JSON."""
    return _encode(content).decode()


def differences(before: Content, after: Content) -> list[str]:
    """Returns the names of the fields that differ, in their order."""
    return [name for name in after.__struct_fields__ if getattr(before, name) != getattr(after, name)]
