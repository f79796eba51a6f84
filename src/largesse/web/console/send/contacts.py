"""The page that adds contacts to the recipients of a send: selected ones, or all that a search finds."""

from __future__ import annotations

from starlette.responses import Response

from largesse.base.i18n.templates import text
from largesse.contacts.group_store import list_groups
from largesse.contacts.model import Contact
from largesse.contacts.store import Filter, Place, count_contacts, find_contacts, list_by_id, list_contacts
from largesse.drafts.mending import Typed
from largesse.drafts.sheet import SheetRefused
from largesse.orders.recipients import MAX_CODES
from largesse.web.console.context import RequestContext
from largesse.web.console.send.opening import Open, open_draft, step
from largesse.web.console.send.recipients import refused

PAGE = 100
_NOBODY = text("Choose at least one contact.")
_TOO_MANY = text("One order has at most %(most)s recipients. Search for fewer contacts.")


async def show(context: RequestContext) -> Response:
    """Shows the contacts to choose from."""
    return await _show(
        context, await open_draft(context), _filter(context.query("q"), context.parameters.number("group"))
    )


async def take(context: RequestContext) -> Response:
    """Adds the selected contacts, or all that the search finds, to the recipients."""
    opened, form = await open_draft(context), context.form
    shown = _filter(form["q"], form.number("group"))
    chosen = await _all_found(context, shown) if form["all"] == "yes" else await _ticked(context)
    if not chosen:
        form.error("contact", context.say(_NOBODY))
    elif len(chosen) > MAX_CODES:
        form.error("contact", context.say(_TOO_MANY, most=context.language.number(MAX_CODES)))
    else:
        rows = [Typed(one.email, one.name) for one in chosen]
        try:
            await context.services.drafts.rows.edit(context.actor, opened.draft.id, {}, rows)
        except SheetRefused as refusal:
            form.error("contact", refused(context, refusal))
        else:
            return context.see(f"{opened.path}/recipients")
    return await _show(context, opened, shown, status=422)


def _filter(words: str, group_id: int | None) -> Filter:
    return Filter(words, is_active=True, group_id=group_id or None)


def _place(context: RequestContext) -> Place:
    return context.person.customer_id, context.person.environment


async def _ticked(context: RequestContext) -> list[Contact]:
    ids = context.form.numbers("contact")
    async with context.database.connection(context.person.scope) as connection:
        found = {one.id: one for one in await find_contacts(connection, _place(context), ids=ids)}
    return [found[id_] for id_ in dict.fromkeys(ids) if id_ in found and found[id_].is_active]


async def _all_found(context: RequestContext, shown: Filter) -> list[Contact]:
    """Returns all contacts that the search finds, up to one more than an order may have."""
    async with context.database.connection(context.person.scope) as connection:
        return await list_by_id(connection, _place(context), shown, MAX_CODES + 1)


async def _show(context: RequestContext, opened: Open, shown: Filter, *, status: int = 200) -> Response:
    place, after = _place(context), context.parameters.number("after")
    async with context.database.connection(context.person.scope) as connection:
        found = await list_contacts(connection, place, shown, PAGE + 1, after=after)
        count = await count_contacts(connection, place, shown)
        groups = await list_groups(connection, place)
    contacts = found[:PAGE]
    return await step(
        context,
        opened,
        "contacts",
        status=status,
        contacts=contacts,
        count=count,
        groups=groups,
        shown=shown,
        is_filtered=bool(shown.words or shown.group_id),
        ticked=set(context.form.numbers("contact")),
        next=context.here(after=contacts[-1].id) if len(found) > PAGE and status == 200 else None,
    )
