from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from largesse.base.decoding import YEAR_AND_MONTH, Unreadable, decode_body, decode_part, decode_query
from largesse.base.errors import InvalidRequest
from largesse.orders.request import Country
from largesse.web.api.routes.catalogue import Currency


class Part(msgspec.Struct):
    size: Annotated[int, Meta(ge=1, le=10)] = 1
    name: Annotated[str, Meta(max_length=3)] | None = None


class Body(msgspec.Struct, rename="camel"):
    part_id: int
    amount: float | None = None
    parts: Annotated[list[Part], Meta(min_length=1, max_length=2)] | None = None
    flag: bool = False
    labels: dict[str, Annotated[str, Meta(max_length=3)] | None] | None = None


class Query(msgspec.Struct):
    limit: Annotated[int, Meta(ge=1, le=50)] = 10
    amount: Annotated[float, Meta(ge=0)] | None = None
    keyword: str | None = None


def refusal(raw: bytes) -> str:
    with pytest.raises(InvalidRequest) as refused:
        decode_body(raw, Body)
    return refused.value.detail


@pytest.mark.parametrize(
    ("raw", "detail"),
    [
        (b"{}", "`partId` is required."),
        (b'{"part_id":1}', "`partId` is required: it is not called 'part_id'."),
        (b'{"flag":true,"x":1,"PartID":1}', "`partId` is required: it is not called 'PartID'."),
        (b'{"id":1}', "`partId` is required: it is not called 'id'."),
        (b'{"partIdentifier":1}', "`partId` is required: it is not called 'partIdentifier'."),
        (b'{"patrId":1}', "`partId` is required: it is not called 'patrId'."),
        (b'{"p":1,"":1,"pa rt":1,"other":1}', "`partId` is required."),
        (b'{"partId":"1"}', "`partId` must be an integer, not a string."),
        (b'{"partId":true}', "`partId` must be an integer, not a boolean."),
        (b'{"partId":null}', "`partId` must be an integer, not null."),
        (b'{"partId":1.5}', "`partId` must be an integer, not a number."),
        (b'{"partId":1,"amount":"10"}', "`amount` must be a number or null, not a string."),
        (b'{"partId":1,"amount":1e400}', "`amount` must be a number from -1.7e308 to 1.7e308."),
        (b'{"partId":1,"flag":1}', "`flag` must be a boolean, not an integer."),
        (b'{"partId":1,"parts":[]}', "`parts` must have at least 1 item."),
        (b'{"partId":1,"parts":[{},{},{}]}', "`parts` must have at most 2 items."),
        (b'{"partId":1,"parts":{}}', "`parts` must be an array or null, not an object."),
        (b'{"partId":1,"parts":[{},{"size":0}]}', "`parts[1].size` must be at least 1."),
        (b'{"partId":1,"parts":[{},{"size":11}]}', "`parts[1].size` must be at most 10."),
        (b'{"partId":1,"parts":[{},{"name":"abcd"}]}', "`parts[1].name` must have at most 3 characters."),
        (b'{"partId":1,"labels":{"size":"abc","tone":4}}', "`labels.tone` must be a string or null, not an integer."),
        (b'{"partId":1,"labels":{"tone":null,"size":"abcd"}}', "`labels.size` must have at most 3 characters."),
        (b'{"partId":1,"labels":{"a/b":4}}', "`labels[]` must be a string or null, not an integer."),
        (b'{"partId":1,"parts":[7]}', "`parts[0]` must be an object, not an integer."),
        (
            rb'{"partId":1,"parts":[{"name":"a\ud83c"}]}',
            r"The body is not JSON in UTF-8: `\ud83c` is only half of a character.",
        ),
        (b'{"partId":1,"parts":[{"name":"caf\xe9"}]}', "The body is not JSON in UTF-8: byte 33 is not UTF-8."),
        (b"", "The body is empty. It must be a JSON object."),
        (b" \r\n", "The body is empty. It must be a JSON object."),
        (b"[]", "The body must be a JSON object, not an array."),
        (rb'"{\"partId\":1}"', "The body must be a JSON object, not a string: perhaps it was encoded twice."),
        (b"null", "The body must be a JSON object."),
        (b'\xef\xbb\xbf{"partId":1}', "The body begins with a byte order mark: leave it out."),
        (rb'{"partId":1,"parts":[{"name":"\ud83c\udf81"', "The body is not JSON in UTF-8: Input data was truncated."),
    ],
)
def test_a_wrong_member_is_named_with_its_limit(raw: bytes, detail: str) -> None:
    assert refusal(raw) == detail


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b" ",
        b"null",
        b"1",
        b'"partId"',
        b"[]",
        b'[{"partId":1}]',
        b"{",
        b'{"partId":1}x',
        b"{'partId':1}",
        b'{"partId":NaN}',
        b'\xef\xbb\xbf{"partId":1}',
        b'{"partId":1,"parts":[{"name":"\xff"}]}',
        b'{"partId":1,"x":"\\ud800"}',
        b'{"partId":1,"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_a_body_that_is_no_json_object_is_unreadable(raw: bytes) -> None:
    with pytest.raises(Unreadable):
        decode_body(raw, Body)


