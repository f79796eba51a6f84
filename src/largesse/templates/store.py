"""SQL of templates. A template that people have changed or removed (`of_people`) is theirs: loading a seed file does not change it."""

from datetime import datetime

import msgspec

from largesse.base.money import to_number
from largesse.customers.principal import Principal
from largesse.db.pool import Connection
from largesse.db.statements import Table

_LOCK_CUSTOMER = "SELECT FROM customers WHERE id = $1 FOR NO KEY UPDATE"

_SELECT = """
    SELECT id, name, product_id, collection_id, gift_name, value_minor, currency, country, wrapping_key, from_name, message,
           expiry_after_days, created_at
    FROM templates WHERE customer_id = $1 AND removed_at IS NULL
"""
_NEWEST_FIRST = _SELECT + "AND ($4::int IS NULL OR id < $4) ORDER BY id DESC OFFSET $2 LIMIT $3"
_ONE = _SELECT + "AND id = $2"
_COUNT = "SELECT count(*) FROM templates WHERE customer_id = $1 AND removed_at IS NULL"
_LOCK = "SELECT FROM templates WHERE customer_id = $1 AND id = $2 FOR NO KEY UPDATE"
INSERT = """
    INSERT INTO templates (customer_id, key, of_people, created_at, name, product_id, collection_id, gift_name, value_minor, currency,
                           country, wrapping_key, from_name, message, expiry_after_days)
    VALUES ($1, 'app/' || gen_random_uuid(), true, clock_now(), $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
    RETURNING id
"""
UPDATE = """
    UPDATE templates SET of_people = true, name = $3, product_id = $4, collection_id = $5, gift_name = $6, value_minor = $7,
                         currency = $8, country = $9, wrapping_key = $10, from_name = $11, message = $12, expiry_after_days = $13
    WHERE customer_id = $1 AND id = $2
"""
# The row stays, as orders refer to it.
REMOVE = "UPDATE templates SET removed_at = clock_now(), of_people = true WHERE customer_id = $1 AND id = $2"


class TemplateContent(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a template. Exactly one of `product_id` and `collection_id` is set."""

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

    @property
    def value(self) -> float:
        """The face value per recipient in major units."""
        return to_number(self.value_minor, self.currency)


class Template(TemplateContent, frozen=True, kw_only=True):
    """A saved template."""

    id: int
    created_at: datetime


async def list_templates(
    connection: Connection, principal: Principal, *, offset: int, limit: int, before: int | None = None
) -> list[Template]:
    """Returns templates of the principal's customer, newest first. With the id `before`, returns older ones, and ignores `offset`."""
    rows = await connection.fetch(_NEWEST_FIRST, principal.customer_id, 0 if before else offset, limit, before)
    return [Template(**row) for row in rows]


async def read_template(connection: Connection, principal: Principal, template_id: int) -> Template | None:
    """Returns a template of the principal's customer. None for a removed one, and for any other id."""
    row = await connection.fetchrow(_ONE, principal.customer_id, template_id)
    return None if row is None else Template(**row)


async def lock_template(connection: Connection, customer_id: int, template_id: int) -> Template | None:
    """Locks a customer's template until the transaction ends, and returns it as `read_template` does."""
    await connection.execute(_LOCK, customer_id, template_id)
    row = await connection.fetchrow(_ONE, customer_id, template_id)
    return None if row is None else Template(**row)


async def count_templates(connection: Connection, customer_id: int) -> int:
    """Returns how many templates a customer has. Locks the customer, so that two additions at once cannot exceed the limit."""
    await connection.execute(_LOCK_CUSTOMER, customer_id)
    return int(await connection.fetchval(_COUNT, customer_id))


# The columns that loading a seed file saves, by customer and key.
TEMPLATES = Table(
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
        "removed_at": "timestamptz",  # never in a seed file, so a template that people removed always differs from it
    },
    match="saved.customer_id = new.customer_id AND saved.key = new.key",
    # The gift's name when the template was saved: if only that changes, a load does not save the template again.
    unwatched=("gift_name",),
    protected="saved.of_people",
)
