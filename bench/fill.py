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
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import asyncpg

from bench import read_models
from bench.installation import Installation
from largesse.base.settings import load_settings
from largesse.base.vault import load_vault
from largesse.funding.chaining import chain_earlier_entries
from largesse.lines import SealedCodes, draw_codes
from largesse.orders.reference import new_reference
from largesse.verify.orders import EVENTS_KEPT_DAYS

YEARS = 2
_AT_ONCE = 10_000
_VALUE_MINOR = 1_000
_TOTAL_MINOR = 2 * _VALUE_MINOR
_TABLES = ("orders", "lines", "entries", "events", "mail_jobs")
# As before there were chains: what is filled in is chained afterwards, as `largesse migrate` does.
_UNCHAIN = """
    ALTER TABLE entries DISABLE TRIGGER entries_append_only;
    UPDATE entries SET mac = NULL;
    UPDATE accounts SET chain_head = DEFAULT;
    ALTER TABLE entries ENABLE TRIGGER entries_append_only
"""
# Whom and what people look for, in a list: many who are rare, and some words that are common.
_FIRST_NAMES = (
    "Ada",
    "Ben",
    "Chloe",
    "Dan",
    "Emma",
    "Finn",
    "Grace",
    "Hugo",
    "Iris",
    "Jack",
    "Kim",
    "Liam",
    "Mia",
    "Noah",
)
_LAST_NAMES = 4_001
_GUESTS = 1_700_003
_SOURCES = ("api", "api", "api", "crm", "crm", "onboarding", "birthdays")
_TEAMS = 11
_WORK_MEM = "SET maintenance_work_mem = '512MB'"


@dataclass(frozen=True, slots=True)
class Ids:
    """Whose orders they are."""

    customer: int
    bot: int
    product: int
    payer: int
    sales: int
    opening_minor: int


def fill(made: Installation, orders: int) -> None:
    """Writes `orders` orders of two lines each, spread over the last years, into tables that are empty."""
    made.connected(lambda connection: _fill(connection, made, orders))


def fill_read_models(made: Installation) -> None:
    """Writes the read models of what `fill` wrote, instead of the worker."""
    made.connected(lambda connection: _fill_read_models(connection, made))


async def _fill_read_models(connection: asyncpg.Connection[asyncpg.Record], made: Installation) -> None:
    indexes = await _take_indexes(connection, read_models.TABLES)
    await connection.execute("SET work_mem = '256MB'")
    for statement in read_models.STATEMENTS:
        await connection.execute(statement, timeout=3600)
    await _build(made.url, indexes)
    await connection.execute("VACUUM ANALYZE", timeout=3600)


async def _fill(connection: asyncpg.Connection[asyncpg.Record], made: Installation, orders: int) -> None:
    ids = await _ids(connection)
    await connection.execute(_UNCHAIN)
    indexes = await _take_indexes(connection, _TABLES)
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as workers:
        loop = asyncio.get_running_loop()
        began = datetime.now(UTC) - timedelta(days=365 * YEARS)
        step = timedelta(days=365 * YEARS) / orders
        copies = [
            loop.run_in_executor(
                workers, copy_orders, made.url, str(made.data_dir), ids, first, last, began, step
            )
            for first, last in _parts(orders, 4 * (os.cpu_count() or 1))
        ]
        await asyncio.gather(*copies)
    await _write_the_rest(connection, ids, orders)
    await _build(made.url, indexes)
    await chain_earlier_entries(connection, await made.chain(connection))


def copy_orders(
    url: str, data_dir: str, ids: Ids, first: int, last: int, began: datetime, step: timedelta
) -> None:
    """Copies the orders and lines of a range of ids; runs in a process of its own."""
    asyncio.run(_copy_orders(url, Path(data_dir), ids, first, last, began, step))


async def _copy_orders(
    url: str, data_dir: Path, ids: Ids, first: int, last: int, began: datetime, step: timedelta
) -> None:
    vault = load_vault(load_settings({"LARGESSE_DATA_DIR": str(data_dir)}))
    connection = await asyncpg.connect(url)
    try:
        for start in range(first, last, _AT_ONCE):
            orders, lines = [], []
            numbers = range(start, min(start + _AT_ONCE, last))
            drawn = draw_codes(2 * len(numbers))
            for order_id in numbers:
                at = began + order_id * step
                reference = new_reference(at)
                orders.append(
                    f"{order_id}\t{reference}\t{ids.customer}\tproduction\t{ids.bot}\t{_SOURCES[order_id % len(_SOURCES)]}\t"
                    f"bench000-{order_id:011d}\t"
                    f"gift\t{ids.product}\tGB\tGBP\t{_VALUE_MINOR}\t{_TOTAL_MINOR}\t2\t2\tsend\tdefault\t"
                    f"People Team {order_id % _TEAMS}\tThank you for a wonderful year!\t{ids.payer}\t{at.isoformat()}\n"
                )
                one, two = SealedCodes(vault, [drawn.pop(), drawn.pop()], reference)
                lines.append(
                    f"{ids.customer}\t{order_id}\t1\t{_guest(2 * order_id)}\t{one.lookup}\t\\\\x{one.sealed.hex()}\n"
                    f"{ids.customer}\t{order_id}\t2\t{_guest(2 * order_id + 1)}\t{two.lookup}\t\\\\x{two.sealed.hex()}\n"
                )
            await connection.copy_to_table("orders", source=_chunks(orders), columns=_ORDER_COLUMNS)
            await connection.copy_to_table("lines", source=_chunks(lines), columns=_LINE_COLUMNS)
    finally:
        await connection.close()


