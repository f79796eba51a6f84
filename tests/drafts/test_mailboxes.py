"""Lists of addresses as mail programs and spreadsheets write them, typed or in a cell of a file."""

import msgspec
import pytest
from tests.drafts.conftest import finished, sheet

from largesse.drafts.checking import Checked, Typed, check_rows, mended_sheet
from largesse.drafts.columns import as_labelled, guess_columns
from largesse.drafts.mailboxes import _count, one_mailbox_a_line, read_mailboxes


def checked(text: str) -> Checked:
    read = sheet(text)
    return finished(check_rows(read, as_labelled(read, guess_columns(read))))


def people(text: str) -> list[tuple[str, str | None, int]]:
    found = checked(text)
    assert not found.bad, found.bad
    return [(one.email, one.name, one.quantity) for one in found.recipients]


@pytest.mark.parametrize(
    ("text", "mailboxes"),
    [
        ("a@x.com", [("", "a@x.com")]),
        ("a@x.com, b@x.com", [("", "a@x.com"), ("", "b@x.com")]),
        ("a@x.com,b@x.com,", [("", "a@x.com"), ("", "b@x.com")]),
        ("a@x.com b@x.com", [("", "a@x.com"), ("", "b@x.com")]),
        ("a@x.com\tb@x.com\nc@x.com", [("", "a@x.com"), ("", "b@x.com"), ("", "c@x.com")]),
        ("Ada <a@x.com>", [("Ada", "a@x.com")]),
        ("<a@x.com>;", [("", "a@x.com")]),
        ("\u2022 Ada <a@x.com>\n- Bob <b@x.com>", [("Ada", "a@x.com"), ("Bob", "b@x.com")]),
        ("'Ada' <a@x.com>", [("Ada", "a@x.com")]),
        ('"Byron, Ada" <a@x.com>', [("Ada Byron", "a@x.com")]),
        ('"Byron, Ada (Sales)" <a@x.com>', [("Ada Byron (Sales)", "a@x.com")]),
        ('"King, Jr." <a@x.com>', [("King, Jr.", "a@x.com")]),
        ('"Byron, Ada, Countess" <a@x.com>', [("Byron, Ada, Countess", "a@x.com")]),
        ('"ada@home" <a@x.com>', [("ada@home", "a@x.com")]),
        ("Byron, Ada <a@x.com>; b@x.com", [("Ada Byron", "a@x.com"), ("", "b@x.com")]),
        (
            'Ada <a@x.com>; "Byron, Ada" <b@x.com>, c@x.com',
            [("Ada", "a@x.com"), ("Ada Byron", "b@x.com"), ("", "c@x.com")],
        ),
        ("'A@x.com' <a@x.com>; b@x.com <b@x.com>", [("", "a@x.com"), ("", "b@x.com")]),
        (
            "\u201cByron, Ada\u201d <a@x.com>, \u201eHopper, Grace\u201c <b@x.com>; \xabKing, Ada\xbb <c@x.com>",
            [("Ada Byron", "a@x.com"), ("Grace Hopper", "b@x.com"), ("Ada King", "c@x.com")],
        ),
        ("ada@x.com <mailto:ada@x.com>; Bob <MAILTO:b@x.com>", [("", "ada@x.com"), ("Bob", "b@x.com")]),
        ("Ada Byron (a@x.com), Bob [b@x.com]", [("Ada Byron", "a@x.com"), ("Bob", "b@x.com")]),
        ("Byron, Ada (a@x.com); Bob, <b@x.com>", [("Ada Byron", "a@x.com"), ("Bob", "b@x.com")]),
        ("Ada (Sales);a@x.com", None),
        ("Ada (Sales) (a@x.com)", None),
        ("(a@x.com)", None),
        ("Ada", None),
        ("", None),
        ("Ada, a@x.com", None),
        ("a@x.com, Ada", None),
        ("a@x.com <b@x.com>", None),
        ('"Ada <a@x.com>', None),
        ("Ada <a@x.com> Grace", None),
        ("a@@x.com", None),
    ],
)
def test_lists_of_mailboxes(text: str, mailboxes: list[tuple[str, str]] | None) -> None:
    assert read_mailboxes(text) == mailboxes


