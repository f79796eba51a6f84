"""What was tried, and what came of it: `python -m bench.experiments`, which writes bench/results/experiments.json.

Most compare two installations that differ in one thing, under the load of orders-hot and in turn. The last ones compare
ways to write the rows of a batch, statement by statement, on one connection.
"""

import asyncio
import random
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import asyncpg
import msgspec

from bench import load
from bench.benchmarks.orders_hot import place
from bench.installation import Installation, Server, installation
from bench.machine import describe_machine
from bench.results import Row
from bench.suite import WARM_UP_S, Suite, say
from bench.world import one_account

PATH = Path(__file__).parent / "results" / "experiments.json"
PAIRS = 5
RUN_S = 3.0


@dataclass(frozen=True)
class Change:
    """One thing done otherwise than the product does it."""

    name: str
    kept: str  # what the product does, and why
    sql: tuple[str, ...] = ()
    postgres_settings: Mapping[str, str] = field(default_factory=dict)
    variant: str = "as-it-is"
    address: str = ""  # added to the database's address


CHANGES = (
    Change(
        "accounts with fill factor 100 instead of 20",
        "20: every order updates the same few rows; free space on their page keeps each update on it.",
        sql=("ALTER TABLE accounts SET (fillfactor = 100)", "VACUUM FULL accounts"),
    ),
    Change(
        "a hash index for the look-up numbers of codes instead of a b-tree",
        "b-tree: it refuses a second code with the same number, which a hash index cannot.",
        sql=("DROP INDEX lines_code_lookup", "CREATE INDEX lines_code_lookup ON lines USING hash (code_lookup)"),
    ),
    Change(
        "a hash index for the order's reference instead of a b-tree",
        "b-tree: unique, and references begin with the hour, so that new ones fall on few pages.",
        sql=("DROP INDEX orders_reference", "CREATE INDEX orders_reference ON orders USING hash (reference)"),
    ),
    Change(
        "NOTIFY in every commit",
        "none: the placing process notifies afterwards, at most twenty times a second (jobs/notifier.py).",
        sql=(
            "CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NOTIFY told; RETURN NULL; END $$",
            "CREATE TRIGGER tell AFTER INSERT ON orders FOR EACH STATEMENT EXECUTE FUNCTION tell()",
        ),
    ),
    Change(
        "no prepared statements (as behind PgBouncer)",
        "prepared: PostgreSQL parses and plans each statement once a connection.",
        address="&pgbouncer=true",
    ),
    Change(
        "without gc.freeze",
        "frozen: the collector does not scan objects again that live as long as the process.",
        variant="unfrozen",
    ),
    Change(
        "Python's own thresholds of garbage collections",
        "fewer collections: half as much time goes into them (main.py).",
        variant="collected-often",
    ),
    Change(
        "plans left to the server",
        "planned once a connection: the plan does not depend on how many orders a batch has (orders/reading.py).",
        variant="replanned",
    ),
    Change(
        "wal_compression = pglz",
        "off: see growth for its cost after a checkpoint of a large database.",
        postgres_settings={"wal_compression": "pglz"},
    ),
    Change(
        "commit_delay = 500 µs",
        "0: a batch gathers by itself while the one before it is written.",
        postgres_settings={"commit_delay": "500", "commit_siblings": "1"},
    ),
    Change(
        "shared_buffers = 1GB instead of 256MB",
        "256MB: the pages that new orders touch fit; see growth.",
        postgres_settings={"shared_buffers": "1GB"},
    ),
)


class Way(msgspec.Struct):
    """A way to write lines, and what one statement of it takes, client and server together."""

    name: str
    rows: int
    us: float


class Experiments(msgspec.Struct):
    """All that was tried."""

    machine: dict[str, str]
    rows: list[Row]
    kept: dict[str, str]
    ways: list[Way]


def main() -> None:
    load.require_wrk()
    quick = "--quick" in sys.argv
    suite = Suite(pairs=1 if quick else PAIRS, seconds=1.0 if quick else RUN_S)
    rows = [_compare(suite, change) for change in CHANGES]
    ways = _ways(1 if quick else 5)
    found = Experiments(describe_machine(), rows, {change.name: change.kept for change in CHANGES}, ways)
    path = Path("experiments-quick.json") if quick else PATH
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    for way in ways:
        say(f"{way.us:10.0f} µs  {way.rows:5} rows  {way.name}")


def read() -> Experiments:
    """The results last written."""
    return msgspec.json.decode(PATH.read_bytes(), type=Experiments)


