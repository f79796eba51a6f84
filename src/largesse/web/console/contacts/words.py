"""Errors in the values of a contact, in the language of the page, and birthdays as pages show them."""

from __future__ import annotations

from datetime import date

from largesse.base.i18n.templates import text
from largesse.contacts.model import (
    MAX_ADDRESS,
    MAX_EXTERNAL_ID,
    MAX_FIELD,
    MAX_GROUP,
    MOST_CONTACTS,
    MOST_GROUPS,
    MOST_GROUPS_EACH,
    ContactFault,
)
from largesse.contacts.service import TooManyContacts, TooManyGroups
from largesse.web.console.context import RequestContext
from largesse.web.console.send.recipients import WRONG as WRONG_EMAIL

_WRONG = {
    "email_taken": text("Another contact has this address."),
    "birthday_wrong": text("This is not a day and a month, such as 14/03."),
    "birthday_none": text("No year has this day."),
    "birthday_year": text("Leave out the year."),
    "start_date_wrong": text("This is not a date, such as 01/03/2024."),
    "language_wrong": text("Choose English, French or German."),
    "country_wrong": text("This is not a country. Use its name or its code, such as GB."),
    "address_long": text("This has more than %(most)s characters."),
    "address_wrong": text("This has characters that are not allowed. Type it again."),
    "external_id_long": text("This has more than %(most)s characters."),
    "external_id_wrong": text("This has characters that are not allowed. Type it again."),
    "external_id_taken": text("Another contact has this id."),
    "groups_long": text("The name of a group has more than %(most)s characters."),
    "groups_wrong": text("The name of a group is blank, or has characters that are not allowed."),
    "groups_many": text("A contact is in at most %(most)s groups."),
    "fields_long": text("This has more than %(most)s characters."),
    "fields_wrong": text("This has characters that are not allowed. Type it again."),
    "fields_unknown": text("This field no longer exists. Open the page again."),
}
_MOST = {
    "address_long": MAX_ADDRESS,
    "external_id_long": MAX_EXTERNAL_ID,
    "groups_long": MAX_GROUP,
    "groups_many": MOST_GROUPS_EACH,
    "fields_long": MAX_FIELD,
}
_TOO_MANY = text("A company has at most %(most)s contacts. Delete some first.")
_TOO_MANY_GROUPS = text("A company has at most %(most)s groups. Delete some first.")
_LEAP_YEAR = 2000


def wrong(context: RequestContext, kind: str) -> str:
    """Returns what is wrong with a value; `kind` is one of the model's PROBLEMS."""
    return context.say(_WRONG.get(kind) or WRONG_EMAIL[kind], most=_MOST.get(kind, ""))


def note(context: RequestContext, fault: ContactFault) -> None:
    """Adds a fault to the form, beside its field."""
    context.form.error(fault.field, wrong(context, fault.kind))


def too_many(context: RequestContext, refusal: TooManyContacts | TooManyGroups) -> str:
    """Returns which limit a company has reached."""
    is_contacts = isinstance(refusal, TooManyContacts)
    most = context.language.number(MOST_CONTACTS if is_contacts else MOST_GROUPS)
    return context.say(_TOO_MANY if is_contacts else _TOO_MANY_GROUPS, most=most)


def birthday_shown(context: RequestContext, birthday: int | None) -> str:
    """Returns a birthday as pages show it: `14 Mar`."""
    if birthday is None:
        return ""
    return context.language.short_day(date(_LEAP_YEAR, birthday // 100, birthday % 100), with_year=False)


def birthday_typed(birthday: int | None) -> str:
    """Returns a birthday as the form field shows it: `14/03`."""
    return "" if birthday is None else f"{birthday % 100:02}/{birthday // 100:02}"
