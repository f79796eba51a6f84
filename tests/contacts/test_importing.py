"""Sheets of contacts: columns are guessed by their headings, and each row says all that is wrong with it."""

from datetime import date

import pytest
from msgspec import UNSET
from tests.drafts.conftest import finished, sheet

from largesse.contacts.importing import CheckedContacts, ContactColumns, check_contacts, guess_contact_columns
from largesse.contacts.model import ContactChange, OwnField
from largesse.drafts.columns import Columns


def checked(text: str, *own: OwnField) -> CheckedContacts:
    read = sheet(text)
    return finished(check_contacts(read, guess_contact_columns(read, own)))


def test_columns_are_guessed_by_headings() -> None:
    read = sheet(
        "Employee ID,Vorname,Nachname,E-Mail,Geburtstag,Eintrittsdatum,Sprache,Land,Abteilung,Strasse,PLZ,Ort,T-shirt\n"
        "7,Ada,Byron,ada@example.com,14.03.,2024-03-01,de,Deutschland,Sales,Weg 1,10115,Berlin,M\n"
    )
    own = [OwnField("t_shirt", "T-Shirt")]
    columns = guess_contact_columns(read, own)
    assert (columns.base.email, columns.base.names) == (3, (1, 2))
    assert columns.fields == {"t_shirt": 12}
    assert columns.fits(read)
    (row,) = finished(check_contacts(read, columns)).rows
    assert row.faults == ()
    assert row.change == ContactChange(
        email="ada@example.com",
        name="Ada Byron",
        birthday=314,
        start_date=date(2024, 3, 1),
        language="de",
        country="DE",
        external_id="7",
        address="Weg 1\n10115\nBerlin",
        more_groups=("Sales",),
        fields={"t_shirt": "M"},
    )


def test_without_headings_there_is_an_address_and_a_name() -> None:
    read = sheet("ada@example.com,Ada\nbo@example.com,Bo\n")
    assert guess_contact_columns(read, ()) == ContactColumns(Columns(0, (1,), None, has_heading=False))


def test_a_column_has_one_meaning_that_of_an_own_field_first() -> None:
    read = sheet("E-mail,Team,Anzahl\nada@example.com,Sales,2\n")
    columns = guess_contact_columns(read, [OwnField("team", "Team")])
    assert (columns.fields, columns.parts, columns.unread(read)) == ({"team": 1}, {}, [2])


def test_all_that_is_wrong_with_all_rows_is_said_at_once() -> None:
    found = checked(
        "email,name,birthday,start date,country,groups\n"
        f"ada@example.com,Ada,31/02,2024-13-01,Atlantis,{'x' * 61};{'y' * 61}\n"
        "bo,Bo,30/02/1990,,\n"
        ",Cy,,,\n"
        "di@example.com,Di,29/02,,FR\n"
    )
    assert [[kind for _, kind in row.faults] for row in found.rows] == [
        ["birthday_none", "start_date_wrong", "country_wrong", "groups_long"],
        ["email_no_at", "birthday_none"],
        ["email_missing"],
        [],
    ]
    assert [change.email for change in found.changes] == ["di@example.com"]
    assert [row.number for row in found.bad] == [2, 3, 4]


@pytest.mark.parametrize(
    ("cell", "birthday"),
    [
        ("1990-12-10", 1210), ("1988-02-29 00:00:00", 229), ("14.03.1990", 314), ("14/3/90", 314), ("14-Mar-90", 314), ("14. März 1990", 314),
        ("14.03.1990 00:00:00", 314), ("14/03/1990, 12:00:00 AM", 314),
    ],
)  # fmt: skip
def test_a_birthday_in_a_file_loses_its_year(cell: str, birthday: int) -> None:
    [row] = checked(f"email;birthday\nada@example.com;{cell}\n").rows
    assert (row.faults, row.change.birthday) == ((), birthday)


