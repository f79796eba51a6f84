"""Allocates vouchers to lines: at once, or in turn when the inventory is filled again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime

import structlog

from largesse.catalogue.model import Product
from largesse.db.pool import DATABASE_AWAY, Connection, Database, Row, commit_as_one, scope_of
from largesse.db.scope import WORKER
from largesse.db.statements import read_now
from largesse.encryption.vault import Vault
from largesse.fulfilment import store
from largesse.fulfilment.notifications import VOUCHER_READY, write_notification
from largesse.fulfilment.vouchers import NO_DATE, Provider, Voucher, VoucherRequest, seal_voucher
from largesse.lines.states import LineKey, State, record_move
from largesse.lines.store import Line, read_progress

# Lines served in one transaction: few enough that others wait little for their locks.
_SERVED_AT_ONCE = 50

Begin = Callable[[], AbstractAsyncContextManager[Connection]]

log = structlog.get_logger(__name__)


async def settle_product(
    connection: Connection, provider: Provider, line: Line, product: Product, at: datetime
) -> bool:
    """Settles a claimed line's product and, when that is digital, allocates its voucher or lets the line wait.

    It waits for a supplier if the provider buys from one, otherwise for stock. Returns False if it must wait. Then call `allocate_waiting` after
    the commit, as numbers may have been imported meanwhile.
    """
    await record_move(connection, line.key, State.CHOSEN, at, product_id=product.id)
    if not product.is_digital:
        return True
    wanted = VoucherRequest(line.key, product.id, line.value_minor, line.recipient_email, product.suppliers)
    if await provider.allocate(connection, wanted, at):
        await record_move(connection, line.key, State.FULFILLED, at)
        return True
    if not await provider.begin_buying(connection, wanted, at):
        await wait_for_stock(connection, line.key, product.id, line.value_minor, at)
    return False


async def wait_for_stock(
    connection: Connection, line: LineKey, product_id: int, value_minor: int, at: datetime
) -> None:
    """Puts a line in the queue until numbers are imported."""
    await connection.execute(store.WAIT, product_id, value_minor, *line, at)


async def take_from_stock(
    connection: Connection, vault: Vault, line: LineKey, product_id: int, value_minor: int, at: datetime
) -> bool:
    """Gives a number from stock to a line that no supplier could serve. Returns False if there is none."""
    await connection.execute(store.LOCK_LINE, *line)
    if await connection.fetchval(store.ALLOCATE, product_id, value_minor, *line, at) is None:
        return False
    await record_move(connection, line, State.FULFILLED, at)
    await write_notification(connection, vault, line, VOUCHER_READY, at)
    return True


async def add_bought(
    connection: Connection, vault: Vault, product_id: int, value_minor: int, voucher: Voucher
) -> int | None:
    """Adds a bought voucher to the stock, encrypted, and returns its id; None if its number exists."""
    sealed = seal_voucher(vault, voucher, product_id)
    if await connection.fetch(store.KNOWN, sealed.lookups):
        return None
    added = await connection.fetch(
        store.ADD_VOUCHERS, product_id, [value_minor], [sealed.lookups[0]], [sealed.sealed], [voucher.use_by or NO_DATE]
    )
    return added[0]["id"] if added else None


async def hand_over(connection: Connection, vault: Vault, line: LineKey, voucher_id: int, at: datetime) -> None:
    """Gives a voucher to a line whose product is settled, and makes the mail to its recipient due."""
    await connection.execute(store.LOCK_LINE, *line)
    assert (await read_progress(connection, line)).state is State.CHOSEN, "only chosen lines wait"
    await connection.execute(store.HAND_OUT, voucher_id, *line, at)
    await record_move(connection, line, State.FULFILLED, at)
    await write_notification(connection, vault, line, VOUCHER_READY, at)


async def allocate_waiting(begin: Begin, vault: Vault, product_id: int, value_minor: int) -> int:
    """Allocates vouchers from the inventory to waiting lines, oldest first. Returns how many it served.

    `begin` begins a transaction. Lines in its scope are served, and their recipients get a mail. If several run at once, one does the work.
    A line that cannot be served, for example because the address of its recipient cannot be decrypted, waits on and stops no other.
    """
    served = 0
    while True:
        async with begin() as connection:
            pairs = await _pair(connection, product_id, value_minor)
            await commit_as_one(connection)
            now_served = sum([await _serve(connection, vault, wait, voucher_id) for wait, voucher_id in pairs])
        served += now_served
        if len(pairs) < _SERVED_AT_ONCE or not now_served:
            return served


async def allocate_all_waiting(database: Database, vault: Vault) -> int:
    """Calls `allocate_waiting` for all waiting products with stock. Returns how many lines were served."""
    async with database.connection(WORKER) as connection:
        rows = await connection.fetch(store.STOCKED_WAITS)
    return sum([await allocate_waiting(lambda: database.transaction(WORKER), vault, *row) for row in rows])


async def _pair(connection: Connection, product_id: int, value_minor: int) -> list[tuple[Row, int]]:
    """Returns the next waiting lines in the connection's scope, each with a locked voucher."""
    if not await connection.fetchval(store.CAN_SERVE, product_id, value_minor):
        return []
    # One transaction at a time serves a product, so that lines are served in order.
    await connection.execute(store.LOCK_PRODUCT, product_id)
    waits = await connection.fetch(store.WAITING_LINES, product_id, value_minor, _SERVED_AT_ONCE)
    # Not SKIP LOCKED: a voucher whose hand-out is being undone is free again, and must not be missed.
    vouchers = await connection.fetch(store.LOCK_FREE, product_id, value_minor, len(waits))
    # Lines of other customers are served in their own scope.
    own = {customer_id for customer_id, _ in scope_of(connection).customers}
    return [
        (wait, voucher["id"])
        for wait, voucher in zip(waits, vouchers, strict=False)
        if not own or wait["customer_id"] in own
    ]


async def _serve(connection: Connection, vault: Vault, wait: Row, voucher_id: int) -> bool:
    key = LineKey(wait["customer_id"], wait["order_id"], wait["number"])
    try:
        async with connection.transaction():
            await hand_over(connection, vault, key, voucher_id, await read_now(connection))
            await connection.execute(store.DELETE_WAIT, key.customer_id, wait["id"])
    except DATABASE_AWAY:
        raise
    except Exception:
        log.exception("voucher.not_handed_out", customer=key.customer_id, order=key.order_id, line=key.number)
        return False
    return True
