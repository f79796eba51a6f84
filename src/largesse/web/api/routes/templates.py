"""GET /templates."""

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta
from msgspec.structs import asdict

from largesse.catalogue.snapshot import Snapshot
from largesse.customers.restrictions import READ
from largesse.templates.store import Template, list_templates
from largesse.web.api.operation import Call, Operation
from largesse.web.api.reading import PagingNewestFirst
from largesse.web.api.shapes import shaped
from largesse.web.kit.replies import Reply, encode_json
from largesse.web.kit.services import Services


class TemplateShape(msgspec.Struct, kw_only=True, rename="camel"):
    """A saved send preset."""

    id: Annotated[int, Meta(description="Pass as `templateId`")]
    name: str | None
    gift_selection_type: Annotated[str, Meta(description="`gift` or `gifts`")] | None
    gift_product_id: Annotated[int, Meta(description="Set when it sends a single gift")] | None
    gifts_collection_id: Annotated[int, Meta(description="Set when the recipient chooses")] | None
    gift_name: Annotated[str, Meta(description="Name of the gift when the template was saved")] | None
    value: Annotated[float, Meta(description="Per-recipient face value")]
    currency: Annotated[str, Meta(description="Null when the gift has since been deleted")] | None
    country: str | None
    wrapping_key: str | None
    from_name: str | None
    message: str | None
    expiry_after_days: int | None
    creation_date: Annotated[datetime, Meta(tz=True)]


async def _templates(services: Services, call: Call) -> Reply:
    async with services.database.connection(call.principal.scope) as connection:
        templates = await list_templates(connection, call.principal, **asdict(call.query))
    snapshot = await call.own_snapshot(services)
    return Reply(encode_json([_shape(template, snapshot) for template in templates]))


def _shape(template: Template, snapshot: Snapshot) -> TemplateShape:
    return shaped(
        TemplateShape,
        template,
        gift_selection_type="gift" if template.product_id is not None else "gifts",
        gift_product_id=template.product_id,
        gifts_collection_id=template.collection_id,
        currency=template.currency if snapshot.has_gift(template.product_id, template.collection_id) else None,
        creation_date=template.created_at,
    )


OPERATIONS = (
    Operation(
        "GET",
        "/templates",
        "listTemplates",
        "List templates, newest first",
        _templates,
        "Templates",
        scope=READ,
        description="Presets of the customer, ready for `POST /send/template`.",
        shape=list[TemplateShape],
        query=PagingNewestFirst,
        example=[
            {
                "id": 1,
                "name": "Welcome",
                "giftSelectionType": "gift",
                "giftProductId": 1,
                "giftsCollectionId": None,
                "giftName": "Coffee House e-gift",
                "value": 10.0,
                "currency": "GBP",
                "country": "GB",
                "wrappingKey": "confetti",
                "fromName": "Acme",
                "message": "Welcome!",
                "expiryAfterDays": 90,
                "creationDate": "2030-01-02T09:00:00Z",
            }
        ],
    ),
)
