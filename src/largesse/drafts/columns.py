"""The meaning of a sheet's columns: guessed from headings and cells, and corrected by the person."""

import hashlib
import re
from collections.abc import Collection

import msgspec

from largesse.drafts.mailboxes import common_domains, suggested
from largesse.drafts.sheet import Sheet
from largesse.orders.recipients import MAX_QUANTITY

# Headings of each kind of column, in the languages of the pages, as `plain_heading` returns them.
_EMAILS = {
    "email", "mail", "emailaddress", "mailaddress", "recipientemail", "workemail", "courriel", "adresseemail", "adressemail",
    "adressecourriel", "emailadresse", "mailadresse", "epost", "adressemel", "mel",
}  # fmt: skip
_NAMES = {
    "name", "fullname", "recipient", "recipientname", "employee", "employeename", "displayname", "nomcomplet", "destinataire",
    "empfanger", "empfaenger", "vollername", "mitarbeiter", "vorundnachname", "vornamenachname", "vornameundnachname",
    "nometprenom", "prenometnom", "nomprenom", "prenomnom", "lastnamefirstname", "firstnamelastname", "nachnamevorname", "namevorname", "collaborateur", "salarie", "firstandlastname", "contact", "person",
}  # fmt: skip
_FIRST_NAMES = {"firstname", "first", "fname", "givenname", "forename", "prenom", "vorname"}
_LAST_NAMES = {"lastname", "last", "lname", "surname", "familyname", "nom", "nomdefamille", "nachname", "familienname"}
_QUANTITIES = {"quantity", "qty", "codes", "gifts", "quantite", "nombre", "anzahl", "menge", "stuck", "stueck"}
# Headings of columns whose words are not names.
_OTHERS = {
    "company", "organisation", "organization", "firma", "unternehmen", "entreprise", "societe", "department", "abteilung", "departement",
    "service", "team", "jobtitle", "position", "funktion", "fonction", "poste", "city", "ort", "stadt", "ville", "country", "land", "pays",
    "location", "office", "standort", "site", "buro", "bureau", "status", "salutation", "anrede", "civilite",
}  # fmt: skip
_ALL_NAMES = _NAMES | _FIRST_NAMES | _LAST_NAMES
_KNOWN = _EMAILS | _ALL_NAMES | _QUANTITIES
_PLAINLY = str.maketrans("àâäçéèêëîïôöùûüÿñ", "aaaceeeeiioouuuyn")
_SIGNS = re.compile(r"[\W_]+")
# What people type for a number of codes, valid or not: `2`, `2.0`, `1.000`, `2x`, `-1`, and digits of any script.
# Longer numbers are telephone numbers and the like.
_NUMBER = re.compile(r"[-+]?[x\u00d7]? ?\d{1,4}(?:[.,]\d{1,3})? ?[x\u00d7]?", re.IGNORECASE)
# A personnel number or a telephone number: `101`, `EMP-0012`, `+44 7700 900123`.
_IDENTIFIER = re.compile(r"[^\W\d_]{0,3}[^\w\s]?\d[\d\W_]*")
_THOUSANDS = re.compile(r"(?<=^[0-9])[\s'\u2019](?=[0-9]{3}(?![0-9]))")
_DECIMALS = re.compile(r"([0-9]+)[.,]00?")
_SAMPLED_ROWS = 100
_MOST_NAMES = 2
_MOST_TITLE_ROWS = 10


class Columns(msgspec.Struct, frozen=True):
    """The index of each column, from 0; None if there is none. A name may have two columns."""

    email: int | None = None
    names: tuple[int, ...] = ()
    quantity: int | None = None
    has_heading: bool = False

    @property
    def used(self) -> tuple[int, ...]:
        """The columns with a meaning."""
        return tuple(at for at in (self.email, *self.names, self.quantity) if at is not None)


