"""Reads contacts from a sheet: finds the column of each field, checks the rows, and reports all faults of each row."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from largesse.base.cooperative import Steps
from largesse.base.email import email_key
from largesse.base.text import is_error, is_rounded, trimmed
from largesse.contacts import model
from largesse.contacts.dates import either_first, month_lead, read_birthday, read_start_date, with_day_first
from largesse.drafts.columns import (
    Columns,
    fits,
    guess_columns,
    has_numbered_names,
    known_heading,
    name_in,
    plain_heading,
    unread_columns,
)
from largesse.drafts.mailboxes import is_bare, read_mailboxes
from largesse.drafts.mistyped import likely_addresses
from largesse.drafts.sheet import Sheet, SheetRow, fields_of

# Headings of each field, in the languages of the pages, as `plain_heading` returns them.
_HEADINGS: Mapping[str, frozenset[str]] = {
    "birthday": frozenset({"birthday", "birthdate", "dateofbirth", "dob", "anniversaire", "datedenaissance", "naissance", "geburtstag", "geburtsdatum", "gebdatum", "fechadenacimiento", "nacimiento", "cumpleanos", "datadenascimento", "nascimento", "aniversario", "datadinascita", "geboortedatum", "fodelsedatum", "生年月日", "誕生日", "出生日期", "생년월일"}),
    "start_date": frozenset({"startdate", "start", "joined", "hiredate", "originalhiredate", "datehired", "dateofhire", "joindate", "employmentstartdate", "joiningdate", "dateofjoining", "firstday", "dateentree", "datedentree", "dateembauche", "datedembauche", "debut", "eintritt", "eintrittsdatum", "einstellungsdatum", "beginn", "fechadealta", "fechadeingreso", "fechadecontratacion", "datadeadmissao", "admissao", "datadiassunzione", "datadassunzione", "datumindienst", "入社日", "入社年月日", "入职日期", "입사일"}),
    "language": frozenset({"language", "lang", "locale", "langue", "sprache", "idioma", "lingua", "taal", "言語"}),
    "country": frozenset({"country", "countrycode", "pays", "land", "pais", "paese", "nazione", "国"}),
    "groups": frozenset({"group", "groups", "team", "department", "departement", "groupe", "groupes", "equipe", "gruppe", "gruppen", "abteilung", "departamento", "equipo", "reparto", "dipartimento", "afdeling", "部署", "部門", "部门", "부서"}),
    "external_id": frozenset({"externalid", "id", "employeeid", "employeenumber", "personalnummer", "personalnr", "persnr", "mitarbeiternummer", "mitarbeiternr", "matricule", "yourid", "ihrekennung", "votreidentifiant", "numeroempleado", "社員番号", "従業員番号", "工号", "사번"}),
    "state": frozenset(),
    "address": frozenset({"address", "postaladdress", "street", "streetaddress", "adresse", "adressepostale", "rue", "anschrift", "strasse", "strassenr", "strassehausnummer", "strasseundhausnummer", "addressline1", "address1", "street1", "streetaddress1", "adresse1", "adresseligne1", "homestreet", "businessstreet", "homeaddress", "direccion", "endereco", "indirizzo", "adres", "住所"}),
    "address_number": frozenset({"housenumber", "houseno", "housenr", "streetnumber", "streetno", "hausnummer", "hausnr", "numerodevoie", "numerodanslavoie", "numeroderue", "numerorue", "huisnummer", "civico", "numerocivico", "numerodecalle", "numeroexterior"}),
    "address_line": frozenset({"addressline2", "address2", "street2", "streetaddress2", "homestreet2", "businessstreet2", "secondaddressline", "adresszusatz", "adressezusatz", "adresszeile2", "strasse2", "adresse2", "adresseligne2", "complementadresse", "complementdadresse", "direccion2", "complemento", "indirizzo2"}),
    "address_2": frozenset({"postcode", "postalcode", "zip", "zipcode", "codepostal", "plz", "postleitzahl", "homepostalcode", "businesspostalcode", "codigopostal", "cep", "cap", "郵便番号"}),
    "address_3": frozenset({"city", "town", "ville", "stadt", "ort", "homecity", "businesscity", "ciudad", "cidade", "citta", "plaats"}),
    "address_region": frozenset({"state", "province", "county", "stateprovince", "stateorprovince", "stateregion", "stateprovinceregion", "homestate", "businessstate", "bundesland", "kanton", "canton", "provincia", "prefecture", "都道府県"}),
}  # fmt: skip
PARTS = tuple(_HEADINGS)
_ALL_HEADINGS = frozenset().union(*_HEADINGS.values())
# The parts of an address that are read only if the file has a column for the street.
_BELOW_STREET = ("address_number", "address_line", "address_2", "address_3", "address_region")
OWN = "fields."
_DATES = ("birthday", "start_date")
DAY, MONTH = "day", "month"
# What Outlook saves if there is no date, and what spreadsheets show if a formula copied a blank date.
_NO_DATE = re.compile(r"0?0([-/.])0?0\1(?:00|0000)|0000-00-00|0?0([/.])0?1\2(?:19)?00|0?1/0?0/(?:19)?00|1900-01-00")
_LINES = ("address_line", "address_2", "address_3", "address_region")  # the lines of an address after the first one


class ContactColumns(msgspec.Struct, frozen=True):
    """The numbers of columns, from 0: address and name in `base`, other parts by name in `parts`, own fields by key in `fields`."""

    base: Columns
    parts: Mapping[str, int] = {}
    fields: Mapping[str, int] = {}

    def fits(self, sheet: Sheet) -> bool:
        """Returns whether a sheet has all these columns, and one of them is the address."""
        is_there = all(0 <= at < sheet.width for at in self._used)
        return self.base.email is not None and fits(self.base, sheet) and is_there

    def unread(self, sheet: Sheet) -> list[int]:
        """Returns the columns of a sheet that are not empty and are not read."""
        return unread_columns(sheet, self._used, has_heading=self.base.has_heading)

    @property
    def _used(self) -> list[int]:
        return [*self.base.used, *self.parts.values(), *self.fields.values()]


class CheckedContact(msgspec.Struct, frozen=True, gc=False):
    """A row of a sheet as a change, with its faults."""

    number: int
    email: str
    name: str
    change: model.ContactChange
    # The faults, each as a field and a kind from the model's PROBLEMS. An own field is OWN and its key.
    faults: tuple[tuple[str, str], ...] = ()
    same_as: int | None = None  # the number of the first row with the same address, for a row without faults


class CheckedContacts(msgspec.Struct, frozen=True):
    """The rows of a sheet, checked."""

    rows: tuple[CheckedContact, ...]
    month_first: tuple[str, ...] = ()  # the parts whose dates are read with the month first
    # The parts whose dates may have either first, and do not show which: each with one of its dates.
    unsure: tuple[tuple[str, str], ...] = ()
    # The addresses that were probably meant, by row number, of rows without faults whose domains look mistyped.
    doubtful: Mapping[int, str] = {}

    @property
    def bad(self) -> list[CheckedContact]:
        """The rows with faults."""
        return [row for row in self.rows if row.faults]

    @property
    def changes(self) -> list[model.ContactChange]:
        """The changes that the rows without faults make."""
        return [row.change for row in self.rows if not row.faults]

    @property
    def repeated(self) -> list[CheckedContact]:
        """The rows without faults that are merged into an earlier one."""
        return [row for row in self.rows if row.same_as is not None]


def guess_contact_columns(sheet: Sheet, own: Sequence[model.OwnField]) -> ContactColumns:
    """Returns the columns that the headings name. Without headings, returns only the address and the name."""
    base = msgspec.structs.replace(guess_columns(sheet), quantity=None)
    if not base.has_heading:
        return ContactColumns(base)
    if (in_ours := fields_of(sheet.rows[0].cells)) is not None:
        return _of_ours(sheet, base, in_ours, own)
    of_own = {plain_heading(one) for field in own for one in (field.name, field.key)}
    headings = [known_heading(cell, of_own | _ALL_HEADINGS) for cell in sheet.rows[0].cells]
    taken = set(base.used)
    fields: dict[str, int] = {}
    for field in own:
        at = _first(headings, {plain_heading(field.name), plain_heading(field.key)}, taken)
        if at is not None:
            fields[field.key] = at
            taken.add(at)
    parts: dict[str, int] = {}
    for part, known in _HEADINGS.items():
        at = _first(headings, known, taken)
        if (
            at is not None
            and (part not in _BELOW_STREET or "address" in parts)
            and not _is_state_of_work(part, sheet, at)
        ):
            parts[part] = at
            taken.add(at)
    return ContactColumns(base, parts, fields)


def _of_ours(sheet: Sheet, base: Columns, known: Sequence[str], own: Sequence[model.OwnField]) -> ContactColumns:
    """Returns the columns of a file of ours: those in `known`, and after them the customer's own fields by their whole names."""
    names = {at: heading for at, heading in enumerate(sheet.rows[0].cells) if at >= len(known)}
    fields = {one.key: at for one in own for at, heading in names.items() if heading == trimmed(one.name)}
    return ContactColumns(base, {part: known.index(part) for part in PARTS if part in known}, fields)


