"""Each table has one room that writes it: the SQL of every module is held to `[tool.largesse.tables]` of pyproject.toml.

Read are string literals, put together as the code does, and the driver's COPY. Three modules write tables that others name to
them; there the naming counts as the write. Migrations are exempt: they change whatever they must.
"""

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest
from tests import parsed

from largesse.db.pool import connect_once
from largesse.db.scope import OPERATOR
from largesse.staff.store import SIGN_IN

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src/largesse"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
OWNERS = {table: room for room, tables in PYPROJECT["tool"]["largesse"]["tables"].items() for table in tables}
# Modules whose statements name no table, and the classes that are told its name.
GENERIC = {"db.statements", "encryption.columns", "jobs.leases", "jobs.registry"}
NAMING = {"DueTimes", "Old", "Queue", "Table", "sealed_column"}

# A module that others hand rows of a table to, in their own transaction.
ENTRIES = {"jobs.outbox": {"mail_jobs", "messages", "people_mails"}}

_TABLE = r'(?:ONLY\s+)?(?:public\.)?"?(?P<table>[a-z_]\w*|\{|\0)?'
_WRITES = re.compile(
    rf"\b(?:INSERT\s+INTO|DELETE\s+FROM|MERGE\s+INTO)\b\s*{_TABLE}"
    rf"|\bUPDATE\s+{_TABLE.replace('<table>', '<updated>')}\S*(?:\s+AS\b)?(?:\s+[\w\0]+)?\s+SET\b"
    rf"|\bCOPY\s+{_TABLE.replace('<table>', '<copied>')}\"?\s*(?:\([^)]*\))?\s*FROM\b"
    rf"|\bTRUNCATE\s+TABLE\s+{_TABLE.replace('<table>', '<emptied>')}",
    re.IGNORECASE,
)
_COPYING = {"copy_records_to_table", "copy_to_table"}
UNKNOWN = "?"  # a table that the code names only when it runs


def written(source: str) -> Iterator[str]:
    """The tables a module writes, one for each statement; UNKNOWN where its source does not tell."""
    named = {
        alias.asname or alias.name
        for node in parsed.nodes(source)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("largesse.")
        for alias in node.names
        if alias.name in NAMING
    }
    for text in texts(parsed.tree(source)):
        yield from in_sql(text)
    for node in parsed.nodes(source):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in _COPYING or called in named:
                first = [*node.args, *(keyword.value for keyword in node.keywords)][0]
                yield first.value if isinstance(first, ast.Constant) else UNKNOWN


def in_sql(text: str) -> Iterator[str]:
    """The tables that the statements in a text write."""
    for match in _WRITES.finditer(text):
        table = next(filter(None, match.groups()), "\0")
        yield UNKNOWN if table in "{\0" else table.lower()


def texts(node: ast.AST) -> Iterator[str]:
    """The strings below `node` as they are put together, with a NUL for what is known only when the code runs."""
    if (text := put_together(node)) is not None:
        yield text
        for part in ast.walk(node):
            if isinstance(part, ast.FormattedValue):
                yield from texts(part.value)
        return
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)):  # a docstring is prose
            yield from texts(child)


