"""The meaning of a sheet's columns: guessed from headings and cells, and corrected by the person."""

import hashlib
import itertools
import re
from collections.abc import Collection, Sequence

import msgspec

from largesse.base.text import plain_digits
from largesse.drafts.mailboxes import common_domains, is_bare, read_mailboxes, suggested
from largesse.drafts.sheet import Sheet, SheetRow, fields_of
from largesse.orders.recipients import MAX_QUANTITY

# Headings of each kind of column, in the languages of the pages and others that files come in, as `plain_heading` returns them.
_EMAILS = {
    "email", "mail", "emailaddress", "mailaddress", "recipientemail", "workemail", "courriel", "adresseemail", "adressemail",
    "adressecourriel", "emailadresse", "mailadresse", "epost", "adressemel", "mel", "correo", "correoelectronico", "enderecodeemail",
    "indirizzoemail", "emailadres", "epostadress", "メール", "メールアドレス", "電子メール", "邮箱", "电子邮件", "이메일",
}  # fmt: skip
_NAMES = {
    "name", "fullname", "recipient", "recipientname", "employee", "employeename", "displayname", "nomcomplet", "destinataire",
    "empfanger", "empfaenger", "vollername", "mitarbeiter", "vorundnachname", "vornamenachname", "vornameundnachname",
    "nometprenom", "prenometnom", "nomprenom", "prenomnom", "lastnamefirstname", "firstnamelastname", "nachnamevorname", "namevorname", "collaborateur", "salarie", "firstandlastname", "contact", "person",
    "worker", "nome", "nomecompleto", "colaborador", "nombrecompleto", "nombreyapellidos", "empleado", "nominativo", "naam", "namn", "氏名", "名前", "お名前", "姓名", "이름", "성명",
}  # fmt: skip
_FIRST_NAMES = {
    "firstname", "first", "fname", "givenname", "forename", "prenom", "vorname", "nombres", "primeironome", "voornaam", "fornamn", "名",
}  # fmt: skip
_LAST_NAMES = {
    "lastname", "last", "lname", "surname", "familyname", "nom", "nomdefamille", "nachname", "familienname",
    "apellido", "apellidos", "sobrenome", "cognome", "achternaam", "efternamn", "姓",
}  # fmt: skip
_QUANTITIES = {
    "quantity", "qty", "codes", "gifts", "quantite", "qte", "nbre", "nb", "nombre", "anzahl", "menge", "stuck", "stueck", "stk", "stuckzahl",
    "cantidad", "quantidade", "qtd", "qtde", "quantita", "aantal", "antal", "数量", "個数", "枚数", "数", "수량",
}  # fmt: skip
# `Number of gifts`, `No. of vouchers`, `Anzahl Gutscheine`, `Nb de cartes`. Not `Number of children`.
_COUNTED = re.compile(
    r"(?:number|no|num|nr|quantity|qty|anzahl|menge|nombre|nb|nbre|quantite|qte|numero|cantidad|quantidade|qtd|aantal|antal)(?:of|der|van|de|d)?"
    r"(?:gift|code|voucher|card|item|piece|unit|gutschein|geschenk|karte|stuck|cadeau|carte|cheque|bon|regalo|tarjeta|vale|presente)+(?:s|e|n|en|x)?"
)
_NOMBRE = "nombre"  # the number in French, and the name in Spanish
# Words in the headings of addresses that belong to somebody else, or that are second to an address at work.
_OTHERS_ADDRESS = re.compile(
    "manager|supervisor|boss|approver|sender|requester|referrer|emergency|notfall|vorgesetzt|fuhrungskraft|leiter|responsable|superieur|superior|jefe|gestor"
)
_PRIVATE_ADDRESS = re.compile("private|privat|personal|home|perso|particular")
# Words before a heading that say whose it is: `Recipient e-mail`, `Legal first name`.
_WHOSE = re.compile("(?:legal|employee|recipient|worker|staff|member|contact|empfanger|mitarbeiter)(?=.)")
# Headings of columns whose words are not names.
_OTHERS = {
    "company", "organisation", "organization", "firma", "unternehmen", "entreprise", "societe", "department", "abteilung", "departement",
    "service", "team", "jobtitle", "position", "funktion", "fonction", "poste", "city", "ort", "stadt", "ville", "country", "land", "pays",
    "location", "office", "standort", "site", "buro", "bureau", "status", "salutation", "anrede", "civilite",
}  # fmt: skip
_ALL_NAMES = _NAMES | _FIRST_NAMES | _LAST_NAMES
_KNOWN = _EMAILS | _ALL_NAMES | _QUANTITIES
_PLAINLY = str.maketrans("àáâãäåçèéêëìíîïòóôõöøùúûüÿñ", "aaaaaaceeeeiiiioooooouuuuyn")
_PARTS = re.compile(r"[/|(\[\n]")  # between the parts of a heading: `Name / Nom`, `Quantity (max. 10)`
_SIGNS = re.compile(r"[\W_]+")
# What people type for a number of codes, valid or not: `2`, `2.0`, `1.000`, `2x`, `-1`, and digits of any script.
# Longer numbers are telephone numbers and the like.
_NUMBER = re.compile(r"[-+]?[x\u00d7]? ?\d{1,4}(?:[.,]\d{1,3})? ?[x\u00d7]?", re.IGNORECASE)
_ONE_TO_TWELVE = (
    "one two three four five six seven eight nine ten eleven twelve",
    "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "un deux trois quatre cinq six sept huit neuf dix onze douze",
)
_IN_WORDS = {word: str(at) for words in _ONE_TO_TWELVE for at, word in enumerate(words.split(), 1)}
_IN_WORDS |= dict.fromkeys(("ein", "eine", "einen", "une"), "1")
# A personnel number or a telephone number: `101`, `EMP-0012`, `+44 7700 900123`.
_IDENTIFIER = re.compile(r"[^\W\d_]{0,3}[^\w\s]?\d[\d\W_]*")
_THOUSANDS = re.compile(r"(?<=^[0-9])[\s'\u2019](?=[0-9]{3}(?![0-9]))")
_DECIMALS = re.compile(r"([0-9]+)[.,]00?")
_AMOUNT = re.compile(r"[0-9]+[.,][0-9]{2}")  # `25.00`: money, unless a heading says that it is a quantity
_POSTCODE = re.compile(r"\d{4}")  # a longer number is no quantity anyway
_UMLAUT = re.compile("(?<=[aou])e")  # in `mueller` for `müller`, without accents
_SAMPLED_ROWS = 100
_MOST_NAMES = 2
_MOST_WORDS = 6  # columns of words that are compared with addresses, each with each
_MOST_TITLE_ROWS = 10


