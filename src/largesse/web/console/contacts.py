"""Contacts: the list as pages and as a file, the forms that create, change and delete a contact, and texts for wrong values."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from datetime import date
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace
from starlette.responses import Response

from largesse.base.email import EmailError, pasted_email
from largesse.base.i18n.languages import LANGUAGES, text
from largesse.base.text import trimmed, whole_number
from largesse.contacts import model, service
from largesse.contacts.dates import read_birthday, read_start_date
from largesse.contacts.groups import TooManyGroups, list_fields, list_group_names, list_groups
from largesse.contacts.model import Contact, ContactChange, ContactFault, Group
from largesse.contacts.service import TooManyContacts
from largesse.contacts.store import Filter, count_contacts, list_by_id, list_contacts, read_contact, read_sealed_address
from largesse.customers.roles import Reach, Right
from largesse.web.console.context import RequestContext
from largesse.web.console.form import with_others
from largesse.web.console.send.recipients import WRONG as WRONG_EMAIL
from largesse.web.console.typed_times import EITHER_DAY, readings

# The import knows these headings, in each language.
_COLUMNS = (
    *(text("E-mail address"), text("Name"), text("Language"), text("Country"), text("Birthday"), text("Start date")),
    *(text("Your ID"), text("Groups"), text("State")),
)
_WRONG = {
    "email_taken": text("Another contact has this address."),
    "formula": WRONG_EMAIL["name_formula"],
    "birthday_wrong": text("Type a day and a month, such as 14/03."),
    "birthday_none": text("No year has this day. Type the day first, such as 14/03."),
    "birthday_year": text("Leave out the year."),
    "start_date_wrong": text("Type a date, such as 31/03/2024."),
    "language_wrong": text("Choose English, French or German."),
    "country_wrong": text("This is not a country. Use its name or its code, such as GB."),
    "state_wrong": text("Type Active or Has left."),
    "address_long": text("This has more than %(most)s characters."),
    "address_wrong": text("This has characters that are not allowed. Type it again."),
    "external_id_long": text("This has more than %(most)s characters."),
    "external_id_wrong": text("This has characters that are not allowed. Type it again."),
    "external_id_rounded": text(
        "The spreadsheet saved only the first digits. Format the column as a whole number or as text, and save the file again."
    ),
    "external_id_taken": text("Another contact has this id."),
    "groups_long": text("The name of a group has more than %(most)s characters."),
    "groups_wrong": text("The name of a group is blank, or has characters that are not allowed."),
    "groups_many": text("A contact is in at most %(most)s groups."),
    "fields_long": text("This has more than %(most)s characters."),
    "fields_wrong": text("This has characters that are not allowed. Type it again."),
    "fields_unknown": text("This field no longer exists. Open the page again."),
}
_MOST = {
    "address_long": model.MAX_ADDRESS,
    "external_id_long": model.MAX_EXTERNAL_ID,
    "groups_long": model.MAX_GROUP,
    "groups_many": model.MOST_GROUPS_EACH,
    "fields_long": model.MAX_FIELD,
}
_TOO_MANY = text("A company has at most %(most)s contacts. Delete some first.")
_TOO_MANY_GROUPS = text("A company has at most %(most)s groups. Delete some first.")
_LEAP_YEAR = 2000
_PAGE = 50
_OF_FILE_AT_ONCE = 1_000
_STATES = {"active": True, "left": False}
_SAVED = text("The contact was saved.")
_FIELD = "field_"  # the prefix of form fields for the customer's own fields
_MOST_NEW_GROUPS = model.MOST_GROUPS_EACH * (model.MAX_GROUP + 4)  # characters, with quotation marks, commas and blanks


def _shown(context: RequestContext) -> Filter:
    """Returns the filter in the page's address."""
    return Filter(context.query("q"), _STATES.get(context.query("state")), context.parameters.number("group"))


