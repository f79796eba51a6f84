"""Compares the cost of a call with the same request made with httpx alone, in one run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import httpx
import pytest

CALLS, ROUNDS = 20, 5


def cost_s(ask: Callable[[], object]) -> float:
    """Returns the processor time of this thread for a call."""
    began_s = time.thread_time()
    for _ in range(CALLS):
        ask()
    return (time.thread_time() - began_s) / CALLS


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
            rounds = [(cost_s(ours), cost_s(theirs)) for _ in range(ROUNDS)]
            ratio = statistics.median(ours_s / theirs_s for ours_s, theirs_s in rounds)
            micros = [1e6 * statistics.median(column) for column in zip(*rounds, strict=True)]
            print(f"{name}: {micros[0]:.0f} \u00b5s, httpx alone {micros[1]:.0f} \u00b5s: {ratio:.2f}")  # noqa: T201
            assert ratio < 2
