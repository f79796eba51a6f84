"""Allocation: vouchers to lines, at once, or in turn when the inventory is filled again."""

from __future__ import annotations

from datetime import datetime

from largesse.db.pool import Connection, Database, Row, commit_as_one, scope_of
from largesse.db.scope import WORKER, Scope
from largesse.db.statements import read_now
from largesse.encryption.vault import Vault
from largesse.fulfilment import store
from largesse.fulfilment.notifications import VOUCHER_READY, write_notification
from largesse.fulfilment.providers import Provider, VoucherRequest
from largesse.lines.states import LineKey, State, record_move
from largesse.lines.store import Line, read_progress

# Lines served in one transaction: short enough that nobody waits for their locks.
_SERVED_AT_ONCE = 50


async def settle_product(
    connection: Connection, provider: Provider, line: Line, product_id: int, at: datetime, *, is_digital: bool
) -> bool:
    """Settles a claimed line's product and, when that is digital, allocates its voucher or lets the line wait.

    False when it has to wait; then call `allocate_waiting` after the commit, since numbers may have come meanwhile.
    """
    await record_move(connection, line.key, State.CHOSEN, at, product_id=product_id)
    if not is_digital:
        return True
    if await provider.allocate(
        connection, VoucherRequest(line.key, product_id, line.value_minor, line.recipient_email), at
    ):
        await record_move(connection, line.key, State.FULFILLED, at)
        return True
    await connection.execute(store.WAIT, product_id, line.value_minor, *line.key, at)
    return False


async def allocate_waiting(database: Database, scope: Scope, vault: Vault, product_id: int, value_minor: int) -> int:
    """Allocates what the inventory has to the lines in `scope` that wait for it, oldest first, each in turn; returns how many it served.

    Whoever is served this way gets a mail. Any number may run at once: one works, the others then find nothing.
    """
    served = 0
    while True:
        async with database.transaction(scope) as connection:
            pairs = await _pair(connection, product_id, value_minor)
            await commit_as_one(connection)
            for wait, voucher_id in pairs:
                await _serve(connection, vault, wait, voucher_id)
        served += len(pairs)
        if len(pairs) < _SERVED_AT_ONCE:
            return served


async def allocate_all_waiting(database: Database, vault: Vault) -> int:
    """`allocate_waiting` for everything that waits and for which there are numbers; returns how many lines were served."""
    async with database.connection(WORKER) as connection:
        rows = await connection.fetch(store.STOCKED_WAITS)
    return sum([await allocate_waiting(database, WORKER, vault, *row) for row in rows])


async def _pair(connection: Connection, product_id: int, value_minor: int) -> list[tuple[Row, int]]:
    """Of the next lines that wait those in the connection's scope, each with a voucher that is locked for it."""
    if not await connection.fetchval(store.CAN_SERVE, product_id, value_minor):
        return []
    # One server at a time for each product, so that the order holds.
    await connection.execute(store.LOCK_PRODUCT, product_id)
    waits = await connection.fetch(store.WAITING_LINES, product_id, value_minor, _SERVED_AT_ONCE)
    # Not SKIP LOCKED: a voucher whose hand-out is being undone is free again, and must not be missed.
    vouchers = await connection.fetch(store.LOCK_FREE, product_id, value_minor, len(waits))
    # What others wait for is left to who acts for them.
    own = {customer_id for customer_id, _ in scope_of(connection).customers}
    return [
        (wait, voucher["id"])
        for wait, voucher in zip(waits, vouchers, strict=False)
        if not own or wait["customer_id"] in own
    ]


async def _serve(connection: Connection, vault: Vault, wait: Row, voucher_id: int) -> None:
    key = LineKey(wait["customer_id"], wait["order_id"], wait["number"])
    await connection.execute(store.LOCK_LINE, *key)
    assert (await read_progress(connection, key)).state is State.CHOSEN, "only chosen lines wait"
    at = await read_now(connection)
    await connection.execute(store.HAND_OUT, voucher_id, *key, at)
    await connection.execute(store.DELETE_WAIT, key.customer_id, wait["id"])
    await record_move(connection, key, State.FULFILLED, at)
    await write_notification(connection, vault, key, VOUCHER_READY, at)
