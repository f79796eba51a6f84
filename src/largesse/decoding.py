"""Reading what callers send: JSON bodies and query parameters, into msgspec types, with errors for people."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec

from largesse.errors import InvalidRequest

Wanted = TypeVar("Wanted")

_PATH = re.compile(r" - at `(key in )?\$(?P<path>.*)`$")
_NAMES = {
    "array": "an array",
    "bool": "a boolean",
    "datetime": "a date-time such as 2030-12-24T09:00:00Z",
    "decimal": "a number",
    "float": "a number",
    "int": "an integer",
    "null": "null",
    "object": "an object",
    "str": "a string",
    "uuid": "a UUID",
}
_LENGTH = re.compile(
    r"^Expected `(?P<type>\w+)(?: \| null)?` (?:of|with) length (?P<sign><=|>=) (?P<limit>\d+)$"
)
_RANGE = re.compile(r"^Expected `\w+(?: \| null)?` (?P<sign><=|>=|<|>) (?P<limit>-?[\d.]+)$")
_TYPE = re.compile(r"^Expected `(?P<wanted>[^`]+)`, got `(?P<got>\w+)`$")
_MISSING = re.compile(r"^Object missing required field `(?P<field>\w+)`$")
_PATTERN = re.compile(r"^Expected `str` matching regex '(?P<pattern>.*)'$")
_SIGNS = {"<=": "at most", ">=": "at least", "<": "less than", ">": "more than"}


class Unreadable(InvalidRequest):
    """A body that is no JSON object at all, so that nothing in it can be read."""


@cache
def _decoder(wanted: type[Any]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(wanted)


def decode_body(raw: bytes, wanted: type[Wanted]) -> Wanted:
    """The body `raw` as `wanted`, without coercion: `"10"` and `true` are no numbers.

    Raises Unreadable when it is not a JSON object in UTF-8, InvalidRequest naming the member otherwise.
    """
    try:
        decoded: Wanted = _decoder(wanted).decode(raw)  # type: ignore[arg-type]
    except msgspec.ValidationError as error:
        # The decoder stops at the first wrong member: what follows may not even be JSON.
        members = _read_members(raw)
        raise InvalidRequest(_locate(members, wanted) or explain(str(error))) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _unreadable(error) from None
    return decoded


def decode_query(query: Mapping[str, str], wanted: type[Wanted]) -> Wanted:
    """Query parameters as `wanted`; unknown ones are ignored. Raises InvalidRequest naming the parameter."""
    try:
        decoded = msgspec.convert(dict(query), wanted, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidRequest(explain(str(error))) from None
    for name in query:
        if getattr(decoded, name, query) is None:  # msgspec takes the text "null" for None
            raise InvalidRequest(f"`{name}` must have a value, or be left out.")
    return decoded


def explain(message: str) -> str:
    """A sentence for people from msgspec's message; the member is named as the caller wrote it."""
    match = _PATH.search(message)
    path = match["path"].lstrip(".").replace("[...]", "[]") if match else ""
    text = message[: match.start()] if match else message
    if missing := _MISSING.match(text):
        member = f"{path}.{missing['field']}" if path else missing["field"]
        return f"`{member}` is required."
    return f"`{path}` {_rule(text)}." if path else f"The body {_rule(text)}."


def _rule(text: str) -> str:
    if length := _LENGTH.match(text):
        unit = "items" if length["type"] == "array" else "characters"
        return f"must have {_SIGNS[length['sign']]} {length['limit']} {unit}"
    if limit := _RANGE.match(text):
        return f"must be {_SIGNS[limit['sign']]} {limit['limit']}"
    if type_ := _TYPE.match(text):
        names = [_NAMES.get(name, name) for name in type_["wanted"].split(" | ")]
        return f"must be {' or '.join(names)}, not {_NAMES.get(type_['got'], type_['got'])}"
    if pattern := _PATTERN.match(text):
        return f"must match {pattern['pattern']}"
    return f"is not valid: {text}"


def _unreadable(error: Exception) -> Unreadable:
    if isinstance(error, RecursionError):
        return Unreadable("The body is nested too deeply.")
    return Unreadable(f"The body is not JSON in UTF-8: {error}.")


def _read_members(raw: bytes) -> dict[str, Any]:
    """The members of the body, whatever their types; none where a number is out of range. Raises Unreadable."""
    if not raw.lstrip(b" \t\r\n").startswith(b"{"):
        raise Unreadable("The body must be a JSON object.") from None
    try:
        members: dict[str, Any] = msgspec.json.decode(raw)
    except msgspec.ValidationError:
        return {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _unreadable(error) from None
    return members


def _locate(members: dict[str, Any], wanted: type[Any]) -> str | None:
    """The explanation with the index of the wrong item of a list of objects, which msgspec does not tell."""
    for field in msgspec.structs.fields(wanted):
        items = members.get(field.encode_name)
        item_type = _item_struct(field.type)
        if not isinstance(items, list) or item_type is None:
            continue
        for at, item in enumerate(items):
            try:
                msgspec.convert(item, item_type)
            except msgspec.ValidationError as error:
                return explain(f"{_path_prefixed(str(error), f'$.{field.encode_name}[{at}]')}")
    return None


def _path_prefixed(message: str, prefix: str) -> str:
    match = _PATH.search(message)
    if match is None:
        return f"{message} - at `{prefix}`"
    return f"{message[: match.start()]} - at `{prefix}{match['path']}`"


def _item_struct(annotation: Any) -> type[msgspec.Struct] | None:
    """The Struct that a (possibly optional) list field holds, or None."""
    info = msgspec.inspect.type_info(annotation)
    options = info.types if isinstance(info, msgspec.inspect.UnionType) else (info,)
    for option in options:
        inner = option.type if isinstance(option, msgspec.inspect.Metadata) else option
        if isinstance(inner, msgspec.inspect.ListType) and isinstance(
            inner.item_type, msgspec.inspect.StructType
        ):
            return inner.item_type.cls
    return None
