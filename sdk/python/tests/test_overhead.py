"""Compares the functions that a call calls with those of the same request made with httpx alone."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable

import httpx
import pytest

CALLS = 5


def calls(ask: Callable[[], object]) -> int:
    """Returns how many functions a call calls, on average."""
    ask()
    counts: Counter[str] = Counter()
    sys.setprofile(lambda _, event, __: counts.update((event,)))
    try:
        for _ in range(CALLS):
            ask()
    finally:
        sys.setprofile(None)
    return (counts["call"] + counts["c_call"]) // CALLS


@pytest.mark.long
def test_a_call_costs_at_most_twice_that_of_httpx(largesse, largesse_server, world) -> None:
    headers = {"Authorization": f"Bearer {largesse_server.api_key}"}
    with httpx.Client(base_url=largesse_server.base_url, headers=headers) as bare:
        order = {"productId": world.coffee, "value": 5, "codeQuantity": 1, "accountId": world.account}
        for name, ours, theirs in (
            ("me", largesse.me, lambda: bare.get("/me").json()),
            (
                "send.gift",
                lambda: largesse.send.gift(world.coffee, value=5, code_quantity=1, account_id=world.account),
                lambda: bare.post("/send/gift", json=order).json(),
            ),
            ("products.list", lambda: list(largesse.products.list()), lambda: bare.get("/products?page=1").json()),
        ):
            ratio = calls(ours) / calls(theirs)
            assert ratio < 2, (name, ratio)