def check_contacts(
    sheet: Sheet, columns: ContactColumns, order: str = "", *, corrects: bool = False
) -> Steps[CheckedContacts]:
    """Checks all rows except the heading, one in each step: an address with a domain beyond ASCII takes milliseconds.

    `order` is DAY or MONTH, whichever is first in dates such as `03/04/1990`. Without it, the dates decide; the day is first if they cannot.
    `corrects` replaces each address whose domain looks mistyped by the one that was probably meant.
    """
    found: list[CheckedContact] = []
    at = {part: columns.parts[part] for part in _DATES if part in columns.parts}
    dates = {part: [_cell(row, column) for row in sheet.rows] for part, column in at.items()}
    month_first, unsure = _orders(dates) if not order else (tuple(dates) if order == MONTH else (), ())
    is_numbered = has_numbered_names(sheet, columns.base)
    for row in sheet.rows[int(columns.base.has_heading) :]:
        found.append(_check(row, columns, month_first, name_in(row, columns.base, is_numbered=is_numbered)))
        yield
    doubtful = yield from likely_addresses({row.number: row.email for row in found if not row.faults})
    rows: list[CheckedContact] = []
    seen: dict[str, int] = {}
    for one in found:
        checked = _with_email(one, doubtful[one.number]) if corrects and one.number in doubtful else one
        first = seen.setdefault(email_key(checked.email), checked.number) if not checked.faults else checked.number
        rows.append(checked if first == checked.number else msgspec.structs.replace(checked, same_as=first))
        yield
    return CheckedContacts(tuple(rows), month_first if not order else (), unsure, doubtful)


