"""The forms that create, change and delete a contact. The page of a contact is the form that changes it."""

from __future__ import annotations

from datetime import date
from typing import Any

from starlette.responses import Response

from largesse.base.errors import NotFound
from largesse.base.i18n.languages import LANGUAGES
from largesse.base.i18n.templates import text
from largesse.contacts.group_store import list_fields, list_groups
from largesse.contacts.model import (
    MAX_ADDRESS,
    MAX_EXTERNAL_ID,
    MAX_FIELD,
    MAX_NAME,
    Contact,
    ContactChange,
    ContactFault,
    OwnField,
    country_codes,
    read_birthday,
    read_email,
    read_start_date,
)
from largesse.contacts.service import (
    TooManyContacts,
    TooManyGroups,
    change_contact,
    create_contact,
    open_address,
    remove_contacts,
)
from largesse.contacts.store import read_contact, read_sealed_address
from largesse.web.console.contacts.words import birthday_typed, note, too_many
from largesse.web.console.context import RequestContext

_SAVED = text("The contact was saved.")
_FIELD = "field_"  # the prefix of form fields for own fields
_MOST_NEW_GROUPS = 200  # characters


async def ask(context: RequestContext) -> Response:
    """Shows the form of a new contact."""
    return await _show(context, None)


async def create(context: RequestContext) -> Response:
    """Creates a contact."""
    change = await _read(context)
    if not context.form.errors:
        try:
            contact_id = await create_contact(context.actor, context.services.vault, change)
        except ContactFault as fault:
            note(context, fault)
        except (TooManyContacts, TooManyGroups) as refusal:
            context.form.error("email", too_many(context, refusal))
        else:
            return context.see(f"/app/contacts/{contact_id}", context.say(_SAVED))
    return await _show(context, None)


async def show(context: RequestContext) -> Response:
    """Shows a contact. Raises NotFound."""
    return await _show(context, await _contact(context))


async def change(context: RequestContext) -> Response:
    """Changes a contact. Raises NotFound."""
    contact = await _contact(context)
    said = await _read(context)
    if not context.form.errors:
        try:
            await change_contact(context.actor, context.services.vault, contact.id, said)
        except ContactFault as fault:
            note(context, fault)
        except TooManyGroups as refusal:
            context.form.error("groups", too_many(context, refusal))
        else:
            return context.see(f"/app/contacts/{contact.id}", context.say(_SAVED))
    return await _show(context, contact)


async def ask_removal(context: RequestContext) -> Response:
    """Asks whether to delete a contact. Raises NotFound."""
    return context.page("contacts/remove_contact.html", contact=await _contact(context))


async def remove(context: RequestContext) -> Response:
    """Deletes a contact. Raises NotFound."""
    await remove_contacts(context.actor, [context.number("contact")])
    return context.see("/app/contacts", context.say("The contact was deleted."))


async def _contact(context: RequestContext) -> Contact:
    person = context.person
    async with context.database.connection(person.scope) as connection:
        found = await read_contact(connection, (person.customer_id, person.environment), context.number("contact"))
    if found is None:
        raise NotFound("There is no such contact.")
    return found


async def _read(context: RequestContext) -> ContactChange:
    """Returns the values in the form. Adds errors to the form."""
    form = context.form
    said: dict[str, Any] = {
        "name": form.text("name", MAX_NAME, required=False) or None,
        "external_id": form["external_id"],
        "address": form["address"],
        "language": form["language"] or None,
        "country": form["country"] or None,
        "is_active": form["left"] != "yes",
        "groups": tuple(dict.fromkeys([*form.all("group"), *_new_groups(form["groups"])])),
    }
    readers = (("email", read_email), ("birthday", read_birthday), ("start_date", read_start_date))
    for name, reader in readers:
        try:
            said[name] = reader(form[name])
        except ContactFault as fault:
            note(context, fault)
    own = await _own_fields(context)
    said["fields"] = {field.key: form.text(f"{_FIELD}{field.key}", MAX_FIELD, required=False) or None for field in own}
    return ContactChange(**said)


def _new_groups(typed: str) -> list[str]:
    return [name for one in typed[:_MOST_NEW_GROUPS].split(",") if (name := one.strip())]


async def _own_fields(context: RequestContext) -> list[OwnField]:
    person = context.person
    async with context.database.connection(person.scope) as connection:
        return await list_fields(connection, (person.customer_id, person.environment))


async def _show(context: RequestContext, contact: Contact | None) -> Response:
    person, address = context.person, None
    place = person.customer_id, person.environment
    async with context.database.connection(person.scope) as connection:
        groups = await list_groups(connection, place)
        fields = await list_fields(connection, place)
        if contact is not None and contact.has_address:
            sealed = await read_sealed_address(connection, place, contact.id)
            address = open_address(context.services.vault, person.customer_id, contact.id, sealed)
    names = [(code, context.language.country(code)) for code in context.language.in_order(country_codes())]
    return context.page(
        "contacts/contact.html",
        contact=contact,
        groups=groups,
        chosen_groups=set(context.form.all("group") if context.form.errors else contact.groups if contact else ()),
        fields=fields,
        address=address,
        birthday=birthday_typed(contact.birthday if contact else None),
        start_date=_day(contact.start_date if contact else None),
        languages=[("", context.say("Not known")), *((tag, one.name) for tag, one in LANGUAGES.items())],
        countries=[("", context.say("Not known")), *names],
        is_left=context.form["left"] == "yes" if context.form.errors else contact is not None and not contact.is_active,
        most={"name": MAX_NAME, "address": MAX_ADDRESS, "external_id": MAX_EXTERNAL_ID, "field": MAX_FIELD},
    )


def _day(at: date | None) -> str:
    return "" if at is None else f"{at:%d/%m/%Y}"
