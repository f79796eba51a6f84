"""Which column is what: from headings in three languages, and from what the cells look like."""

import pytest

from largesse.drafts.columns import (
    Columns,
    below_title,
    fits,
    guess_columns,
    has_numbered_names,
    heading_key,
    name_in,
    plain_quantity,
)
from largesse.drafts.sheet import Sheet, SheetRow


def sheet(*rows: str) -> Sheet:
    return Sheet([SheetRow(number, tuple(row.split("|"))) for number, row in enumerate(rows, 1)])


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (["Name|E-mail|Qty", "Zoë|a@example.com|2"], Columns(1, (0,), 2, True)),
        (["Vorname|Nachname|E-Mail-Adresse|Anzahl"], Columns(2, (0, 1), 3, True)),
        (["Last name, First name|Work Email", "Byron, Ada|a@example.com"], Columns(1, (0,), None, True)),
        (["First|Last|Email", "Zoë|Müller|a@example.com"], Columns(2, (0, 1), None, True)),
        (["Name|Surname|Email", "Zoë|Müller|a@example.com"], Columns(2, (0, 1), None, True)),
        (["Surname|Name|Email", "Müller|Zoë Müller|a@example.com"], Columns(2, (1,), None, True)),
        (["Surname|Name|Email", "Müller|Müller, Zoë|a@example.com"], Columns(2, (1,), None, True)),
        (["Firma|Wer|E-Mail dienstlich", "Acme|Zoë|a@example.com"], Columns(2, (1,), None, True)),
        (["Name|Vorname|E-Mail", "Müller|Zoë|a@example.com"], Columns(2, (1, 0), None, True)),
        (["First name|Name|E-mail", "Zoë|Zoë Müller|a@example.com"], Columns(2, (1,), None, True)),
        (["Nom|Prénom|Courriel|Quantité", "x|y|a@example.com|1"], Columns(2, (1, 0), 3, True)),
        (["EMAIL", "a@example.com"], Columns(0, (), None, True)),
        (["Personnel no|Mail", "17|a@example.com"], Columns(1, (), None, True)),
        (["Kontakt|Wer", "a@example.com|Zoë"], Columns(0, (1,), None, True)),
        (["a@example.com", "b@example.com"], Columns(0, (), None, False)),
        (["17|Zoë Müller|a@example.com"], Columns(2, (1,), None, False)),
        (["a@example.com|2|3"], Columns(0, (), None, False)),
        (["nothing|here"], Columns(None, (), None, False)),
        # A heading of names above addresses.
        (["Empfänger|Anzahl", "a@example.com|2"], Columns(0, (), 1, True)),
        (["Recipient", "Ada <a@example.com>"], Columns(0, (), None, True)),
        (["First name|Recipient", "Ada|a@example.com"], Columns(1, (0,), None, True)),
        (["Contact|Name", "a@example.com|Ada"], Columns(0, (1,), None, True)),
        (["Email|Contact", "a@example.com|a@home.example"], Columns(0, (), None, True)),
        (["Name|Contact", "Ada|a@example.com", "Bo @ Acme|b@example.com"], Columns(1, (0,), None, True)),
        # A heading of names above numbers of personnel or of telephones.
        (["Employee #|Last name, First name|Work email", "101|Byron, Ada|a@example.com"], Columns(2, (1,), None, True)),
        (["Mitarbeiter|E-Mail", "EMP-0012|a@example.com", "EMP-0013|b@example.com"], Columns(1, (), None, True)),
        (["Contact|E-mail", "+44 7700 900123|a@example.com"], Columns(1, (), None, True)),
        (["Name|E-mail", "Ada 2|a@example.com"], Columns(1, (0,), None, True)),
        # Of two columns of addresses the one in which they differ.
        (
            ["Manager mail|Staff mail", "m@example.com|a@example.com", "m@example.com|b@example.com"],
            Columns(1, (), None, True),
        ),
        # A recipient whose address is wrong or missing is no headings.
        (["ada.example.com", "b@example.com"], Columns(0, (), None, False)),
        (["ada (at) post.example|Zoë", "b@example.com|Bo"], Columns(0, (1,), None, False)),
        (["Zoë||2", "Bo|b@example.com|1"], Columns(1, (0,), None, False)),
        # A first and a last name, as most addresses show them.
        (["ada.byron@x.com|Ada|Byron"], Columns(0, (1, 2))),
        (["Byron|Ada|abyron@x.com", "Müller|Zoë|z-mueller@x.com", "Diaz|Bo|info@x.com"], Columns(2, (1, 0))),
        (["adab@x.com|London|Ada|Byron", "zoem@x.com|Paris|Zoë|Müller"], Columns(0, (2, 3))),
        (["Imię|Drugie|Adres", "Ada|Byron|ada.byron@x.com"], Columns(2, (0, 1), None, True)),
        (["ada@x.com|Ada|Byron"], Columns(0, (1,), maybe_names=(1, 2))),
        (["a.byron@x.com|Ada|Byron", "bo@x.com|Bo|Diaz"], Columns(0, (1,), maybe_names=(1, 2))),
    ],
)
def test_columns_are_guessed(rows: list[str], columns: Columns):
    assert guess_columns(sheet(*rows)) == columns


