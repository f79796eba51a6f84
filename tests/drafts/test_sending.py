"""Drafts become orders: once, at the price that was seen, by whoever may, and recorded as theirs."""

import io
from collections import Counter
from typing import Any

import msgspec
import pytest
from tests.drafts.conftest import House, at_once, sheet

from largesse.base.errors import InvalidRequest, NotFound, OtherServiceAccount, ReferenceUsed, Unauthorized
from largesse.db.scope import WORKER
from largesse.drafts.columns import Columns
from largesse.drafts.service import Placed
from largesse.drafts.store import MAX_DRAFTS, list_drafts, read_draft, remember_columns, remembered_columns, save_draft
from largesse.housekeeping import prune
from largesse.orders.acts import read_order, void_unclaimed
from largesse.verify.audit import audit

SHEET = sheet("email,name\nzoe@example.com,Zoë\nbo@example.com,Bo\n")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("said", [{}, {"external_reference": "spring-2030"}, {"code_quantity": 150}])
async def test_twenty_at_once_are_one_order(house: House, said: dict[str, Any]) -> None:
    caller = await house.caller()
    draft = await house.draft(caller, None if "code_quantity" in said else SHEET, **said)
    quote = await house.quote(caller, draft)

    outcomes = await at_once(20, lambda: house.desk.send(caller, draft.id, quote.token))

    assert Counter(map(repr, outcomes)) == {
        repr(Placed(draft.id, is_new=True)): 1,
        repr(Placed(draft.id, is_new=False)): 19,
    }
    assert [row[0] for row in await house.sql("SELECT reference FROM orders")] == [draft.id]


