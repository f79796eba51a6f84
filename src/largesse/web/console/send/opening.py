"""The draft that a page is about, and the way through the pages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import msgspec
from starlette.responses import Response

from largesse.base.errors import InvalidRequest
from largesse.base.i18n.templates import text
from largesse.catalogue.model import Collection, Product
from largesse.catalogue.snapshot import Snapshot
from largesse.customers.authenticator import Caller, person_calls
from largesse.drafts.model import Draft, DraftContent
from largesse.drafts.store import read_draft, save_draft
from largesse.orders.options import Options
from largesse.orders.order import Gift
from largesse.web.console.context import RequestContext

STEPS = (
    ("gift", text("Gift")),
    ("recipients", text("Recipients")),
    ("message", text("Message")),
    ("delivery", text("When and who pays")),
    ("review", text("Review")),
)
KEPT = timedelta(days=14)


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a draft sends, as pages show it."""

    gift: Gift
    options: Options  # of the draft, and where it says nothing of its template
    name: str
    product: Product | None
    collection: Collection | None


@dataclass(frozen=True, slots=True)
class Open:
    """A draft that is open, and who has it open."""

    caller: Caller
    draft: Draft
    snapshot: Snapshot

    @property
    def content(self) -> DraftContent:
        """What has been said so far."""
        return self.draft.content

    @property
    def path(self) -> str:
        """Where its pages are."""
        return f"/app/send/{self.draft.id}"


async def person_as_caller(context: RequestContext) -> Caller:
    """Who asks, as orders are placed for them. Raises Unauthorized for who has just been removed."""
    person = context.person
    async with context.database.connection(person.scope) as connection:
        return await person_calls(
            connection,
            user_id=person.user_id,
            customer_id=person.customer_id,
            environment=person.environment,
            session_id=person.session_id,
            address=context.origin.address,
        )


async def open_draft(context: RequestContext, draft_id: str | None = None) -> Open:
    """The draft of the path, or that of the id. Raises NotFound for what is not theirs, or sent."""
    caller = await person_as_caller(context)
    async with context.database.connection(caller.principal.scope) as connection:
        draft = await read_draft(connection, caller.principal, draft_id or context.request.path_params["draft"])
    return Open(caller, draft, await context.services.catalogue.at(caller.catalogue_version))


async def change(context: RequestContext, opened: Open, **said: object) -> None:
    """Keeps what has just been said of the draft, and leaves what another page has said meanwhile. Raises NotFound."""
    principal = opened.caller.principal
    async with context.writing() as connection:
        draft = await read_draft(connection, principal, opened.draft.id, lock=True)
        await save_draft(connection, principal, draft.id, msgspec.structs.replace(draft.content, **said))


async def chosen(context: RequestContext, opened: Open) -> Chosen | None:
    """What the draft sends; None where nothing was chosen, or it cannot be sent any more."""
    if opened.content.choice is None:
        return None
    try:
        gift, options = await context.services.drafts.gift(opened.caller, opened.draft)
    except InvalidRequest:
        return None
    customer_id = opened.caller.principal.customer_id
    product = collection = None
    if gift.product_id is not None:
        product = opened.snapshot.product(gift.product_id, gift.country, customer_id)
    if gift.collection_id is not None:
        collection = opened.snapshot.collection(gift.collection_id, customer_id)
    named = product or collection
    return None if named is None else Chosen(gift, options, named.name, product, collection)


async def step(context: RequestContext, opened: Open, name: str, *, status: int = 200, **values: object) -> Response:
    """The page of a step."""
    return context.page(
        f"send/{name}.html",
        status=status,
        steps=[(one, context.say(title)) for one, title in STEPS],
        step=name,
        step_title=context.say(dict(STEPS)[name]),
        draft=opened.draft,
        content=opened.content,
        chosen=values.pop("chosen", None) or await chosen(context, opened),
        send_path=opened.path,
        **values,
    )
