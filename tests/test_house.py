"""House rules that no linter knows: how long functions and files may be."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from tests import parsed

ROOT = Path(__file__).parent.parent
MOST_LINES_OF_A_FUNCTION = 60
MOST_LINES_OF_A_FILE = 400
# What is longer says why, a file at its margin and a function inside: `# Long: one table, which reads best whole.`
REASON_OF_A_FUNCTION = re.compile(r"^\s+# Long:( \S+){4,}$", re.MULTILINE)
REASON_OF_A_FILE = re.compile(r"^# Long:( \S+){4,}$", re.MULTILINE)

FILES = sorted(path for folder in ("src", "bench", "tests", "tools", "sdk") for path in ROOT.glob(f"{folder}/**/*.py"))


def functions_in(text: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yields the functions of a Python source, also inner ones. Reads statements alone, which is quicker than `ast.walk`."""
    nodes: list[ast.AST] = [ast.parse(text)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        for block in ("body", "orelse", "handlers", "finalbody", "cases"):
            nodes += getattr(node, block, ())


def too_long(text: str) -> list[str]:
    """What is longer than it may be in a Python source of this text, and gives no reason."""
    lines = text.splitlines()
    found = []
    for node in functions_in(text) if len(lines) > MOST_LINES_OF_A_FUNCTION else ():
        assert node.end_lineno is not None
        body = lines[node.lineno - 1 : node.end_lineno]
        if len(body) > MOST_LINES_OF_A_FUNCTION and not REASON_OF_A_FUNCTION.search("\n".join(body)):
            found.append(f"{node.name} has {len(body)} lines, of {MOST_LINES_OF_A_FUNCTION}")
    if len(lines) > MOST_LINES_OF_A_FILE and not REASON_OF_A_FILE.search(text):
        found.append(f"the file has {len(lines)} lines, of {MOST_LINES_OF_A_FILE}")
    return found


def test_functions_and_files_are_of_a_size_to_read():
    found = {str(path.relative_to(ROOT)): too_long(path.read_text("utf-8")) for path in FILES}

    assert {name: mistakes for name, mistakes in found.items() if mistakes} == {}


@pytest.mark.parametrize(
    ("lines", "reason", "mistakes"),
    [
        (60, "", []),
        (61, "", ["f has 61 lines, of 60"]),
        (61, "# Long: one table, which reads best whole.", []),
        (61, "# Long: because.", ["f has 61 lines, of 60"]),
    ],
)
def test_a_function_too_long_is_found(lines: int, reason: str, mistakes: list[str]):
    body = [f"    {reason or 'pass'}", *["    pass"] * (lines - 2)]

    assert too_long("\n".join(["def f():", *body])) == mistakes


@pytest.mark.parametrize(
    ("lines", "first", "mistakes"),
    [
        (400, "pass", []),
        (401, "pass", ["the file has 401 lines, of 400"]),
        (401, "# Long: one table, which reads best whole.", []),
        (401, "if True:  # Long: one table, which reads best whole.", ["the file has 401 lines, of 400"]),
    ],
)
def test_a_file_too_long_is_found(lines: int, first: str, mistakes: list[str]):
    assert too_long("\n".join([first, *["    pass" if ":  #" in first else "pass"] * (lines - 1)])) == mistakes


# The rules of docs/architecture.md, each with a violation that it finds.

DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
SOURCES = ROOT / "src/largesse"
# Where a name of the package is offered, or where code stands that the whole room is.
WITH_CODE = {"__init__.py", "cli/__init__.py", "web/api/routes/__init__.py"}
SQL = re.compile(r"\b(SELECT\s|INSERT INTO\s|DELETE FROM\s|UPDATE \w+ SET\s)")
# What begins a transaction that writes, sends a statement, or adds an entry to the audit log.
ACTS = re.compile(r"(?<!\breport)\.(record|writing|transaction|execute|executemany|fetch|fetchrow|fetchval)\($")
CALLED = re.compile(r"\.(record|writing|transaction|execute|executemany|fetch|fetchrow|fetchval)\(")
F_STRING = re.compile(r"""\b[rR]?[fF][rR]?["']""")
SQL_WORD = re.compile(r"\b(SELECT|INSERT|DELETE|UPDATE)\b")
MOST_MODULES_THAT_ASK = 2
# A room's files are model.py, store.py, service.py and tasks.py, and others by their subjects. These name no subject, or one of the four.
VAGUE_NAMES = re.compile(
    r"(^|[/_])(utils?|helpers?|common|misc|types|models|schemas?|queries|sql|repository|repositories|stores)\.py$"
)
NAMED_AS_A_TEST = re.compile(r"(^|/)(test_\w+|\w+_test)\.py$")
PRIVATE = re.compile(r"\b_[a-z]\w*(,|$| import)|\._[a-z]\w* import", re.MULTILINE)
PARSED = re.compile(r"query_params|parse_qs|request\.form\(|\bint\(context\.")
# What rooms declare in texts that become parts of statements.
DECLARATIONS = {"Table", "Queue", "Old", "Waiting", "DueTimes"}
WITH_SQL = re.compile(
    r"^from largesse\.(db\.fragments|db\.statements|jobs\.leases|jobs\.registry) import", re.MULTILINE
)
# Each with the word to use instead, as the docs and the glossary have it.
WORDS = re.compile(
    r"\b(nobody's|somebody's|whoever|what is of|of whom|for whom|as whom|what becomes of|what became of|in vain|those whose"
    r"|told|tells of|aside|kept|Asked|Wanted|Desk|Intake|Patience|Keeper|Slices?|Visit|Telling|resealing|checkup)\b"
)


def code_of_init(text: str) -> list[str]:
    """Returns the statements of an `__init__` that are not its docstring."""
    return [ast.unparse(node)[:60] for node in ast.parse(text).body[1:]]


def calls(text: str) -> list[str]:
    """Returns the calls in a module that act: that begin a transaction, or write the audit log."""
    if not CALLED.search(text):
        return []
    found = [ast.unparse(node.func) + "(" for node in parsed.nodes(text) if isinstance(node, ast.Call)]
    return [call for call in found if ACTS.search(call)]


def statements(text: str) -> list[str]:
    """Returns the SQL in a module's strings, docstrings left out."""
    if not SQL.search(text):
        return []
    docstrings = {id(node.value) for node in parsed.nodes(text) if isinstance(node, ast.Expr)}
    return [
        node.value.strip()[:60]
        for node in parsed.nodes(text)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in docstrings
        and SQL.search(node.value)
    ]


def unnamed_statements(text: str) -> list[str]:
    """Returns the SQL in a module's functions that is no part of a composed statement: it should be a constant, which a test prepares."""
    if not SQL.search(text):
        return []
    inside = [
        node
        for function in parsed.nodes(text)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for statement in function.body
        for node in ast.walk(statement)
    ]
    composed = {
        id(part)
        for node in inside
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"compose", "each", "grouped"}
        for part in ast.walk(node)
    }
    docstrings = {id(node.value) for node in inside if isinstance(node, ast.Expr)}
    return [
        node.value.strip()[:60]
        for node in inside
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in composed | docstrings
        and SQL.search(node.value)
    ]


