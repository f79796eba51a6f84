"""Erases the addresses that recipients gave for parcels.

Periodic tasks: late gifts expire, and the voucher inventory is measured.

Key rotation: vouchers, with their look-up numbers, and addresses are encrypted again under the newest master key.
"""

from collections.abc import Sequence

from prometheus_client import Gauge

from largesse.base.money import canonical
from largesse.db.pool import Connection, Row, commit_as_one
from largesse.db.shard_groups import Customers, list_shard_groups
from largesse.db.sharding import arguments
from largesse.db.statements import read_now
from largesse.encryption.columns import SealedTable, sealed_column
from largesse.encryption.vault import Vault
from largesse.fulfilment import store
from largesse.fulfilment.notifications import open_email, seal_email
from largesse.fulfilment.shipments import address_context
from largesse.fulfilment.stock import count_stock, list_low_stock, note_low_stock
from largesse.fulfilment.vouchers import allocate_all_waiting, open_voucher, seal_voucher
from largesse.jobs.registry import PeriodicTask, RoomTasks, WorkerContext, with_connection
from largesse.lines.states import LineKey, State, record_move
from largesse.lines.tasks import left_emails, read_left_emails

_AT_ONCE = 5_000


async def erase_addresses(connection: Connection, order: tuple[int, int], numbers: Sequence[int]) -> int:
    """Erases the addresses of these lines' parcels, and returns how many. Gifts whose parcel has not been sent expire, as nobody can send it any more.

    The caller has locked the lines.
    """
    rows = await connection.fetch(store.ERASE_ADDRESSES, *order, list(numbers))
    if unsent := sorted(row["number"] for row in rows if row["is_unsent"]):
        at = await read_now(connection)
        for number in unsent:
            await record_move(connection, LineKey(*order, number), State.EXPIRED, at)
    return len(rows)


async def find_lines_with_left_email(connection: Connection, vault: Vault, email: str) -> list[LineKey]:
    """Returns the lines whose recipient gave that address. Ignores letter case. Decrypts every address that was given. Raises SealBroken."""
    found: list[LineKey] = []
    after = LineKey(-1, 0, 0)
    while rows := await read_left_emails(connection, after, _AT_ONCE):
        found += [line for line, sealed in rows if open_email(vault, sealed, line).lower() == email.lower()]
        after = rows[-1][0]
    return found


STOCK_FREE = Gauge("largesse_stock_free", "Voucher numbers that can be handed out.", ["product", "value", "currency"])
STOCK_WAITING = Gauge(
    "largesse_stock_waiting", "Claimed gifts that wait for a voucher number.", ["product", "value", "currency"]
)
STOCK_LOW = Gauge(
    "largesse_stock_low",
    "Voucher numbers left of gifts of which fewer are left than their warning says.",
    ["product", "value", "currency"],
)

# A measure reads at most 10,000 numbers of each product and value, and as many recipients who wait.
MEASURE_EVERY_S = 300.0
_EXPIRED_AT_ONCE = 500
_MOST_LOW = 1_000


async def expire_late(connection: Connection, customers: Customers = None) -> bool:
    """Moves late gifts to `expired`, of these customers or of all. Returns True if there may be more. Call it inside a transaction.

    A gift that waits for a voucher or a parcel does not expire, as its recipient has nothing left to do. Locked lines are skipped until the
    next time.
    """
    await commit_as_one(connection)
    expired = [
        await _expire_late(connection, shard_group) for shard_group in await list_shard_groups(connection, customers)
    ]
    return _EXPIRED_AT_ONCE in expired