def _guest(number: int) -> str:
    """The columns of a recipient: the same few names over and over, addresses that come back now and then."""
    first = _FIRST_NAMES[number % len(_FIRST_NAMES)]
    return f"guest{number * 7_919 % _GUESTS:07d}@example.com\t{first} Guest{number % _LAST_NAMES}"


_ORDER_COLUMNS = [
    "id",
    "reference",
    "customer_id",
    "environment",
    "service_account_id",
    "source",
    "external_reference",
    "gift_selection",
    "product_id",
    "country",
    "currency",
    "value_minor",
    "total_minor",
    "code_count",
    "recipient_count",
    "delivery_mode",
    "wrapping_key",
    "from_name",
    "message",
    "account_id",
    "created_at",
]


_LINE_COLUMNS = [
    "customer_id",
    "order_id",
    "number",
    "recipient_email",
    "recipient_name",
    "code_lookup",
    "sealed",
]


async def _chunks(rows: list[str]) -> AsyncIterator[bytes]:
    yield "".join(rows).encode()


async def _ids(connection: asyncpg.Connection[asyncpg.Record]) -> Ids:
    row = await connection.fetchrow(
        """
        SELECT f.customer_id, (SELECT min(id) FROM service_accounts), (SELECT min(id) FROM products WHERE is_digital),
               f.id, (SELECT min(id) FROM accounts WHERE kind = 'sales'), f.balance_minor
        FROM accounts f WHERE f.kind = 'funding' ORDER BY f.id LIMIT 1
        """
    )
    assert row is not None
    return Ids(*row)


async def _write_the_rest(connection: asyncpg.Connection[asyncpg.Record], ids: Ids, orders: int) -> None:
    """Entries, balances, mail jobs, recent events, and the sequences."""
    numbers = {"payer": ids.payer, "sales": ids.sales, "opening": ids.opening_minor, "total": _TOTAL_MINOR}
    statements = [
        f"""
        INSERT INTO entries (customer_id, account_id, movement_id, kind, order_id, amount_minor, balance_minor, created_at)
        SELECT {ids.customer}, side.account_id, nextval_base + o.id, 'order', o.id, side.amount_minor, side.balance_minor, o.created_at
        FROM (SELECT id, created_at FROM orders ORDER BY id) AS o
        CROSS JOIN (SELECT last_value AS nextval_base FROM movements_id_seq) AS movements
        CROSS JOIN LATERAL (VALUES
            ({numbers["payer"]}, -{numbers["total"]}, {numbers["opening"]} - {numbers["total"]}::bigint * o.id),
            ({numbers["sales"]}, {numbers["total"]}, {numbers["total"]}::bigint * o.id)
        ) AS side (account_id, amount_minor, balance_minor)
        """,
        f"SELECT setval('movements_id_seq', last_value + {orders}) FROM movements_id_seq",
        f"SELECT setval('orders_id_seq', {orders})",
        f"UPDATE accounts SET balance_minor = balance_minor - {_TOTAL_MINOR}::bigint * {orders} WHERE id = {ids.payer}",
        f"UPDATE accounts SET balance_minor = balance_minor + {_TOTAL_MINOR}::bigint * {orders} WHERE id = {ids.sales}",
        """
        INSERT INTO mail_jobs (customer_id, order_id, environment, due_at, fanned_out_at)
        SELECT customer_id, id, environment, created_at, created_at FROM orders
        """,
        f"""
        INSERT INTO events (order_id, customer_id, environment, event, body, created_at, fanned_out_at)
        SELECT id, customer_id, environment, 'order.created', convert_to(rpad('{{', 480, 'x'), 'UTF8'), created_at,
               created_at
        FROM orders WHERE created_at > now() - interval '{EVENTS_KEPT_DAYS + 1} days' ORDER BY id
        """,
        # What people list waits for a worker, of which there is none here.
        "INSERT INTO order_changes (customer_id, order_id, changed_at) SELECT customer_id, id, created_at FROM orders ORDER BY id",
    ]
    async with connection.transaction():
        for statement in statements:
            await connection.execute(statement, timeout=3600)


async def _take_indexes(
    connection: asyncpg.Connection[asyncpg.Record], tables: Sequence[str]
) -> list[tuple[str, str]]:
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
        "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE tablename = ANY($1::text[])",
        list(tables),
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
    await _run(url, ["VACUUM ANALYZE accounts", "CHECKPOINT"])


async def _run(url: str, statements: list[str]) -> None:
    connection: asyncpg.Connection[Any] = await asyncpg.connect(url)
    try:
        await connection.execute(_WORK_MEM)
        for statement in statements:
            await connection.execute(statement, timeout=3600)
    finally:
        await connection.close()


def _parts(orders: int, count: int) -> list[tuple[int, int]]:
    """Ranges of ids from 1, each from its first to before its last."""
    edges = [1 + orders * part // count for part in range(count + 1)]
    return list(pairwise(edges))