def test_a_long_name_full_of_paths_is_read_at_once() -> None:
    # A megabyte, as large as a body may be. The search for a path once took minutes for it, while nothing else was answered.
    name = " - at `$" * 125_000 + "\n"
    ignored: list[str] = []
    body = decode_body(msgspec.json.encode({"partId": 1, name: 1}), Body, ignored)
    assert body.part_id == 1


@pytest.mark.parametrize("rest", [b"", b"}x", b',"y":"\xff"}', b',"y":\x00}', b',"y":' + b"[" * 100_000])
def test_what_follows_a_wrong_member_may_be_unreadable_too(rest: bytes) -> None:
    with pytest.raises(Unreadable):
        decode_body(b'{"partId":"x"' + rest, Body)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    try:
        body = decode_body(raw, Body)
    except InvalidRequest:
        return
    assert isinstance(body.part_id, int)


@pytest.mark.slow
@given(
    st.dictionaries(
        st.sampled_from(["partId", "amount", "parts", "flag", "other"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.just("size"), inner),
            max_leaves=5,
        ),
    )
)
def test_any_object_is_read_or_refused(members: dict[str, object]) -> None:
    try:
        raw = msgspec.json.encode(members)
    except UnicodeEncodeError:
        return
    try:
        body = decode_body(raw, Body)
    except Unreadable:
        pytest.fail("it is readable")
    except InvalidRequest:
        return
    assert body.part_id == members["partId"]


@pytest.mark.parametrize(
    ("query", "member"),
    [
        ({"limit": ""}, "limit"),
        ({"limit": "x"}, "limit"),
        ({"limit": "0"}, "limit"),
        ({"limit": "51"}, "limit"),
        ({"limit": "null"}, "limit"),
        ({"limit": "true"}, "limit"),
        ({"limit": "1.5"}, "limit"),
        ({"limit": "1.0"}, "limit"),
        ({"limit": "1e1"}, "limit"),
        ({"limit": "1_0"}, "limit"),
        ({"limit": " 5"}, "limit"),
        ({"limit": "\u0665"}, "limit"),
        ({"limit": "9" * 30}, "limit"),
        ({"amount": ""}, "amount"),
        ({"amount": "null"}, "amount"),
        ({"amount": "1,5"}, "amount"),
        ({"amount": "1e400"}, "amount"),
        ({"amount": "0x10"}, "amount"),
        ({"keyword": "\0"}, "keyword"),
        ({"keyword": "a\nb"}, "keyword"),
    ],
)
def test_a_malformed_parameter_is_named(query: dict[str, str], member: str) -> None:
    with pytest.raises(InvalidRequest, match=f"^`{member}` "):
        decode_query(query, Query)


@pytest.mark.parametrize(
    ("query", "rule"),
    [
        ({"limit": "x"}, "an integer"),
        ({"limit": ""}, "an integer"),
        ({"amount": "1,5"}, "a number"),
        ({"amount": "NaN"}, "a number"),
    ],
)
def test_a_parameter_is_told_its_type_and_nothing_of_null_and_strings(query: dict[str, str], rule: str) -> None:
    """Each parameter is a text, and the text `null` is refused."""
    with pytest.raises(InvalidRequest) as refused:
        decode_query(query, Query)
    assert refused.value.detail == f"`{next(iter(query))}` must be {rule}."


def test_parameters_become_their_types_and_unknown_ones_are_ignored() -> None:
    query = decode_query({"limit": "50", "amount": "12.50", "keyword": "null", "other": "null"}, Query)
    assert query == Query(limit=50, amount=12.5, keyword="null")
    assert decode_query({}, Query) == Query()


