"""Vouchers, the numbers that recipients get in the end: how they are encrypted, and the two providers that allocate them.

A line gets its voucher at once, or waits in a queue until there is new stock.
"""

import base64
import os
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import date, datetime, timedelta
from typing import Protocol

import msgspec
import structlog

from largesse.base.confidential import Confidential
from largesse.base.email import Behaviour, behaviour_of
from largesse.catalogue.model import STOCK, Product
from largesse.db.pool import DATABASE_AWAY, Connection, Database, Row, commit_as_one, scope_of
from largesse.db.scope import WORKER
from largesse.db.statements import read_now
from largesse.encryption.vault import Vault
from largesse.fulfilment import store
from largesse.fulfilment.notifications import VOUCHER_READY, write_notification
from largesse.lines.states import LineKey, State, record_move
from largesse.lines.store import Line, read_progress

_TEST_NUMBER_BYTES = 10
NO_DATE = date.max  # a voucher without a date; stored as infinity


class Voucher(Confidential, frozen=True, omit_defaults=True):
    """What a shop needs to accept a voucher. `use_by` is the shop's own date, and has nothing to do with the dates of the order."""

    number: str
    pin: str | None = None
    use_by: date | None = None


class SealedVoucher(msgspec.Struct, frozen=True):
    """The stored form of a voucher: `lookups` to find duplicates of its number, and `sealed`, the encrypted voucher."""

    lookups: tuple[int, ...]  # the newest master key's first
    sealed: bytes


_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(Voucher)


def seal_voucher(vault: Vault, voucher: Voucher, product_id: int) -> SealedVoucher:
    """Returns `voucher` encrypted for this product, and for no other."""
    lookups = vault.vouchers.lookups(f"voucher/{product_id}/{voucher.number}".encode())
    return SealedVoucher(tuple(lookups), vault.vouchers.seal(_encode(voucher), _context(product_id)))


def open_voucher(vault: Vault, sealed: bytes, product_id: int) -> Voucher:
    """Returns the voucher that `seal_voucher` encrypted. Raises SealBroken."""
    return _decoder.decode(vault.vouchers.open(sealed, _context(product_id)))


class Allocated(msgspec.Struct, frozen=True):
    """A voucher that was handed out to a recipient."""

    voucher: Voucher
    is_test: bool
    handed_at: datetime


async def read_allocated(connection: Connection, vault: Vault, line: LineKey) -> Allocated | None:
    """Returns the voucher allocated to the line; None if there is none yet."""
    row = await connection.fetchrow(store.HANDED_OUT, *line)
    if row is None:
        return None
    return Allocated(open_voucher(vault, row["sealed"], row["product_id"]), row["is_test"], row["handed_at"])


def _context(product_id: int) -> bytes:
    return f"voucher/{product_id}".encode("ascii")


class VoucherRequest(msgspec.Struct, frozen=True):
    """A voucher for a line: of a product, worth `value_minor` of its currency."""

    line: LineKey
    product_id: int
    value_minor: int
    email: str | None = None  # the recipient's address
    suppliers: tuple[str, ...] = (STOCK,)  # the suppliers of the product, in the order in which they are tried


Buy = Callable[[Connection, VoucherRequest, datetime], Awaitable[bool]]


class Provider(Protocol):
    """Allocates voucher numbers inside the caller's transaction, which has locked the line."""

    async def allocate(self, connection: Connection, wanted: VoucherRequest, at: datetime) -> bool:
        """Allocates a voucher to the line. Returns False if there is none now."""
        ...

    async def begin_buying(self, connection: Connection, wanted: VoucherRequest, at: datetime) -> bool:
        """Starts to buy the voucher from a supplier after the commit; returns False if no supplier has it."""
        ...


class InventoryProvider:
    """Allocates imported numbers, each once, the earliest use-by date first. Allocates none if the product's first supplier is not the stock.

    `buy` begins to buy from the product's suppliers.
    """

    def __init__(self, buy: Buy | None = None) -> None:
        self._buy = buy

    async def allocate(self, connection: Connection, wanted: VoucherRequest, at: datetime) -> bool:
        """Implements Provider. Lines that already wait for the same product and value come first.

        Skips numbers that another transaction is allocating.
        """
        if wanted.suppliers[0] != STOCK:
            return False
        allocated = await connection.fetchval(store.ALLOCATE, wanted.product_id, wanted.value_minor, *wanted.line, at)
        return allocated is not None

    async def begin_buying(self, connection: Connection, wanted: VoucherRequest, at: datetime) -> bool:
        """Implements Provider."""
        return self._buy is not None and await self._buy(connection, wanted, at)


