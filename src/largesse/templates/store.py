"""Saved templates as they are read: one, and a customer's.

Templates as people make, change and remove them. What they have touched is theirs: a world file leaves it as it is.

Templates as a world file describes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime

from largesse.base.errors import InvalidRequest, NotFound
from largesse.base.money import to_number
from largesse.customers.principal import Principal
from largesse.db.pool import Connection, Row
from largesse.db.statements import Saved, Table, Values

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


async def list_templates(connection: Connection, principal: Principal, *, offset: int, limit: int) -> list[Template]:
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


MOST_TEMPLATES = 500
MAX_NAME = 200
MAX_EXPIRY_DAYS = 36_500


class TooManyTemplates(InvalidRequest):
    """The customer has as many as it may."""

    def __init__(self) -> None:
        super().__init__(f"A customer has at most {MOST_TEMPLATES} templates.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateContent:
    """What a template says. One of `product_id` and `collection_id` is set; the value is one that the gift can be sent at."""

    name: str | None
    product_id: int | None
    collection_id: int | None
    gift_name: str
    value_minor: int
    currency: str
    country: str
    wrapping_key: str | None
    from_name: str | None
    message: str | None
    expiry_after_days: int | None


_KEEPING_COLUMNS = [field.name for field in fields(TemplateContent)]


async def add_template(connection: Connection, customer_id: int, content: TemplateContent) -> int:
    """Adds one and returns its id. Raises TooManyTemplates."""
    # Locked, so that two who add at the same time do not both take the last place.
    await connection.execute("SELECT FROM customers WHERE id = $1 FOR NO KEY UPDATE", customer_id)
    count = await connection.fetchval(
        "SELECT count(*) FROM templates WHERE customer_id = $1 AND removed_at IS NULL", customer_id
    )
    if count >= MOST_TEMPLATES:
        raise TooManyTemplates
    added: int = await connection.fetchval(_INSERT, customer_id, *_values(content))
    return added


async def change_template(connection: Connection, customer_id: int, template_id: int, content: TemplateContent) -> None:
    """Has it say something else from now on; what was sent with it stays. Raises NotFound."""
    if not await connection.fetchval(_UPDATE, customer_id, template_id, *_values(content)):
        raise _no_such_template()


async def remove_template(connection: Connection, customer_id: int, template_id: int) -> None:
    """Removes it: it can be sent no more, and what was sent with it stays. Raises NotFound."""
    removed = await connection.fetchval(
        """
        UPDATE templates SET removed_at = clock_now(), of_people = true
        WHERE customer_id = $1 AND id = $2 AND removed_at IS NULL RETURNING id
        """,
        customer_id,
        template_id,
    )
    if not removed:
        raise _no_such_template()


def _values(content: TemplateContent) -> list[object]:
    return [getattr(content, name) for name in _KEEPING_COLUMNS]


def _no_such_template() -> NotFound:
    return NotFound("There is no such template.")


_INSERT = f"""
    INSERT INTO templates (customer_id, key, of_people, created_at, {", ".join(_KEEPING_COLUMNS)})
    VALUES ($1, 'app/' || gen_random_uuid(), true, clock_now(), {", ".join(f"${at}" for at, _ in enumerate(_KEEPING_COLUMNS, 2))})
    RETURNING id
"""  # noqa: S608 - constants
_UPDATE = f"""
    UPDATE templates SET of_people = true, {", ".join(f"{name} = ${at}" for at, name in enumerate(_KEEPING_COLUMNS, 3))}
    WHERE customer_id = $1 AND id = $2 AND removed_at IS NULL RETURNING id
"""  # noqa: S608 - constants


_TEMPLATES = Table(
    "templates",
    {
        "customer_id": "integer",
        "key": "text",
        "name": "text",
        "product_id": "integer",
        "collection_id": "integer",
        "gift_name": "text",
        "value_minor": "bigint",
        "currency": "text",
        "country": "text",
        "wrapping_key": "text",
        "from_name": "text",
        "message": "text",
        "expiry_after_days": "integer",
        "removed_at": "timestamptz",  # never in a file: one that people have removed differs
    },
    match="saved.customer_id = new.customer_id AND saved.key = new.key",
    unwatched=("gift_name",),  # the name when the template was saved: renaming the gift alone saves no template
    kept="saved.of_people",
)


async def save_templates(connection: Connection, rows: Sequence[Values]) -> Saved:
    """Adds templates and overwrites those that differ, found by customer and key, but for what people have touched."""
    return await _TEMPLATES.save(connection, rows)