def interpolated_statements(text: str) -> list[str]:
    """Returns the SQL in a module's f-strings: `compose` puts statements together."""
    return [
        ast.unparse(node)[:60]
        for node in (parsed.nodes(text) if F_STRING.search(text) and SQL_WORD.search(text) else ())
        if isinstance(node, ast.JoinedStr)
        and SQL.search("".join(part.value if isinstance(part, ast.Constant) else "x" for part in node.values))
    ]


def computed_sql(text: str) -> list[str]:
    """Returns the texts that a module makes statements of, or declares for them, and that are neither literals nor constants."""
    found = []
    for node in parsed.nodes(text):
        called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if called in {"Fragment", "compose", "each", "grouped"}:
            found += [] if is_literal(node.args[0]) else [node.args[0]]
        elif called == "declared":
            found += [] if ast.unparse(node.args[0]).startswith("self.") else [node.args[0]]
        elif called in DECLARATIONS:
            texts = [word.value for word in node.keywords if word.arg != "prepare"]  # a function
            found += [one for one in (*node.args, *texts) if not is_literal(one)]
    return [ast.unparse(node) for node in found]


def is_literal(node: ast.expr) -> bool:
    """Returns whether an expression is a literal, a constant by its name, or a collection of them."""
    if isinstance(node, ast.Dict):
        return all(map(is_literal, [*filter(None, node.keys), *node.values]))
    if isinstance(node, ast.Tuple):
        return all(map(is_literal, node.elts))
    return isinstance(node, ast.Constant) or ast.unparse(node).rpartition(".")[2].isupper()