def _compare(suite: Suite, change: Change) -> Row:
    say(f"\n{change.name}")
    with _served(Change("", "")) as (made, server), _served(change) as (other, other_server):
        place(made, server, WARM_UP_S)
        place(other, other_server, WARM_UP_S)
        pairs = suite.in_turn(
            partial(place, other, other_server, suite.seconds), partial(place, made, server, suite.seconds)
        )
    return Row(change.name, "orders/s", change.name, "as it is", None, pairs)


@contextmanager
def _served(change: Change) -> Iterator[tuple[Installation, Server]]:
    with installation(one_account(), [], change.postgres_settings) as made:
        for statement in change.sql:
            made.sql(statement)
        if change.address:
            # With an address, the master key must be named too.
            with made.serve():
                pass
            made.extra_environment = {
                "LARGESSE_DATABASE_URL": made.url + change.address,
                "LARGESSE_MASTER_KEY": (made.data_dir / "master-key").read_text().strip(),
            }
        with made.serve_module("bench.variant", change.variant) as server:
            yield made, server


# Ways to write the lines of a batch.

_COLUMNS = ("customer_id", "order_id", "number", "recipient_email", "recipient_name", "code_lookup", "sealed")
_TYPES = ("int", "int", "int", "text", "text", "bigint", "bytea")
_LINES_OF_A_BATCH = (2, 64, 500, 5_000)
_REPEATS = 20
_LARGEST_BIGINT = 2**63 - 1

Lines = list[tuple[int, int, int, str, str, int, bytes]]


async def _by_unnest(connection: Any, lines: Lines) -> None:
    arrays = ", ".join(f"${at}::{type_}[]" for at, type_ in enumerate(_TYPES, 1))
    await connection.execute(
        f"INSERT INTO lines ({', '.join(_COLUMNS)}) SELECT * FROM unnest({arrays})", *zip(*lines, strict=True)
    )


async def _by_json(connection: Any, lines: Lines) -> None:
    described = ", ".join(f"{name} {type_}" for name, type_ in zip(_COLUMNS, _TYPES, strict=True))
    objects = [dict(zip(_COLUMNS, (*line[:6], f"\\x{line[6].hex()}"), strict=True)) for line in lines]
    await connection.execute(
        f"INSERT INTO lines ({', '.join(_COLUMNS)}) SELECT * FROM json_to_recordset($1::json) AS new ({described})",
        msgspec.json.encode(objects).decode(),
    )


async def _by_copy(connection: Any, lines: Lines) -> None:
    await connection.copy_records_to_table("lines", records=lines, columns=_COLUMNS)


async def _one_by_one(connection: Any, lines: Lines) -> None:
    values = ", ".join(f"${at}" for at in range(1, len(_COLUMNS) + 1))
    await connection.executemany(f"INSERT INTO lines ({', '.join(_COLUMNS)}) VALUES ({values})", lines)


_WAYS: dict[str, Callable[[Any, Lines], Awaitable[None]]] = {
    "one INSERT from `unnest` of arrays": _by_unnest,
    "one INSERT from `json_to_recordset`": _by_json,
    "binary COPY": _by_copy,
    "one INSERT a row (`executemany`, pipelined)": _one_by_one,
}


def _ways(rounds: int) -> list[Way]:
    with installation(one_account(), []) as made:
        return asyncio.run(_measure(made.url, rounds))


async def _measure(url: str, rounds: int) -> list[Way]:
    connection = await asyncpg.connect(url)
    times_us: dict[tuple[str, int], list[float]] = {}
    order_ids = iter(range(1, 1_000_000_000))
    try:
        for _ in range(rounds):
            for count in _LINES_OF_A_BATCH:
                for name, write in _WAYS.items():
                    batches = [_lines(next(order_ids), count) for _ in range(_REPEATS)]
                    transaction = connection.transaction()
                    await transaction.start()
                    for lines in batches:
                        began = time.perf_counter()
                        await write(connection, lines)
                        times_us.setdefault((name, count), []).append((time.perf_counter() - began) * 1e6)
                    await transaction.commit()
    finally:
        await connection.close()
    return [Way(name, count, median(times)) for (name, count), times in times_us.items()]


def _lines(order_id: int, count: int) -> Lines:
    return [
        (
            1,
            order_id,
            number,
            "ada.lovelace@example.com",
            "Ada Lovelace",
            random.randint(-_LARGEST_BIGINT, _LARGEST_BIGINT),
            random.randbytes(45),
        )
        for number in range(1, count + 1)
    ]


if __name__ == "__main__":
    main()