def test_blank_parts_of_a_list_take_no_time() -> None:
    assert read_mailboxes("ada@x.com; bo@x.com" + "; " * 500_000) == [("", "ada@x.com"), ("", "bo@x.com")]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a@x.com, b@x.com", [("a@x.com", None, 1), ("b@x.com", None, 1)]),
        ("Ada <a@x.com>", [("a@x.com", "Ada", 1)]),
        ("Ada (a@x.com)\nBob <mailto:b@x.com>", [("a@x.com", "Ada", 1), ("b@x.com", "Bob", 1)]),
        (
            'Ada <a@x.com>; "Byron, Ada" <b@x.com>, c@x.com\nd@x.com',
            [("a@x.com", "Ada", 1), ("b@x.com", "Ada Byron", 1), ("c@x.com", None, 1), ("d@x.com", None, 1)],
        ),
        (
            "To: Ada <a@x.com>; Bob <b@x.com>\nCc: c@x.com, d@x.com",
            [("a@x.com", "Ada", 1), ("b@x.com", "Bob", 1), ("c@x.com", None, 1), ("d@x.com", None, 1)],
        ),
        ("An: Byron, Ada <a@x.com>; Bob <b@x.com>", [("a@x.com", "Ada Byron", 1), ("b@x.com", "Bob", 1)]),
        ("\xc0\xa0: Ada <a@x.com>", [("a@x.com", "Ada", 1)]),
        ("a@x.com\tb@x.com", [("a@x.com", None, 1), ("b@x.com", None, 1)]),
        ("a@x.com\tAda\t2\nb@x.com\tBob\t1", [("a@x.com", "Ada", 2), ("b@x.com", "Bob", 1)]),
        ("a@x.com, Ada, 3\nb@x.com", [("a@x.com", "Ada", 3), ("b@x.com", None, 1)]),
        ("Ada <a@x.com>, Bea, 3\nb@x.com, Bob, 2", [("a@x.com", "Bea", 3), ("b@x.com", "Bob", 2)]),
        ("a@x.com, Ada, Sales\nb@x.com, Bob, 2", [("a@x.com", "Ada", 1), ("b@x.com", "Bob", 1)]),
        ("email;qty\na@x.com;2.0\nb@x.com;3,00", [("a@x.com", None, 2), ("b@x.com", None, 3)]),
        ("a@x.com, 3\nb@x.com, 2", [("a@x.com", None, 3), ("b@x.com", None, 2)]),
        ("Ada, a@x.com, 3\nBob, b@x.com", [("a@x.com", "Ada", 3), ("b@x.com", "Bob", 1)]),
        ("a@x.com, Team 7\nb@x.com, Bob", [("a@x.com", "Team 7", 1), ("b@x.com", "Bob", 1)]),
        ("ada.byron@x.com, Ada, Byron, 3", [("ada.byron@x.com", "Ada Byron", 3)]),
        ("a@x.com\tAda\tByron\t2\nb@x.com\tBob", [("a@x.com", "Ada", 2), ("b@x.com", "Bob", 1)]),
        (" ; ;\n7;Byron;Ada;abyron@x.com;3", [("abyron@x.com", "Ada Byron", 3)]),
        ("a@x.com, Ada, 25,00\nb@x.com, Bob, 12,50", [("a@x.com", "Ada", 1), ("b@x.com", "Bob", 1)]),
        ("a@x.com,25,00\nb@x.com,30\nc@x.com", [("a@x.com", None, 1), ("b@x.com", None, 1), ("c@x.com", None, 1)]),
        ("a@x.com; Ada; 25.00\nb@x.com; Bob; 12,50", [("a@x.com", "Ada", 1), ("b@x.com", "Bob", 1)]),
        ("a@x.com; Ada; 8001\nb@x.com; Bob; 1000", [("a@x.com", "Ada", 1), ("b@x.com", "Bob", 1)]),
        ("a@x.com; Ada; 8001; 2\nb@x.com; Bob; 1000; 1", [("a@x.com", "Ada", 2), ("b@x.com", "Bob", 1)]),
        ("a@x.com, 07700900123\nb@x.com, 07700900124", [("a@x.com", None, 1), ("b@x.com", None, 1)]),
        # Other programs copy invisible characters along.
        ("\u200ba@x.com\u200b\t\u200eAda\t\u200b2", [("a@x.com", "Ada", 2)]),
        ("a\u200e@x.com\tAda\u200f B\u061cyron\t2", [("a@x.com", "Ada Byron", 2)]),
        ("\u202aAda <a@x.com>\u202c; Bob\u202c <\u202ab@x.com\u202c>", [("a@x.com", "Ada", 1), ("b@x.com", "Bob", 1)]),
        ("email\na@x.com, b@x.com\nAda <c@x.com>", [("a@x.com", None, 1), ("b@x.com", None, 1), ("c@x.com", "Ada", 1)]),
        # In a cell of a file; the column of names is said of one address, and of several that say none.
        (
            'email,name,quantity\n"a@x.com; Bea <b@x.com>",Both,2\nAda <c@x.com>,,1',
            [("a@x.com", "Both", 2), ("b@x.com", "Bea", 2), ("c@x.com", "Ada", 1)],
        ),
        # A table with two columns of addresses: its headings say which one is meant.
        ("email,private\na@x.com,b@x.com\n", [("a@x.com", None, 1)]),
    ],
)  # fmt: skip
def test_everybody_in_a_list_is_a_recipient(text: str, found: list[tuple[str, str | None, int]]) -> None:
    assert people(text) == found


