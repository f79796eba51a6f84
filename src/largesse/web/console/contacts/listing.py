"""The list of contacts with its search and filters, as pages and as a file, and the button that adds past recipients."""

from __future__ import annotations

from starlette.responses import Response

from largesse.base.i18n.templates import text
from largesse.contacts.group_store import list_fields, list_groups
from largesse.contacts.model import written_birthday
from largesse.contacts.service import TooManyContacts, add_past_recipients
from largesse.contacts.store import Filter, count_contacts, list_by_id, list_contacts
from largesse.customers.roles import Reach, Right
from largesse.web.console.contacts.words import birthday_shown, too_many
from largesse.web.console.context import RequestContext

PAGE = 50
_OF_FILE_AT_ONCE = 1_000
_STATES = {"active": True, "left": False}
_NOBODY_NEW = text("Everybody you sent to lately is a contact already.")


def shown(context: RequestContext) -> Filter:
    """Returns the filter in the page's address."""
    return Filter(context.query("q"), _STATES.get(context.query("state")), context.parameters.number("group"))


async def show(context: RequestContext) -> Response:
    """Shows a page of the list."""
    person, wanted = context.person, shown(context)
    place = person.customer_id, person.environment
    after, before = context.parameters.number("after"), context.parameters.number("before")
    async with context.database.connection(person.scope) as connection:
        found = await list_contacts(connection, place, wanted, PAGE + 1, after=after, before=before)
        count = await count_contacts(connection, place, wanted)
        groups = await list_groups(connection, place)
        fields = await list_fields(connection, place)
    has_more = len(found) > PAGE
    contacts = found[-PAGE:] if before is not None else found[:PAGE]
    has_next = bool(contacts) and (has_more if before is None else True)
    has_previous = bool(contacts) and (has_more if before is not None else after is not None)
    return context.page(
        "contacts/contacts.html",
        contacts=contacts,
        count=count,
        groups=groups,
        fields=fields,
        shown=wanted,
        words=context.query("q"),
        state=context.query("state"),
        is_filtered=wanted != Filter(),
        birthday=lambda contact: birthday_shown(context, contact.birthday),
        next=context.here(after=contacts[-1].id, before=None) if has_next else None,
        previous=context.here(before=contacts[0].id, after=None) if has_previous else None,
    )


async def download(context: RequestContext) -> Response:
    """Sends the listed contacts as a CSV file, which the import can read."""
    person, wanted = context.person, shown(context)
    place = person.customer_id, person.environment
    async with context.database.connection(person.scope) as connection:
        fields = await list_fields(connection, place)
        contacts = []
        after = 0
        while found := await list_by_id(connection, place, wanted, _OF_FILE_AT_ONCE, after):
            contacts += found
            after = found[-1].id
    columns = ("email", "name", "language", "country", "birthday", "start date", "external id", "groups")
    rows = (
        (
            one.email,
            one.name,
            one.language,
            one.country,
            written_birthday(one.birthday) if one.birthday else None,
            one.start_date.isoformat() if one.start_date else None,
            one.external_id,
            ", ".join(one.groups),
            *(one.own_fields.get(field.key) for field in fields),
        )
        for one in contacts
    )
    return await context.csv("contacts.csv", (*columns, *(field.name for field in fields)), rows)


async def add_past(context: RequestContext) -> Response:
    """Creates contacts for recent recipients of the person, or of everybody if the person may see all orders."""
    user_id = None if context.person.reach(Right.SEE_ORDERS) is Reach.ALL else context.person.user_id
    try:
        saved = await add_past_recipients(context.actor, context.services.vault, user_id)
    except TooManyContacts as refusal:
        return context.see("/app/contacts", too_many(context, refusal))
    if not saved.created:
        return context.see("/app/contacts", context.say(_NOBODY_NEW))
    said = context.ngettext("%(count)s contact added.", "%(count)s contacts added.", saved.created)
    return context.see("/app/contacts", said)