async def test_a_draft_that_is_sent_between_two_reads_of_it_is_one_order(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = await house.caller()
    draft = await house.draft(caller, SHEET)
    quote, read = await house.quote(caller, draft), house.desk.rows.checked

    async def read_late(*of: Any) -> Any:
        monkeypatch.undo()
        assert (await house.desk.send(caller, draft.id, quote.token)).is_new
        return await read(*of)

    monkeypatch.setattr(house.desk.rows, "checked", read_late)
    assert await house.desk.send(caller, draft.id, quote.token) == Placed(draft.id, is_new=False)


@pytest.mark.slow
async def test_twenty_under_other_references_are_one_order_too(house: House) -> None:
    """Each says another reference of its own between reading the draft and sending it: the draft is the same."""
    caller = await house.caller()
    draft = await house.draft(caller, SHEET)
    recipients = (await house.desk.rows.checked(caller.principal, draft)).recipients
    names = iter(range(20))

    async def send() -> str:
        asked = msgspec.structs.replace(draft.to_request(caller, recipients), external_reference=f"own-{next(names)}")
        return (await house.services.orders.send(caller, asked, reference=draft.id)).reference

    outcomes = await at_once(20, send)

    assert outcomes.count(draft.id) == 1
    assert await house.sql("SELECT count(*) FROM orders") == [(1,)]
    assert await house.desk.send(caller, draft.id, None) == Placed(draft.id, is_new=False)


async def test_a_draft_that_a_process_sent_before_it_died_is_no_draft_any_more(house: House) -> None:
    """It was offered for two weeks, and sending it again with other recipients showed the first order as sent."""
    caller = await house.caller()
    draft = await house.draft(caller, SHEET)
    recipients = (await house.desk.rows.checked(caller.principal, draft)).recipients
    await house.services.orders.send(caller, draft.to_request(caller, recipients), reference=draft.id)
    async with house.database.connection(caller.principal.scope) as connection:
        assert await list_drafts(connection, caller.principal) == []
        with pytest.raises(NotFound):
            await read_draft(connection, caller.principal, draft.id)
    assert await house.desk.send(caller, draft.id, None) == Placed(draft.id, is_new=False)


async def test_bad_rows_and_a_missing_gift_are_not_sent(house: House) -> None:
    caller = await house.caller()
    wrong = await house.draft(caller, sheet("email\nzoe@example.com\nbad\n"))
    nothing = await house.draft(caller, SHEET, product_id=None)
    for draft, told in ((wrong, "1 rows"), (nothing, "no gift")):
        with pytest.raises(InvalidRequest, match=told):
            await house.desk.send(caller, draft.id, None)
    nobody = await house.draft(caller)
    with pytest.raises(InvalidRequest, match="Exactly one of"):
        await house.desk.send(caller, nobody.id, None)


async def test_a_reference_of_another_order_is_refused(house: House) -> None:
    caller = await house.caller()
    first, second = [await house.draft(caller, SHEET, external_reference="same") for _ in range(2)]
    await house.desk.send(caller, first.id, None)
    with pytest.raises(ReferenceUsed) as refusal:
        await house.desk.send(caller, second.id, None)
    assert refusal.value.holder == first.id


@pytest.mark.parametrize("change", ["is_active = false", "role = 'member'"])
async def test_who_may_no_longer_is_refused_as_the_order_is_placed(house: House, change: str) -> None:
    """The rights that a request came with are looked at again under the locks of its order."""
    caller = await house.caller()
    draft = await house.draft(caller, SHEET)
    await house.sql(f"UPDATE users SET {change} WHERE id = $1", caller.principal.user_id)
    with pytest.raises(Unauthorized):
        await house.desk.send(caller, draft.id, None)
    assert await house.sql("SELECT id FROM orders") == []


async def test_a_member_draws_on_what_is_open_to_all_and_an_administrator_on_each(house: House) -> None:
    team, small = (house.ids["funding_accounts"][name] for name in ("team", "small"))
    admin, member = await house.caller(), await house.caller("cem@acme.example")
    for caller, account, may in ((admin, team, True), (member, team, False), (member, small, True)):
        draft = await house.draft(caller, SHEET, account_id=account)
        if may:
            assert (await house.desk.send(caller, draft.id, None)).is_new
            continue
        for attempt in (house.quote(caller, draft), house.desk.send(caller, draft.id, None)):
            with pytest.raises(InvalidRequest, match="no funding account"):
                await attempt


async def test_orders_of_people_are_theirs_and_the_administrators_to_decide_over(house: House) -> None:
    admin = await house.caller()
    cem, dot = await house.caller("cem@acme.example"), await house.caller("dot@acme.example")
    draft = await house.draft(cem, code_quantity=2)
    reference = (await house.desk.send(cem, draft.id, None)).reference
    vault, database = house.services.vault, house.database
    chain = house.services.chains.entries
    for caller in (cem, admin, dot):
        async with database.transaction(caller.principal.scope) as connection:
            reading = read_order(connection, caller.principal, vault, "https://gifts.example", reference)
            if caller is dot:
                with pytest.raises(OtherServiceAccount):
                    await reading
                with pytest.raises(OtherServiceAccount):
                    await void_unclaimed(connection, caller.principal, chain, reference)
            else:
                assert len((await reading).codes) == 2
    async with database.transaction(cem.principal.scope) as connection:
        assert (await void_unclaimed(connection, cem.principal, chain, reference)).cancelled_count == 2
    readers = await house.sql("SELECT user_id, service_account_id FROM code_readings ORDER BY id")
    assert [tuple(row) for row in readers] == [(cem.principal.user_id, None), (admin.principal.user_id, None)]
    acts = await house.sql("SELECT act, user_id, api_key_id FROM order_acts")
    assert [tuple(row) for row in acts] == [("cancel", cem.principal.user_id, None)]


@pytest.mark.slow
async def test_collections_templates_and_invoices_are_sent_too(house: House) -> None:
    caller = await house.caller()
    treats, welcome = house.ids["collections"]["treats"], house.ids["templates"]["welcome"]
    for said in ({"collection_id": treats, "value": 25.0}, {"template_id": welcome, "value": None}):
        draft = await house.draft(caller, SHEET, **{"product_id": None, **said})
        assert (await house.desk.send(caller, draft.id, None)).is_new
    gil = await house.caller("gil@globex.example")
    draft = await house.draft(gil, SHEET, account_id=None)
    quote = await house.quote(gil, draft)
    assert quote.balance_after_minor is None
    assert (await house.desk.send(gil, draft.id, quote.token)).is_new
    rows = await house.sql("SELECT value_minor, wrapping_key, message FROM orders ORDER BY id")
    assert [tuple(row) for row in rows] == [
        (2500, "default", None),
        (1000, "confetti", "Hello"),
        (1000, "default", None),
    ]
    report = await audit(house.database, house.services.vault, progress_to=io.StringIO())
    assert report.findings == []


async def test_a_person_keeps_so_many_drafts(house: House) -> None:
    caller = await house.caller()
    drafts = [await house.draft(caller, external_reference=str(n)) for n in range(MAX_DRAFTS + 1)]
    async with house.database.connection(caller.principal.scope) as connection:
        kept = await list_drafts(connection, caller.principal)
    assert len(kept) == MAX_DRAFTS
    assert drafts[-1] in kept


async def test_columns_are_remembered_for_the_customer_alone(house: House) -> None:
    ada, cem, gil = [
        await house.caller(email) for email in ("ada@acme.example", "cem@acme.example", "gil@globex.example")
    ]
    heading, columns = bytes(32), Columns(2, (0, 1), None, True)
    database = house.database
    for chosen in (Columns(1), columns):
        async with database.connection(ada.principal.scope) as connection:
            await remember_columns(connection, ada.principal, heading, chosen)
    for caller, remembered in ((cem, columns), (gil, None)):
        async with database.connection(caller.principal.scope) as connection:
            assert await remembered_columns(connection, caller.principal, heading) == remembered
            assert await remembered_columns(connection, caller.principal, None) is None


async def test_a_draft_that_nobody_touches_goes_with_everybody_in_it(house: House) -> None:
    caller = await house.caller()
    old, fresh = [await house.draft(caller, SHEET) for _ in range(2)]
    await house.sql("UPDATE drafts SET changed_at = changed_at - interval '15 days' WHERE id = $1", old.id)
    async with house.database.connection(WORKER) as connection:
        await prune(connection)
    assert [row[0] for row in await house.sql("SELECT id FROM drafts")] == [fresh.id]
    assert {row[0] for row in await house.sql("SELECT draft_id FROM draft_rows")} == {fresh.id}
    principal = caller.principal
    async with house.database.transaction(principal.scope) as connection:
        held = await read_draft(connection, principal, fresh.id, lock=True)
        changed = msgspec.structs.replace(held.content, message="Later")
        await save_draft(connection, principal, fresh.id, changed)
        assert (await read_draft(connection, principal, fresh.id)).content.message == "Later"
