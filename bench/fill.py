"""Fills an installation with years of orders, as the product would have written them, quickly.

Every row is what the product writes for an order of two recipients, with codes that open and a ledger that adds up:
`largesse verify` agrees with it. What is quicker than the product: rows go in by COPY, from several processes, and the
indexes are built afterwards. Events older than what maintenance keeps are left out, as they would be gone.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import asyncpg

from bench import read_models
from bench.history import (
    BOUNCED,
    CANCELLED,
    LINE_COLUMNS,
    ORDER_COLUMNS,
    SCHEDULED,
    TOTAL_MINOR,
    WORD_COLUMNS,
    Times,
    World,
    make_rows,
)
from bench.installation import Installation
from largesse.audit.service import Acting, by_command
from largesse.base.settings import load_settings
from largesse.encryption.chain_keys import bring_up_to_date, open_chains
from largesse.encryption.vault import load_vault
from largesse.ledger.chains import mark_ledger
from largesse.lines.marks import mark_events
from largesse.verify.orders import EVENTS_KEPT_DAYS

YEARS = 2
_AT_ONCE = 10_000
_MARKED_AT_ONCE = 50_000  # orders
_TABLES = ("orders", "lines", "line_states", "line_events", "entries", "events", "mail_jobs", "order_changes")
# As before there were chains: what is filled in is chained afterwards, as `largesse migrate` does.
_UNCHAIN = """
    ALTER TABLE entries DISABLE TRIGGER entries_append_only;
    UPDATE entries SET mac = NULL;
    ALTER TABLE accounts DISABLE TRIGGER accounts_stay;
    UPDATE accounts SET chain_head = DEFAULT;
    ALTER TABLE accounts ENABLE TRIGGER accounts_stay;
    ALTER TABLE entries ENABLE TRIGGER entries_append_only;
    ALTER TABLE audit_events DISABLE TRIGGER USER;
    DELETE FROM audit_events; DELETE FROM audit_heads; DELETE FROM chain_keys;
    ALTER TABLE audit_events ENABLE TRIGGER USER
"""
_CHANGES = """
    INSERT INTO order_changes (customer_id, order_id, changed_at) SELECT customer_id, id, created_at FROM orders ORDER BY id
