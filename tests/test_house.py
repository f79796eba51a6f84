"""House rules that no linter knows: how long functions and files may be."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MOST_LINES_OF_A_FUNCTION = 60
MOST_LINES_OF_A_FILE = 400
# What is longer says why, a file at its margin and a function inside: `# Long: one table, which reads best whole.`
REASON_OF_A_FUNCTION = re.compile(r"^\s+# Long:( \S+){4,}$", re.MULTILINE)
REASON_OF_A_FILE = re.compile(r"^# Long:( \S+){4,}$", re.MULTILINE)

FILES = sorted(path for folder in ("src", "bench", "tests", "tools", "sdk") for path in ROOT.glob(f"{folder}/**/*.py"))


def too_long(text: str) -> list[str]:
    """What is longer than it may be in a Python source of this text, and gives no reason."""
    lines = text.splitlines()
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
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