def test_an_address_that_no_column_takes_is_asked_about_and_mended() -> None:
    text = "a@x.com,Ada,b@x.com\nc@x.com,Cy,"
    found = checked(text)
    [problem] = found.bad[0].problems
    assert (problem.field, problem.kind, problem.detail) == ("email", "email_more", "b@x.com")
    read = sheet(text)
    mended = finished(check_rows(*mended_sheet(read, guess_columns(read), {1: Typed("a@x.com, b@x.com", "Ada")})))
    assert [one.email for one in mended.recipients] == ["a@x.com", "b@x.com", "c@x.com"]
    # Beyond the headings of a table, too.
    assert [row.problems[0].kind for row in checked("email,name\na@x.com,Ada,b@x.com").bad] == ["email_more"]


@pytest.mark.parametrize("typed", ["0", "1001", "2,50", "some"])
def test_a_wrong_number_below_the_label_is_not_passed_over(typed: str) -> None:
    [row] = checked(f"a@x.com; Ada; 2\nb@x.com; Bob; {typed}\nc@x.com; Cy; 1").bad
    assert [problem.kind for problem in row.problems] == ["quantity_wrong"]


@pytest.mark.parametrize("typed", ["1.000", "-1", "2x", "x 3", "1,5"])
def test_a_number_below_the_label_is_not_passed_over_where_all_are_wrong(typed: str) -> None:
    """Otherwise each of them would get one gift."""
    bad = checked(f"a@x.com; Ada; {typed}\nb@x.com; Bob; {typed}").bad
    assert [problem.kind for row in bad for problem in row.problems] == ["quantity_wrong"] * 2