@pytest.mark.parametrize("wrong", ["", "x", "12", "England", "GB\n", "\u212aRW"])
@pytest.mark.parametrize(
    ("member", "wanted", "rule"),
    [
        ("country", Country, "must be a code of 2 letters from A to Z, such as GB"),
        ("currency", Currency | None, "must be a code of 3 letters from A to Z, such as GBP"),
    ],
)
def test_a_wrong_code_is_told_what_a_code_is(member: str, wanted: Any, rule: str, wrong: str) -> None:
    """Whether its length or its letters are wrong."""
    inner = msgspec.defstruct("Inner", [(member, wanted)])
    with pytest.raises(InvalidRequest) as refused:
        decode_query({member: wrong}, inner)
    assert refused.value.detail == f"`{member}` {rule}."
    outer = msgspec.defstruct("Outer", [("items", list[inner])])  # type: ignore[valid-type]
    with pytest.raises(InvalidRequest) as refused:
        decode_body(msgspec.json.encode({"items": [{member: wrong}]}), outer)
    assert refused.value.detail == f"`items[0].{member}` {rule}."


@pytest.mark.parametrize(
    ("wanted", "raw", "rule"),
    [
        (int, b'"1"', "must be an integer, not a string"),
        (int | None, b"[]", "must be an integer or null, not an array"),
        (UUID, b"{}", "must be a UUID, not an object"),
        (Annotated[str, Meta(min_length=2)], b'"a"', "must have at least 2 characters"),
        (Annotated[str, Meta(max_length=2)] | None, b'"abc"', "must have at most 2 characters"),
        (Annotated[str, Meta(min_length=2, max_length=2)], b'"abc"', "must have at most 2 characters"),
        (Annotated[list[int], Meta(min_length=1)], b"[]", "must have at least 1 item"),
        (Annotated[list[int], Meta(max_length=1)] | None, b"[1,2]", "must have at most 1 item"),
        (Annotated[int, Meta(ge=-3)], b"-4", "must be at least -3"),
        (Annotated[int, Meta(le=3)] | None, b"4", "must be at most 3"),
        (Annotated[float, Meta(gt=0)], b"0", "must be more than 0"),
        (Annotated[float, Meta(lt=1)] | None, b"1", "must be less than 1"),
        (Annotated[str, Meta(pattern="^[A-Za-z]{3}$")], b'"12"', "must have 3 letters from A to Z"),
        (Annotated[str, Meta(pattern=YEAR_AND_MONTH)], b'"May"', "must be a year and a month, such as 2030-12"),
        (Annotated[str, Meta(pattern="^a$")], b'"b"', "must match ^a$"),
        (datetime, b'"soon"', "must be a date-time such as 2030-12-24T09:00:00Z"),
        (Annotated[str, Meta(max_length=1)], b"null", "must be a string, not null"),
    ],
)
def test_every_kind_of_sentence_of_msgspecs_is_read(wanted: Any, raw: bytes, rule: str) -> None:
    """A release of msgspec that words one otherwise would have callers read `is not valid: …`."""
    item = msgspec.defstruct("Item", [("x", wanted)])
    body = msgspec.defstruct("Body", [("x", wanted), ("inner", item | None, None), ("items", list[item], [])])
    good = msgspec.defstruct("Good", [("inner", item | None, None), ("items", list[item] | None, None)])

    for kind, text, member in (
        (body, b'{"x":%b}', "x"),
        (good, b'{"inner":{"x":%b}}', "inner.x"),
        (good, b'{"items":[{"x":%b}]}', "items[0].x"),
    ):
        with pytest.raises(InvalidRequest) as refused:
            decode_body(text % raw, kind)
        assert refused.value.detail == f"`{member}` {rule}."
    with pytest.raises(InvalidRequest) as refused:
        decode_body(b'{"items":[{}]}', good)
    assert refused.value.detail == "`items[0].x` is required."


def test_an_item_names_the_member_that_is_meant() -> None:
    item = msgspec.defstruct("Recipient", [("email", str), ("emails", int, 0)])
    body = msgspec.defstruct("Body", [("recipients", list[item])])
    raw = b'{"emails":1,"emial":"sam@example.com","n":1e400}'
    said = "`recipients[0].email` is required: it is not called 'emial'."
    with pytest.raises(InvalidRequest) as refused:
        decode_body(b'{"recipients":[%b]}' % raw.replace(b"1e400", b"1"), body)
    assert refused.value.detail == said
    with pytest.raises(InvalidRequest) as refused:
        decode_part(raw.replace(b"1e400", b"1"), msgspec.json.Decoder(item), "recipients[0]")
    assert refused.value.detail == said
    with pytest.raises(InvalidRequest) as refused:
        decode_part(msgspec.Raw(raw), msgspec.json.Decoder(item), "recipients[0]")
    assert refused.value.detail == "`recipients[0].email` is required."