async def show(context: RequestContext) -> Response:
    """Shows a page of the list."""
    wanted, place = _shown(context), context.customer
    after, before = context.parameters.number("after"), context.parameters.number("before")
    async with context.database.connection(context.person.scope) as connection:
        found = await list_contacts(connection, place, wanted, _PAGE + 1, after=after, before=before)
        count = await count_contacts(connection, place, wanted)
        groups = await list_groups(connection, place)
        fields = await list_fields(connection, place)
    has_more = len(found) > _PAGE
    contacts = found[-_PAGE:] if before is not None else found[:_PAGE]
    has_next = bool(contacts) and (has_more if before is None else True)
    has_previous = bool(contacts) and (has_more if before is not None else after is not None)
    return context.page(
        "contacts/contacts.html",
        contacts=contacts,
        count=count,
        most_counted=model.MOST_COUNTED,
        groups=group_choices(context, groups),
        fields=fields,
        shown=wanted,
        words=context.query("q"),
        state=context.query("state"),
        is_filtered=wanted != Filter(),
        birthday=lambda contact: _birthday_shown(context, contact.birthday),
        next=context.here(after=contacts[-1].id, before=None) if has_next else None,
        previous=context.here(before=contacts[0].id, after=None) if has_previous else None,
    )


async def download(context: RequestContext) -> Response:
    """Sends the listed contacts as a CSV file, which the import can read."""
    fields = await context.read(list_fields, context.customer)
    states = {True: context.say("Active"), False: context.say("Has left")}
    rows = (
        (
            one.email,
            whole_number(one.name),
            one.language,
            one.country,
            _birthday_shown(
                context, one.birthday
            ),  # with words: a spreadsheet could take the month of `12-10` for the day
            one.start_date.isoformat() if one.start_date else None,
            whole_number(one.external_id),
            whole_number(model.written_groups(one.groups)),
            states[one.is_active],
            *(whole_number(one.own_fields.get(field.key)) for field in fields),
        )
        async for one in _all(context, _shown(context))
    )
    columns = [*(context.say(one) for one in _COLUMNS), *(field.name for field in fields)]
    return await context.csv("contacts.csv", columns, rows)


async def _all(context: RequestContext, wanted: Filter) -> AsyncIterator[Contact]:
    after = 0
    while found := await context.read(list_by_id, context.customer, wanted, _OF_FILE_AT_ONCE, after):
        for one in found:
            yield one
        after = found[-1].id


async def add_past(context: RequestContext) -> Response:
    """Creates contacts for recent recipients of the person, or of everybody if the person may see all orders."""
    user_id = None if context.person.reach(Right.SEE_ORDERS) is Reach.ALL else context.person.user_id
    try:
        saved = await service.add_past_recipients(context.actor, context.services.vault, user_id)
    except TooManyContacts as refusal:
        return context.see("/app/contacts", too_many(context, refusal))
    if not saved.created:
        return context.see("/app/contacts", context.say("Everyone you sent gifts to recently is a contact already."))
    said = context.ngettext("%(count)s contact added.", "%(count)s contacts added.", saved.created)
    return context.see("/app/contacts", said)


async def ask(context: RequestContext) -> Response:
    """Shows the form of a new contact."""
    return await _show(context, None)


async def create(context: RequestContext) -> Response:
    """Creates a contact."""
    change = await _read(context)
    if not context.form.errors:
        try:
            contact_id = await service.create_contact(context.actor, context.services.vault, change)
        except ContactFault as fault:
            _note(context, fault)
        except (TooManyContacts, TooManyGroups) as refusal:
            context.form.error("email", too_many(context, refusal))
        else:
            return context.see(f"/app/contacts/{contact_id}", context.say(_SAVED))
    return await _show(context, None)


async def one(context: RequestContext) -> Response:
    """Shows a contact. Raises NotFound."""
    return await _show(context, await _contact(context))


