"""Decodes JSON bodies and query parameters into msgspec types, with errors for people.

msgspec describes a fault only in an English sentence: it has no fields for the member, the limit or the kind of fault. Checking bodies a
second time would repeat each rule, so the expressions below parse its sentences. A sentence that matches none of them is passed on whole
(`is not valid: …`). `tests/base/test_decoding.py` has one of each kind and fails if a release of msgspec changes the wording.
"""

import codecs
import re
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import islice
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import msgspec

from largesse.base.errors import FieldError, InvalidRequest
from largesse.base.text import unfit_key

Decoded = TypeVar("Decoded")

_BEFORE_PATH = " - at `"
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
_LENGTH = re.compile(r"^Expected `(?P<type>\w+)(?: \| null)?` (?:of|with) length (?P<sign><=|>=) (?P<limit>\d+)$")
_RANGE = re.compile(r"^Expected `\w+(?: \| null)?` (?P<sign><=|>=|<|>) (?P<limit>-?[\d.]+?)(?:\.0)?$")
_TYPE = re.compile(r"^Expected `(?P<wanted>[^`]+)`, got `(?P<got>\w+)`$")
_LACKS = "Object missing required field `"
_MISSING = re.compile(rf"^{_LACKS}(?P<field>\w+)`$")
_PATTERN = re.compile(r"^Expected `str` matching regex '(?P<pattern>.*)'$")
_LETTERS = re.compile(r"^\^\[A-Za-z\]\{(?P<count>\d)\}\$$")
# Codes have a length and a pattern, since `$` also matches before a line break at the end. A fault of either has one text.
_CODES = {
    "country": "must be a code of 2 letters from A to Z, such as GB",
    "currency": "must be a code of 3 letters from A to Z, such as GBP",
}
MONTH_AND_DAY = "^(0[1-9]|1[0-2])-[0-3][0-9]$"
YEAR_AND_MONTH = "^2[01][0-9]{2}-(0[1-9]|1[0-2])$"
_PATTERNS = {
    MONTH_AND_DAY: "must be a month and a day without a year, such as 03-14",
    YEAR_AND_MONTH: "must be a year and a month, such as 2030-12",
}
_OF_A_TEXT = re.compile(r"( or null)?, not a string\.$")
_INTEGER = re.compile(r"-?[0-9]+")
_SIGNS = {"<=": "at most", ">=": "at least", "<": "less than", ">": "more than"}
# The ends of the sentence about a body that is something else, by its first character.
_NO_OBJECTS = {b"[": ", not an array", b'"': ", not a string: perhaps it was encoded twice"}
_TRUNCATED = "Input data was truncated"
_HALF_OF_A_PAIR = re.compile(rb"(?<!\\)(?:\\\\)*(\\u[dD][89abAB][0-9a-fA-F]{2})(?!\\u[dD][c-fC-F])")
_ITEMS_LOOKED_AT = 5_000
_LOOKED_THROUGH_BYTES = 64 * 1024
_OTHER_NAMES_LOOKED_AT = 20
_OTHER_NAME = re.compile(r"[\w-]{2,40}")
_UNKNOWN = re.compile(r"is not valid: Object contains unknown field `(?P<name>.*)`", re.DOTALL)


class Unreadable(InvalidRequest):
    """The body is not a JSON object."""


class WrongItem(InvalidRequest):
    """An item of a list in the body breaks a rule. The items after it have not been checked."""


