"""The rows of a draft: taken, corrected, added and removed, and by its person alone."""

from typing import Any, cast

import pytest
from tests.drafts.conftest import House, at_once, finished, sheet

from largesse.audit.service import Acting
from largesse.customers.actor import Actor
from largesse.customers.authenticator import Caller
from largesse.customers.sessions import Person
from largesse.drafts.checking import Checked, Typed, as_typed, check_rows, mended_sheet
from largesse.drafts.columns import Columns, guess_columns
from largesse.drafts.model import Draft
from largesse.drafts.recipients import Taking, Unseen
from largesse.drafts.sheet import MAX_CELL, Sheet, SheetRefused
from largesse.drafts.store import read_draft

FILE = "email,name\nzoe@acme.example,Zoë\nbo@acme,Bo\nZOE@acme.example,Zoë\n"


def actor_of(house: House, caller: Caller) -> Actor:
    principal = caller.principal
    person = Person(
        session_id=principal.session_id or 0,
        person_id=0,
        user_id=principal.user_id or 0,
        email="",
        name="",
        role="admin",
        customer_id=principal.customer_id,
        customer_name="",
        plan=principal.plan,
        funding=principal.funding,
        environment=principal.environment,
        is_proved=True,
    )
    begin = lambda _: house.database.transaction(principal.scope)  # noqa: E731
    return Actor(cast("Acting", None), begin, principal.customer_id, principal.environment, person)


async def begun(house: House, text: str = FILE, **said: Any) -> tuple[Caller, Actor, Draft]:
    caller = await house.caller()
    draft = await house.draft(caller, sheet(text), **said)
    return caller, actor_of(house, caller), draft


async def reread(house: House, caller: Caller, draft: Draft) -> Draft:
    async with house.database.connection(caller.principal.scope) as connection:
        return await read_draft(connection, caller.principal, draft.id)


async def rows(house: House, caller: Caller, draft: Draft) -> list[tuple[int, str, str, str]]:
    checked = await house.desk.rows.checked(caller.principal, await reread(house, caller, draft))
    return [(row.number, row.email, row.name, row.quantity) for row in checked.rows]


async def test_rows_are_edited_added_and_removed_in_place(house: House) -> None:
    caller, actor, draft = await begun(house)
    service = house.desk.rows
    await service.edit(
        actor, draft.id, {3: Typed("bo@acme.example", "Bo", "2"), 99: Typed("x")}, [Typed("cy@x.example")]
    )
    assert await rows(house, caller, draft) == [
        (2, "zoe@acme.example", "Zoë", ""),
        (3, "bo@acme.example", "Bo", "2"),
        (4, "ZOE@acme.example", "Zoë", ""),
        (5, "cy@x.example", "", ""),
    ]
    await service.remove_repeated(actor, caller.principal, await reread(house, caller, draft))
    await service.remove(actor, draft.id, [2, 99])
    assert [row[0] for row in await rows(house, caller, draft)] == [3, 5]
    with pytest.raises(SheetRefused, match="A cell of row 3"):
        await service.edit(actor, draft.id, {3: Typed("x" * (MAX_CELL + 1)), 5: Typed("")})
    assert [row[0] for row in await rows(house, caller, draft)] == [3, 5], "all of it or nothing"
    await service.edit(actor, draft.id, {3: Typed(""), 5: Typed(" ")})
    assert await rows(house, caller, draft) == []


@pytest.mark.slow
async def test_two_pages_that_edit_at_once_lose_nothing(house: House) -> None:
    caller, actor, draft = await begun(house)
    names = iter(range(10))
    await at_once(10, lambda: house.desk.rows.edit(actor, draft.id, {}, [Typed(f"p{next(names)}@x.example")]))
    found = await rows(house, caller, draft)
    assert len({number for number, *_ in found}) == len(found) == 13


async def test_suggestions_replace_addresses_of_the_rows_that_are_named(house: House) -> None:
    caller, actor, draft = await begun(house, FILE + "cy@acme,Cy\ndi,Di\n")
    await house.desk.rows.use_suggestions(actor, caller.principal, draft, [2, 3, 6])
    found = {number: email for number, email, *_ in await rows(house, caller, draft)}
    assert found == {2: "zoe@acme.example", 3: "bo@acme.example", 4: "ZOE@acme.example", 5: "cy@acme", 6: "di"}


async def test_a_correction_keeps_the_name_before_the_address(house: House) -> None:
    caller, actor, draft = await begun(house, "email\nAda Byron ada@acme.example\n1. zoe@acme.example\n")
    await house.desk.rows.use_suggestions(actor, caller.principal, draft, [2, 3])
    assert [row[1:3] for row in await rows(house, caller, draft)] == [
        ("ada@acme.example", "Ada Byron"),
        ("zoe@acme.example", ""),
    ]


async def test_rows_to_fix_are_left_out_until_a_row_changes(house: House) -> None:
    caller, actor, draft = await begun(house, leaves_out=True)
    quote = await house.quote(caller, draft)
    assert (quote.recipient_count, quote.total_minor) == (1, 2000)
    for change in (
        house.desk.rows.edit(actor, draft.id, {}, [Typed("bad")]),
        house.desk.rows.remove(actor, draft.id, [2]),
        house.desk.rows.set_columns(
            actor, draft.id, await house.desk.rows.sheet(caller.principal, draft), draft.content.columns
        ),  # type: ignore[arg-type]
    ):
        seen = (await reread(house, caller, draft)).content
        await house.desk.change(actor, draft.id, seen, leaves_out=True)
        await change
        assert not (await reread(house, caller, draft)).content.leaves_out
    left = await house.draft(caller, sheet(FILE), leaves_out=True)
    assert (await house.desk.send(caller, left.id, None)).is_new
    lines = await house.sql("SELECT recipient_email FROM lines ORDER BY number")
    assert [line[0] for line in lines] == ["zoe@acme.example", "ZOE@acme.example"]


