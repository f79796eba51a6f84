"""The samples in docstrings that the documentation shows, run against a real Largesse."""

from __future__ import annotations

import ast
import asyncio
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from types import CodeType
from typing import Any

import pytest

from largesse_client import AsyncLargesse, Largesse
from largesse_client.testing import Server

SHOWN = ("", ".client", ".ordering", ".errors", ".webhooks", ".testing")
_BLOCK = re.compile(r"(?<=\n\n)(?: {4}.*\n|\n(?= {4}))+", re.MULTILINE)


def samples() -> Iterator[tuple[str, str]]:
    """Yields the indented Python blocks of docstrings, each with the name of its module or class."""
    for suffix in SHOWN:
        module = importlib.import_module(f"largesse_client{suffix}")
        classes = [one for _, one in inspect.getmembers(module, inspect.isclass) if one.__module__ == module.__name__]
        for documented in (module, *classes):
            for block in _BLOCK.findall((inspect.getdoc(documented) or "") + "\n"):
                text = textwrap.dedent(block)
                if is_python(text):
                    yield documented.__name__, text


def is_python(text: str) -> bool:
    """Returns whether a block is code, not a drawing or a table."""
    try:
        return any(isinstance(node, ast.With | ast.AsyncWith | ast.FunctionDef) for node in compiled(text, tree=True))
    except SyntaxError:
        return False


def compiled(text: str, *, tree: bool = False) -> Any:
    """Returns the code, which may use await; with `tree`, the nodes of its syntax tree."""
    if tree:
        return list(ast.walk(ast.parse(text)))
    code: CodeType = compile(text, "docstring", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    return code


SAMPLES = list(samples())


def test_samples_are_found() -> None:
    """The samples of the package, of both clients, and of the fixture."""
    assert [name for name, _ in SAMPLES] == ["largesse_client", "AsyncLargesse", "Largesse", "largesse_client.testing"]


@pytest.mark.parametrize(("name", "text"), SAMPLES, ids=[name for name, _ in SAMPLES])
def test_a_sample_runs(name: str, text: str, largesse_server: Server) -> None:
    """It runs with the address and the key of a running Largesse."""
    here = re.sub(r'"https?://(gifts\.example|127\.0\.0\.1:8000)"', repr(largesse_server.base_url), text)
    names: dict[str, Any] = {
        "Largesse": Largesse,
        "AsyncLargesse": AsyncLargesse,
        "api_key": largesse_server.api_key,
        "print": lambda *_: None,
    }
    result = eval(compiled(here), names)  # noqa: S307 - text of our own
    if inspect.iscoroutine(result):
        asyncio.run(result)
    for test in [value for key, value in names.items() if key.startswith("test_")]:
        test(largesse_server)
