"""How often templates are used."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from largesse.database.pool import Connection
from largesse.identity.principal import Principal

MOST_COUNTED = 1_000


@dataclass(frozen=True, slots=True)
class TemplateUses:
    """The orders placed with a template in one environment."""

    orders: int  # at most MOST_COUNTED and one: then there are more
    last_at: datetime


async def template_uses(
    connection: Connection, principal: Principal, template_ids: Collection[int]
) -> dict[int, TemplateUses]:
    """How often each of the customer's templates was used in the environment, by id; unused ones are left out.

    What the worker has not taken in yet, within seconds, is not counted.
    """
    rows = await connection.fetch(
        """
        SELECT asked.id, used.orders, used.last_at FROM unnest($3::int[]) AS asked (id)
        CROSS JOIN LATERAL (
            SELECT count(*) AS orders, max(created_at) AS last_at FROM (
                SELECT created_at FROM report_orders
                WHERE customer_id = $1 AND environment = $2 AND template_id = asked.id AND template_id <> 0
                ORDER BY created_at DESC LIMIT $4) AS newest) AS used
        WHERE used.orders > 0
        """,
        principal.customer_id,
        principal.environment,
        list(template_ids),
        MOST_COUNTED + 1,
    )
    return {row["id"]: TemplateUses(row["orders"], row["last_at"]) for row in rows}
