"""SQL for rotating secrets, and for listing the subscriptions to choose from, for operators."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from largesse.base.errors import NotFound
from largesse.db.pool import Connection, Row
from largesse.encryption.vault import Vault
from largesse.webhooks.signing import new_secret
from largesse.webhooks.store import secret_context

ROTATION_S = 86_400  # for which the previous secret signs too

_ROTATE = """
    UPDATE webhook_subscriptions
    SET previous_secret = sealed_secret, previous_until = clock_now() + $5 * interval '1 second', sealed_secret = $4
    WHERE id = $1 AND customer_id = $2 AND environment = $3 RETURNING previous_until
"""
_FIND = "SELECT customer_id, environment FROM webhook_subscriptions WHERE id = $1"
_EVERY = """
    SELECT s.id, c.key AS customer, environment, event, events, target_url, s.created_at, previous_until
    FROM webhook_subscriptions s JOIN customers c ON c.id = s.customer_id
    WHERE $1::text IS NULL OR c.key = $1 ORDER BY c.key, environment, s.created_at, s.id
"""


@dataclass(frozen=True, slots=True)
class RotatedSecret:
    """The new secret of a subscription, which is shown only once. Until `previous_until`, deliveries are signed with the previous one too."""

    id: UUID
    previous_until: datetime
    secret: str = field(repr=False)


async def rotate_secret(
    connection: Connection, vault: Vault, customer_id: int, environment: str, subscription_id: UUID
) -> RotatedSecret:
    """Sets a new secret for a subscription. For ROTATION_S, the previous one signs too. Ends an earlier rotation. Raises NotFound."""
    secret = new_secret()
    sealed = vault.webhooks.seal(secret.encode(), secret_context(subscription_id))
    until = await connection.fetchval(_ROTATE, subscription_id, customer_id, environment, sealed, ROTATION_S)
    if until is None:
        raise NotFound("There is no subscription with that id.")
    return RotatedSecret(subscription_id, until, secret)


async def find_subscription(connection: Connection, subscription_id: UUID) -> tuple[int, str]:
    """Returns the customer and the environment of a subscription, for an operator. Raises NotFound."""
    row = await connection.fetchrow(_FIND, subscription_id)
    if row is None:
        raise NotFound("There is no subscription with that id.")
    return row["customer_id"], row["environment"]


async def list_every_subscription(connection: Connection, customer: str | None) -> list[Row]:
    """Returns the subscriptions of all customers, or of the one with that key, for an operator."""
    return await connection.fetch(_EVERY, customer)