@pytest.mark.parametrize(("taking", "kept"), [(Taking.REPLACE, []), (Taking.ADD, [2, 3, 4]), (Taking.MEND, [2, 4])])
async def test_more_rows_replace_join_or_mend_those_that_are_there(
    house: House, taking: Taking, kept: list[int]
) -> None:
    caller, actor, draft = await begun(house)
    data = b"Bo <bo@acme.example>; cy@acme.example"
    await house.desk.rows.take(actor, caller.principal, draft, data, taking=taking)
    found = await rows(house, caller, draft)
    assert [number for number, *_ in found[:-2]] == kept
    assert [row[1:3] for row in found[-2:]] == [("bo@acme.example", "Bo"), ("cy@acme.example", "")]


@pytest.mark.parametrize(
    ("text", "why"), [("cy@x.example,Cy,di@x.example\ned@x.example,Ed,", "more_emails"), ("Cy\nDi", "no_email")]
)
async def test_no_address_gets_lost_when_rows_are_added(house: House, text: str, why: str) -> None:
    caller, actor, draft = await begun(house)
    before = await rows(house, caller, draft)
    with pytest.raises(SheetRefused) as refused:
        await house.desk.rows.take(actor, caller.principal, draft, text.encode(), taking=Taking.ADD)
    assert (refused.value.why, await rows(house, caller, draft)) == (why, before)


async def test_the_columns_of_added_rows_that_are_not_read_are_named(house: House) -> None:
    caller, actor, draft = await begun(house)
    text = "email,How many,\ncy@x.example,2,x\n"
    unseen = await house.desk.rows.take(actor, caller.principal, draft, text.encode(), taking=Taking.ADD)
    assert unseen == Unseen([(1, "How many", "2"), (2, "", "x")])


def checked(found: Sheet, columns: Columns) -> Checked:
    return finished(check_rows(found, columns))


def test_a_row_is_mended_where_its_columns_are() -> None:
    found = sheet("no,first name,last name,email\n17,Zoë,Müller,nope\n18,Bo,,bo@example.com\n")
    mended, columns = mended_sheet(
        found, guess_columns(found), {2: Typed("zoe@example.com", "Zoë M.", "1"), 99: Typed("x", "y", "z")}
    )
    assert [row.cells for row in mended.rows[1:]] == [
        ("17", "Zoë M.", "", "zoe@example.com", "1"),
        ("18", "Bo", "", "bo@example.com"),
    ]
    assert checked(mended, columns).can_be_sent()


def test_what_has_no_column_gets_one_behind_the_last() -> None:
    found = sheet("a@example.com;x\nb@example.com;y\n")
    columns = Columns(email=0)
    same = mended_sheet(found, columns, {1: Typed("z@example.com")})
    assert (same[0].rows[0].cells, same[1]) == (("z@example.com", "x"), columns)
    mended, columns = mended_sheet(found, columns, {1: Typed("a@example.com", "Ada", "7")})
    assert mended.rows[0].cells == ("a@example.com", "x", "Ada", "7")
    assert [(row.name, row.quantity) for row in checked(mended, columns).rows] == [("Ada", "7"), ("", "")]
    # Without any column, as for the first recipient that is typed into an empty list.
    first, columns = mended_sheet(Sheet([]), Columns(), {}, [Typed("a@example.com", "Ada", "2")])
    assert [(one.email, one.name, one.quantity) for one in checked(first, columns).recipients] == [
        ("a@example.com", "Ada", 2)
    ]


def test_a_mended_row_may_be_longer_than_it_was_and_goes_when_nothing_is_left() -> None:
    found = sheet("email,name,quantity,team\na@example.com\nbad,,,Sales\n")
    columns = guess_columns(found)
    mended, _ = mended_sheet(found, columns, {2: Typed("a\0@example.com", "A", "3"), 3: Typed(" ")})
    assert [(row.number, row.cells) for row in mended.rows[1:]] == [(2, ("a@example.com", "A", "3"))]
    assert mended_sheet(sheet("a@example.com"), Columns(0), {1: Typed("")})[0].rows == []
    with pytest.raises(SheetRefused, match="A cell of row 3"):
        mended_sheet(found, columns, {3: Typed("x" * 1001)})


def test_rows_come_after_those_that_are_there() -> None:
    first = sheet("a@example.com,A\nbad,B\nc@example.com,C\n")
    more = sheet("email;name;quantity;row;what is wrong\nb@example.com;B;2;2;This is not an e-mail address.\n")
    typed = [as_typed(row) for row in checked(more, guess_columns(more)).rows]
    merged, columns = mended_sheet(first, guess_columns(first), {2: Typed("")}, [*typed, Typed("")])
    assert [(row.number, row.cells) for row in merged.rows] == [
        (1, ("a@example.com", "A")),
        (3, ("c@example.com", "C")),
        (4, ("b@example.com", "B", "2")),
    ]
    assert checked(merged, columns).code_count == 4
    with pytest.raises(SheetRefused, match="more than 5,000 rows"):
        mended_sheet(merged, columns, {}, [Typed("a@example.com")] * 4_999)