"""
# Whole tables are joined: one estimate of a single row, and a loop within a loop takes minutes for millions.
_FOR_MILLIONS = "SET work_mem = '256MB'; SET maintenance_work_mem = '512MB'; SET synchronous_commit = off; SET enable_nestloop = off"


def fill(made: Installation, orders: int, *, reports: bool = False) -> None:
    """Writes `orders` orders of two lines each, spread over the last years, into tables that are empty; their read models with `reports`."""
    made.connected(lambda connection: _fill(connection, made, orders, reports=reports))


async def _fill(
    connection: asyncpg.Connection[asyncpg.Record], made: Installation, orders: int, *, reports: bool
) -> None:
    world = await _world(connection)
    times = Times(datetime.now(UTC) - timedelta(days=365 * YEARS), timedelta(days=365 * YEARS) / orders)
    await connection.execute(_UNCHAIN)
    indexes = await _take_indexes(connection, (*_TABLES, *read_models.TABLES))
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as workers:
        loop = asyncio.get_running_loop()
        await asyncio.gather(*(
            loop.run_in_executor(workers, copy_orders, made.url, str(made.data_dir), world, times, part, reports)
            for part in _parts(orders, 4 * (os.cpu_count() or 1))
        ))  # fmt: skip
    # Without, all of it waits for a worker, of which there is none here.
    told = read_models.STATEMENTS if reports else (_CHANGES,)
    await asyncio.gather(_run(made.url, [*_what_became(orders), *told]), _run(made.url, _ledger(world, orders)))

    async def chain() -> None:
        await _build(made.url, [one for one in indexes if one[0] in {"orders", "entries"}])
        async with connection.transaction():
            chains = await bring_up_to_date(connection, load_vault(load_settings(made.environment)))
            assert chains is not None, "there were no keys"
            await mark_ledger(connection, chains.entries)

    await asyncio.gather(chain(), _build(made.url, [one for one in indexes if one[0] not in {"orders", "entries"}]))
    if reports:
        await _mark(connection, made, orders)
    await _run(made.url, ["VACUUM ANALYZE accounts", "CHECKPOINT"])


async def _mark(connection: asyncpg.Connection[asyncpg.Record], made: Installation, orders: int) -> None:
    """Marks what became of lines, as a worker does when it brings the reports up to date."""
    chains = await open_chains(connection, load_vault(load_settings(made.environment)), keep=True)
    acting = Acting(by_command("bench"), chains)
    for start, end in _parts(orders, -(-orders // _MARKED_AT_ONCE)):
        moved = await connection.fetch(
            "SELECT DISTINCT customer_id, order_id FROM line_events WHERE event <> 'opened' AND order_id >= $1 AND order_id < $2",
            start,
            end,
        )
        async with connection.transaction():
            await mark_events(connection, acting, [(row["customer_id"], row["order_id"]) for row in moved])


def copy_orders(url: str, data_dir: str, world: World, times: Times, part: tuple[int, int], reports: bool) -> None:
    """Copies the orders and lines of a range of ids, and the words of their read models; runs in a process of its own."""
    asyncio.run(_copy_orders(url, Path(data_dir), world, times, range(*part), reports=reports))


async def _copy_orders(url: str, data_dir: Path, world: World, times: Times, part: range, *, reports: bool) -> None:
    vault = load_vault(load_settings({"LARGESSE_DATA_DIR": str(data_dir)}))
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(_FOR_MILLIONS)
        for start in range(part.start, part.stop, _AT_ONCE):
            numbers = range(start, min(start + _AT_ONCE, part.stop))
            rows = make_rows(vault, world, times, numbers, words=reports)
            await connection.copy_to_table("orders", source=_text(rows.orders), columns=ORDER_COLUMNS)
            await connection.copy_to_table("lines", source=_text(rows.lines), columns=LINE_COLUMNS)
            if reports:
                await connection.copy_to_table("report_words", source=_text(rows.words), columns=WORD_COLUMNS)
    finally:
        await connection.close()


async def _text(rows: list[str]) -> AsyncIterator[bytes]:
    yield "".join(rows).encode()


async def _world(connection: asyncpg.Connection[asyncpg.Record]) -> World:
    row = await connection.fetchrow(
        """
        SELECT c.id, ARRAY(SELECT id FROM service_accounts WHERE customer_id = c.id ORDER BY id),
               ARRAY(SELECT id FROM users WHERE customer_id = c.id ORDER BY id),
               ARRAY(SELECT id FROM products WHERE is_digital ORDER BY id), ARRAY(SELECT id FROM collections ORDER BY id),
               ARRAY(SELECT id FROM accounts WHERE customer_id = c.id AND kind = 'funding' ORDER BY id),
               (SELECT id FROM accounts WHERE customer_id = c.id AND kind = 'sales' AND environment = 'production' LIMIT 1)
        FROM customers AS c ORDER BY c.id LIMIT 1
        """
    )
    assert row is not None
    return World(*row)


_CANCELLED = f"(collection_id IS NULL AND id % {CANCELLED} = 1 AND created_at < now() - interval '1 day')"
_CANCELLED_AT = "created_at + interval '1 hour'"
_CLAIMED_AT = "created_at + (id % 50) * (id % 50) * interval '20 minutes'"


def _what_became(orders: int) -> list[str]:
    """Gifts of collections were claimed, but for one in eight; some orders were cancelled, or their mail refused; the last are scheduled."""
    return [
        f"""
        INSERT INTO line_states (customer_id, order_id, number, state, claimed_at)
        SELECT customer_id, id, number, 'claimed', {_CLAIMED_AT} FROM orders, generate_series(1, 2) AS number
        WHERE collection_id IS NOT NULL AND id % 8 <> 0 AND {_CLAIMED_AT} < now()
        """,
        """
        INSERT INTO line_events (customer_id, order_id, number, event, at)
        SELECT customer_id, order_id, number, event, claimed_at FROM line_states, unnest(ARRAY['opened', 'claimed']) AS event
        """,
        f"""
        INSERT INTO line_states (customer_id, order_id, number, state)
        SELECT customer_id, id, number, 'cancelled' FROM orders, generate_series(1, 2) AS number WHERE {_CANCELLED}
        """,
        f"""
        INSERT INTO line_events (customer_id, order_id, number, event, at)
        SELECT customer_id, id, number, 'cancelled', {_CANCELLED_AT} FROM orders, generate_series(1, 2) AS number WHERE {_CANCELLED}
        """,
        f"""
        INSERT INTO messages (customer_id, order_id, environment, email, line_numbers, state, due_at, rank_at, created_at,
            finished_at, reason)
        SELECT l.customer_id, l.order_id, environment, recipient_email, ARRAY[number], 'bounced', created_at, created_at, created_at,
               created_at, '550 unknown'
        FROM orders AS o JOIN lines AS l ON l.order_id = o.id WHERE o.id % {BOUNCED} = 2
        """,
        f"UPDATE orders SET scheduled_for = now() + interval '30 days' WHERE id > {orders - SCHEDULED}",
        """
        INSERT INTO mail_jobs (customer_id, order_id, environment, due_at, fanned_out_at)
        SELECT customer_id, id, environment, coalesce(scheduled_for, created_at),
               CASE WHEN scheduled_for IS NULL THEN created_at END
        FROM orders
        """,
        f"""
        INSERT INTO events (order_id, customer_id, environment, event, body, created_at, fanned_out_at)
        SELECT id, customer_id, environment, 'order.created', convert_to(rpad('{{', 480, 'x'), 'UTF8'), created_at, created_at
        FROM orders WHERE created_at > now() - interval '{EVENTS_KEPT_DAYS + 1} days' ORDER BY id
        """,
        f"SELECT setval('orders_id_seq', {orders})",
    ]


def _ledger(world: World, orders: int) -> list[str]:
    """What orders and cancellations moved, in the order of their times, as the ids of an account's entries are."""
    return [
        f"""
        INSERT INTO entries (customer_id, account_id, movement_id, kind, order_id, amount_minor, balance_minor, created_at)
        SELECT a.customer_id, a.id, last_value + m.movement, m.kind, m.order_id, side.amount_minor,
               a.balance_minor + sum(side.amount_minor) OVER (PARTITION BY a.id ORDER BY m.at, m.movement), m.at
        FROM (
            SELECT id AS movement, id AS order_id, account_id, 'order' AS kind, -{TOTAL_MINOR} AS amount_minor, created_at AS at FROM orders
            UNION ALL
            SELECT {orders} + id, id, account_id, 'refund', {TOTAL_MINOR}, {_CANCELLED_AT} FROM orders WHERE {_CANCELLED}
        ) AS m
        CROSS JOIN LATERAL (VALUES (m.account_id, m.amount_minor), ({world.sales}, -m.amount_minor)) AS side (account_id, amount_minor)
        JOIN accounts AS a ON a.customer_id = {world.customer} AND a.id = side.account_id
        CROSS JOIN movements_id_seq
        """,
        f"SELECT setval('movements_id_seq', last_value + 2 * {orders}) FROM movements_id_seq",
        """
        UPDATE accounts AS a SET balance_minor = balance_minor + moved.amount_minor
        FROM (SELECT account_id, sum(amount_minor) AS amount_minor FROM entries WHERE order_id IS NOT NULL GROUP BY 1) AS moved
        WHERE a.id = moved.account_id
        """,
    ]


