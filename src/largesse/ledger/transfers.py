"""Transfers: money moved between two funding accounts of a customer, in one currency and environment."""

import msgspec

from largesse.base.errors import InsufficientBalance, InvalidRequest, NotFound
from largesse.base.money import label
from largesse.customers.actor import Actor
from largesse.customers.roles import Right
from largesse.db.pool import Connection, Row
from largesse.db.statements import read_now
from largesse.ledger.posting import NEXT_TRANSFER_ID, Entry, lock_accounts, post


class Transfer(msgspec.Struct, frozen=True):
    """A transfer, and the balances of both accounts after it, in minor units."""

    id: int
    amount_minor: int
    currency: str
    from_name: str
    from_minor: int
    to_name: str
    to_minor: int


async def transfer(actor: Actor, *, from_id: int, to_id: int, amount_minor: int) -> Transfer:
    """Moves money between two funding accounts.

    Raises NotFound for an account that is not the customer's in this environment; InvalidRequest if both accounts are the same, have
    different currencies, or the second is closed, and for an amount that is not positive; InsufficientBalance for more than the first account holds.
    """
    if amount_minor <= 0:
        raise InvalidRequest("The amount must be greater than zero.")
    if from_id == to_id:
        raise InvalidRequest("The money must go to another account.")
    customer_id = actor.customer_id
    async with actor.transaction(Right.TRANSFER) as transaction:
        connection = transaction.connection
        locked = await lock_accounts(connection, customer_id, [from_id, to_id])
        source, target = await _read_both(connection, actor, from_id, to_id)
        currency = source["currency"]
        from_minor, to_minor = locked[from_id].balance_minor, locked[to_id].balance_minor
        if from_minor < amount_minor:
            raise InsufficientBalance(f"{source['name']} holds {label(from_minor, currency)} only.")
        transfer_id: int = await connection.fetchval(NEXT_TRANSFER_ID)
        at = await read_now(connection)
        from_minor, to_minor = from_minor - amount_minor, to_minor + amount_minor
        entries = [
            Entry(customer_id, from_id, transfer_id, "transfer", None, -amount_minor, from_minor),
            Entry(customer_id, to_id, transfer_id, "transfer", None, amount_minor, to_minor),
        ]
        await post(connection, transaction.entries, locked, entries, at)
        row = (customer_id, transfer_id, actor.environment, from_id, to_id, amount_minor, actor.user_id, at)
        await connection.execute(_INSERT, *row)
        after = {"from_account_id": from_id, "to_account_id": to_id, "amount_minor": amount_minor, "currency": currency}
        await transaction.record("transfer.made", f"transfer {transfer_id}", after=after)
    return Transfer(transfer_id, amount_minor, currency, source["name"], from_minor, target["name"], to_minor)


async def _read_both(connection: Connection, actor: Actor, from_id: int, to_id: int) -> tuple[Row, Row]:
    """Returns both accounts, read under their locks. Raises NotFound, and InvalidRequest if they do not fit each other."""
    rows = await connection.fetch(_READ, *actor.place, [from_id, to_id])
    accounts = {row["id"]: row for row in rows}
    if len(accounts) < 2:
        raise NotFound("There is no such funding account.")
    source, target = accounts[from_id], accounts[to_id]
    if source["currency"] != target["currency"]:
        raise InvalidRequest("The accounts have different currencies.")
    if target["closed_at"] is not None:
        raise InvalidRequest(f"{target['name']} is closed.")
    return source, target


_READ = """
    SELECT id, name, currency, closed_at FROM accounts
    WHERE customer_id = $1 AND environment = $2 AND kind = 'funding' AND id = ANY($3::int[])
"""
_INSERT = """
    INSERT INTO transfers (customer_id, id, environment, from_account_id, to_account_id, amount_minor, made_by, made_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
"""
