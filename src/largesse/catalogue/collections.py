"""Collections: what a recipient chooses a gift from."""

from __future__ import annotations

from dataclasses import dataclass

from largesse.database.pool import Row


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection, as the database has it.

    Curated (`customer_id` None): sent at one of `value_points_minor` (ascending), or at any positive amount
    where `allow_custom_value`. Custom: one customer's own, always sent at `value_minor`.
    """

    id: int
    name: str
    country: str
    currency: str
    customer_id: int | None = None
    value_minor: int | None = None
    value_points_minor: tuple[int, ...] = ()
    allow_custom_value: bool = False
    product_ids: tuple[int, ...] = ()

    @property
    def kind(self) -> str:
        """`custom` or `curated`."""
        return "curated" if self.customer_id is None else "custom"

    def sold_to(self, customer_id: int) -> bool:
        """Whether a customer may send it: a curated one all may, a custom one its owner alone."""
        return self.customer_id is None or self.customer_id == customer_id


def collection_from_row(row: Row) -> Collection:
    """The collection of a row of `collections`."""
    return Collection(
        id=row["id"],
        name=row["name"],
        country=row["country"],
        currency=row["currency"],
        customer_id=row["customer_id"],
        value_minor=row["value_minor"],
        value_points_minor=tuple(sorted(set(row["value_points_minor"]))),
        allow_custom_value=row["allow_custom_value"],
        product_ids=tuple(row["product_ids"]),
    )
