from __future__ import annotations

from typing import Annotated

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from largesse.base.decoding import Unreadable, decode_body, decode_query
from largesse.base.errors import InvalidRequest


class Part(msgspec.Struct):
    size: Annotated[int, Meta(ge=1, le=10)] = 1
    name: Annotated[str, Meta(max_length=3)] | None = None


class Body(msgspec.Struct, rename="camel"):
    part_id: int
    amount: float | None = None
    parts: Annotated[list[Part], Meta(min_length=1, max_length=2)] | None = None
    flag: bool = False


class Query(msgspec.Struct):
    limit: Annotated[int, Meta(ge=1, le=50)] = 10
    amount: float | None = None
    keyword: str | None = None


def refusal(raw: bytes) -> str:
    with pytest.raises(InvalidRequest) as refused:
        decode_body(raw, Body)
    return refused.value.detail


@pytest.mark.parametrize(
    ("raw", "detail"),
    [
        (b"{}", "`partId` is required."),
        (b'{"partId":"1"}', "`partId` must be an integer, not a string."),
        (b'{"partId":true}', "`partId` must be an integer, not a boolean."),
        (b'{"partId":null}', "`partId` must be an integer, not null."),
        (b'{"partId":1.5}', "`partId` must be an integer, not a number."),
        (b'{"partId":1,"amount":"10"}', "`amount` must be a number or null, not a string."),
        (b'{"partId":1,"amount":1e400}', "`amount` is not valid: Number out of range."),
        (b'{"partId":1,"flag":1}', "`flag` must be a boolean, not an integer."),
        (b'{"partId":1,"parts":[]}', "`parts` must have at least 1 items."),
        (b'{"partId":1,"parts":[{},{},{}]}', "`parts` must have at most 2 items."),
        (b'{"partId":1,"parts":{}}', "`parts` must be an array or null, not an object."),
        (b'{"partId":1,"parts":[{},{"size":0}]}', "`parts[1].size` must be at least 1."),
        (b'{"partId":1,"parts":[{},{"size":11}]}', "`parts[1].size` must be at most 10."),
        (b'{"partId":1,"parts":[{},{"name":"abcd"}]}', "`parts[1].name` must have at most 3 characters."),
        (b'{"partId":1,"parts":[7]}', "`parts[0]` must be an object, not an integer."),
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
        ({"limit": "1_0"}, "limit"),
        ({"limit": " 5"}, "limit"),
        ({"limit": "\u0665"}, "limit"),
        ({"limit": "9" * 30}, "limit"),
        ({"amount": ""}, "amount"),
        ({"amount": "null"}, "amount"),
        ({"amount": "1,5"}, "amount"),
        ({"amount": "1e400"}, "amount"),
        ({"amount": "0x10"}, "amount"),
    ],
)
def test_a_malformed_parameter_is_named(query: dict[str, str], member: str) -> None:
    with pytest.raises(InvalidRequest, match=f"^`{member}` "):
        decode_query(query, Query)


def test_parameters_become_their_types_and_unknown_ones_are_ignored() -> None:
    query = decode_query({"limit": "50", "amount": "12.50", "keyword": "null", "other": "null"}, Query)
    assert query == Query(limit=50, amount=12.5, keyword="null")
    assert decode_query({}, Query) == Query()