@cache
def _decoder(wanted: type[Any]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(wanted)


def decode_body(raw: bytes, wanted: type[Decoded], ignored: list[str] | None = None) -> Decoded:
    """Returns the body `raw` as `wanted`, without coercion: `"10"` and `true` are not numbers.

    Unknown members are ignored, and their names added to `ignored`. The items of a list share one name, such as `recipients[].emial`.
    `...` means that a large body was not searched further.

    Raises Unreadable if it is not a JSON object in UTF-8, otherwise InvalidRequest with the member.
    """
    if ignored is not None:
        # A body without unknown members is decoded only once.
        try:
            whole: Decoded = _strict_decoder(wanted).decode(raw)  # type: ignore[arg-type]
        except msgspec.ValidationError as error:
            ignored += _unknown_members(raw, wanted, str(error))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _unreadable(error, raw) from None
        else:
            return whole
    try:
        decoded: Decoded = _decoder(wanted).decode(raw)  # type: ignore[arg-type]
    except msgspec.ValidationError as error:
        # The decoder stops at the first wrong member: what follows may not even be JSON.
        members = _read_members(raw)
        raise _wrong_item(members, wanted) or refused(*_read_message(str(error), members, wanted)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _unreadable(error, raw) from None
    return decoded


def unknown_parameters(query: Mapping[str, str], wanted: type[msgspec.Struct]) -> list[str]:
    """Returns the names in a query that `wanted` does not have."""
    return [name for name in query if name not in wanted.__struct_encode_fields__]


def _unknown_members(raw: bytes, wanted: type[Any], message: str) -> list[str]:
    """Returns the names in a body that `wanted` does not have; `message` is what msgspec reports for the first fault."""
    if len(raw) > _LOOKED_THROUGH_BYTES:
        path, rule = _read_message(message)
        unknown = _UNKNOWN.match(rule)
        return [f"{path}.{unknown['name']}".lstrip("."), "..."] if unknown else []
    try:
        members = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return []
    names = [name for name in members if name not in wanted.__struct_encode_fields__]
    for field in msgspec.structs.fields(wanted):
        item = _item_struct(field.type)
        if item is None or field.encode_name not in members:
            continue
        try:
            items = msgspec.json.decode(members[field.encode_name], type=list[dict[str, msgspec.Raw]])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
        known = frozenset(item.__struct_encode_fields__)
        within = dict.fromkeys(name for one in items for name in one if name not in known)
        names += [f"{field.encode_name}[].{name}" for name in within]
    return names


@cache
def _strict_decoder(wanted: type[Any]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_strict(wanted))


def _strict(wanted: type[Any]) -> type[Any]:
    """Returns `wanted`, and the objects in its lists, as types that refuse unknown members."""
    own = [
        (field.name, _strictly(field.type), msgspec.field(default=field.default, name=field.encode_name))
        for field in msgspec.structs.fields(wanted)
        if _item_struct(field.type) is not None
    ]
    return msgspec.defstruct(wanted.__name__, own, bases=(wanted,), forbid_unknown_fields=True, kw_only=True)


def _strictly(annotation: Any) -> Any:
    """Returns the type of a list whose objects refuse unknown members. It may be annotated and optional."""
    inner = get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return _strict(annotation)
    if get_origin(annotation) is Annotated:
        return Annotated.__class_getitem__((_strictly(inner[0]), *annotation.__metadata__))
    if get_origin(annotation) is list:
        return list.__class_getitem__(_strictly(inner[0]))
    return Union.__getitem__(tuple(map(_strictly, inner))) if inner else annotation


def decode_query(query: Mapping[str, str], wanted: type[Decoded]) -> Decoded:
    """Returns query parameters as `wanted`, and ignores unknown ones. Raises InvalidRequest with the parameter."""
    try:
        decoded = msgspec.convert(dict(query), wanted, strict=False)
    except msgspec.ValidationError as error:
        # Each parameter is a text, and none may be null.
        name, rule = _read_message(str(error))
        if query.get(name, "").lower() == "nan":  # so JavaScript writes a failed sum; msgspec reads a number
            rule = "must be a number"
        refusal = refused(name, rule)
        raise InvalidRequest(_OF_A_TEXT.sub(".", refusal.detail)) from None
    for name, text in query.items():
        value = getattr(decoded, name, query)
        if value is None:  # msgspec reads the text "null" as None
            raise InvalidRequest(f"`{name}` must have a value, or be left out.")
        if type(value) is int and not _INTEGER.fullmatch(text):  # msgspec reads 1.0 and 1e2 as integers
            raise InvalidRequest(f"`{name}` must be an integer.")
        if type(value) is str and (found := unfit_key(text.strip())):
            raise refused(name, f"must not contain {found}")
    return decoded


def decode_part(raw: bytes, decoder: msgspec.json.Decoder[Decoded], path: str) -> Decoded:
    """Decodes a part of a body that is still encoded (msgspec.Raw). `path` is its place in the body. Raises InvalidRequest with the member."""
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError as error:
        members = _read_members(bytes(raw)) if str(error).startswith(_LACKS) else {}
        raise refused(*_within(path, str(error), members, decoder.type)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _unreadable(error, raw) from None


def refused(member: str, rule: str) -> InvalidRequest:
    """Returns the error for a member that breaks a rule; an empty one is the whole body. `errors` also names items of lists, as several may be wrong."""
    detail = f"`{member}` {rule}." if member else f"The body {rule}."
    return InvalidRequest(detail, errors=[FieldError(_pointer(member), detail)] if "[" in member else ())


def _read_message(message: str, members: Any = (), wanted: Any = None) -> tuple[str, str]:
    """Returns the member that msgspec's message is about, empty for the whole body, and the rule it breaks.

    `members` are those of the object that should be a `wanted`. If one of them is the missing member under another name, the rule names it.
    """
    # Only at its last place: a member's name in the message may hold thousands of such places, and each would be matched to the end.
    match = _PATH.match(message, max(message.rfind(_BEFORE_PATH), 0))
    path = match["path"].lstrip(".").replace("[...]", "[]") if match else ""
    text = message[: match.start()] if match else message
    if missing := _MISSING.match(text):
        other = None if path else _misnamed(missing["field"], members, wanted)
        rule = f"is required: it is not called '{other}'" if other else "is required"
        return f"{path}.{missing['field']}" if path else missing["field"], rule
    if path.endswith("[]"):
        path = _with_key(path, members, wanted)
    code = _CODES.get(path.rpartition(".")[2])
    return path, code if code and (_LENGTH.match(text) or _PATTERN.match(text)) else _rule(text)


def _with_key(path: str, members: Any, wanted: Any) -> str:
    """Returns the path of a wrong value in an object with keys of the caller's own, such as `fields.cost_centre`. msgspec does not report the key."""
    name = path.removesuffix("[]")
    kinds = {field.encode_name: field.type for field in msgspec.structs.fields(wanted)} if wanted else {}
    values = members.get(name) if name in kinds else None
    for key, value in values.items() if isinstance(values, dict) else ():
        try:
            msgspec.convert({key: value}, kinds[name])
        except msgspec.ValidationError:
            return f"{name}.{key}" if _OTHER_NAME.fullmatch(key) else path
    return path


def _misnamed(field: str, members: Iterable[str], wanted: type[msgspec.Struct]) -> str | None:
    """Returns the unknown member that may be meant for `field`, such as `product_id`, `emial` or `url` for `targetUrl`; None if there is none."""
    known, meant = frozenset(wanted.__struct_encode_fields__), _folded(field)
    for name in islice((name for name in members if name not in known), _OTHER_NAMES_LOOKED_AT):
        folded = _folded(name) if _OTHER_NAME.fullmatch(name) else ""
        if folded and (folded in meant or meant in folded or sorted(folded) == sorted(meant)):
            return name
    return None


def _folded(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _rule(text: str) -> str:
    if length := _LENGTH.match(text):
        unit = "item" if length["type"] == "array" else "character"
        return f"must have {_SIGNS[length['sign']]} {length['limit']} {unit}{'' if length['limit'] == '1' else 's'}"
    if limit := _RANGE.match(text):
        return f"must be {_SIGNS[limit['sign']]} {limit['limit']}"
    if type_ := _TYPE.match(text):
        names = [_NAMES.get(name, name) for name in type_["wanted"].split(" | ")]
        return f"must be {' or '.join(names)}, not {_NAMES.get(type_['got'], type_['got'])}"
    if text == "Invalid RFC3339 encoded datetime":
        return f"must be {_NAMES['datetime']}"
    if text == "Invalid RFC3339 encoded date":
        return "must be a date such as 2030-12-24"
    if pattern := _PATTERN.match(text):
        if letters := _LETTERS.match(pattern["pattern"]):
            return f"must have {letters['count']} letters from A to Z"
        return _PATTERNS.get(pattern["pattern"], f"must match {pattern['pattern']}")
    if text == "Number out of range":
        return "must be a number from -1.7e308 to 1.7e308"
    return f"is not valid: {text}"


def _unreadable(error: Exception, raw: bytes) -> Unreadable:
    if isinstance(error, RecursionError):
        return Unreadable("The body is nested too deeply.")
    if not raw.strip(b" \t\r\n"):
        return Unreadable("The body is empty. It must be a JSON object.")
    # msgspec calls this truncated, too. Programs that cut a text in UTF-16 leave half of a character at its end.
    if str(error) == _TRUNCATED and (half := _HALF_OF_A_PAIR.search(raw)):
        return Unreadable(f"The body is not JSON in UTF-8: `{half[1].decode()}` is only half of a character.")
    if raw.startswith(codecs.BOM_UTF8):
        return Unreadable("The body begins with a byte order mark: leave it out.")
    try:
        raw.decode()
    except UnicodeDecodeError as wrong:  # msgspec counts from the beginning of a string in the body
        return Unreadable(f"The body is not JSON in UTF-8: byte {wrong.start} is not UTF-8.")
    return Unreadable(f"The body is not JSON in UTF-8: {error}.")


def _read_members(raw: bytes) -> dict[str, Any]:
    """Returns the members of the body, of any type; an empty dictionary if a number is out of range. Raises Unreadable."""
    start = raw.lstrip(b" \t\r\n")[:1]
    if start != b"{":
        raise Unreadable(f"The body must be a JSON object{_NO_OBJECTS.get(start, '')}.") from None
    try:
        members: dict[str, Any] = msgspec.json.decode(raw)
    except msgspec.ValidationError:
        return {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _unreadable(error, raw) from None
    return members


def _wrong_item(members: dict[str, Any], wanted: type[Any]) -> WrongItem | None:
    """Returns the error for the first wrong item of a list of objects. msgspec does not report its index."""
    for field in msgspec.structs.fields(wanted):
        items = members.get(field.encode_name)
        item_type = _item_struct(field.type)
        if not isinstance(items, list) or item_type is None:
            continue
        for at, item in enumerate(islice(items, _ITEMS_LOOKED_AT)):
            try:
                msgspec.convert(item, item_type)
            except msgspec.ValidationError as error:
                refusal = refused(*_within(f"{field.encode_name}[{at}]", str(error), item, item_type))
                return WrongItem(refusal.detail, errors=refusal.errors)
    return None


def _within(path: str, message: str, members: Any, wanted: Any) -> tuple[str, str]:
    """Returns the member that msgspec's message is about, within `path`, and the rule it breaks."""
    inner, rule = _read_message(message, members, wanted)
    return f"{path}.{inner}" if inner else path, rule


def _pointer(member: str) -> str:
    """Returns the JSON pointer (RFC 6901, as a fragment) of a member written as `recipients[1].email`."""
    return "#/" + member.replace("[", "/").replace("]", "").replace(".", "/")


def _item_struct(annotation: Any) -> type[msgspec.Struct] | None:
    """Returns the Struct that a (possibly optional) list field holds, or None."""
    info = msgspec.inspect.type_info(annotation)
    options = info.types if isinstance(info, msgspec.inspect.UnionType) else (info,)
    for option in options:
        inner = option.type if isinstance(option, msgspec.inspect.Metadata) else option
        if isinstance(inner, msgspec.inspect.ListType) and isinstance(inner.item_type, msgspec.inspect.StructType):
            return inner.item_type.cls
    return None
