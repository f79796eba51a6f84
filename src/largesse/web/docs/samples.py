"""Code to copy: how an operation is called with curl and from Python."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Sample:
    """Code to copy."""

    label: str
    code: str


def read_samples(method: str, url: str, examples: dict[str, Any], *, needs_key: bool) -> Iterator[Sample]:
    """Each example body in each way; one call without a body where there is none."""
    for name, example in (examples or {"": None}).items():
        label = f", {_words(name)}" if len(examples) > 1 else ""
        yield Sample(f"curl{label}", _curl(method, url, example, needs_key=needs_key))
        yield Sample(f"Python{label}", _python(method, url, example, needs_key=needs_key))


def _curl(method: str, url: str, body: Any, *, needs_key: bool) -> str:
    usual = "GET" if body is None else "POST"  # what curl does unless told otherwise
    parts = ["curl" if method == usual else f"curl -X {method}", f"'{url}'"]
    if needs_key:
        parts.append('-H "Authorization: Bearer $LARGESSE_API_KEY"')
    if body is not None:
        parts += ["-H 'Content-Type: application/json'", f"-d '{pretty(body)}'"]
    first = " ".join(parts[:2])
    return " \\\n  ".join([first, *parts[2:]])


def _python(method: str, url: str, body: Any, *, needs_key: bool) -> str:
    imports = ["import os", "", "import httpx"] if needs_key else ["import httpx"]
    arguments = [f'    "{url}",']
    if needs_key:
        arguments.append("""    headers={"Authorization": f"Bearer {os.environ['LARGESSE_API_KEY']}"},""")
    if body is not None:
        literal = "\n    ".join(_python_literal(body).splitlines())
        arguments.append(f"    json={literal},")
    call = [f"answer = httpx.{method.lower()}(", *arguments, ")", "answer.raise_for_status()"]
    if method != "DELETE":
        call.append("print(answer.json())")
    return "\n".join([*imports, "", *call])


def _python_literal(value: Any) -> str:
    """JSON as Python writes it; examples hold no text that would look like a constant."""
    text = json.dumps(value, indent=4, ensure_ascii=False)
    return text.replace(": null", ": None").replace(": true", ": True").replace(": false", ": False")


def pretty(value: Any) -> str:
    """JSON as people read it."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def _words(name: str) -> str:
    """`codeBatch` as "code batch"."""
    return re.sub(r"([A-Z])", r" \1", name).lower()
