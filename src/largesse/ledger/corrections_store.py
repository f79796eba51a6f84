"""SQL of corrections. One waits until it is decided or `expires_at` has passed; only its decision is ever written to it."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from largesse.base.errors import existing
from largesse.db.fragments import NOTHING, Fragment, compose
from largesse.db.pool import Connection, Row


def _select(found: Fragment, order: Fragment = NOTHING) -> Fragment:
    """Returns SQL for the corrections `found`. They are found before the join, for which the planner expects few rows: it would join all of them."""
    return compose(
        """
    SELECT n.customer_id, n.id, n.environment, n.account_id, n.kind, n.amount_minor, n.order_reference, n.reason,
           CASE WHEN n.state = 'waiting' AND n.expires_at <= clock_now() THEN 'expired' ELSE n.state END AS state,
           n.proposed_by, n.proposed_at, n.expires_at, n.decided_by, n.decided_at, n.transfer_id,
           c.key AS customer, c.name AS customer_name, a.name AS account, a.currency
    FROM (SELECT * FROM corrections {found}) AS n JOIN customers c ON c.id = n.customer_id
    JOIN accounts a ON a.customer_id = n.customer_id AND a.id = n.account_id {order}
    """,
        found=found,
        order=order,
    )


_BY_ID = _select(Fragment("WHERE id = $1"))
_WAITING = _select(
    Fragment("WHERE state = 'waiting' AND expires_at > clock_now() ORDER BY expires_at, id LIMIT $1"),
    Fragment("ORDER BY n.expires_at, n.id"),
)
_NEWEST = _select(
    Fragment("WHERE id < coalesce($1, 2147483647) ORDER BY id DESC LIMIT $2"), Fragment("ORDER BY n.id DESC")
)
_ACCOUNT = """
    SELECT a.id AS account_id, a.customer_id, a.environment, a.kind, coalesce(a.name, '') AS account, a.currency, a.balance_minor,
           a.closed_at IS NOT NULL AS is_closed, c.key AS customer, c.name AS customer_name
    FROM accounts a JOIN customers c ON c.id = a.customer_id WHERE a.id = $1 AND a.kind IN ('funding', 'receivable')
"""
# Reads an order by its reference: the account that paid, and the cost of its claimed codes.
# Corrections refund only claimed codes. Unclaimed ones are cancelled instead, and a claimed code can never be cancelled.
ORDER = """
    SELECT id, environment, account_id, currency,
           total_minor / code_count * (
               SELECT count(*) FROM line_states s
               WHERE s.customer_id = o.customer_id AND s.order_id = o.id AND s.state <> 'cancelled') AS claimed_minor
    FROM orders o WHERE customer_id = $1 AND reference = $2
"""
# The amount of an order that corrections refunded, or would refund if approved; without correction $3.
GIVEN_BACK = """
    SELECT coalesce(sum(amount_minor), 0)::bigint FROM corrections
    WHERE customer_id = $1 AND order_reference = $2 AND id <> $3
      AND (state = 'approved' OR state = 'waiting' AND expires_at > clock_now())
"""
REFUNDS = """
    SELECT decided_at, amount_minor FROM corrections
    WHERE customer_id = $1 AND order_reference = $2 AND kind = 'refund' AND state = 'approved'
"""
LOCK_CUSTOMER = "SELECT FROM customers WHERE id = $1 FOR NO KEY UPDATE"
COUNT_WAITING = "SELECT count(*) FROM corrections WHERE state = 'waiting' AND expires_at > clock_now()"
INSERT = """
    INSERT INTO corrections (customer_id, environment, account_id, kind, amount_minor, order_reference, reason, proposed_by, proposed_at, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, clock_now(), clock_now() + $9) RETURNING id
"""
LOCK = "SELECT FROM corrections WHERE id = $1 FOR UPDATE"
DECIDE = """
    UPDATE corrections SET state = $3, decided_by = $4, decided_at = clock_now(), transfer_id = $5
    WHERE customer_id = $1 AND id = $2 AND state = 'waiting'
"""


class Correction(msgspec.Struct, frozen=True):
    """A correction; its amount in minor units of its account's currency."""

    customer_id: int
    id: int
    environment: str
    account_id: int
    kind: str  # credit, debit or refund
    amount_minor: int
    order_reference: str | None  # only for a refund
    reason: str
    state: str  # waiting, expired, approved, declined or withdrawn
    proposed_by: int  # a member of staff
    proposed_at: datetime
    expires_at: datetime
    decided_by: int | None
    decided_at: datetime | None
    transfer_id: int | None
    customer: str
    customer_name: str
    account: str | None  # the name; None for a receivable
    currency: str

    @property
    def change_minor(self) -> int:
        """The change of the account's balance, in minor units."""
        return -self.amount_minor if self.kind == "debit" else self.amount_minor


class CorrectableAccount(msgspec.Struct, frozen=True):
    """An account that can be corrected: a funding account or a receivable."""

    account_id: int
    customer_id: int
    environment: str
    kind: str
    account: str
    currency: str
    balance_minor: int
    is_closed: bool
    customer: str
    customer_name: str


async def find_correction(connection: Connection, correction_id: int) -> Correction:
    """Returns a correction. Raises NotFound."""
    row = existing(await connection.fetchrow(_BY_ID, correction_id), "There is no correction with that number.")
    return Correction(**row)


async def list_waiting(connection: Connection, most: int) -> list[Correction]:
    """Returns the corrections that wait for a decision, those that expire first."""
    return _corrections(await connection.fetch(_WAITING, most))


async def list_corrections(connection: Connection, before: int | None, most: int) -> list[Correction]:
    """Returns the newest corrections, with ids below `before`."""
    return _corrections(await connection.fetch(_NEWEST, before, most))


async def count_waiting(connection: Connection) -> int:
    """Returns how many corrections wait for a decision."""
    return int(await connection.fetchval(COUNT_WAITING))


async def find_correctable(connection: Connection, account_id: int) -> CorrectableAccount:
    """Returns an account that can be corrected. Raises NotFound."""
    return CorrectableAccount(**existing(await connection.fetchrow(_ACCOUNT, account_id), "There is no such account."))


def _corrections(rows: Sequence[Row]) -> list[Correction]:
    return [Correction(**row) for row in rows]


async def list_refunds(connection: Connection, customer_id: int, order_reference: str) -> list[tuple[datetime, int]]:
    """Returns when corrections refunded an order, and how much, in minor units."""
    return [tuple(row) for row in await connection.fetch(REFUNDS, customer_id, order_reference)]
