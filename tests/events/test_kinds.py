"""Types of events: what the registry holds, and that everything that speaks of events says just that."""

import html
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from msgspec.structs import replace

from largesse.events.kinds import EVENTS, GIFT_EVENTS, ORDER_CREATED, EventType, Sampled
from largesse.lines.states import State
from largesse.web.api.openapi.document import build_document, build_events_document
from largesse.web.api.routes import OPERATIONS
from largesse.web.docs.pages import read_tables
from largesse.webhooks.signing import Signer

DOCUMENT = build_events_document()
GUIDE = (Path(__file__).parents[2] / "docs/guides/events.md").read_text()
CONTRACT = (Path(__file__).parents[2] / "docs/contract.md").read_text()
SAMPLED = Sampled(7, 8, datetime(2030, 1, 2, 9, tzinfo=UTC))

each = pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)


def plain(text: str) -> str:
    """A text of the reference page, as the guide writes it."""
    return html.unescape(re.sub(r"<[^>]+>", "", re.sub(r"<code>(.*?)</code>", r"`\1`", text)))


@each
def test_a_sample_is_what_the_document_says_of_the_payload(event: EventType[Any]) -> None:
    sample = json.loads(event.sample_body(SAMPLED))
    schema = DOCUMENT["webhooks"][event.name]["post"]["requestBody"]["content"]["application/json"]["schema"]
    whole = {**schema, "components": DOCUMENT["components"]}
    jsonschema_rs.Draft202012Validator(whole, validate_formats=True).validate(sample)
    assert (sample["event"], sample["customerId"]) == (event.name, 7)


@each
def test_a_webhook_is_told_by_its_name_and_summary(event: EventType[Any]) -> None:
    webhook = DOCUMENT["webhooks"][event.name]["post"]
    assert (webhook["operationId"], webhook["summary"]) == (event.operation_id, event.summary)
    (header,) = (parameter for parameter in webhook["parameters"] if parameter["name"] == "X-Service-Event")
    assert header["example"] == event.name


@each
def test_a_webhook_names_its_headers_and_the_one_of_a_rotation(event: EventType[Any]) -> None:
    parameters = DOCUMENT["webhooks"][event.name]["post"]["parameters"]
    usual, rotated = (
        Signer(b"whsec_AAAA", previous).headers(7, event.name, b"{}").keys() - {"Content-Type", "User-Agent"}
        for previous in (b"", b"whsec_BBBB")
    )
    assert {one["name"] for one in parameters} == rotated
    assert {one["name"] for one in parameters if one["required"]} == usual


def test_what_may_be_subscribed_to_is_what_is_sent() -> None:
    body = build_document(OPERATIONS)["components"]["schemas"]["Subscribe"]
    assert body["properties"]["event"]["enum"] == list(EVENTS) == list(DOCUMENT["webhooks"])


@each
def test_the_guide_and_the_contract_tell_of_the_event(event: EventType[Any]) -> None:
    assert CONTRACT.count(f"`{event.name}`"), "name it in docs/contract.md"
    row = f"| `{event.name}` | {event.summary} | `{event.shape}` |"
    assert GUIDE.splitlines().count(row) == 1, "it has this row in docs/guides/events.md"
    (table,) = (table for table in read_tables(DOCUMENT) if table.name == event.shape)
    wanted = [f"| `{field.name}` | {plain(field.kind)} | {plain(field.description)} |" for field in table.fields]
    section = GUIDE.partition(f"\n## `{event.shape}`\n")[2].partition("\n#")[0]
    told = [line for line in section.splitlines() if line.startswith("| `")]
    assert told == wanted, f"docs/guides/events.md has a heading `{event.shape}` with these rows"


def test_an_event_that_follows_its_line_has_a_name_that_line_events_records() -> None:
    unrecorded = {one.name for one in GIFT_EVENTS if one.follows_line} - {f"gift.{name}" for name in ("opened", *State)}
    assert not unrecorded, "`verify` would report each of them: say follows_line=False in events/kinds.py"


def test_an_event_is_called_thing_happened() -> None:
    for name in ("order", "Order.created", "order.created ", "order..created", "order.created_", ""):
        with pytest.raises(ValueError, match="thing"):
            replace(ORDER_CREATED, name=name)
    assert replace(ORDER_CREATED, name="order.line.sent_again").operation_id == "orderLineSentAgain"


def test_a_payload_tells_its_event() -> None:
    class Mute(msgspec.Struct):
        id: int

    with pytest.raises(ValueError, match="Mute lacks the member `event`"):
        EventType("order.lost", "", "", Mute, lambda sampled: Mute(sampled.customer_id))
