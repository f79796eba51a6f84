"""The clocks: what is stored goes by the database's, and the machine's own are asked in one module."""

import ast
import re
from collections.abc import Iterator
from datetime import UTC, timedelta
from pathlib import Path

import asyncpg
from tests import parsed

from largesse.base import clock

SOURCES = Path(clock.__file__).parent.parent
# The server's own clock in SQL, where it is not `clock_now()`.
SERVERS_CLOCK = re.compile(r"(?<![\w.])(now\(\)|clock_timestamp\(\)|current_timestamp)", re.IGNORECASE)
# What asks for it and says why, by the start of what follows it.
ALLOWED = {
    "orders/reading_store.py": "now() + ahead_by AS now",  # what clock_now() does, in a statement that reads the row anyway
    "doctor/database.py": "SELECT clock_timestamp()",  # the server's clock beside the machine's
    "jobs/registry.py": "SELECT clock_timestamp()",  # the same for a worker's
    "db/postmaster.py": "clock_timestamp() - $1",  # against a time of the server's own
}


def statements(source: Path) -> Iterator[str]:
    """The texts in a module that are SQL, as far as their words tell, if it names the server's clock at all."""
    text = source.read_text("utf-8")
    for node in parsed.nodes(text) if SERVERS_CLOCK.search(text) else ():
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and re.search(r"\b(SELECT|INSERT|UPDATE|DELETE|WHERE)\b", node.value):
            yield node.value


def test_statements_go_by_clock_now() -> None:
    found = {
        (str(source.relative_to(SOURCES)), statement)
        for source in SOURCES.rglob("*.py")
        for statement in statements(source)
        if SERVERS_CLOCK.search(statement)
    }
    assert {name for name, _ in found} == set(ALLOWED)
    for name, statement in found:
        assert len(SERVERS_CLOCK.findall(statement)) == 1
        assert ALLOWED[name] in statement


async def test_no_column_is_filled_by_another_clock(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    defaults = await connection.fetch(
        "SELECT adrelid::regclass::text AS table, pg_get_expr(adbin, adrelid) AS filled_by FROM pg_attrdef"
    )
    await connection.close()
    assert sum("clock_now()" in row["filled_by"] for row in defaults) >= 8
    assert [tuple(row) for row in defaults if SERVERS_CLOCK.search(row["filled_by"])] == []


def test_the_machines_clocks_agree_and_go_on() -> None:
    before = clock.now(), clock.passed_s(), clock.running_s()
    after = clock.now(), clock.passed_s(), clock.running_s()
    assert before[0].tzinfo is UTC
    assert after[0] - before[0] < timedelta(minutes=1)
    assert after[1:] >= before[1:]
