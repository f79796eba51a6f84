"""Updates the read models: writes the new state of changed orders and adds the difference to the sums. `rebuild` makes them again.

Only one worker of the installation does this at a time; the others try again soon. So no two add to one sum at once, and no difference is
based on a state that another worker has changed.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date
from functools import cache

import asyncpg
import structlog
from msgspec.structs import asdict

from largesse.audit.service import Acting
from largesse.base.errors import OperatorError
from largesse.db.pool import DATABASE_AWAY, Connection, Database, Row
from largesse.db.scope import OPERATOR, WORKER
from largesse.db.shard_groups import Customers, list_shard_groups
from largesse.db.statements import plan_by_index
from largesse.events import store as events
from largesse.lines.marks import mark_events
from largesse.orders.options import PERSONAL
from largesse.reports import store
from largesse.reports.facts import Facts, OrderKey, read_code_counts, read_facts, read_recipients, summary_of
from largesse.reports.search import words_of, words_of_order, words_of_recipient
from largesse.reports.sums import Moves, add_changes, ended_at, state_of

# The database is away, or another transaction was in the way: the orders have no fault.
_FOR_NOW: tuple[type[BaseException], ...] = (*DATABASE_AWAY, asyncpg.TransactionRollbackError)

log = structlog.get_logger(__name__)

_LOCK = "SELECT pg_advisory_xact_lock($1)"

CHANGES_AT_ONCE = 500
_CODES_AT_ONCE = 20_000  # codes of the orders of one transaction, unless one order alone has more
_ONE_AT_A_TIME = 0x72657072  # "repr" in ASCII, the key of an advisory lock
_TRY = "SELECT pg_try_advisory_xact_lock($1) FROM (SELECT FROM order_changes LIMIT 1) AS waiting"


async def apply_changes(
    connection: Connection,
    acting: Acting,
    limit: int = CHANGES_AT_ONCE,
    customers: Customers = None,
    *,
    texts: bool = False,
) -> int:
    """Applies up to `limit` changes of orders, of some customers or of all, and marks their line events. Returns how many it applied, which is
    0 if another worker is applying changes. With `texts`, it applies only changes with texts, and marks nothing.

    Call it inside a transaction. It can be repeated after any failure, as it adds only the difference from the stored state of an order.
    """
    if not await connection.fetchval(_TRY, _ONE_AT_A_TIME):
        return 0
    await plan_by_index(connection)
    taken = 0
    for shard_group in await list_shard_groups(connection, customers):
        taken += await _take_in(connection, acting, limit - taken, shard_group, texts=texts)
    return taken


async def _take_in(
    connection: Connection, acting: Acting, limit: int, shard_group: Customers, *, texts: bool = False
) -> int:
    newest = await events.read_changes(connection, limit, shard_group, texts=texts)
    changes = await _within(connection, newest, shard_group)
    if not changes:
        return 0
    await _update(connection, changes, shard_group)
    await events.remove_changes(connection, changes)
    # Not orders of which only the texts changed: `rebuild-reports` must not mark events that were written from outside.
    moved = sorted({(change.customer_id, change.order_id) for change in changes if not change.texts})
    await mark_events(connection, acting, moved, shard_group)
    return len(changes)


async def _update(connection: Connection, changes: Sequence[events.Change], shard_group: Customers) -> None:
    """Writes the new state of changed orders together. If that fails, each is written alone. An order that cannot be written keeps its
    old state until its next change."""
    try:
        async with connection.transaction():
            await _write(connection, changes, shard_group)
    except _FOR_NOW:
        raise
    except Exception:
        by_order: dict[OrderKey, list[events.Change]] = defaultdict(list)
        for change in changes:
            by_order[change.customer_id, change.order_id].append(change)
        if len(by_order) > 1:
            for own in by_order.values():
                await _update(connection, own, shard_group)
            return
        log.exception("report.order_left_out", customer=changes[0].customer_id, order=changes[0].order_id)


async def _write(connection: Connection, changes: Sequence[events.Change], shard_group: Customers) -> None:
    keys = sorted({(change.customer_id, change.order_id) for change in changes})
    facts = await read_facts(connection, keys, shard_group)
    reported = await _report(connection, facts)
    await store.write_orders(connection, reported)
    await store.add_to_sums(
        connection,
        add_changes((facts.before.get((one.customer_id, one.order_id)), summary_of(asdict(one))) for one in reported),
    )
    with_new_texts = {(change.customer_id, change.order_id) for change in changes if change.texts}
    await _add_words(connection, facts, facts.orders.keys() - facts.before.keys(), shard_group, may_exist=False)
    await _add_words(
        connection, facts, with_new_texts & facts.before.keys() & facts.orders.keys(), shard_group, may_exist=True
    )


async def remember_recipient(connection: Connection, order: Row, email: str) -> None:
    """Adds the words of one more recipient, who has no name, to an order. Does not read its other recipients.

    Call it inside the transaction that changes the line. If the read models do not have the order yet, the worker adds the words.
    """
    key = (order["customer_id"], order["id"])
    if await store.is_reported(connection, *key):
        worded = (order["customer_id"], order["environment"], order["created_at"], order["id"])
        await store.add_words(connection, {worded: set(words_of_recipient(email, None))}, may_exist=True)
    else:
        await events.record_changes(connection, [key], texts=True)


async def forget_recipient(
    connection: Connection, customer_id: int, order_ids: Sequence[int], texts: Iterable[tuple[str | None, str | None]]
) -> None:
    """Removes the words of a recipient, whose addresses and names are `texts`, from a customer's orders.

    Call it inside the transaction that changes the lines. If other recipients have the same words, the worker adds them again.
    """
    words = {word for email, name in texts for word in words_of_recipient(email, name)}
    await _forget_words(connection, customer_id, order_ids, words)


async def forget_texts(
    connection: Connection, customer_id: int, order_id: int, reference: str | None, texts: Iterable[str | None]
) -> None:
    """Removes the words of a former reference and of former texts from an order.

    Call it inside the transaction that changes the order. If other texts have the same words, the worker adds them again.
    """
    await _forget_words(connection, customer_id, [order_id], words_of_order(reference, texts, ()))


async def _forget_words(
    connection: Connection, customer_id: int, order_ids: Sequence[int], words: Iterable[str]
) -> None:
    await store.remove_words(connection, customer_id, order_ids, words)
    await events.record_changes(connection, [(customer_id, order_id) for order_id in order_ids], texts=True)


async def _within(
    connection: Connection, changes: Sequence[events.Change], shard_group: Customers
) -> list[events.Change]:
    """Returns the first changes whose orders together have at most _CODES_AT_ONCE codes, but at least one change."""
    keys = list(dict.fromkeys((change.customer_id, change.order_id) for change in changes))
    codes = await read_code_counts(connection, keys, shard_group) if keys else {}
    left = _CODES_AT_ONCE
    taken: set[OrderKey] = set()
    for key in keys:
        left -= codes.get(key, 0)
        if taken and left < 0:
            break
        taken.add(key)
    return [change for change in changes if (change.customer_id, change.order_id) in taken]


async def _report(connection: Connection, facts: Facts) -> list[store.ReportedOrder]:
    groups = {key: _group(order) for key, order in facts.orders.items()}
    ids = await store.group_ids(connection, groups.values())
    return [
        _reported(
            order,
            ids[groups[key]],
            facts.moves.get(order["id"]) or Moves(),
            facts.bounced.get(order["id"], 0),
            facts.refunds.get(key, {}),
        )
        for key, order in facts.orders.items()
    ]


def _group(order: Row) -> store.Group:
    return store.Group(
        customer_id=order["customer_id"],
        environment=order["environment"],
        currency=order["currency"],
        source=order["source"],
        product_id=order["product_id"] or 0,
        collection_id=order["collection_id"] or 0,
        account_id=order["account_id"] or 0,
        service_account_id=order["service_account_id"] or 0,
        user_id=order["user_id"] or 0,
    )


def _reported(
    order: Row, group_id: int, moves: Moves, bounced: int, refunds: Mapping[date, int]
) -> store.ReportedOrder:
    claimed, cancelled = sum(moves.claims.values()), sum(moves.cancellations.values())
    return store.ReportedOrder(
        customer_id=order["customer_id"],
        order_id=order["id"],
        environment=order["environment"],
        group_id=group_id,
        state=state_of(
            codes=order["code_count"],
            claimed=claimed,
            cancelled=cancelled,
            is_scheduled=order["is_scheduled"],
            bounced=bounced,
        ),
        created_at=order["created_at"],
        template_id=order["template_id"] or 0,
        codes=order["code_count"],
        spent_minor=order["total_minor"],
        claimed=claimed,
        fulfilled=moves.fulfilled,
        expired=moves.expired,
        cancelled=cancelled,
        bounced=bounced,
        claim_days=list(moves.claims),
        claim_counts=list(moves.claims.values()),
        cancel_days=list(moves.cancellations),
        cancel_counts=list(moves.cancellations.values()),
        refund_days=list(refunds),
        refund_amounts=list(refunds.values()),
        ages=moves.ages,
        erasable_since=ended_at(order["code_count"], moves) if order["erased_at"] is None else None,
    )


async def _add_words(
    connection: Connection, facts: Facts, keys: Collection[OrderKey], shard_group: Customers, *, may_exist: bool
) -> None:
    if not keys:
        return
    recipients = await read_recipients(connection, sorted(keys), shard_group)
    words: dict[store.WordedOrder, set[str]] = {}
    words_of_text = cache(words_of)
    for key in keys:
        order = facts.orders[key]
        worded = (order["customer_id"], order["environment"], order["created_at"], order["id"])
        words[worded] = words_of_order(
            order["external_reference"],
            [order[name] for name in PERSONAL],
            recipients.get(order["id"], ()),
            words_of_text,
        )
    await store.add_words(connection, words, may_exist=may_exist)


_LOOK_AGAIN_S = 0.2
# Shorter than `deadlock_timeout` (1 s), after which the server would end a page's transaction.
_LIMIT_LOCKS = "SET LOCAL lock_timeout = '200ms'"
_LOCK_TRIES = 150  # which take a minute


async def rebuild(database: Database, acting: Acting, progress: Callable[[int, int], None]) -> int:
    """Empties the read models and adds every order again, newest first. Returns the number of orders.

    Running workers help. If it is interrupted, they continue. If it is started again, it begins anew. Calls `progress`
    now and then with the number of finished orders and of all orders.
    """
    async with database.transaction(OPERATOR) as connection:
        await connection.execute("SET LOCAL statement_timeout = 0")
        await connection.execute(_LOCK, _ONE_AT_A_TIME)  # no worker applies changes until the transaction ends
        total, last_id = await events.change_all_orders(connection)
        await _empty(connection)  # last, because nobody can read them until the transaction ends
        await acting.record(connection, "reports.rebuilt", "reports", after={"orders": total})
    left = total
    while left:
        async with database.transaction(WORKER) as connection:
            # Leaves claims to the worker, as only its role may mark them.
            taken = await apply_changes(connection, acting, texts=True)
        if not taken:  # a worker is processing changes, or all are done
            await asyncio.sleep(_LOOK_AGAIN_S)
        last_left = await database.read(WORKER, events.last_change, up_to=last_id)
        # Estimated from the last waiting change, as the newest are taken first: counting would be slow, as there may be millions.
        left = 0 if last_left is None else max(total - (last_id - last_left), 1)
        progress(total - left, total)
    return total


async def _empty(connection: Connection) -> None:
    """Empties the read models. A page may read one of them and wait for another. Then this side gives up first and tries again, so that no page
    fails."""
    await connection.execute(_LIMIT_LOCKS)
    for _ in range(_LOCK_TRIES):
        try:
            async with connection.transaction():
                await connection.execute("TRUNCATE TABLE report_orders")
                await connection.execute("TRUNCATE TABLE report_words")
                await connection.execute("TRUNCATE TABLE report_sums")
                await connection.execute("TRUNCATE TABLE report_groups")
        except asyncpg.LockNotAvailableError:
            await asyncio.sleep(_LOOK_AGAIN_S)
        else:
            await connection.execute("SET LOCAL lock_timeout TO DEFAULT")
            return
    raise OperatorError("somebody reads the reports for too long: end their transaction and try again")