async def change(context: RequestContext) -> Response:
    """Changes a contact. Raises NotFound."""
    contact = await _contact(context)
    languages, countries = _offered(context)
    now = await _values(context, contact)
    context.form.keep_others(now, dict([*languages, *countries]))
    said = await _read(context, contact)
    if context.form["address"].replace("\r\n", "\n") == now["address"]:
        said = replace(
            said, address=UNSET
        )  # somebody else may change it at this moment, and a contact does not show it
    if not context.form.errors:
        try:
            await service.change_contact(context.actor, context.services.vault, contact.id, said, contact)
        except ContactFault as fault:
            _note(context, fault)
        except TooManyGroups as refusal:
            context.form.error("groups", too_many(context, refusal))
        else:
            return context.see(f"/app/contacts/{contact.id}", context.say(_SAVED))
    return await _show(context, contact)


async def ask_removal(context: RequestContext) -> Response:
    """Asks whether to delete a contact. Raises NotFound."""
    contact = await _contact(context)
    said = context.say(
        "Everything you keep about %(name)s as a contact is deleted for good. Gifts that were sent stay as they are.",
        name=contact.name or contact.email,
    )
    no = f"/app/contacts/{contact.id}"
    return context.page("question.html", said=said, yes=(f"{no}/remove", context.say("Delete the contact")), no=no)


async def remove(context: RequestContext) -> Response:
    """Deletes a contact. Raises NotFound."""
    await service.remove_contacts(context.actor, [context.number("contact")])
    return context.see("/app/contacts", context.say("The contact was deleted."))


async def _contact(context: RequestContext) -> Contact:
    return await context.read(read_contact, context.customer, context.number("contact"))


async def _read(context: RequestContext, contact: Contact | None = None) -> ContactChange:
    """Returns the values in the form. Adds errors to the form."""
    form = context.form
    groups = form.all("group")
    if contact is not None and "was_group" in form:
        groups = with_others(groups, form["was_group"].replace("\r\n", "\n").split("\n"), contact.groups)
    said: dict[str, Any] = {
        "name": form.text("name", model.MAX_NAME, required=False) or None,
        "external_id": form["external_id"],
        "address": form["address"],
        "language": form["language"] or None,
        "country": form["country"] or None,
        "groups": tuple(dict.fromkeys([*groups, *model.read_groups(form["groups"])])),
    }
    # Only a change of the box counts. Otherwise a form opened before the contact left would make them active again.
    if "was_left" not in form or form["left"] != form["was_left"]:
        said["is_active"] = form["left"] != "yes"
    readers = (("email", _read_email), ("birthday", read_birthday), ("start_date", read_start_date))
    for name, reader in readers:
        # What the form showed stays: its order is known, and a program may have saved a date that nobody can type, such as 0001-01-01.
        if contact is not None and form[name] == _dates_typed(context, contact).get(name):
            continue
        typed = readings(trimmed(form[name]), context.language) if name in _DATES else (form[name],)
        try:
            found = [reader(one) for one in typed]
        except ContactFault as fault:
            _note(context, fault)
            continue
        said[name] = found[0]
        if name == "email" and (contact is None or said[name] != contact.email):
            form.questions(name, said[name])
        if len(found) > 1:
            one, other = (_DATES[name](context, each) for each in found)
            form.error(name, context.say(EITHER_DAY, typed=form[name], one=one, other=other))
    own = await context.read(list_fields, context.customer)
    said["fields"] = {
        field.key: form.text(f"{_FIELD}{field.key}", model.MAX_FIELD, required=False) or None for field in own
    }
    return ContactChange(**said)


def _read_email(typed: str) -> str:
    with suppress(EmailError):
        typed = pasted_email(typed)
    return model.read_email(typed)