async def _expire_late(connection: Connection, shard_group: Customers) -> int:
    if shard_group is None:
        rows = await connection.fetch(store.LATE, _EXPIRED_AT_ONCE)
    else:
        waiting = await connection.fetch(store.WAITING_OF, shard_group)
        columns = ([key[at] for key in waiting] for at in range(3))
        rows = await connection.fetch(store.LATE_BUT, _EXPIRED_AT_ONCE, *columns, shard_group)
    if not rows:
        return 0
    keys = [LineKey(*row) for row in rows]
    by_column = tuple([key[at] for key in keys] for at in range(3))
    # The state of lines may have changed while this waited for the locks.
    still = await connection.fetch(store.STILL_THERE.of(shard_group), *by_column, *arguments(shard_group))
    waiting = await connection.fetch(store.WAITING_AMONG, *by_column)
    now = await read_now(connection)
    for key in sorted({LineKey(*row) for row in still} - {LineKey(*row) for row in waiting}):
        await record_move(connection, key, State.EXPIRED, now)
    return len(rows)


async def measure_inventory(connection: Connection) -> None:
    """Sets the gauges of the voucher inventory. Numbers already allocated are not counted, and the others up to a limit: there may be millions."""
    counted = await count_stock(connection)
    STOCK_FREE.clear()
    STOCK_WAITING.clear()
    for one in counted:
        labels = (one.product, canonical(one.value_minor, one.currency), one.currency)
        STOCK_FREE.labels(*labels).set(one.free)
        STOCK_WAITING.labels(*labels).set(one.waiting)
    await note_low_stock(connection)
    STOCK_LOW.clear()
    for low in await list_low_stock(connection, _MOST_LOW):
        value = "any" if low.value_minor is None else canonical(low.value_minor, low.currency)
        STOCK_LOW.labels(low.product, value, low.currency).set(low.free)


def _renew_email(vault: Vault, row: Row) -> tuple[bytes]:
    line = LineKey(row["customer_id"], row["order_id"], row["number"])
    return (seal_email(vault, open_email(vault, row["sealed_email"], line), line),)


def _renew_voucher(vault: Vault, row: Row) -> tuple[bytes, int]:
    voucher = open_voucher(vault, row["sealed"], row["product_id"])
    renewed = seal_voucher(vault, voucher, row["product_id"])
    return renewed.sealed, renewed.lookups[0]


EMAILS = left_emails(lambda vault: vault.emails, _renew_email)

# An import looks for a number under all keys, so it finds a duplicate before and after the rotation.
# A claim at the same time may skip a free voucher that is locked here. Then its line waits for stock until after the claim's commit.
VOUCHERS = SealedTable(
    table="vouchers",
    column="sealed",
    before_all=(0,),
    part=lambda vault: vault.vouchers,
    window="""
        SELECT id, substring(sealed FROM 1 FOR 4) <> $1 AS is_old FROM vouchers WHERE id > $3 ORDER BY id LIMIT $2
    """,
    take="""
        SELECT id, product_id, sealed FROM vouchers
        WHERE id = ANY($2::bigint[]) AND substring(sealed FROM 1 FOR 4) <> $1 FOR UPDATE SKIP LOCKED
    """,
    renew=_renew_voucher,
    put="""
        UPDATE vouchers SET sealed = new.sealed, lookup = new.lookup
        FROM unnest($1::bigint[], $2::bytea[], $3::bigint[]) AS new (id, sealed, lookup) WHERE vouchers.id = new.id
    """,
    read="SELECT id, product_id, sealed FROM vouchers",
)

ADDRESSES = sealed_column(
    "shipments",
    "sealed_address",
    {"customer_id": "int", "id": "bigint"},
    lambda vault: vault.addresses,
    lambda row: address_context(LineKey(row["customer_id"], row["order_id"], row["number"])),
    more=("order_id", "number"),
)


async def _expire_gifts(context: WorkerContext) -> bool:
    return any(await context.in_shard_groups(store.CUSTOMERS_LATE, expire_late))


async def _allocate_waiting(context: WorkerContext) -> bool:
    """Allocates numbers that became free without an import to waiting lines. Imports do this themselves."""
    await allocate_all_waiting(context.database, context.vault)
    return False


TASKS = RoomTasks(
    periodic=(
        PeriodicTask("measure_stock", with_connection(measure_inventory), every_s=MEASURE_EVERY_S),
        PeriodicTask("expire_gifts", _expire_gifts, every_s=60.0),
        PeriodicTask("serve_waiting", _allocate_waiting, every_s=30.0),
    )
)
