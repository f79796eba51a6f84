"""The OpenAPI document of events: what subscriptions are sent.

A document of its own: generators of clients take what a document holds for something that they can call.
"""

from __future__ import annotations

from typing import Any

from largesse.events.kind import EventType
from largesse.events.registry import EVENTS
from largesse.web.api.openapi.parts import Json, info, schema_components

_DESCRIPTION = """\
What a subscription's address is sent. How to subscribe, and everything else that can be called, is in [the main document](/openapi.json).
"""


def build_events_document() -> Json:
    """The document, ready to be encoded."""
    payloads = [event.payload for event in EVENTS.values()]
    schema_of, schemas = schema_components(payloads)
    return {
        "openapi": "3.1.0",
        "info": info("Largesse events", _DESCRIPTION),
        "servers": [{"url": "/", "description": "The address that was subscribed"}],
        "tags": [{"name": "Webhooks", "description": "Requests that your receiver answers."}],
        "webhooks": {
            event.name: {"post": _webhook(event, schema_of[id(event.payload)])} for event in EVENTS.values()
        },
        "components": {"schemas": schemas},
    }


def _webhook(event: EventType[Any], payload: Json) -> Json:
    def header(name: str, description: str, example: str) -> Json:
        return {
            "name": name,
            "in": "header",
            "required": True,
            "description": description,
            "schema": {"type": "string"},
            "example": example,
        }

    return {
        "operationId": event.operation_id,
        "summary": event.summary,
        "description": f"Sent to every subscription of `{event.name}`. {event.description} Deliveries are at-least-once. "
        "Check the signature over the raw body before reading it.",
        "tags": ["Webhooks"],
        "security": [],
        "parameters": [
            header("X-Service-Event", "The event's name", event.name),
            header(
                "X-Service-Signature",
                "`sha256=` and the lower-case hex HMAC-SHA256 of the raw body, keyed with the subscription's secret",
                f"sha256={'0f' * 32}",
            ),
            header("webhook-id", "The delivery, the same over all its attempts", "7"),
            header(
                "webhook-timestamp",
                "When this attempt was made, in seconds since 1970: refuse one that is more than five minutes off",
                "1893488400",
            ),
            header(
                "webhook-signature",
                "`v1,` and the base64 HMAC-SHA256 of `webhook-id`, `webhook-timestamp` and the raw body, joined with "
                "full stops, keyed with the bytes that the secret's base64 (what follows `whsec_`) stands for: the "
                "scheme of Standard Webhooks",
                f"v1,{'0f' * 21}0=",
            ),
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": payload}}},
        "responses": {
            "2XX": {"description": "Delivered"},
            "410": {"description": "The subscription is deleted"},
            "4XX": {"description": "This delivery is dropped (but 429 is retried)"},
            "5XX": {"description": "Retried with growing pauses, up to 12 attempts in all"},
        },
    }