class Columns(msgspec.Struct, frozen=True):
    """The index of each column, from 0; None if there is none. A name may have two columns.

    `maybe_names` are those with words, if there are several and neither headings nor addresses show which of them has the name.
    """

    email: int | None = None
    names: tuple[int, ...] = ()
    quantity: int | None = None
    has_heading: bool = False
    maybe_names: tuple[int, ...] = ()

    @property
    def used(self) -> tuple[int, ...]:
        """The columns with a meaning."""
        return tuple(at for at in (self.email, *self.names, self.quantity) if at is not None)


def guess_columns(sheet: Sheet) -> Columns:
    """Guesses columns by headings, or without headings by cells. A quantity is never guessed by its cells."""
    first = sheet.rows[0].cells
    if (fields := fields_of(first)) is not None:
        quantity = fields.index("quantity") if "quantity" in fields else None
        return Columns(fields.index("email"), (fields.index("name"),), quantity, has_heading=True)
    headings = [known_heading(cell, _KNOWN) for cell in first]
    for at, heading in enumerate(headings):
        if heading == _NOMBRE and not _holds_numbers(Sheet(sheet.rows[1:]), at):
            headings[at] = "name"
        if headings[at] in _ALL_NAMES and not _holds_names(sheet, at):
            headings[at] = ""
    known = _by_heading(headings, sheet)
    has_heading = known != Columns() or (len(sheet.rows) > 1 and not _is_recipient(sheet))
    has_heading = has_heading and not any("@" in cell for cell in first)
    if not has_heading:
        known = Columns()
    email = known.email if known.email is not None else _addresses_at(sheet, has_heading=has_heading)
    if known.names or known.email is not None or email is None:
        return Columns(email, known.names, known.quantity, has_heading)
    words = _words_at(sheet, {email, known.quantity})
    pair = _names_shown(sheet, email, words)
    unsure = words if len(words) > 1 and not pair else ()
    return Columns(email, pair or words[:1], known.quantity, has_heading, unsure)


