"""The SQL of brands: one row for each customer, its own wrappings, and the pictures of both."""

from collections import defaultdict
from collections.abc import Sequence

from msgspec.structs import replace

from largesse.branding.model import Brand, OwnWrapping
from largesse.db.pool import Connection

_BRANDS = """
    SELECT c.id, c.name, b.colour, b.logo, b.sender_name, b.reply_to, b.subject, b.footer
    FROM customers c JOIN brands b ON b.customer_id = c.id WHERE c.id = ANY($1::int[])
"""
_WRAPPINGS = """
    SELECT customer_id, key, name, pattern, paper, ribbon, picture FROM own_wrappings
    WHERE customer_id = ANY($1::int[]) ORDER BY created_at, key
"""
_SAVE = """
    INSERT INTO brands (customer_id, colour, logo, sender_name, reply_to, subject, footer)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (customer_id) DO UPDATE SET
        colour = excluded.colour, logo = excluded.logo, sender_name = excluded.sender_name, reply_to = excluded.reply_to,
        subject = excluded.subject, footer = excluded.footer
"""
_ADD_WRAPPING = """
    INSERT INTO own_wrappings (customer_id, key, name, pattern, paper, ribbon, picture, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, clock_now())
"""
REMOVE_WRAPPING = "DELETE FROM own_wrappings WHERE customer_id = $1 AND key = $2"
_ADD_PICTURE = """
    INSERT INTO brand_pictures (customer_id, name, content, created_at) VALUES ($1, $2, $3, clock_now())
    ON CONFLICT (customer_id, name) DO UPDATE SET created_at = excluded.created_at
"""
# Removes all pictures except those in use and the newest, which sent mail may still show.
_REMOVE_PICTURES = """
    DELETE FROM brand_pictures p WHERE p.customer_id = $1
      AND p.name <> ALL($3::text[])
      AND p.name NOT IN (SELECT name FROM brand_pictures WHERE customer_id = $1 ORDER BY created_at DESC, name LIMIT $2)
"""
_PICTURE = "SELECT brand_picture($1)"


async def read_brands(connection: Connection, customer_ids: Sequence[int]) -> dict[int, Brand]:
    """Returns the brands of customers by their ids. Those without one are left out."""
    brands = await connection.fetch(_BRANDS, sorted(set(customer_ids)))
    if not brands:
        return {}
    wrappings: dict[int, list[OwnWrapping]] = defaultdict(list)
    for customer_id, *parts in await connection.fetch(_WRAPPINGS, [row["id"] for row in brands]):
        wrappings[customer_id].append(OwnWrapping(*parts))
    return {
        customer_id: replace(Brand(*parts), wrappings=wrappings[customer_id], company=company)
        for customer_id, company, *parts in brands
    }


async def save_brand(connection: Connection, customer_id: int, brand: Brand) -> None:
    """Saves a brand without its wrappings."""
    await connection.execute(
        _SAVE, customer_id, brand.colour, brand.logo, brand.sender_name, brand.reply_to, brand.subject, brand.footer
    )


async def add_wrapping(connection: Connection, customer_id: int, wrapping: OwnWrapping) -> None:
    """Adds an own wrapping. Its key is free, and the customer has a brand."""
    await connection.execute(
        _ADD_WRAPPING,
        customer_id,
        wrapping.key,
        wrapping.name,
        wrapping.pattern,
        wrapping.paper,
        wrapping.ribbon,
        wrapping.picture,
    )


async def add_picture(
    connection: Connection, customer_id: int, name: str, content: bytes, *, used: Sequence[str], most: int
) -> None:
    """Adds a picture, and deletes all but the newest `most` of the customer that are not in use."""
    await connection.execute(_ADD_PICTURE, customer_id, name, content)
    await connection.execute(_REMOVE_PICTURES, customer_id, most, [name, *used])


async def read_brand_picture(connection: Connection, name: str) -> bytes | None:
    """Returns the picture with that name, of any customer; None if there is none."""
    content: bytes | None = await connection.fetchval(_PICTURE, name)
    return content
