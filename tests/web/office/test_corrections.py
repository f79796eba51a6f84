"""Corrections that one member of staff proposes and another approves, on pages of the back office."""

from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser
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
