"""What the chain of the ledger costs a process, for each order: `python -m bench.chaining`.

The entries of batches of orders on one account are made ready to be written, with their marks; and once more without, as far as that
can be told apart: encoded alone.
"""

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from largesse.encryption.chain import START, Chain
from largesse.ledger.posting import Entry, Locked, mark_entries

ORDERS = 50
ROUNDS = 400


def entries() -> list[Entry]:
    """A batch as the placer decides it: out of a float, into sales."""
    return [
        Entry(
            1,
            account,
            10_000_000 + number,
            "order",
            number,
            sign * 1_000,
            5_000_000 + sign * number,
            None,
            f"0WBQK7M2PXR4D9V{number:05}",
        )
        for number in range(1, ORDERS + 1)
        for account, sign in ((1, -1), (2, 1))
    ]


def micros_an_order(work: Callable[[], object]) -> float:
    """The least of several runs, of processor time, in microseconds an order."""
    least = float("inf")
    for _ in range(5):
        began = time.process_time()
        for _ in range(ROUNDS):
            work()
        least = min(least, time.process_time() - began)
    return least / ROUNDS / ORDERS * 1e6


def main() -> None:
    batch, at = entries(), datetime.now(UTC)
    chain, accounts = (
        Chain("entries", {1: os.urandom(32)}),
        {number: Locked(0, START, "production", kind, "GBP") for number, kind in ((1, "funding"), (2, "sales"))},
    )
    encode = msgspec.json.Encoder().encode
    chained = micros_an_order(lambda: mark_entries(chain, accounts, batch, at).arguments)
    plain = micros_an_order(lambda: encode(batch))
    print(f"an order's two entries: {chained:.1f} µs with their marks, {plain:.1f} µs encoded alone")


if __name__ == "__main__":
    main()