def below_title(sheet: Sheet) -> Sheet:
    """Returns the sheet without the titles above its headings.

    The headings are the first row that has the heading of an address, otherwise the first with two other known headings. No row above
    them has an address. A sentence with one, such as "Prepared by ada@example.com", is a title.
    """
    of_two: int | None = None
    for at, row in enumerate(sheet.rows[:_MOST_TITLE_ROWS]):
        if any("@" in cell and (is_bare(cell) or read_mailboxes(cell)) for cell in row.cells):
            break
        headings = {known_heading(cell, _KNOWN) for cell in row.cells}
        if headings & _EMAILS:
            return Sheet(sheet.rows[at:])
        if of_two is None and len(headings & _KNOWN) > 1:
            of_two = at
    return Sheet(sheet.rows[of_two:])


def as_labelled(sheet: Sheet, columns: Columns) -> Columns:
    """Returns the columns of rows below the label "address, name, how many".

    The third column or else the last one is the quantity if it is after the address and most of its cells are numbers, so that wrong ones
    are found, unless all are amounts, also ones divided at their comma, or postcodes. The other column beside the address is the name if it has letters.
    """
    email = columns.email
    if columns.has_heading or email is None:
        return columns
    for at in (2, sheet.width - 1):
        is_free = email < at < sheet.width and at not in columns.used
        holds_others = _holds_amounts_or_postcodes(_cells(sheet, at)) or _divides_amounts(sheet, at)
        if is_free and _holds_numbers(sheet, at) and not holds_others:
            columns = msgspec.structs.replace(columns, quantity=at)
            break
    beside = 1 - email
    is_free = 0 <= beside < sheet.width and beside not in columns.used
    if is_free and not columns.names and any(_has_letters(cell) for cell in _cells(sheet, beside)):
        columns = msgspec.structs.replace(columns, names=(beside,))
    return columns


def plain_quantity(cell: str) -> str:
    """Returns a number of codes without decimals, which some programs write, and without a blank or an apostrophe between thousands.

    `2` for `2.0`, `two` and digits of any script, and `1000` for `1 000`. A dot or a comma before three digits may begin decimals, so it stays.
    """
    joined = _THOUSANDS.sub("", _IN_WORDS.get(cell.casefold(), plain_digits(cell)))
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


def sample(sheet: Sheet, at: int, *, has_heading: bool) -> str:
    """Returns the first cell of a column that is not empty, among the first rows."""
    rows = sheet.rows[int(has_heading) :]
    return next((row.cells[at] for row in rows[:20] if at < len(row.cells) and row.cells[at]), "")


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
        email=_email_at(headings, sheet),
        names=apart if len(apart) == _MOST_NAMES or name is None else (name,),
        quantity=_first(headings, _QUANTITIES),
    )


def _email_at(headings: list[str], sheet: Sheet) -> int | None:
    """Returns the column whose heading names an address: rather at work than at home, as in `E-mail (private)` and `E-mail (work)`."""
    found = [at for at, heading in enumerate(headings) if heading in _EMAILS]
    return min(found, key=lambda at: (_is_others(sheet, at), _is_private(sheet, at), at), default=None)


def _is_others(sheet: Sheet, at: int) -> bool:
    return _OTHERS_ADDRESS.search(_heading_of(sheet, at)) is not None


def _is_private(sheet: Sheet, at: int) -> bool:
    return _PRIVATE_ADDRESS.search(_heading_of(sheet, at)) is not None


def _heading_of(sheet: Sheet, at: int) -> str:
    return plain_heading("".join(sheet.rows[0].cells[at : at + 1]))


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
    return 2 * sum(_NUMBER.fullmatch(plain_quantity(cell)) is not None for cell in cells) > len(cells)


def _holds_amounts_or_postcodes(cells: Collection[str]) -> bool:
    """Returns whether all cells are like `25.00`, or all are numbers of four digits and differ: hardly anybody gets a thousand gifts."""
    return all(map(_AMOUNT.fullmatch, cells)) or (len(set(cells)) > 1 and all(map(_POSTCODE.fullmatch, cells)))


def _divides_amounts(sheet: Sheet, at: int) -> bool:
    """Returns whether a column is one half of amounts whose comma was read as a separator: `25,00`."""
    for left in (at - 1, at):
        pairs = [row.cells[left : left + 2] for row in sheet.rows if "".join(row.cells[left + 1 : left + 2])]
        if pairs and all(_AMOUNT.fullmatch(",".join(pair)) for pair in pairs):
            return True
    return False


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
    """Returns the column with the most different cells that may be addresses. A column with managers' addresses has fewer.

    Headings tell, too: a column of managers comes last, and one of private addresses needs twice as many.
    """
    found: list[set[str]] = [set() for _ in range(sheet.width)]
    for row in sheet.rows[int(has_heading) : _SAMPLED_ROWS]:
        for at, cell in enumerate(row.cells):
            if "@" in cell:
                found[at].add(cell)
    there = [at for at, cells in enumerate(found) if cells]
    if not has_heading:
        return max(there, key=lambda at: (len(found[at]), -at), default=None)
    weight = {at: len(found[at]) * (1 if _is_private(sheet, at) else 2) for at in there}
    return max(there, key=lambda at: (not _is_others(sheet, at), weight[at], -at), default=None)


