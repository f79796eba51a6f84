"""Changes one small thing of the code at a time and runs tests: `python -m tools.mutate FILES... --tests PATHS...` (docs/testing.md).

A mutant that every test passes is a line that no test holds: it is printed as `survived`. Mutants are drawn at random, in a copy of the
tree, one after the other, and never of docstrings, logs or assertions.
"""

import argparse
import ast
import io
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from largesse.base import clock

ROOT = Path(__file__).parents[1]
_OPERATORS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "//", "//": "*",
    "and": "or", "or": "and", "True": "False", "False": "True",
}  # fmt: skip
_SQL = re.compile(r"\b(?:SELECT|UPDATE|INSERT|DELETE|WHERE|VALUES|CASE|least|greatest)\b")
_IN_SQL = re.compile(r" (<=|>=|<|>|\+|-|AND|OR|IS NOT NULL|IS NULL|NOT EXISTS|EXISTS|FOR UPDATE)(?=[ \n(])")
_OF_SQL = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "+": "-", "-": "+", "AND": "OR", "OR": "AND",
    "IS NULL": "IS NOT NULL", "IS NOT NULL": "IS NULL", "EXISTS": "NOT EXISTS", "NOT EXISTS": "EXISTS", "FOR UPDATE": "",
}  # fmt: skip
_LEFT_OUT = re.compile(r"log\.|metrics\.|@dataclass|strict=|repr=|^\s*assert\b|: TypeAlias|^from |^import ")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A replacement of some characters of a file."""

    path: Path  # in the tree
    start: int
    end: int
    text: str
    line: int
    said: str

    def applied(self, source: str) -> str:
        """The file's source with the replacement."""
        return source[: self.start] + self.text + source[self.end :]


def mutants(path: Path) -> Iterator[Mutant]:
    """Every mutant of a file that still compiles."""
    source = path.read_text()
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    docstrings: set[int] = set()
    raised = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docstrings.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, ast.Raise) and node.end_lineno is not None and lines[node.lineno - 1].isascii():
            end = starts[node.end_lineno - 1] + (node.end_col_offset or 0)
            raised.append((node.lineno, starts[node.lineno - 1] + node.col_offset, end, "pass"))
    found = [*raised, *_of_tokens(source, starts)]
    for number, start, end, text in found:
        if number in docstrings or _LEFT_OUT.search(lines[number - 1]):
            continue
        said = f"{' '.join(source[start:end].split())[:60]!r} -> {text!r}"
        mutant = Mutant(path.relative_to(ROOT), start, end, text, number, said)
        try:
            compile(mutant.applied(source), path.name, "exec")
        except SyntaxError:
            continue
        yield mutant


def _of_tokens(source: str, starts: list[int]) -> Iterator[tuple[int, int, int, str]]:
    """The line, the characters and the replacement of each token that can be another."""
    before = ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        start = starts[token.start[0] - 1] + token.start[1]
        end = starts[token.end[0] - 1] + token.end[1]
        text = token.string
        if token.type == tokenize.STRING and _SQL.search(text):
            for match in _IN_SQL.finditer(text):
                line = token.start[0] + text.count("\n", 0, match.start())
                yield line, start + match.start(1), start + match.end(1), _OF_SQL[match[1]]
        elif token.type == tokenize.NUMBER and text.isdigit():
            yield token.start[0], start, end, str(int(text) + 1)
        elif text == "not" and token.type == tokenize.NAME:
            yield token.start[0], start, end, ""
        elif text in _OPERATORS and not (text in {"*", "-"} and before in {",", "(", "[", "=", "return", ":"}):
            yield token.start[0], start, end, _OPERATORS[text]
        if text.strip():
            before = text


def main() -> int:
    """Tries mutants and prints what became of each; 1 where one survived."""
    parser = argparse.ArgumentParser(prog="tools.mutate", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="what is changed: files or folders")
    parser.add_argument("--tests", nargs="+", required=True, help="what pytest runs for each mutant")
    parser.add_argument("--sample", type=int, default=20, help="so many mutants")
    parser.add_argument("--seed", type=int, default=1, help="draws which")
    parser.add_argument("--seconds", type=float, default=1800.0, help="ends after so long")
    asked = parser.parse_args()
    paths = [path.resolve() for path in asked.files]
    files = sorted({file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path])})
    drawn = [mutant for file in files for mutant in mutants(file)]
    random.Random(asked.seed).shuffle(drawn)  # noqa: S311 - a sample
    ends = clock.passed_s() + asked.seconds
    survived = tried = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        left_out = shutil.ignore_patterns(".git", ".venv", "build", "node_modules", "__pycache__")
        shutil.copytree(ROOT, tree, ignore=left_out)
        if not _passes(tree, asked.tests):
            print("the tests fail without any mutant")
            return 2
        for mutant in drawn[: asked.sample]:
            if clock.passed_s() > ends:
                break
            tried += 1
            source = (tree / mutant.path).read_text()
            (tree / mutant.path).write_text(mutant.applied(source))
            passes = _passes(tree, asked.tests)
            (tree / mutant.path).write_text(source)
            survived += passes
            print(f"{'survived' if passes else 'killed':8} {mutant.path}:{mutant.line} {mutant.said}", flush=True)
    print(f"{tried - survived} of {tried} killed, drawn from {len(drawn)}")
    return 1 if survived else 0


def _passes(tree: Path, tests: list[str]) -> bool:
    """Whether all tests pass in the tree. One that takes too long does not."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, timeout=600, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
