"""Two members of staff who decide about the same thing at the same moment: one decision counts, and the other hears so."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.web.api.conftest import Service, held
from tests.web.console.conftest import signed_in
from tests.web.office.conftest import add_staff, staff_in
from tests.web.office.test_money import FILES, balance, bank_file, service, wait_for
from tests.web.office.test_privacy import SAM, take_in

from largesse.customers import customers
from largesse.ledger.top_ups import spelled_reference
from largesse.privacy import service as privacy_service
from largesse.web.office import privacy

__all__ = ["service"]

STAFF = "staff"  # those of these tests were invited by nobody, and have a second step that does not open


@pytest.mark.parametrize("first", ["credit", "dismiss"])
def test_a_line_of_a_bank_file_is_credited_or_dismissed(service: Service, first: str) -> None:
    [reference], before = wait_for(service, 1), balance(service)
    fay, max_ = (staff_in(service, "finance", f"{name}@largesse.example") for name in ("fay", "max"))
    fay.get(FILES)
    here = fay.upload(FILES, bank_file([(spelled_reference(reference), "99.00", "GBP")]), decimals="").headers[
        "location"
    ]
    for browser in (fay, max_):
        assert "To decide: 1" in browser.read(here)
    second = {"credit": "dismiss", "dismiss": "credit"}[first]
    with ThreadPoolExecutor(2) as pool:
        with held(service, "SELECT FROM top_ups WHERE reference = $1 FOR UPDATE", reference) as waits:
            answers = []
            for count, (browser, act) in enumerate(((fay, first), (max_, second)), 1):
                answers.append(pool.submit(browser.post, f"{here}/lines/2/{act}"))
                assert waits(count), f"{act} waits for whoever decides about the top-up"
        assert [one.result().status_code for one in answers] == [303, 303]
    credited = balance(service) - before
    dismissed = service.sql("SELECT FROM bank_lines WHERE dismissed_at IS NOT NULL")
    assert (credited, len(dismissed)) == ((99_00, 0) if first == "credit" else (0, 1))
    assert "There is nothing to decide about this line any more." in max_.read(here)
    assert [one for one in service.findings() if STAFF not in one] == []


def test_terms_that_two_set_at_the_same_moment_are_both_kept(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    fay, max_ = (staff_in(service, "owner", f"{name}@largesse.example") for name in ("fay", "max"))
    here, change = f"/office/customers/{service.ids['customers']['globex']}", customers.change_customer
    [before] = service.sql("SELECT name, plan, funding FROM customers WHERE key = 'globex'")
    form = {**before, **{f"was_{name}": value for name, value in before.items()}}

    async def after_max(*given: Any, **changes: Any) -> Any:
        monkeypatch.undo()
        answer = await asyncio.to_thread(max_.post, f"{here}/terms", **{**form, "plan": "starter"})
        assert answer.status_code == 303
        return await change(*given, **changes)

    for browser in (fay, max_):
        browser.get(here)
    monkeypatch.setattr(customers, "change_customer", after_max)
    assert fay.post(f"{here}/terms", **{**form, "name": "Globex Group"}).status_code == 303
    [after] = service.sql("SELECT name, plan, funding FROM customers WHERE key = 'globex'")
    assert dict(after) == {**before, "name": "Globex Group", "plan": "starter"}


@pytest.mark.parametrize("other", ["erase", "done"])
def test_a_request_for_erasure_ends_once_with_its_receipt(
    service: Service, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert service.send("gift", "coffee", value=5, recipients=[{"email": SAM}]).status_code == 200
    erase_lines, begun, go_on = privacy_service.erase_lines, threading.Event(), threading.Event()

    async def slowly(*given: Any) -> Any:
        begun.set()
        await asyncio.to_thread(go_on.wait, 20)
        return await erase_lines(*given)

    monkeypatch.setattr(privacy_service, "erase_lines", slowly)
    monkeypatch.setattr(privacy, "_AT_ONCE_S", None)
    sue, oda = (staff_in(service, role, f"{role}@largesse.example") for role in ("support", "owner"))
    here = take_in(sue, "erase")
    sue.get(f"{here}/erase")
    oda.get(here)
    with ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(sue.post, f"{here}/erase")]
        assert begun.wait(20)
        answers.append(pool.submit(oda.post, f"{here}/{other}", outcome="declined"))
        time.sleep(0.5)
        go_on.set()
        assert [one.result().status_code for one in answers] == [303, 303]
    [request] = service.sql("SELECT outcome, erasure_id FROM privacy_requests")
    [receipt] = service.sql("SELECT id FROM erasures")
    assert (request["outcome"], request["erasure_id"]) == ("done", receipt["id"])
    assert "Receipt of erasure" in oda.read(here)
    assert [one for one in service.findings() if STAFF not in one] == []


def test_an_erasure_leaves_a_gift_alone_whose_address_is_corrected_meanwhile(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, sue = signed_in(service, "ada@acme.example"), staff_in(service, "support")
    orders = [
        service.send("gift", "coffee", value=5, recipients=[{"email": SAM, "name": "Sam"}]).json()["reference"]
        for _ in range(2)
    ]
    find = privacy_service.find
    page = f"/app/orders/{orders[0]}"

    async def then_corrected(*given: Any) -> Any:
        found = await find(*given)
        fields = {"email": SAM, "corrected": "pat@example.com"}
        answer = await asyncio.to_thread(ada.submit, page, f"{page}/correct", **fields)
        assert answer.status_code == 303, answer.text
        return found

    here = take_in(sue, "erase")
    sue.get(f"{here}/erase")
    monkeypatch.setattr(privacy, "_AT_ONCE_S", None)
    monkeypatch.setattr(privacy_service, "find", then_corrected)
    assert sue.post(f"{here}/erase").status_code == 303
    sent_to = [
        service.sql(
            "SELECT l.recipient_email FROM lines l JOIN orders o ON o.id = l.order_id WHERE reference = $1", one
        )
        for one in orders
    ]
    assert sent_to[0][0][0] == "pat@example.com"
    assert SAM not in sent_to[1][0][0]
    assert [one for one in service.findings() if STAFF not in one] == []


def test_what_somebody_else_set_meanwhile_stays(service: Service) -> None:
    """In an old window, neither a role nor the warning of a gift is set back."""
    fay = staff_in(service, "owner", "fay@largesse.example")
    colleague = add_staff(service, "support", "ned@largesse.example")
    customer = service.ids["customers"]["globex"]
    [[user]] = service.sql("SELECT id FROM users WHERE customer_id = $1 AND role = 'admin' LIMIT 1", customer)
    for path, now in (("/office/staff", "support"), (f"/office/customers/{customer}/people", "admin")):
        number, said = (colleague, "Support") if now == "support" else (user, "Administrator")
        assert f'name="was_role" value="{now}"' in fay.get(path).text
        assert fay.post(f"{path}/{number}/role", role="finance", was_role="auditor").status_code == 303
        assert f"It is now: {said}" in fay.read(path)
    roles = service.sql(
        "SELECT role FROM staff WHERE id = $1 UNION ALL SELECT role FROM users WHERE id = $2", colleague, user
    )
    assert [row["role"] for row in roles] == ["support", "admin"]
    [[product]] = service.sql("SELECT id FROM products WHERE is_digital ORDER BY id LIMIT 1")
    here = f"/office/stock/{product}"
    assert fay.submit(here, f"{here}/warning", was_below="", below="5").status_code == 303
    fay.get(here)
    conflict = fay.post(f"{here}/warning", was_below="", below="7")
    assert (conflict.status_code, "It is now: 5" in conflict.text) == (422, True)