def _words_at(sheet: Sheet, taken: Collection[int | None]) -> tuple[int, ...]:
    """Returns the other columns with words whose heading has no other meaning."""
    sampled = Sheet(sheet.rows[:_SAMPLED_ROWS])
    headings = [plain_heading(cell) for cell in sheet.rows[0].cells]
    others = {at for at, heading in enumerate(headings) if any(other in heading for other in _OTHERS)}
    free = [(at, _cells(sampled, at)) for at in range(sheet.width) if at not in {*taken, *others}]
    return tuple(at for at, cells in free if cells and 4 * sum(map(_is_word, cells)) >= 3 * len(cells))


def _names_shown(sheet: Sheet, email: int, words: Sequence[int]) -> tuple[int, ...]:
    """Returns the columns of the first and the last name as most addresses show them: `ada.byron@`, `abyron@` or `adab@`."""
    rows = [row.cells for row in sheet.rows[:_SAMPLED_ROWS] if "@" in "".join(row.cells[email : email + 1])]
    for pair in itertools.permutations(words[:_MOST_WORDS], _MOST_NAMES):
        if 2 * sum(_shows(cells[email], *("".join(cells[at : at + 1]) for at in pair)) for cells in rows) > len(rows):
            return pair
    return ()


def _shows(email: str, first_name: str, last_name: str) -> bool:
    local, first, last = (
        _UMLAUT.sub("", plain_heading(one)) for one in (email.partition("@")[0], first_name, last_name)
    )
    return bool(first and last) and local in {first + last, first[0] + last, first + last[0]}


def _first(headings: list[str], wanted: set[str]) -> int | None:
    return next((at for at, heading in enumerate(headings) if heading in wanted), None)


def plain_heading(heading: str) -> str:
    """Returns a heading without letter case, accents, blanks and signs, for comparisons."""
    return _SIGNS.sub("", heading.casefold().translate(_PLAINLY))


def known_heading(heading: str, known: Collection[str]) -> str:
    """Returns a heading as `plain_heading` does, or the first part of it that is in `known`: `quantity` for `Quantity (max. 10)`."""
    whole = plain_heading(heading)
    for one in (whole, *map(plain_heading, _PARTS.split(heading))):
        for plain in (one, _WHOSE.sub("", one, count=1)):
            if plain in known:
                return plain
            if "quantity" in known and _COUNTED.fullmatch(plain):
                return "quantity"
    return whole


# A line break with the blanks around it. Each run of blanks is looked at once, however long it is.
_BREAKS = re.compile(r"(?<!\s)\s*[\t\n\v\f\r\u2028\u2029]\s*")
_NUMBERED = re.compile(r"(?<=\S) ?\([0-9]+\)")


def has_numbered_names(sheet: Sheet, columns: Columns) -> bool:
    """Returns whether most names of a file end with a number of the person, as in `Ada Byron (1234)`. In files of ours it is part of the name."""
    if not (columns.has_heading and sheet.rows) or fields_of(sheet.rows[0].cells) is not None:
        return False
    names = [name for row in sheet.rows[1:_SAMPLED_ROWS] if (name := name_in(row, columns))]
    return 2 * sum(_numbered_at(name) is not None for name in names) > len(names)


def name_in(row: SheetRow, columns: Columns, *, is_numbered: bool = False) -> str:
    """Returns the name in a row, in one line. With `is_numbered`, leaves out the number of the person at its end."""
    name = _BREAKS.sub(" ", " ".join(filter(None, (row.cells[at] for at in columns.names if at < len(row.cells)))))
    return name[: _numbered_at(name)] if is_numbered else name


def _numbered_at(name: str) -> int | None:
    """Returns where the number of the person at the end of a name begins; None if there is none."""
    number = _NUMBERED.search(name)
    return number.start() if number and number.end() == len(name) else None


def _is_word(cell: str) -> bool:
    return "@" not in cell and not any(character.isdigit() for character in cell)