@pytest.mark.parametrize(
    ("cells", "birthdays", "month_first"),
    [
        (["03/14/1990", "3/4/90", "04/03", "1990-12-10", "14 March", "12-10"], [314, 304, 403, 1210, 314, 1210], True),
        (["03-14-1990", "03-04-1990"], [314, 304], True),
        (["14/03/1990", "3/4/90", "04/03"], [314, 403, 304], False),
        (["3/4/90", "12-10"], [403, 1210], False),
        # A date that no year has is no proof, and neither is one date against another.
        (["13/14/1990", "3/4/90", "02/32"], [None, 403, None], False),
        (["03/14/1990", "14/03/1990", "3/4/90"], [None, 314, 403], False),
        (["03/14/1990", "03/15/1990", "14/03/1990", "3/4/90"], [314, 315, None, 304], True),
        (["03/14/1990 12:00:00 AM", "3/4/1990 0:00"], [314, 304], True),
        # A dot stands after the day everywhere.
        (["03.14.1990", "3.4.90"], [None, 403], False),
    ],
)
def test_the_month_of_a_column_is_first_where_more_dates_can_only_mean_that(
    cells: list[str], birthdays: list[int | None], month_first: bool
) -> None:
    rows = "".join(f"p{number}@example.com;{cell}\n" for number, cell in enumerate(cells))
    found = checked(f"email;birthday\n{rows}")
    assert [None if row.faults else row.change.birthday for row in found.rows] == birthdays
    assert found.month_first == (("birthday",) if month_first else ())


def test_short_headings_of_personnel_lists() -> None:
    found = checked(
        "Pers.-Nr.;E-Mail;Geb.-Datum;Straße + Nr.;PLZ;Ort\n7;ada@example.com;10.12.1990;Weg 1;01067;Dresden\n"
    )
    change = found.rows[0].change
    assert (change.external_id, change.birthday, change.address) == ("7", 1210, "Weg 1\n01067\nDresden")


def test_a_start_date_with_a_time_is_the_date() -> None:
    found = checked(
        "Personalnummer;Name;Vorname;Einstellungsdatum;E-Mail\n7;Byron;Ada;01.09.2019 00:00:00;ada@example.com\n"
    )
    assert found.bad == []
    assert found.rows[0].change.start_date == date(2019, 9, 1)


def test_numbers_of_personnel_are_no_names() -> None:
    found = checked("Employee #,Last name, First name,Work email\n101,Byron,Ada,ada@example.com\n")
    assert [row.name for row in found.rows] == ["Ada Byron"]


def test_each_column_of_dates_is_judged_by_itself() -> None:
    found = checked("email,birthday,start date\na@example.com,14/03/1990,3/4/2024\nb@example.com,3/4/1990,12/31/2024\n")
    assert found.month_first == ("start_date",)
    assert [(row.change.birthday, row.change.start_date) for row in found.rows] == [
        (314, date(2024, 3, 4)),
        (403, date(2024, 12, 31)),
    ]


def test_dates_that_show_no_order_are_named_and_their_order_can_be_chosen() -> None:
    read = sheet("email,birthday,start date\na@example.com,12/10/1985,01.02.2020\nb@example.com,5/5/1990,\n")
    columns = guess_contact_columns(read, [])
    for order, birthday, unsure in (("", 1012, (("birthday", "12/10/1985"),)), ("day", 1012, ()), ("month", 1210, ())):
        found = finished(check_contacts(read, columns, order))
        assert (found.rows[0].change.birthday, found.unsure) == (birthday, unsure)
        assert found.rows[0].change.start_date == date(2020, 2, 1)
    assert checked("email,birthday\na@example.com,5/5/1985\nb@example.com,13/5/1990\n").unsure == ()


def test_lists_of_other_countries() -> None:
    for text in (
        "氏名,メールアドレス,生年月日,入社日,国\n山田 太郎,a@example.com,1990年1月2日,令和2年4月1日,日本\n",
        "Nome completo;E-mail;Data de nascimento;Data de admissão;País\nJoão;a@example.com;2 de janeiro de 1990;20200401;Brasil\n",
        "Nombre;Correo;Fecha de nacimiento;Fecha de alta;País\nJosé;a@example.com;2-ene-1990;1 de abril de 2020;España\n",
    ):
        [row] = checked(text).rows
        assert row.faults == ()
        assert (row.change.birthday, row.change.start_date) == (102, date(2020, 4, 1))


def test_a_city_without_a_street_is_no_address() -> None:
    found = checked("email,city,zip\na@example.com,Boston,02118\n")
    assert found.rows[0].change.address is UNSET


def test_a_column_that_shows_no_order_has_that_of_the_other() -> None:
    found = checked(
        "email,birthday,start date\na@example.com,12/10/1985,03/15/2021\nb@example.com,3/4/1990,01/02/2020\n"
    )
    assert found.month_first == ("birthday", "start_date")
    assert [(row.change.birthday, row.change.start_date) for row in found.rows] == [
        (1210, date(2021, 3, 15)),
        (304, date(2020, 1, 2)),
    ]