def put_together(node: ast.AST) -> str | None:
    """The text of a string expression; None for any other."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(put_together(part) or "\0" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod):
        left, right = put_together(node.left), put_together(node.right)
        if left is not None or right is not None:
            return (left or "\0") + (right or "\0")
    return None


def foreign(module: str, tables: Iterable[str]) -> list[str]:
    """What of it a module, by its name below `largesse`, must not write."""
    found = []
    for table in tables:
        if table == UNKNOWN:
            if module not in GENERIC:
                found.append(f"{module} writes a table whose name its source does not tell")
        elif table not in OWNERS:
            found.append(f"{module} writes {table}, which is no table with an owner")
        elif not f"{module}.".startswith(f"{OWNERS[table]}.") and table not in ENTRIES.get(module, ()):
            found.append(f"{module} writes {table}, which {OWNERS[table]} owns")
    return found


@cache
def modules() -> list[tuple[str, list[str]]]:
    """Each module with the tables it writes, and each file of SQL, but for migrations."""
    found = []
    for path in sorted(SOURCES.rglob("*")):
        name = ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")
        if name.startswith("db.migrations."):
            continue
        if path.suffix == ".py":
            found.append((name, list(written(path.read_text()))))
        elif path.suffix == ".sql":
            found.append((name, list(in_sql(path.read_text()))))
    # These are renamed when the module is loaded.
    found.append(("staff.store", [table for text in SIGN_IN for table in in_sql(text)]))
    return found


def test_no_room_writes_the_table_of_another() -> None:
    assert [told for module, tables in modules() for told in foreign(module, tables)] == []


def test_the_writes_of_all_rooms_are_seen() -> None:
    seen = {table for _, tables in modules() for table in tables}
    filled_otherwise = {
        "catalogue_changes",
        "catalogue_version",
        "collection_versions",
        "credential_openings",
        "currencies",
    }
    assert seen - {UNKNOWN} == OWNERS.keys() - filled_otherwise, (
        "a table without an owner, or one that no statement writes"
    )


async def test_every_table_has_an_owner(module_database_url: str) -> None:
    async with connect_once(module_database_url, OPERATOR) as connection:
        rows = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    assert {row["tablename"] for row in rows} == OWNERS.keys(), (
        "say in [tool.largesse.tables] of pyproject.toml whose a table is"
    )


@pytest.mark.parametrize(
    "code",
    [
        'run("INSERT INTO lines (order_id) VALUES (1)")',
        'run("insert into public.lines values (1)")',
        'run(f"""WITH a AS (INSERT INTO\n    lines (order_id) SELECT {x}) SELECT""")',
        'run("UPDATE lines AS l SET sealed = $1")',
        'run("UPDATE ONLY lines SET sealed = $1")',
        'run(f"UPDATE lines {alias} SET sealed = $1")',
        'run("DELETE FROM lines " + where)',
        'run("DELETE " "FROM " "lines")',
        'run("MERGE INTO lines USING new ON true WHEN MATCHED THEN DELETE")',
        'run("COPY lines (order_id, number) FROM STDIN")',
        'run("TRUNCATE TABLE lines")',
        'connection.copy_records_to_table("lines", records=[])',
        'connection.copy_to_table(table_name="lines", source=file)',
        'from largesse.jobs import Queue\nQUEUE = Queue("lines", "number")',
        'run(f"SELECT {part("DELETE FROM lines")}")'.replace('"DELETE FROM lines"', "'DELETE FROM lines'"),
    ],
)
def test_a_foreign_write_is_found(code: str) -> None:
    assert foreign("lines.states", written(code)) == []
    assert foreign("orders.service", written(code)) == ["orders.service writes lines, which lines owns"]
    assert foreign("lines_of_credit", written(code)) == ["lines_of_credit writes lines, which lines owns"]


@pytest.mark.parametrize(
    "code",
    [
        'run(f"DELETE FROM {table}")',
        'run("INSERT INTO " + table + " VALUES (1)")',
        'run("UPDATE {} SET a = 1".format(table))',
        'run("DELETE FROM %s" % table)',
        "connection.copy_records_to_table(table, records=[])",
    ],
)
def test_a_table_named_only_when_the_code_runs_is_refused(code: str) -> None:
    (told,) = foreign("orders.service", written(code))
    assert "does not tell" in told


def test_a_table_without_an_owner_is_refused() -> None:
    (told,) = foreign("orders.service", written('run("INSERT INTO notes (text) VALUES ($1)")'))
    assert told == "orders.service writes notes, which is no table with an owner"


@pytest.mark.parametrize(
    "code",
    [
        'run("SELECT FROM lines WHERE order_id = $1 FOR UPDATE OF lines SKIP LOCKED")',
        'run("SELECT FROM lines FOR NO KEY UPDATE")',
        'run("INSERT INTO orders (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET total_minor = 0")',
        '"""Creates or updates lines; set what an update of lines takes, and delete from what was inserted into them."""',
        'run("COPY (SELECT * FROM lines) TO STDOUT")',
    ],
)
def test_what_only_reads_is_left_alone(code: str) -> None:
    assert foreign("orders.service", written(code)) == []
