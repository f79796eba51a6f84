"""The list of recipients: found, filtered, sorted and cut into pages."""

import pytest
from tests.drafts.conftest import checked

from largesse.drafts.recipients import FIX_ROWS, PAGE_ROWS, View, list_rows

TEXT = """email,name,quantity
zoe@example.com,Zoë Straße,2
nobody,Bo,1
ALF@example.com,alf,10
zoe@example.com,Zoë again,1
,Cy,1
"""
PEOPLE = checked(TEXT)


def numbers(view: View, earlier: set[str] | None = None) -> list[int]:
    return [row.number for row in list_rows(PEOPLE, view, earlier or ()).rows]


def test_rows_to_fix_come_first_and_each_state_is_counted() -> None:
    listed = list_rows(PEOPLE, View(), {"alf@example.com"})
    assert [row.number for row in listed.rows] == [3, 6, 2, 4, 5]
    assert listed.counts == {"all": 5, "ready": 3, "fix": 2, "doubtful": 0, "repeated": 1, "earlier": 1}
    assert (listed.found, listed.page, listed.pages) == (5, 1, 1)


@pytest.mark.parametrize(
    ("state", "shown"),
    [("ready", [2, 4, 5]), ("fix", [3, 6]), ("repeated", [2, 5]), ("earlier", [4]), ("other", [3, 6, 2, 4, 5])],
)
def test_a_state_shows_its_rows(state: str, shown: list[int]) -> None:
    assert numbers(View(state=state), {"alf@example.com"}) == shown


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("zoe", [2, 5]),
        ("ZOË strasse", [2]),
        ("Strasse, Zoë", [2]),
        ("example.com", [2, 4, 5]),
        (" ", [3, 6, 2, 4, 5]),
        ("4", [4]),
        ("zoe nobody", []),
    ],
)
def test_rows_are_found_by_words_without_accents_and_by_their_number(words: str, shown: list[int]) -> None:
    assert numbers(View(words=words)) == shown


@pytest.mark.parametrize(
    ("sort", "shown"),
    [
        ("name", [4, 3, 6, 5, 2]),
        ("-name", [2, 5, 6, 3, 4]),
        ("email", [6, 4, 3, 2, 5]),
        ("quantity", [3, 5, 6, 2, 4]),
        ("-row", [6, 5, 4, 3, 2]),
        ("other", [3, 6, 2, 4, 5]),
    ],
)
def test_rows_are_sorted(sort: str, shown: list[int]) -> None:
    assert numbers(View(sort=sort)) == shown


def test_pages_end_where_the_rows_do() -> None:
    many = checked("\n".join(f"p{n}@example.com" for n in range(PAGE_ROWS + 1)))
    first, second, beyond = [list_rows(many, View(page=page)) for page in (0, 2, 999)]
    assert (len(first.rows), first.page, first.pages, first.found) == (PAGE_ROWS, 1, 2, PAGE_ROWS + 1)
    assert (len(second.rows), second.page) == (1, 2)
    assert beyond == second
    bad = checked("\n".join(f"p{n}.example.com,P" for n in range(FIX_ROWS + 1)))
    assert len(list_rows(bad, View(state="fix")).rows) == FIX_ROWS


def test_one_of_five_thousand_is_found_by_name_and_by_number() -> None:
    many = checked("email,name\n" + "\n".join(f"p{n}@example.com,Recipient {n}" for n in range(1, 5_001)))
    by_name, by_number = [list_rows(many, View(words=words)) for words in ("recipient 4200", "4,201")]
    assert [row.email for row in by_name.rows] == ["p4200@example.com"]
    assert [row.email for row in by_number.rows] == ["p4200@example.com"]
