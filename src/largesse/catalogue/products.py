"""Products: one gift each, digital or physical."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

import msgspec

from largesse.database.pool import Row

_POSTAGE = msgspec.json.Decoder(dict[str, int])
_VAT = msgspec.json.Decoder(dict[str, Decimal])


@dataclass(frozen=True, slots=True)
class Product:
    """A gift, as the database has it.

    Digital: sent at one of `denominations_minor` (ascending), or where there are none at any amount of
    `range_minor`; sold in `countries`. Physical: `cost_minor` marked up; sold where postage is known.
    """

    id: int
    name: str
    is_digital: bool
    currency: str
    countries: frozenset[str] = frozenset()
    denominations_minor: tuple[int, ...] = ()
    range_minor: tuple[int, int] | None = None
    cost_minor: int = 0
    markup_percent: Decimal = Decimal(0)
    postage_minor: Mapping[str, int] = field(default_factory=dict)  # by country
    vat_percent: Mapping[str, Decimal] = field(default_factory=dict)  # by country; a missing one has none
    customer_ids: frozenset[int] | None = None  # None: sold to all customers
    picture: str | None = None  # its name (`catalogue.pictures`)

    @property
    def sold_countries(self) -> frozenset[str]:
        """Where it is sold: ISO 3166-1 alpha-2 codes."""
        if self.is_digital:
            return self.countries
        return frozenset(self.postage_minor)

    @property
    def limits_minor(self) -> tuple[int, int] | None:
        """The lowest and the highest amount it can be sent at; None for a physical gift, which has one price."""
        if self.denominations_minor:
            return self.denominations_minor[0], self.denominations_minor[-1]
        return self.range_minor

    def sold_in(self, country: str) -> bool:
        """Whether it is sold in a country (ISO 3166-1 alpha-2): the quick form of `sold_countries`."""
        return country in (self.countries if self.is_digital else self.postage_minor)

    def sold_to(self, customer_id: int) -> bool:
        """Whether a customer may send it."""
        return self.customer_ids is None or customer_id in self.customer_ids


def product_from_row(row: Row) -> Product:
    """The product of a row of `products`; jsonb columns come as text."""
    customer_ids = row["customer_ids"]
    lowest, highest = row["min_amount_minor"], row["max_amount_minor"]
    return Product(
        id=row["id"],
        name=row["name"],
        is_digital=row["is_digital"],
        currency=row["currency"],
        countries=frozenset(row["countries"]),
        denominations_minor=tuple(sorted(set(row["denominations_minor"]))),
        range_minor=None if lowest is None or highest is None else (lowest, highest),
        cost_minor=row["cost_minor"] or 0,
        markup_percent=row["markup_percent"] or Decimal(0),
        postage_minor=_POSTAGE.decode(row["postage_minor"]),
        vat_percent=_VAT.decode(row["vat_percent"]),
        customer_ids=None if customer_ids is None else frozenset(customer_ids),
        picture=row["picture"],
    )