@pytest.mark.parametrize(
    "text",
    [
        "name,email,quantity\nAda,a@x.com,1,000\nBob,b@x.com,2",
        "email,quantity,name\na@x.com,1,000,Ada\nb@x.com,2,Bob",
        "email,How many,name\na@x.com,1,000,000,Ada\nb@x.com,2,Bob",
        "a@x.com, Ada, 1,000\nb@x.com, Bob, 2",
        "b@x.com, Bob\na@x.com, Ada, 1,000",
        "a@x.com,Ada,1,000",
        "a@x.com,1,000,000",
    ],
)
def test_a_number_that_its_own_comma_divides_is_not_read_as_its_first_half(text: str) -> None:
    read = sheet(text)
    columns = as_labelled(read, guess_columns(read))
    columns = msgspec.structs.replace(columns, quantity=columns.quantity or 1)  # as somebody chooses it
    [row] = finished(check_rows(read, columns)).bad
    assert (row.email, row.name or "Ada") == ("a@x.com", "Ada")
    assert row.quantity.startswith("1,000")
    assert [problem.kind for problem in row.problems] == ["quantity_wrong"]
    # Numbers that are cells of their own stay.
    assert len(sheet("email,quantity,room\na@x.com,1,200\nb@x.com,2").rows[1].cells) == 3


@pytest.mark.parametrize("typed", ["two", "Deux", "zwei", "\N{FULLWIDTH DIGIT TWO}", "\N{ARABIC-INDIC DIGIT TWO}"])
def test_numbers_in_words_and_in_digits_of_any_script_are_read(typed: str) -> None:
    found = checked(f"a@x.com; Ada; {typed}\nb@x.com; Bob; {typed}")
    assert [one.quantity for one in found.recipients] == [2, 2]


def test_one_wrong_address_of_a_list_is_named() -> None:
    [row] = checked('email,name\n"a@x.com, b@-x",Ada').bad
    assert [(problem.kind, problem.detail) for problem in row.problems] == [("email_in_list", "b@-x")]


def test_the_same_address_twice_in_a_list_is_told() -> None:
    found = checked("a@x.com, A@x.com")
    assert [row.same_as for row in found.rows] == [None, 1]


def test_a_quoted_cell_of_several_lines_is_left_alone() -> None:
    read = sheet('a@x.com\n"Ada\nb@x.com, c@x.com",d@x.com')
    assert read.rows[1].cells == ("Ada\nb@x.com, c@x.com", "d@x.com")


@pytest.mark.parametrize(
    "text",
    [
        "<" * 100_000,
        '"' * 100_001,
        "@," * 50_000,
        "a@x.com <" * 20_000,
        "\t" * 100_000,
        "\u201c" * 100_001,
        "\u201ea" * 50_000,
    ],
)
def test_hostile_texts_are_no_lists(text: str) -> None:
    assert read_mailboxes(text) is None


@pytest.mark.parametrize(
    ("text", "good", "bad"),
    [
        ("Ada <a@x.com>; Bob <bob@>; Cy <c@x.com>", ["a@x.com", "c@x.com"], ["Bob <bob@>"]),
        ("Ada <a@x.com>, Bob, Cy <c@x.com>, d@x.com", ["a@x.com", "c@x.com", "d@x.com"], ["Bob"]),
        ("Hopper, Grace <a@x.com>, Bob <b@x.com>", ["a@x.com", "b@x.com"], ["Hopper"]),
        ("Byron, Ada <a@x.com>; Hopper, Grace; King, Ada <c@x.com>", ["a@x.com", "c@x.com"], ["Hopper, Grace"]),
    ],
)
def test_a_mistake_in_a_list_is_a_row_of_its_own(text: str, good: list[str], bad: list[str]) -> None:
    found = checked(text)
    assert [one.email for one in found.recipients] == good
    assert [one.email for one in found.bad] == bad


def test_a_long_list_is_read_in_small_steps_and_signs_are_counted_no_further_than_they_matter() -> None:
    """How many characters each step looks at cannot be seen; how many steps there are can."""
    boxes = ", ".join(f'"Ada, {number}" <a{number}@x.com>' for number in range(5_000))
    steps = one_mailbox_a_line(boxes)
    count = sum(1 for _ in steps)
    assert count > 200
    assert finished(one_mailbox_a_line(boxes)).count("\n") == 5_000
    assert _count("," * 1_000_000, ",", 3) < 20_000
    assert _count("a,b;c", ",;", 9) == 2
