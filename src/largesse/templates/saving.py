"""Templates as a world file describes them."""

from __future__ import annotations

from collections.abc import Sequence

from largesse.database.pool import Connection
from largesse.database.saving import Saved, Table, Values

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
    unwatched=(
        "gift_name",
    ),  # the name when the template was saved: renaming the gift alone saves no template
    kept="saved.of_people",
)


async def save_templates(connection: Connection, rows: Sequence[Values]) -> Saved:
    """Adds templates and overwrites those that differ, found by customer and key, but for what people have touched."""
    return await _TEMPLATES.save(connection, rows)