class TestProvider:
    """Invents numbers that no shop accepts, for staging and the demo.

    With `inventory`, products with imported numbers use these, so that the demo can show an import.
    """

    __test__ = False  # keeps pytest from collecting it as a test

    def __init__(self, vault: Vault, inventory: InventoryProvider | None = None) -> None:
        self._vault = vault
        self._inventory = inventory

    async def allocate(self, connection: Connection, wanted: VoucherRequest, at: datetime) -> bool:
        """Implements Provider. Invents a number, except for products with stock and for test lab recipients whose gift must wait."""
        if behaviour_of(wanted.email) is Behaviour.NO_STOCK and self._inventory is None:
            return False
        if self._inventory is not None and await connection.fetchval(store.IS_STOCKED, wanted.product_id):
            return await self._inventory.allocate(connection, wanted, at)
        drawn = base64.b32encode(os.urandom(_TEST_NUMBER_BYTES)).decode("ascii")
        voucher = Voucher("-".join(["TEST", *(drawn[start : start + 4] for start in range(0, 16, 4))]))
        sealed = seal_voucher(self._vault, voucher, wanted.product_id)
        await connection.execute(
            store.INSERT_TEST_VOUCHER,
            wanted.product_id,
            wanted.value_minor,
            sealed.lookups[0],
            sealed.sealed,
            *wanted.line,
            at,
        )
        return True

    async def begin_buying(self, connection: Connection, wanted: VoucherRequest, at: datetime) -> bool:  # noqa: ARG002 - as Provider
        """Implements Provider. Buys nothing for recipients of staging and the demo."""
        return False


# Lines served in one transaction: few, so that nobody waits long for their locks.
_SERVED_AT_ONCE = 50
_MOST_ORDERS = 60  # of a line, at all suppliers

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
        is_test = line.environment == "staging"
        await wait_for_stock(connection, line.key, product.id, line.value_minor, at, is_test=is_test)
    return False


async def wait_for_stock(
    connection: Connection,
    line: LineKey,
    product_id: int,
    value_minor: int,
    at: datetime,
    *,
    orders: int = 0,
    is_test: bool = False,
) -> None:
    """Puts a line in the queue until numbers are imported. With `is_test` it waits for ever, as staging gets no numbers from the stock.

    If the product has suppliers, they are asked again after 15 minutes. Each of the `orders` placed for the line doubles that, up to a day.
    After _MOST_ORDERS they are asked no more.
    """
    after = min(timedelta(days=1), timedelta(minutes=15) * 2 ** min(orders, 8))
    ask_at = at + after if orders < _MOST_ORDERS else None
    await connection.execute(store.WAIT, product_id, value_minor, *line, at, is_test, ask_at)


async def lock_waits(connection: Connection, product_id: int) -> None:
    """Waits until no other transaction serves the lines that wait for a product, and keeps others from it until the commit."""
    await connection.execute(store.LOCK_PRODUCT, product_id)


async def stop_waiting(connection: Connection, customer_id: int, wait_id: int) -> None:
    """Takes a line out of the queue for stock. The caller holds `lock_waits`, and orders at a supplier."""
    await connection.execute(store.DELETE_WAIT, customer_id, wait_id)


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
            waits, vouchers = await _next_waits(connection, product_id, value_minor)
            await commit_as_one(connection)
            # Lines of other customers are served in their own scope. A voucher is left for each of them.
            own = {customer_id for customer_id, _ in scope_of(connection).customers}
            now_served = 0
            for wait in waits:
                if not vouchers:
                    break
                if own and wait["customer_id"] not in own:
                    vouchers.popleft()
                elif await _serve(connection, vault, wait, vouchers[0]["id"]):
                    vouchers.popleft()
                    now_served += 1
        served += now_served
        if len(waits) < _SERVED_AT_ONCE or not now_served:
            return served


async def allocate_all_waiting(database: Database, vault: Vault) -> int:
    """Calls `allocate_waiting` for all waiting products with stock. Returns how many lines were served."""
    rows = await database.fetch(WORKER, store.STOCKED_WAITS)
    return sum([await allocate_waiting(lambda: database.transaction(WORKER), vault, *row) for row in rows])


async def _next_waits(connection: Connection, product_id: int, value_minor: int) -> tuple[list[Row], deque[Row]]:
    """Returns the next waiting lines, and locks and returns a voucher for each; fewer if the stock has fewer."""
    if not await connection.fetchval(store.CAN_SERVE, product_id, value_minor):
        return [], deque()
    # One transaction at a time serves a product, so that lines are served in order.
    await lock_waits(connection, product_id)
    waits = await connection.fetch(store.WAITING_LINES, product_id, value_minor, _SERVED_AT_ONCE)
    # Not SKIP LOCKED: a transaction that allocates a voucher may roll back, and the voucher must not be missed then.
    vouchers = await connection.fetch(store.LOCK_FREE, product_id, value_minor, len(waits))
    return waits, deque(vouchers)


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
