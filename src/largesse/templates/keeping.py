"""Templates as people make, change and remove them. What they have touched is theirs: a world file leaves it as it is."""

from __future__ import annotations

from dataclasses import dataclass, fields

from largesse.base.errors import InvalidRequest, NotFound
from largesse.database.pool import Connection

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


_COLUMNS = [field.name for field in fields(TemplateContent)]


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


async def change_template(
    connection: Connection, customer_id: int, template_id: int, content: TemplateContent
) -> None:
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
    return [getattr(content, name) for name in _COLUMNS]


def _no_such_template() -> NotFound:
    return NotFound("There is no such template.")


_INSERT = f"""
    INSERT INTO templates (customer_id, key, of_people, created_at, {", ".join(_COLUMNS)})
    VALUES ($1, 'app/' || gen_random_uuid(), true, clock_now(), {", ".join(f"${at}" for at, _ in enumerate(_COLUMNS, 2))})
    RETURNING id
"""  # noqa: S608 - constants
_UPDATE = f"""
    UPDATE templates SET of_people = true, {", ".join(f"{name} = ${at}" for at, name in enumerate(_COLUMNS, 3))}
    WHERE customer_id = $1 AND id = $2 AND removed_at IS NULL RETURNING id
"""  # noqa: S608 - constants