@cache
def sources(*rooms: str) -> dict[str, str]:
    """Returns the modules of some rooms, or of all, by their path."""
    folders = [SOURCES / room for room in rooms] or [SOURCES]
    return {str(path.relative_to(SOURCES)): path.read_text() for folder in folders for path in folder.rglob("*.py")}


def test_an_init_holds_a_docstring():
    inits = {path: text for path, text in sources().items() if path.endswith("__init__.py") and path not in WITH_CODE}
    assert {path: code for path, text in inits.items() if (code := code_of_init(text))} == {}
    assert code_of_init('"""A room."""\nfrom largesse.base.clock import now\n')


def test_pages_and_commands_call_operations_that_act():
    found = {path: called for path, text in sources("web", "cli").items() if (called := calls(text))}
    assert found == {}, "pages and commands call a function of a room, which does this"
    assert calls(
        "async def f(actor):\n    await acting.record(connection, 'a', 'b')\n    database.transaction(OPERATOR)"
    )
    assert calls("async def f(connection):\n    await connection.fetchval(query)")


def test_pages_and_commands_hold_no_sql():
    found = {path: sql for path, text in sources("web", "cli").items() if (sql := statements(text))}
    assert found == {}, "SQL stands in the store of a room"
    assert statements("rows = await connection.fetch('SELECT code FROM currencies')")


def test_statements_are_named():
    found = {path: sql for path, text in sources().items() if (sql := unnamed_statements(text))}
    assert found == {}, "give each statement a name: a constant of its store"
    assert unnamed_statements("async def f(c):\n    await c.fetch('SELECT code FROM currencies')") == [
        "SELECT code FROM currencies"
    ]
    assert not unnamed_statements("_ONE = 'SELECT 1'\ndef f(at):\n    return compose('SELECT {at}', at=at)")


def test_no_statement_is_an_f_string():
    found = {path: sql for path, text in sources().items() if (sql := interpolated_statements(text))}
    assert found == {}, "put these together with `compose` of db/fragments.py"
    assert interpolated_statements("_ONE = f'SELECT {_COLUMNS} FROM orders'") == ["f'SELECT {_COLUMNS} FROM orders'"]
    assert interpolated_statements("def f(t):\n    return f'UPDATE {t} SET a = 1'") == ["f'UPDATE {t} SET a = 1'"]
    assert not [path for path, text in sources().items() if re.search(r"noqa:.*S608", text)]


def test_a_fragment_of_sql_is_made_of_literals():
    found = {
        path: texts
        for path, text in sources().items()
        if path != "db/fragments.py" and WITH_SQL.search(text) and (texts := computed_sql(text))
    }
    assert found == {}, "SQL is a literal, or fragments that `compose` puts together"
    assert computed_sql("Fragment(name)\ncompose(f'SELECT {name}', a=Fragment('1'))") == ["name", "f'SELECT {name}'"]
    assert computed_sql("Old('lines', 'at', days)\nTable('a', {'b': kind})\ndeclared(text)") == [
        "days",
        "{'b': kind}",
        "text",
    ]


def private_imports(path: str, text: str) -> list[str]:
    """Returns what a module imports that begins with an underscore: a name of another module, or a module of another room."""
    names = [
        f"{node.module}.{alias.name}"
        for node in (parsed.nodes(text) if PRIVATE.search(text) else ())
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("largesse")
        for alias in node.names
    ]
    room = f"largesse.{path.partition('/')[0]}."
    return [
        name
        for name in names
        if re.search(r"\._[a-z]\w*$", name) or (re.search(r"\._[a-z]", name) and not name.startswith(room))
    ]


