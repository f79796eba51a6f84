"""The page of thank-you notes, newest first, and the setting that lets recipients write them."""

from starlette.responses import Response

from largesse.customers.customer_store import takes_notes
from largesse.customers.roles import Right
from largesse.notes.service import accept_notes, list_notes
from largesse.web.console.context import RequestContext
from largesse.web.kit.query import INT64

_PAGE = 50
HERE = "/app/notes"


async def show(context: RequestContext) -> Response:
    """Shows a page of the notes about orders that the person may see, newest first."""
    before, person = context.parameters.number("before", INT64), context.person
    async with context.database.connection(person.scope) as connection:
        found = await list_notes(connection, context.services.vault, person, before=before, limit=_PAGE + 1)
        accepted = await takes_notes(connection, person.customer_id)
    notes = found[:_PAGE]
    return context.page(
        "notes.html",
        notes=notes,
        accepted=accepted,
        may_set=person.may(Right.SETTINGS),
        older=context.here(before=notes[-1].id) if len(found) > _PAGE else None,
        newest=context.here(before=None) if before is not None else None,
    )


async def save(context: RequestContext) -> Response:
    """Switches notes on or off. Existing notes stay."""
    accepted = context.form["accepted"] == "yes"
    await accept_notes(context.actor, accepted=accepted)
    said = context.say("Recipients can write thank-you notes.") if accepted else context.say("Thank-you notes are off.")
    return context.see(HERE, said)
