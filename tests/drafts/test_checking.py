"""Rows held to the rules of an order: all that is wrong, at once."""

import csv
import io

import pytest
from tests.drafts.conftest import checked

from largesse.drafts.checking import PROBLEMS, bad_rows_file
from largesse.drafts.columns import Columns
from largesse.orders.recipients import OrderRecipient

COLUMNS = Columns(0, (1,), 2)


def test_all_bad_rows_of_a_file_are_told() -> None:
    rows = [f"p{n}@example.com,P{n}" if n % 13 else f"p{n}.example.com,P{n}" for n in range(1, 501)]
    found = checked("email,name\n" + "\n".join(rows))
    assert [row.number for row in found.bad] == [n + 1 for n in range(13, 501, 13)]
    assert len(found.bad) == 38
    assert len(found.recipients) == 462
    assert not found.can_be_sent()


def test_each_rule_is_told_of_each_cell() -> None:
    found = checked(
        "\n".join(
            [
                ",No address,1",
                "x" * 255 + ",Long address,1",
                "nobody,b\u202eack,0",
                f"a@example.com,{'n' * 201},1001",
                "b@example.com,Fine,1000",
                "c@example.com,,some",
                "d@example.com,,1.5",
                "e@example.com,,-1",
                "f@example.com,,Ⅲ",
                '"g@example.com, h@-x",Two,1',
                "i@example.com,Ida,1,j@example.com",
                "k@example@example.com,,1",
                '"l@example,com",,1',
                "l m@example.com,,1",
                "n@example,,1",
                "o@example..com,,1",
                "p@-x.com,,1",
                "o\u2019neil@example.com,,1",
                "q@example.com,#CALC!,1",
            ]
        ),
        COLUMNS,
    )
    assert [[problem.kind for problem in row.problems] for row in found.rows] == [
        ["email_missing"],
        ["email_long"],
        ["email_no_at", "name_wrong", "quantity_wrong"],
        ["name_long", "quantity_wrong"],
        [],
        ["quantity_wrong"],
        ["quantity_wrong"],
        ["quantity_wrong"],
        ["quantity_wrong"],
        ["email_in_list"],
        ["email_more"],
        ["email_two_at"],
        ["email_comma"],
        ["email_space"],
        ["email_domain"],
        ["email_dots"],
        ["email_wrong"],
        ["email_sign"],
        ["name_formula"],
    ]
    assert {problem.kind for row in found.rows for problem in row.problems} == set(PROBLEMS)
    assert found.recipients == (OrderRecipient("b@example.com", "Fine", 1000),)
    assert found.rows[2].problems[0].message == "The @ is missing, as in name@example.com."


def test_rows_to_fix_may_be_left_out() -> None:
    found = checked("a@example.com,A\nbad,B\n", COLUMNS)
    assert not found.can_be_sent()
    assert found.can_be_sent(leaves_out=True)
    assert not checked("bad,B\n", COLUMNS).can_be_sent(leaves_out=True)


def test_the_name_and_the_address_of_a_cell_are_apart() -> None:
    found = checked('"Ada B. <a@example.com>"\n"c@example.com, Di <d@example.com>"\n"E <e@-x>"\n', Columns(0))
    assert [(row.name, row.email) for row in found.rows[:2]] == [
        ("Ada B.", "a@example.com"),
        ("", "c@example.com, Di <d@example.com>"),
    ]
    assert [(row.email, [one.kind for one in row.problems]) for row in found.bad] == [("e@-x", ["email_domain"])]


def test_full_width_letters_before_the_at_are_no_address() -> None:
    found = checked("\uff41@example.com\na@\uff45xample.com\nü@example.com\n", Columns(0))
    assert [[one.kind for one in row.problems] for row in found.rows] == [["email_sign"], [], []]
    assert [one.email for one in found.recipients] == ["a@example.com", "ü@example.com"]


@pytest.mark.parametrize("name", ["#N/A", "#NV", "#REF!", "#VALEUR!", "####", "Ada #NAME?"])
def test_the_error_of_a_formula_is_no_name(name: str) -> None:
    [row] = checked(f"email,name\na@example.com,{name}\nb@example.com,#1 fan!\n").bad
    assert [(one.field, one.kind) for one in row.problems] == [("name", "name_formula")]


def test_each_name_of_a_cell_with_several_is_held_to_the_limit() -> None:
    [row] = checked(f'"{"x" * 201} <a@example.com>; b@example.com"\n', Columns(0)).bad
    assert [one.kind for one in row.problems] == ["name_long"]


def test_who_is_there_twice_is_noted_and_gets_both() -> None:
    found = checked("a@example.com,A\nb@example.com\nA@example.com\nbad\nbad\n", COLUMNS)
    assert [(row.number, row.same_as) for row in found.repeated] == [(3, 1)]
    assert [row.number for row in found.bad] == [4, 5]
    assert len(found.recipients) == 3


def test_a_row_to_fix_makes_no_other_a_repeated_one() -> None:
    """Whoever removes the repeated rows, or leaves out those to fix, leaves out nobody."""
    found = checked("a@example.com,A,none\na@example.com,A,1\na@example.com,A,2\na@example.com,A,none\n", COLUMNS)
    assert [(row.number, row.same_as) for row in found.rows] == [(1, None), (2, None), (3, 2), (4, None)]
    assert found.repeated == (found.rows[2],)


def test_codes_are_counted_up_to_what_one_order_may_have() -> None:
    five = "\n".join(f"p{n}@example.com,,1000" for n in range(5))
    assert checked(five, COLUMNS).can_be_sent()
    six = checked(five + "\nq@example.com", COLUMNS)
    assert (six.code_count, six.has_too_many, six.can_be_sent(leaves_out=True)) == (5001, True, False)


def test_five_thousand_rows_are_checked() -> None:
    found = checked("email,name\n" + "\n".join(f"p{n}@example.com,P {n}" for n in range(5_000)))
    assert len(found.recipients) == 5_000
    assert found.can_be_sent()


def test_the_file_of_the_bad_rows_is_neutral_and_reads_back() -> None:
    found = checked("email,name,quantity\n=1+1,\"=cmd|'/c calc'!A1\",x\na@example.com,Fine,1\n")
    handed = bad_rows_file(found)
    (heading, bad) = csv.reader(io.StringIO(handed.decode("utf-8-sig"), newline=""))
    assert heading[:3] == ["email", "name", "quantity"]
    assert bad[:4] == ["'=1+1", "'=cmd|'/c calc'!A1", "x", "2"]
    again = checked(handed.decode())
    assert [(row.email, row.name, row.quantity) for row in again.bad] == [("=1+1", "=cmd|'/c calc'!A1", "x")]
    assert len(again.bad[0].problems) == 2
