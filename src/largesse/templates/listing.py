"""Saved templates as they are read: one, and a customer's."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from largesse.base.money import to_number
from largesse.database.pool import Connection, Row
from largesse.identity.principal import Principal

_COLUMNS = """
    id, name, product_id, collection_id, gift_name, value_minor, currency, country, wrapping_key, from_name, message,
    expiry_after_days, created_at
"""


@dataclass(frozen=True, slots=True)
class Template:
    """A saved preset; exactly one of `product_id` and `collection_id` is set."""

    id: int
    name: str | None
    product_id: int | None
    collection_id: int | None
    gift_name: str
    value_minor: int
    currency: str
    country: str | None
    wrapping_key: str | None
    from_name: str | None
    message: str | None
    expiry_after_days: int | None
    created_at: datetime

    @property
    def value(self) -> float:
        """The per-recipient face value in major units."""
        return to_number(self.value_minor, self.currency)


async def list_templates(
    connection: Connection, principal: Principal, *, offset: int, limit: int
) -> list[Template]:
    """The templates of the principal's customer, newest first."""
    rows = await connection.fetch(
        f"SELECT {_COLUMNS} FROM templates WHERE customer_id = $1 AND removed_at IS NULL ORDER BY id DESC OFFSET $2 LIMIT $3",  # noqa: S608 - constant
        principal.customer_id,
        offset,
        limit,
    )
    return [_template(row) for row in rows]


async def read_template(connection: Connection, principal: Principal, template_id: int) -> Template | None:
    """One template of the principal's customer; None for every other id, and one that was removed."""
    row = await connection.fetchrow(
        f"SELECT {_COLUMNS} FROM templates WHERE id = $1 AND customer_id = $2 AND removed_at IS NULL",  # noqa: S608 - constant
        template_id,
        principal.customer_id,
    )
    return _template(row) if row else None


def _template(row: Row) -> Template:
    return Template(**row)