def _with_email(row: CheckedContact, email: str) -> CheckedContact:
    replace = msgspec.structs.replace
    return replace(row, email=email, change=replace(row.change, email=email))


def _orders(dates: Mapping[str, Sequence[str]]) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Returns the parts whose dates have the month first, and those that show no order, each with such a date.

    A part that does not show its order has the order of the others.
    """
    leads = {part: month_lead(cells) for part, cells in dates.items()}
    of_all = sum(leads.values())
    open_ones = {part: either_first(dates[part]) for part, lead in leads.items() if not (lead or of_all)}
    month_first = tuple(part for part, lead in leads.items() if (lead or of_all) > 0)
    return month_first, tuple((part, example) for part, example in open_ones.items() if example is not None)


def _check(row: SheetRow, columns: ContactColumns, month_first: Collection[str], name: str) -> CheckedContact:
    faults: list[tuple[str, str]] = []

    def read(reader: Callable[[str], Any], typed: str, field: str = "") -> Any:
        try:
            return reader(typed)
        except model.ContactFault as fault:
            faults.append((field or fault.field, fault.kind))
            return None

    cell = _cell(row, columns.base.email)
    listed = [] if is_bare(cell) else (read_mailboxes(cell) or [])
    own_name, typed_email = listed[0] if len(listed) == 1 else ("", cell)
    name = name or own_name
    said: dict[str, Any] = {"email": read(model.read_email, typed_email) or ""}
    if name:
        said["name"] = read(partial(_read_text, "name", model.MAX_NAME), name)
    readers: Mapping[str, Callable[[str], Any]] = {
        # Most lists have a year, and a workbook stores one even if it shows none.
        "birthday": partial(read_birthday, drops_year=True),
        "start_date": read_start_date,
        "language": model.read_language,
        "country": model.read_country,
        "state": _read_state,
        "external_id": partial(_read_text, "external_id", model.MAX_EXTERNAL_ID),
    }
    for part, reader in readers.items():  # a blank cell changes nothing
        typed = _cell(row, columns.parts.get(part))
        if typed and not (part in _DATES and _NO_DATE.fullmatch(typed)):
            said["is_active" if part == "state" else part] = read(
                reader, with_day_first(typed) if part in month_first else typed
            )
    if address := _address(row, columns.parts):
        said["address"] = read(partial(_read_text, "address", model.MAX_ADDRESS, lines=True), address)
    groups = model.read_groups(_cell(row, columns.parts.get("groups")))
    said["more_groups"] = tuple(found for one in groups if (found := read(_read_group, one)))
    values = {key: _cell(row, at) for key, at in columns.fields.items()}
    said["fields"] = {
        key: read(partial(_read_text, "fields", model.MAX_FIELD), value, f"{OWN}{key}")
        for key, value in values.items()
        if value
    }
    return CheckedContact(
        row.number, said["email"] or typed_email, name, model.ContactChange(**said), tuple(dict.fromkeys(faults))
    )


def _address(row: SheetRow, parts: Mapping[str, int]) -> str:
    """Returns the lines of a postal address. The house number is before or after the street, as the columns are."""
    first = sorted(at for part in ("address", "address_number") if (at := parts.get(part)) is not None)
    lines = [" ".join(filter(None, (_cell(row, at) for at in first)))]
    return "\n".join(filter(None, [*lines, *(_cell(row, parts.get(part)) for part in _LINES)]))


def _is_state_of_work(part: str, sheet: Sheet, at: int) -> bool:
    """Returns whether a column `State` says who works there and who has left, and is no part of an address."""
    cells = {_cell(row, at).casefold() for row in sheet.rows[1:]}
    return part == "address_region" and not cells.isdisjoint(_NO_REGION)


def _read_text(field: str, most: int, typed: str, *, lines: bool = False) -> str | None:
    """Returns a text. Raises ContactFault, also for the error of a formula, and for an id whose last digits a spreadsheet lost."""
    if is_error(typed):
        raise model.ContactFault(field, "formula")
    if field == "external_id" and is_rounded(typed):
        raise model.ContactFault(field, "external_id_rounded")
    return model.read_text(field, typed, most, lines=lines)


# The words in files of ours: those of pages in each language, and those of commands.
_STATES = {
    **dict.fromkeys(("active", "aktiv", "actif", "true"), True),
    **dict.fromkeys(("has left", "ausgeschieden", "parti", "false"), False),
}

_NO_REGION = {*_STATES, "inactive", "inaktiv", "inactif", "left", "terminated", "on leave"}


def _read_state(typed: str) -> bool:
    """Returns whether a contact is active, from the word of a file of ours. Raises ContactFault."""
    if (is_active := _STATES.get(typed.casefold())) is None:
        raise model.ContactFault("state", "state_wrong")
    return is_active


def _read_group(typed: str) -> str:
    """Returns the name of a group. Raises ContactFault, also for the error of a formula."""
    _read_text("groups", model.MAX_GROUP, typed)
    return model.checked_group(typed)


def _first(headings: Sequence[str], wanted: Collection[str], taken: Collection[int]) -> int | None:
    return next((at for at, heading in enumerate(headings) if heading in wanted and at not in taken), None)


def _cell(row: SheetRow, at: int | None) -> str:
    return row.cells[at] if at is not None and at < len(row.cells) else ""