def guess_columns(sheet: Sheet) -> Columns:
    """Guesses columns by headings, or without headings by cells. A quantity is never guessed by its cells."""
    first = sheet.rows[0].cells
    headings = [plain_heading(cell) for cell in first]
    for at, heading in enumerate(headings):
        if heading in _ALL_NAMES and not _holds_names(sheet, at):
            headings[at] = ""
    known = _by_heading(headings, sheet)
    has_heading = known != Columns() or (len(sheet.rows) > 1 and not _is_recipient(sheet))
    has_heading = has_heading and not any("@" in cell for cell in first)
    if not has_heading:
        known = Columns()
    email = known.email if known.email is not None else _addresses_at(sheet, has_heading=has_heading)
    names = known.names if has_heading and known.names else _name_at(sheet, email, known)
    return Columns(email, names, known.quantity, has_heading)


def below_title(sheet: Sheet) -> Sheet:
    """Returns the sheet without the titles above its headings.

    The headings are the first row that has the heading of an address, otherwise the first with two other known headings. No row above
    them has an address.
    """
    of_two: int | None = None
    for at, row in enumerate(sheet.rows[:_MOST_TITLE_ROWS]):
        if any("@" in cell for cell in row.cells):
            break
        headings = {plain_heading(cell) for cell in row.cells}
        if headings & _EMAILS:
            return Sheet(sheet.rows[at:])
        if of_two is None and len(headings & _KNOWN) > 1:
            of_two = at
    return Sheet(sheet.rows[of_two:])


def as_labelled(sheet: Sheet, columns: Columns) -> Columns:
    """Returns the columns of rows below the label "address, name, how many".

    The column after the address and the name is the quantity if most of its cells are numbers, so that wrong ones are found. The other
    column beside the address is the name if it has letters.
    """
    email = columns.email
    if columns.has_heading or email is None or email > 1:
        return columns
    last = min(sheet.width, 3) - 1
    if last > email and last not in columns.used and _holds_numbers(sheet, last):
        columns = msgspec.structs.replace(columns, quantity=last)
    beside = 1 - email
    is_free = beside < sheet.width and beside not in columns.used
    if is_free and not columns.names and any(_has_letters(cell) for cell in _cells(sheet, beside)):
        columns = msgspec.structs.replace(columns, names=(beside,))
    return columns


def plain_quantity(cell: str) -> str:
    """Returns a number of codes without decimals, which some programs write, and without a blank or an apostrophe between thousands.

    `2` for `2.0`, and `1000` for `1 000`. A dot or a comma before three digits may begin decimals, so it stays.
    """
    joined = _THOUSANDS.sub("", cell)
    found = _DECIMALS.fullmatch(joined)
    return found[1] if found else joined


def is_quantity(text: str) -> bool:
    """Returns whether a cell is a number of codes. A blank one means one."""
    if not text:
        return True
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(MAX_QUANTITY))
    return is_number and 1 <= int(text) <= MAX_QUANTITY


def heading_key(sheet: Sheet, columns: Columns) -> bytes | None:
    """Returns the key under which a choice of columns is stored for sheets with these headings; None without headings."""
    if not columns.has_heading:
        return None
    return hashlib.sha256("\n".join(map(plain_heading, sheet.rows[0].cells)).encode()).digest()


def fits(columns: Columns, sheet: Sheet) -> bool:
    """Returns whether a sheet has all these columns, and none is used twice."""
    used = columns.used
    return (
        len(set(used)) == len(used) and len(columns.names) <= _MOST_NAMES and all(0 <= at < sheet.width for at in used)
    )


def unread_columns(sheet: Sheet, used: Collection[int], *, has_heading: bool) -> list[int]:
    """Returns the columns without a meaning that have a cell below the heading. Pages name them, as they are not used."""
    rows = sheet.rows[int(has_heading) :]
    return [at for at in range(sheet.width) if at not in used and any("".join(row.cells[at : at + 1]) for row in rows)]


