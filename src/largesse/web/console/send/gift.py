"""Which gift: a product, a collection or a template, and for how much."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from largesse.catalogue.snapshot import Snapshot
from largesse.drafts.model import Draft, DraftContent
from largesse.drafts.store import begin_draft, drop_draft, list_drafts, sent_lately
from largesse.orders.request import DEFAULT_COUNTRY
from largesse.templates.store import Template, list_templates
from largesse.web.console.context import Visit
from largesse.web.console.gifts.browsing import (
    CARDS,
    delivered,
    page_number,
    pictured,
    products_found,
    search_values,
)
from largesse.web.console.gifts.picking import Picked, amount_values, priced, read_picked
from largesse.web.console.send.opening import change, open_draft, person_as_caller

TABS = ("gifts", "collections", "templates")
_MAX_TEMPLATES = 200


async def choose(visit: Visit) -> Response:
    """What there is to send, and the drafts that were begun."""
    caller = await person_as_caller(visit)
    snapshot = await visit.services.catalogue.at(caller.catalogue_version)
    tab = visit.query("tab") if visit.query("tab") in TABS else TABS[0]
    principal = caller.principal
    async with visit.database.connection(principal.scope) as connection:
        templates = await list_templates(connection, principal, offset=0, limit=_MAX_TEMPLATES)
        drafts = await list_drafts(connection, principal)
        lately = await sent_lately(connection, principal)
    page = page_number(visit)
    found: list[Any] = []
    if tab == "gifts":
        found = products_found(visit, snapshot, principal.customer_id)
        found.sort(key=lambda one: lately.index(one.id) if one.id in lately else len(lately))
    elif tab == "collections":
        found = list(snapshot.collections(principal.customer_id))
    else:
        found = [one for one in templates if snapshot.has_gift(one.product_id, one.collection_id)]
    start = (page - 1) * CARDS
    items = found[start : start + CARDS]
    return visit.page(
        "send/gift.html",
        tab=tab,
        items=items,
        pictures=_pictures(snapshot, principal.customer_id, tab, items),
        older=visit.here(page=page + 1) if len(found) > start + CARDS else None,
        newer=visit.here(page=page - 1) if page > 1 else None,
        draft_id=visit.query("draft"),
        drafts=[(one, _name(one, snapshot, principal.customer_id)) for one in drafts],
        delivered=delivered,
        **search_values(visit, snapshot, principal.customer_id),
    )


async def amount(visit: Visit) -> Response:
    """The gift that was picked, and for how much it can be sent. Raises NotFound."""
    caller = await person_as_caller(visit)
    snapshot = await visit.services.catalogue.at(caller.catalogue_version)
    return _amount(visit, await read_picked(visit, caller, snapshot, visit.query))


async def take(visit: Visit) -> Response:
    """Takes gift and amount into a new draft, or the one that is open. Raises NotFound."""
    caller = await person_as_caller(visit)
    snapshot = await visit.services.catalogue.at(caller.catalogue_version)
    picked = await read_picked(visit, caller, snapshot, visit.form.__getitem__)
    choice, _ = await priced(visit, caller, picked)
    if visit.form.errors:
        return _amount(visit, picked, status=422)
    content = DraftContent().chosen(choice)
    if visit.form["draft"]:
        opened = await open_draft(visit, visit.form["draft"])
        names = ("product_id", "collection_id", "template_id", "country", "value")
        await change(visit, opened, **{name: getattr(content, name) for name in names})
        return visit.see(f"{opened.path}/recipients")
    async with visit.writing() as connection:
        draft = await begin_draft(connection, caller.principal, caller.now, content)
    return visit.see(f"/app/send/{draft.id}/recipients")


async def drop(visit: Visit) -> Response:
    """Drops a draft."""
    opened = await open_draft(visit)
    async with visit.writing() as connection:
        await drop_draft(connection, opened.caller.principal, opened.draft.id)
    return visit.see("/app/send", visit.say("The draft is gone."))


def _amount(visit: Visit, picked: Picked, *, status: int = 200) -> Response:
    draft_id = visit.form["draft"] or visit.query("draft")
    amounts = amount_values(visit, picked)
    return visit.page("send/amount.html", status=status, amounts=amounts, picked=picked, draft_id=draft_id)


def _pictures(snapshot: Snapshot, customer_id: int, tab: str, items: list[Any]) -> dict[int, list[str]]:
    """The pictures of collections or templates, by id; products have their own."""
    if tab == "collections":
        return pictured(snapshot, items, customer_id)
    return (
        {one.id: _template_pictures(snapshot, customer_id, one) for one in items}
        if tab == "templates"
        else {}
    )


def _template_pictures(snapshot: Snapshot, customer_id: int, template: Template) -> list[str]:
    if collection := snapshot.collection(template.collection_id or 0, customer_id):
        return pictured(snapshot, [collection], customer_id)[collection.id]
    product = snapshot.product(template.product_id or 0, template.country or DEFAULT_COUNTRY, customer_id)
    return [product.picture] if product and product.picture else []


def _name(draft: Draft, snapshot: Snapshot, customer_id: int) -> str | None:
    """What a draft sends, in a word; None where that is not known."""
    content = draft.content
    if content.product_id is not None:
        product = snapshot.product(content.product_id, content.country or DEFAULT_COUNTRY, customer_id)
        return product.name if product else None
    if content.collection_id is not None:
        collection = snapshot.collection(content.collection_id, customer_id)
        return collection.name if collection else None
    return None