@pytest.mark.parametrize(
    "cell", ["0/0/00", "00/00/0000", "00.00.0000", "0000-00-00", "00/01/1900", "00.01.1900", "1/0/1900"]
)
def test_what_programs_save_for_no_date_is_none(cell: str) -> None:
    found = checked(f"email,birthday,start date\na@example.com,{cell},{cell}\n")
    assert found.changes == [ContactChange(email="a@example.com")]


def test_what_a_spreadsheet_got_wrong_is_not_imported() -> None:
    found = checked(
        "email,name,id,groups,address,size\n"
        "a@example.com,#NV,4.90123E+12,Sales; #REF!,#N/A,#VALUE!\n"
        'b@example.com,Bo,"1,234E+15",Sales,1 High St,M\nc@example.com,Cy,1E5,#1 Team,,#1\n',
        OwnField("size", "Size"),
    )
    assert [[kind for _, kind in row.faults] for row in found.rows] == [
        ["formula", "external_id_rounded", "formula", "formula", "formula"],
        ["external_id_rounded"],
        [],
    ]


def test_a_cell_may_have_the_name_beside_its_address_but_no_second_address() -> None:
    both = '"Bo <bo@example.com>, Cy <cy@example.com>"'
    found = checked(f"email,birthday\nAda Byron <ada@example.com>,14/03\n{both},14/03\n")
    assert found.changes == [ContactChange(email="ada@example.com", name="Ada Byron", birthday=314)]
    assert [row.number for row in found.bad] == [3]


def test_a_blank_cell_leaves_what_is_there() -> None:
    found = checked("email,name,birthday,groups,size\nada@example.com,,,,\n", OwnField("size", "Size"))
    assert found.changes == [ContactChange(email="ada@example.com")]


def test_a_second_row_of_an_address_is_merged() -> None:
    found = checked(
        "email,country,group\nada@example.com,Atlantis,x\nada@example.com,,Sales\nADA@example.com,,London; Choir | Band\nada@example.com,Atlantis,x\n"
    )
    assert [(row.number, row.same_as) for row in found.rows] == [(2, None), (3, None), (4, 3), (5, None)]
    assert found.repeated == [found.rows[2]]
    assert found.changes[1].more_groups == ("London", "Choir", "Band")


def test_groups_on_lines_of_a_cell_are_groups_each() -> None:
    [change] = checked('email,groups\nada@example.com,"Sales\r\n""HR, Paris""\nBerlin"\n').changes
    assert change.more_groups == ("Sales", "HR, Paris", "Berlin")


def test_a_column_that_is_not_there_does_not_fit() -> None:
    read = sheet("ada@example.com,Ada\n")
    assert not ContactColumns(Columns(0), {"birthday": 2}).fits(read)
    assert not ContactColumns(Columns(None), {}).fits(read)


def address_in(text: str) -> object:
    """The postal address of the only contact in a file."""
    (row,) = checked(text).rows
    return row.change.address


def test_all_columns_of_a_postal_address_are_its_lines() -> None:
    german = (
        "E-Mail;Straße;Hausnr.;Adresszusatz;PLZ;Ort;Bundesland\nzoe@acme.example;Ring;7a;Hinterhaus;20095;Hamburg;HH\n"
    )
    assert address_in(german) == "Ring 7a\nHinterhaus\n20095\nHamburg\nHH"
    english = "Email,House number,Street,Address line 2,City,State,ZIP\nzoe@acme.example,1600,High Street,,Springfield,IL,62701\n"
    assert address_in(english) == "1600 High Street\n62701\nSpringfield\nIL"
    read = sheet(english.replace("Street,,", "Street,Suite 5,"))
    assert guess_contact_columns(read, ()).unread(read) == []


def test_a_state_of_employment_is_no_part_of_an_address() -> None:
    assert (
        address_in("Email,Street,City,State\nzoe@acme.example,1 High Street,Leeds,Active\n") == "1 High Street\nLeeds"
    )


def test_a_house_number_or_a_state_alone_is_no_address() -> None:
    assert address_in("Email,House number,State\nzoe@acme.example,7,IL\n") is UNSET
