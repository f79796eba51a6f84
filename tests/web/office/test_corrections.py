"""Corrections that one member of staff proposes and another approves, on pages of the back office."""

from tests.web.api.conftest import Service
from tests.web.claim.conftest import Recipient
from tests.web.console.conftest import Browser, signed_in
from tests.web.console.test_funding import report
from tests.web.office.conftest import staff_in
from tests.web.office.test_money import account, balance, fay, max_, service

__all__ = ["fay", "max_", "service"]


def test_a_debit_above_the_balance_says_so_before_it_is_approved(service: Service, fay: Browser, max_: Browser) -> None:
    before, here = balance(service), f"/office/money/accounts/{account(service)}/correct"
    said, fields = "The account does not hold that much.", {"kind": "debit", "order": "", "reason": "It never came."}
    most = fay.submit(here, amount=f"{before / 100:.2f}", **fields).headers["location"]
    more = fay.submit(here, amount=f"{(before + 1) / 100:.2f}", **fields).headers["location"]
    for browser in (fay, max_):
        assert said in browser.read(more)
        assert said not in browser.read(most)
    assert max_.submit(more, f"{more}/approve").status_code == 409
    assert max_.submit(most, f"{most}/approve").status_code == 303
    assert balance(service) == 0
    assert max_.submit(more, f"{more}/decline").status_code == 303
    assert said not in max_.read(more)


def test_a_refund_of_a_claimed_gift_leaves_the_value_of_unclaimed_ones(
    service: Service, fay: Browser, max_: Browser
) -> None:
    sent = service.send("gift", "coffee", value=10, codeQuantity=3).json()
    assert Recipient(service).claim(sent["codes"][0]).status_code == 303
    here = f"/office/money/accounts/{account(service)}/correct"
    fields = {"kind": "refund", "amount": "10.00", "order": sent["reference"], "reason": "It came broken."}
    one = fay.submit(here, **fields).headers["location"]
    assert max_.submit(one, f"{one}/approve").status_code == 303
    service.run(report)
    signed_in(service, "ada@acme.example").sees("/app", "2 gifts unclaimed, £20.00")


def test_what_somebody_proposed_who_left_can_only_be_declined(service: Service, fay: Browser, max_: Browser) -> None:
    before, here = balance(service), f"/office/money/accounts/{account(service)}/correct"
    one = fay.submit(here, kind="credit", amount="5", order="", reason="It came.").headers["location"]
    fay_id = service.sql("SELECT id FROM staff WHERE email_key = 'fay@largesse.example'")[0][0]
    owner, member = staff_in(service, "owner"), f"/office/staff/{fay_id}"
    assert owner.submit(member, f"{member}/deactivate").status_code == 303
    shown = max_.get(one).text
    assert ("may no longer correct balances" in shown, "Approve and post" in shown) == (True, False)
    refused = max_.submit(one, f"{one}/approve")
    assert (refused.status_code, "may no longer correct balances" in refused.text) == (409, True)
    assert balance(service) == before
    assert max_.submit(one, f"{one}/decline").status_code == 303
