"""Transfers: money moved from one funding account of a customer to another of the same currency and environment."""

from __future__ import annotations

from dataclasses import dataclass

from largesse.audit.service import Acting
from largesse.base.errors import InsufficientBalance, InvalidRequest, NotFound
from largesse.base.money import label
from largesse.db.pool import Connection
from largesse.ledger.posting import Entry, lock_accounts, post


@dataclass(frozen=True, slots=True)
class Transfer:
    """What was moved, and what both accounts then held, in minor units."""

    id: int
    amount_minor: int
    currency: str
    from_name: str
    from_minor: int
    to_name: str
    to_minor: int


async def transfer(
    connection: Connection,
    acting: Acting,
    *,
    customer_id: int,
    environment: str,
    from_id: int,
    to_id: int,
    amount_minor: int,
    made_by: int | None,
) -> Transfer:
    """Moves money between two funding accounts, by that person; call it inside a transaction.

    Raises NotFound for an account that is not the customer's in this environment; InvalidRequest for one and the same, another currency, a
    closed account to pay into, and an amount that is not positive; InsufficientBalance where it is more than the first holds.
    """
    if amount_minor <= 0:
        raise InvalidRequest("The amount must be greater than zero.")
    if from_id == to_id:
        raise InvalidRequest("An account cannot be moved to itself.")
    locked = await lock_accounts(connection, customer_id, [from_id, to_id])
    names = await _names(connection, customer_id, environment, from_id, to_id)
    currency = names[0][1]
    from_minor, to_minor = locked[from_id].balance_minor, locked[to_id].balance_minor
    if from_minor < amount_minor:
        raise InsufficientBalance(f"{names[0][0]} holds {label(from_minor, currency)} only.")
    transfer_id: int = await connection.fetchval("SELECT nextval('movements_id_seq')")
    at = await connection.fetchval("SELECT clock_now()")
    left, there = from_minor - amount_minor, to_minor + amount_minor
    moved = Transfer(transfer_id, amount_minor, currency, names[0][0], left, names[1][0], there)
    entries = [
        Entry(customer_id, from_id, transfer_id, "transfer", None, -amount_minor, moved.from_minor),
        Entry(customer_id, to_id, transfer_id, "transfer", None, amount_minor, moved.to_minor),
    ]
    await post(connection, acting.chains.entries, locked, entries, at)
    row = (customer_id, transfer_id, environment, from_id, to_id, amount_minor, made_by, at)
    await connection.execute(_ADD, *row)
    told = {"from_account_id": from_id, "to_account_id": to_id, "amount_minor": amount_minor, "currency": currency}
    subject = f"transfer {transfer_id}"
    await acting.record(
        connection, "transfer.made", subject, customer_id=customer_id, environment=environment, after=told
    )
    return moved


async def _names(
    connection: Connection, customer_id: int, environment: str, from_id: int, to_id: int
) -> list[tuple[str, str]]:
    """Name and currency of both accounts, which fit each other. Read under their locks. Raises NotFound and InvalidRequest."""
    rows = await connection.fetch(
        """
        SELECT id, name, currency, closed_at FROM accounts
        WHERE customer_id = $1 AND environment = $2 AND kind = 'funding' AND id = ANY($3::int[])
        """,
        customer_id,
        environment,
        [from_id, to_id],
    )
    found = {row["id"]: row for row in rows}
    if len(found) < 2:
        raise NotFound("There is no such funding account.")
    if found[from_id]["currency"] != found[to_id]["currency"]:
        raise InvalidRequest("The accounts are of two currencies.")
    if found[to_id]["closed_at"] is not None:
        raise InvalidRequest(f"{found[to_id]['name']} is closed.")
    return [(found[one]["name"], found[one]["currency"]) for one in (from_id, to_id)]


_ADD = """
    INSERT INTO transfers (customer_id, id, environment, from_account_id, to_account_id, amount_minor, made_by, made_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
"""
