"""Failing webhooks of all customers or of one, for members of staff."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit
from uuid import UUID

from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection
from largesse.webhooks.store import MOST_REDELIVERED

_COLUMNS = Fragment("""
    s.customer_id, c.name AS customer, s.environment, s.id, s.target_url, coalesce(q.failing, false) AS is_failing, f.failed
    FROM webhook_subscriptions s JOIN customers c ON c.id = s.customer_id
""")
_FAILED = Fragment("""
    CROSS JOIN LATERAL (
        SELECT count(*)::int AS failed FROM (
            SELECT FROM deliveries d
            WHERE d.customer_id = s.customer_id AND d.subscription_id = s.id AND d.state IN ('dropped', 'exhausted')
            LIMIT $1) AS few) AS f
""")
_OF_ALL = compose(
    """
    SELECT {columns} JOIN subscription_queues q ON q.customer_id = s.customer_id AND q.subscription_id = s.id {failed}
    WHERE q.failing AND (q.customer_id, q.subscription_id) > ($2, $3) ORDER BY q.customer_id, q.subscription_id LIMIT $4
    """,
    columns=_COLUMNS,
    failed=_FAILED,
)
_OF_ONE = compose(
    """
    SELECT {columns} LEFT JOIN subscription_queues q ON q.customer_id = s.customer_id AND q.subscription_id = s.id {failed}
    WHERE s.customer_id = $2 AND s.id > $3 AND (q.failing OR f.failed > 0) ORDER BY s.id LIMIT $4
    """,
    columns=_COLUMNS,
    failed=_FAILED,
)
FIRST = 0, UUID(int=0)


@dataclass(frozen=True, slots=True)
class FailingWebhook:
    """A subscription whose last attempt failed, or that has deliveries that failed for good."""

    customer_id: int
    customer: str
    environment: str
    id: UUID
    target_url: str
    is_failing: bool  # its last attempt failed, and is repeated
    failed: int  # deliveries that failed for good, at most MOST_REDELIVERED

    @property
    def host(self) -> str:
        """Returns only the host of its address, as the rest may contain a secret."""
        return urlsplit(self.target_url).netloc.rpartition("@")[2]


async def list_failing(
    connection: Connection, customer_id: int | None, *, past: tuple[int, UUID] = FIRST, limit: int = 50
) -> list[FailingWebhook]:
    """Returns subscriptions whose last attempt failed, from the one after `past` on. For one customer, adds those with deliveries that failed."""
    if customer_id is None:
        rows = await connection.fetch(_OF_ALL, MOST_REDELIVERED, *past, limit)
    else:
        rows = await connection.fetch(_OF_ONE, MOST_REDELIVERED, customer_id, past[1], limit)
    return [FailingWebhook(**row) for row in rows]