async def _take_indexes(connection: asyncpg.Connection[asyncpg.Record], tables: Sequence[str]) -> list[tuple[str, str]]:
    """Drops every index of the tables; gives the statements that make them again, each with its table."""
    constraints = await connection.fetch(
        """
        SELECT conrelid::regclass::text AS table, conname AS name, pg_get_constraintdef(oid) AS definition
        FROM pg_constraint WHERE conrelid = ANY($1::regclass[]) AND contype IN ('p', 'u')
        """,
        list(tables),
    )
    made_again = []
    for row in constraints:
        await connection.execute(f"ALTER TABLE {row['table']} DROP CONSTRAINT {row['name']}")
        made_again.append(
            (row["table"], f"ALTER TABLE {row['table']} ADD CONSTRAINT {row['name']} {row['definition']}")
        )
    indexes = await connection.fetch(
        "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE tablename = ANY($1::text[])", list(tables)
    )
    for row in indexes:
        await connection.execute(f"DROP INDEX {row['indexname']}")
        made_again.append((row["tablename"], row["indexdef"]))
    return made_again


async def _build(url: str, indexes: Iterable[tuple[str, str]]) -> None:
    """Builds the indexes, one table beside another, and lets PostgreSQL take stock."""
    by_table: dict[str, list[str]] = {}
    for table, statement in indexes:
        by_table.setdefault(table, []).append(statement)
    await asyncio.gather(*(_run(url, [*made, f"VACUUM ANALYZE {table}"]) for table, made in by_table.items()))


async def _run(url: str, statements: Iterable[str]) -> None:
    connection: asyncpg.Connection[Any] = await asyncpg.connect(url)
    try:
        await connection.execute(_FOR_MILLIONS)
        for statement in statements:
            await connection.execute(statement, timeout=3600)
    finally:
        await connection.close()


def _parts(orders: int, count: int) -> list[tuple[int, int]]:
    """Ranges of ids from 1, each from its first to before its last."""
    edges = [1 + orders * part // count for part in range(count + 1)]
    return list(pairwise(edges))