def _by_heading(headings: list[str], sheet: Sheet) -> Columns:
    name = _first(headings, _NAMES)
    first_name, last_name = _first(headings, _FIRST_NAMES), _first(headings, _LAST_NAMES)
    if (
        name is not None
        and first_name is not None
        and last_name is None
        and not _has_full_names(sheet, name, first_name)
    ):
        last_name = name  # `Name; Vorname`, as German lists have it
    elif (
        name is not None
        and last_name is not None
        and first_name is None
        and not _has_full_names(sheet, name, last_name)
    ):
        first_name = name  # `Name, Surname`
    apart = tuple(at for at in (first_name, last_name) if at is not None)
    return Columns(
        email=_first(headings, _EMAILS),
        names=apart if len(apart) == _MOST_NAMES or name is None else (name,),
        quantity=_first(headings, _QUANTITIES),
    )


def _has_full_names(sheet: Sheet, name: int, part: int) -> bool:
    """Returns whether a column `name` has full names, which repeat the first or last names of the column `part`."""
    pairs = [(row.cells[name : name + 1], row.cells[part : part + 1]) for row in sheet.rows[1:_SAMPLED_ROWS]]
    return any(one and one[0] and one[0] in "".join(full).replace(",", " ").split() for full, one in pairs)


def _is_recipient(sheet: Sheet) -> bool:
    """Returns whether a first row without a valid address is a recipient, not headings: it has a number, or an address with a mistake."""
    first, email = sheet.rows[0].cells, _addresses_at(sheet, has_heading=True)
    if email is None:
        return False
    domains = common_domains(_cells(sheet, email))
    return (
        any(map(is_quantity, filter(None, first))) or suggested("".join(first[email : email + 1]), domains) is not None
    )


def _holds_numbers(sheet: Sheet, at: int) -> bool:
    """Returns whether most cells of a column are numbers that people type as a quantity."""
    cells = _cells(sheet, at)
    return 2 * sum(_NUMBER.fullmatch(cell) is not None for cell in cells) > len(cells)


def _holds_names(sheet: Sheet, at: int) -> bool:
    """Returns whether at least half of the cells below a heading may be names. A column `Contact` may have addresses instead."""
    cells = _cells(Sheet(sheet.rows[1:_SAMPLED_ROWS]), at)
    return 2 * sum("@" in cell or _IDENTIFIER.fullmatch(cell) is not None for cell in cells) <= len(cells)


def _cells(sheet: Sheet, at: int) -> list[str]:
    """Returns the cells of a column that are not blank."""
    return [row.cells[at] for row in sheet.rows if at < len(row.cells) and row.cells[at]]


def _has_letters(cell: str) -> bool:
    return "@" not in cell and any(character.isalpha() for character in cell)


def _addresses_at(sheet: Sheet, *, has_heading: bool) -> int | None:
    """Returns the column with the most different cells that may be addresses. A column with managers' addresses has fewer."""
    found: list[set[str]] = [set() for _ in range(sheet.width)]
    for row in sheet.rows[int(has_heading) : _SAMPLED_ROWS]:
        for at, cell in enumerate(row.cells):
            if "@" in cell:
                found[at].add(cell)
    best = max(range(len(found)), key=lambda at: (len(found[at]), -at))
    return best if found[best] else None


def _name_at(sheet: Sheet, email: int | None, known: Columns) -> tuple[int, ...]:
    """Returns the first other column with words whose heading has no other meaning; an empty tuple if there is none."""
    if known.email is not None or email is None:
        return ()
    sampled = Sheet(sheet.rows[:_SAMPLED_ROWS])
    others = {at for at, cell in enumerate(sheet.rows[0].cells) if plain_heading(cell) in _OTHERS}
    for at in range(sheet.width):
        cells = _cells(sampled, at)
        if at not in {email, known.quantity, *others} and cells and all(_is_word(cell) for cell in cells):
            return (at,)
    return ()


def _first(headings: list[str], wanted: set[str]) -> int | None:
    return next((at for at, heading in enumerate(headings) if heading in wanted), None)


def plain_heading(heading: str) -> str:
    """Returns a heading without letter case, accents, blanks and signs, for comparisons."""
    return _SIGNS.sub("", heading.casefold().translate(_PLAINLY))


def _is_word(cell: str) -> bool:
    return "@" not in cell and not any(character.isdigit() for character in cell)