async def _values(context: RequestContext, contact: Contact) -> dict[str, str]:
    """Returns what the fields of a contact show, except its groups and whether it has left."""
    place, address = context.customer, None
    async with context.database.connection(context.person.scope) as connection:
        own = await list_fields(connection, place)
        if contact.has_address:
            sealed = await read_sealed_address(connection, place, contact.id)
            address = service.open_address(context.services.vault, place[0], contact.id, sealed)
    return {
        "name": contact.name or "",
        "email": contact.email,
        **_dates_typed(context, contact),
        "language": contact.language or "",
        "country": contact.country or "",
        "address": address or "",
        "external_id": contact.external_id or "",
        **{f"{_FIELD}{one.key}": contact.own_fields.get(one.key) or "" for one in own},
    }


async def _show(context: RequestContext, contact: Contact | None) -> Response:
    async with context.database.connection(context.person.scope) as connection:
        groups = await list_group_names(connection, context.customer)
        fields = await list_fields(connection, context.customer)
    chosen_groups = contact.groups if contact else ()
    languages, countries = _offered(context)
    return context.page(
        "contacts/contact.html",
        contact=contact,
        groups=list(groups.values()),
        chosen_groups=set(context.form.all("group") if context.form.errors else chosen_groups),
        fields=fields,
        now=await _values(context, contact) if contact else {},
        was_groups="\n".join(chosen_groups),
        languages=languages,
        countries=countries,
        is_left=context.form["left"] == "yes" if context.form.errors else contact is not None and not contact.is_active,
        most={
            "name": model.MAX_NAME,
            "external_id": model.MAX_EXTERNAL_ID,
            "field": model.MAX_FIELD,
            "groups": _MOST_NEW_GROUPS,
        },
    )


def _offered(context: RequestContext) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Returns the languages and the countries that a contact can have, each with its name."""
    nothing = ("", context.say("Not known"))
    names = [(code, context.language.country(code)) for code in context.language.in_order(model.country_codes())]
    return [nothing, *((tag, one.name) for tag, one in LANGUAGES.items())], [nothing, *names]


def group_choices(context: RequestContext, groups: Sequence[Group]) -> list[tuple[int, str]]:
    """Returns the groups by which a list can be filtered, each with the number of its contacts."""
    counted = context.language.counted
    return [(one.id, f"{one.name} ({counted(one.members, model.MOST_MEMBERS_COUNTED)})") for one in groups]


def wrong(context: RequestContext, kind: str) -> str:
    """Returns what is wrong with a value; `kind` is one of the model's PROBLEMS."""
    return context.say(_WRONG.get(kind) or WRONG_EMAIL[kind], most=_MOST.get(kind, ""))


def _note(context: RequestContext, fault: ContactFault) -> None:
    """Adds a fault to the form, beside its field."""
    context.form.error(fault.field, wrong(context, fault.kind))


def too_many(context: RequestContext, refusal: TooManyContacts | TooManyGroups) -> str:
    """Returns which limit a company has reached."""
    is_contacts = isinstance(refusal, TooManyContacts)
    most = context.language.number(model.MOST_CONTACTS if is_contacts else model.MOST_GROUPS)
    return context.say(_TOO_MANY if is_contacts else _TOO_MANY_GROUPS, most=most)


def _birthday_shown(context: RequestContext, birthday: int | None) -> str:
    """Returns a birthday as pages show it: `14 Mar`."""
    if birthday is None:
        return ""
    return context.language.short_day(date(_LEAP_YEAR, birthday // 100, birthday % 100), with_year=False)


def _dates_typed(context: RequestContext, contact: Contact) -> dict[str, str]:
    """Returns the dates of a contact as their form fields show them: `14/03` and `14/03/2026`, in German `14.03` and `14.03.2026`."""
    month, day = divmod(contact.birthday or 0, 100)
    typed = {
        "birthday": f"{day:02}/{month:02}" if contact.birthday else "",
        "start_date": f"{contact.start_date:%d/%m/%Y}" if contact.start_date else "",
    }
    return {name: value.replace("/", "." if context.language.tag == "de" else "/") for name, value in typed.items()}


_DATES: dict[str, Callable[[RequestContext, Any], str]] = {
    "birthday": _birthday_shown,
    "start_date": lambda context, at: context.language.day(at),
}