def test_a_choice_fits_the_sheets_that_have_its_columns_each_once():
    of_two = sheet("a|b")
    assert fits(Columns(0, (1,)), of_two)
    assert not fits(Columns(0, (2,)), of_two)
    assert not fits(Columns(0, (0,)), of_two)
    assert not fits(Columns(-1), of_two)
    assert fits(Columns(0, (1, 2)), sheet("a|b|c")), "a first and a last name"
    assert not fits(Columns(0, (1, 2, 3)), sheet("a|b|c|d"))


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (["Nom|Courriel|Qté", "x|a@x.com|2"], Columns(1, (0,), 2, True)),
        (["Nombre|Apellidos|Correo electrónico|Cantidad", "x|y|a@x.com|2"], Columns(2, (0, 1), 3, True)),
        (["Nome completo|E-mail|Quantidade", "x|a@x.com|2"], Columns(1, (0,), 2, True)),
        (["氏名|メールアドレス|数量", "山田|a@x.com|2"], Columns(1, (0,), 2, True)),
        (["Name|E-mail|Number of gifts", "x|a@x.com|2"], Columns(1, (0,), 2, True)),
        (["Name|E-Mail|Anzahl Gutscheine", "x|a@x.com|2"], Columns(1, (0,), 2, True)),
        (["Name / Nom|Email / Courriel|Quantity (max. 10)", "x|a@x.com|2"], Columns(1, (0,), 2, True)),
        (["Name*|E-mail|Number of children", "x|a@x.com|2"], Columns(1, (0,), None, True)),
        (["Legal First Name|Legal Last Name|Primary Work Email", "x|y|a@x.com"], Columns(2, (0, 1), None, True)),
        # The manager's address, and the private one, are not the recipient's.
        (["Manager Email|Name|Employee Email", "m@x.com|x|a@x.com", "n@x.com|y|b@x.com"], Columns(2, (1,), None, True)),
        (["E-mail (private)|Name|E-mail (work)", "m@x.com|x|a@x.com"], Columns(2, (1,), None, True)),
        # An organization is no name.
        (["Worker|Email - Primary Work|Supervisory Organization", "Ada (7)|a@x.com|Sales"], Columns(1, (0,), None, True)),
        (["Who|Email - Primary Work|Supervisory Organization", "7|a@x.com|Sales"], Columns(1, (), None, True)),
        (["Ada Byron|a@x.com", "Bo 2nd|b@x.com", "Cy|c@x.com", "Di|d@x.com"], Columns(1, (0,))),
    ],
)  # fmt: skip
def test_headings_as_other_programs_and_countries_write_them(rows: list[str], columns: Columns):
    assert guess_columns(sheet(*rows)) == columns