def test_no_room_imports_what_is_private_to_another():
    found = {path: names for path, text in sources().items() if (names := private_imports(path, text))}
    assert {path: names for path, names in found.items() if path != "__init__.py"} == {}, (
        "take the underscore from a name that another room needs"
    )
    assert private_imports("cli/keys.py", "from largesse.ledger.store import (\n    find,\n    _one,\n)") == [
        "largesse.ledger.store._one"
    ]
    assert private_imports("cli/keys.py", "from largesse.ledger._sums import add") == ["largesse.ledger._sums.add"]
    assert not private_imports("ledger/store.py", "from largesse.ledger._sums import add")


def sql_outside_stores(path: str, text: str) -> list[str]:
    """Returns the SQL of a room's model or service, which is for its store."""
    return statements(text) if path.rpartition("/")[2] in {"model.py", "service.py"} else []


def test_a_model_and_a_service_hold_no_sql():
    found = {path: sql for path, text in sources().items() if (sql := sql_outside_stores(path, text))}
    assert found == {}, "move these to the room's store"
    violation = "_ONE = 'SELECT code FROM currencies'"
    assert sql_outside_stores("ledger/service.py", violation) == ["SELECT code FROM currencies"]
    assert not sql_outside_stores("ledger/store.py", violation)


def dataclasses(text: str) -> list[str]:
    """Returns the dataclasses of a module, but for those whose comparison leaves a member out, which no struct can."""
    return [
        node.name
        for node in (parsed.nodes(text) if "@dataclass" in text else ())
        if isinstance(node, ast.ClassDef)
        and any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)
        and "compare=False" not in ast.unparse(node)
    ]


def test_records_are_structs():
    assert {path: names for path, text in sources().items() if (names := dataclasses(text))} == {}, "msgspec.Struct"
    assert dataclasses("@dataclass(frozen=True)\nclass Place:\n    line: int\n") == ["Place"]
    assert not dataclasses("@dataclass\nclass User:\n    place: int = field(compare=False)\n")


def test_modules_are_named_by_what_they_are_about():
    assert [path for path in sources() if VAGUE_NAMES.search(path)] == []
    assert VAGUE_NAMES.search("ledger/helpers.py")
    assert VAGUE_NAMES.search("ledger/top_ups_repository.py")
    assert not VAGUE_NAMES.search("ledger/top_ups_store.py")


def rooms_that_ask(modules: dict[str, str]) -> dict[str, int]:
    """Returns the rooms of which more modules than may be ask whether the database is distributed, and how many do."""
    asking = Counter(
        path.partition("/")[0]
        for path, text in modules.items()
        if not path.startswith(("db/", "orders/")) and "is_distributed" in text
    )
    return {room: count for room, count in asking.items() if count > MOST_MODULES_THAT_ASK}


def test_no_module_is_named_as_a_test():
    """pytest rewrites such a module as it is imported, which fails beside another thread that parses (python/cpython#106905)."""
    assert [path for path in sources() if NAMED_AS_A_TEST.search(path)] == []
    assert NAMED_AS_A_TEST.search("web/console/send/test_mail.py")
    assert NAMED_AS_A_TEST.search("mail/own_test.py")
    assert not NAMED_AS_A_TEST.search("web/console/send/testing.py")


def test_few_modules_ask_whether_the_database_is_distributed():
    assert rooms_that_ask(sources()) == {}
    asking = dict.fromkeys(("ledger/a.py", "ledger/b.py"), "if connection.is_distributed: ...")
    assert not rooms_that_ask(asking)
    assert rooms_that_ask({**asking, "ledger/c.py": asking["ledger/a.py"]}) == {"ledger": 3}


def test_handlers_leave_the_parsing_of_addresses_to_the_context():
    assert [path for path, text in sources("web/console").items() if PARSED.search(text)] == []
    assert PARSED.search("page = int(context.request.query_params['page'])")
    assert PARSED.search("form = await request.form()")


def test_prose_uses_the_words_of_the_field():
    found = {}
    for path, text in sources().items():
        if not WORDS.search(text):
            continue
        prose = [ast.get_docstring(node) or "" for node in parsed.nodes(text) if isinstance(node, DOCUMENTED)]
        prose += re.findall(r"#\s(.*)", text)
        if words := [word for one in prose for word in WORDS.findall(re.sub(r"`+[^`]*`+", "", one))]:
            found[path] = words
    assert found == {}, "say these in plainer words"
    assert WORDS.findall("What is told of whoever asks") == ["told", "whoever"]
