"""An order on its way to being placed, for tests that begin at the placer or its rules."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from tests.chained import CHAIN

from largesse.customers.authenticator import Caller
from largesse.customers.principal import Principal
from largesse.db.pool import Connection, Database
from largesse.encryption.vault import Vault
from largesse.ledger.own_accounts import OwnAccounts
from largesse.lines.codes import SealedCodes, draw_codes
from largesse.orders.ids import new_reference
from largesse.orders.options import Options
from largesse.orders.order import Gift, Order, new_order
from largesse.orders.placer import Placer
from largesse.orders.request import OrderSpec

NOW = datetime(2030, 1, 1, tzinfo=UTC)
VAULT = Vault((bytes(32),))


def build_order(
    principal: Principal,
    own: OwnAccounts,
    *,
    account_id: int | None = None,
    currency: str = "GBP",
    cost_minor: int = 100,
    codes: int = 1,
    external_reference: str | None = None,
    product_id: int = 1,
) -> Order:
    """A batch of `codes` codes at `cost_minor` each, drawn and sealed."""
    reference = new_reference(NOW)
    drawn = draw_codes(codes)
    return new_order(
        reference=reference,
        caller=Caller(principal, 0, NOW),
        gift=Gift("gift", product_id, None, None, "GB", currency, cost_minor, cost_minor),
        spec=OrderSpec(
            source="api",
            recipients=(),
            code_count=codes,
            options=Options(),
            scheduled_for=None,
            account_id=account_id,
            expiry_after_days=None,
            external_reference=external_reference,
        ),
        own_accounts=own,
        codes=drawn,
        sealed=list(SealedCodes(VAULT, drawn, reference)),
    )


@asynccontextmanager
async def open_placer(database: Database, **limits: Any) -> AsyncIterator[Placer]:
    placer = Placer(database, CHAIN, **limits)
    try:
        yield placer
    finally:
        await placer.close()


async def insert_order(connection: Connection, order_id: int, reference: str, **columns: object) -> None:
    """Writes a code batch of one code of the first customer, with these columns, as far as the database asks for them."""
    row = _ROW | {"id": order_id, "reference": reference} | columns
    places = ", ".join(f"${number}" for number in range(1, len(row) + 1))
    await connection.execute(f"INSERT INTO orders ({', '.join(row)}) VALUES ({places})", *row.values())


_ROW: dict[str, object] = {
    "customer_id": 1, "environment": "production", "service_account_id": 1, "source": "api", "gift_selection": "gift", "product_id": 1,
    "country": "GB", "currency": "GBP", "value_minor": 1, "total_minor": 1, "code_count": 1, "recipient_count": 0, "delivery_mode": "manual",
    "wrapping_key": "default", "created_at": datetime(2026, 1, 1, tzinfo=UTC),
}  # fmt: skip


async def open_session(connection: Connection, user_id: int) -> int:
    """Returns the id of a new session of a user, signed in as themselves."""
    session_id: int = await connection.fetchval(
        """
        WITH person AS (
            INSERT INTO people (email, email_key) SELECT email, lower(email) FROM users WHERE id = $1
            ON CONFLICT (email_key) DO UPDATE SET email = excluded.email RETURNING id)
        INSERT INTO sessions (hash, person_id, user_id, environment, browser, ends_at)
        SELECT sha256(uuid_send(gen_random_uuid())), id, $1, 'production', '', clock_now() + interval '1 hour' FROM person
        RETURNING id
        """,
        user_id,
    )
    return session_id