def test_a_title_with_an_address_is_left_out():
    of_list = sheet("Prepared by hr@x.com", "Name|E-mail", "Zoë|a@x.com")
    assert [row.number for row in below_title(of_list).rows] == [2, 3]


@pytest.mark.parametrize(
    ("cells", "name"), [(("Ada\nByron",), "Ada Byron"), (("Ada", "Byron (1234)"), "Ada Byron"), (("(1)",), "(1)")]
)
def test_a_name_is_one_line_without_the_number_of_a_person(cells: tuple[str, ...], name: str):
    columns = Columns(None, tuple(range(len(cells))), None, has_heading=True)
    assert name_in(SheetRow(1, cells), columns, is_numbered=True) == name


def test_numbers_belong_to_names_unless_most_names_of_a_file_have_one():
    columns, headless = (Columns(1, (0,), None, has_heading) for has_heading in (True, False))
    rows = ["Ada (12)|a@x.com", "Bo|b@x.com", "Cy|c@x.com"]
    assert not has_numbered_names(sheet("Name|E-mail", *rows), columns)
    assert has_numbered_names(sheet("Name|E-mail", *rows[:2], "Cy (7)|c@x.com"), columns)
    assert not has_numbered_names(sheet(rows[0]), headless)


def test_a_heading_is_the_same_in_whatever_spelling():
    columns = Columns(0, (), None, True)
    assert heading_key(sheet("E-Mail|Name"), columns) == heading_key(sheet("email|NAME ", "a|b"), columns)
    assert heading_key(sheet("E-Mail|Name"), columns) != heading_key(sheet("Name|E-Mail"), columns)
    assert heading_key(sheet("E-Mail|Name"), Columns(0)) is None


def test_a_title_above_the_headings_is_left_out():
    of_list = sheet("Gifts 2026", "Printed today|x", "Name|E-mail|Qty", "Zoë|a@example.com|2")
    below = below_title(of_list)
    assert [row.number for row in below.rows] == [3, 4]
    assert guess_columns(below) == Columns(1, (0,), 2, True)
    assert (
        below_title(sheet("Mitarbeiter", "Name|Vorname|E-Mail geschäftlich", "x|y|a@example.com")).rows[0].number == 2
    )
    # Headings above headings, in cells that were merged.
    merged = below_title(sheet("Employee||Contact", "First name|Last name|E-mail", "Ada|Byron|a@example.com"))
    assert guess_columns(merged) == Columns(2, (0, 1), None, True)
    for whole in (
        sheet("Name|Vorname|E-Mail geschäftlich", "x|y|", "z|z|a@example.com"),
        sheet("Name", "Bo|a@example.com"),
        sheet("a@example.com", "Email"),
        sheet("Email", "a@example.com"),
        sheet("Ada", "Bo"),
        Sheet([]),
    ):
        assert below_title(whole) == whole


@pytest.mark.parametrize("cell", ["1 000", "1\xa0000", "1\u202f000", "1'000", "1\u2019000", "1 000,00", "1000.0"])
def test_a_quantity_may_have_a_blank_between_thousands(cell: str):
    assert plain_quantity(cell) == "1000"


@pytest.mark.parametrize("cell", ["1.000", "1,000", "10 00", "1 2", "1 0000", "12 000"])
def test_what_may_be_decimals_or_two_numbers_stays(cell: str):
    assert plain_quantity(cell) == cell


def test_a_long_run_of_blanks_in_a_name_takes_no_time():
    """If each blank were the start of a search, this would take minutes."""
    assert name_in(SheetRow(1, ("Ada" + " " * 200_000 + "Byron \n King",)), Columns(None, (0,)))[-12:] == "  Byron King"
