"""The answers of tools: JSON as in the API, amounts as decimal text, and no PINs unless they may be shown."""

from __future__ import annotations

import functools
import re
from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, TypeVar

import msgspec
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from largesse_client.errors import InvalidArgument, LargesseError
from largesse_client.mcp.delivery import Delivery
from largesse_client.mcp.spending import CapReached

P = ParamSpec("P")
R = TypeVar("R")
Answer = dict[str, Any]

LOOKS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
# To repeat such a call changes nothing more. No tool can undo it.
ACTS_ONCE = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=True)
ACTS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=True)


_POINTER = re.compile(r"^- #/\S+: ", re.MULTILINE)  # what follows it names the member, too
_NAMED = re.compile(r"(?<=`)[A-Za-z_]+(?=[`.\[])")
# The arguments of the quoting tools, by their names in the API and in the client.
_ARGUMENTS = {to_camel(name): name for name in ("product_id", "collection_id", "template_id")} | {
    spelt: f"delivery.{name}" for name in Delivery.model_fields for spelt in (name, to_camel(name))
}
_SHOULD = re.compile(r"^.*?\bshould ")
_RULES = {
    "extra_forbidden": "is unknown",
    "missing": "is required",
    "model_type": "must be an object",
    "timezone_aware": "must have an offset, such as 2030-12-24T09:00:00Z",
}


def wrong_arguments(error: ValidationError) -> InvalidArgument:
    """Returns what is wrong with the arguments of a tool, a line for each. It repeats no value."""
    return InvalidArgument.of_all(
        [
            InvalidArgument.of(
                "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in fault["loc"]).lstrip("."),
                _RULES.get(fault["type"])
                or _SHOULD.sub("must ", fault["msg"].partition(", ")[0].removesuffix(" after validation")),
            )
            for fault in error.errors(include_url=False, include_input=False)
        ]
    )


def plain(value: object) -> Any:
    """Returns a value of the client as plain JSON values."""
    return msgspec.to_builtins(value)


def without_pins(answer: Answer, *, shows_pins: bool) -> Answer:
    """Returns an order's answer. Its codes have no PINs unless `shows_pins`."""
    if shows_pins:
        return answer
    codes = [{name: text for name, text in code.items() if name != "pin"} for code in answer["codes"]]
    return answer | {"codes": codes}


def with_readable_errors(tool: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    """Wraps a tool so that an assistant can read its errors: what is wrong, by member if that is known."""

    @functools.wraps(tool)
    async def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return await tool(*args, **kwargs)
        except CapReached as error:
            raise ToolError(f"{error} Nothing was placed.") from None
        except LargesseError as error:
            raise ToolError(_as_arguments("\n".join([str(error), *getattr(error, "__notes__", ())]))) from None

    return wrapped


def _as_arguments(text: str) -> str:
    """Returns an error's text with the arguments of the tools in place of the members of the API and the arguments of the client.

    The errors that a problem lists in its member `errors` are lines below the first one.
    """
    text = _POINTER.sub("- ", text.replace("see `errors`", "see below"))
    return _NAMED.sub(lambda found: _ARGUMENTS.get(found[0], found[0]), text)
