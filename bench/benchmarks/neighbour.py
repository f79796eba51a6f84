"""How a noisy customer slows down a quiet one: the 99th percentile of the quiet customer's orders.

*How.* The quiet customer has two connections. Each waits 20 ms after an answer before it orders again. Its p99 is measured alone,
and while another customer sends orders over 64 connections as fast as they are answered, with batches of 5,000 codes among
them, one after the other.

*What it means.* Large orders are drawn, encrypted and written in pieces, in their own lane, and small orders pass between. The
machine is fully busy, including the load generator: the added time is mostly waiting for a core.
"""

import json
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from bench import load
from bench.installation import Failed, Installation, Server
from bench.load import Buyer
from bench.results import Row, Sample
from bench.suite import WARM_UP_S, Suite, at_most, watched
from bench.world import two_customers

NOISY_CONNECTIONS = 64
QUIET_CONNECTIONS = 2
QUIET_EVERY_MS = 20
BATCH_CODES = 5_000


def run(suite: Suite) -> list[Row]:
    with suite.installation("neighbour", two_customers()) as made, made.serve() as server:
        quiet, noisy = load.buyers(made)
        _p99(made, server, quiet, WARM_UP_S)

        def beside_noise() -> Sample:
            with _noise(made, server, noisy, suite.seconds + 2) as batches:
                sample = _p99(made, server, quiet, suite.seconds)
                sample.seen["batches"] = len(batches)
            return sample

        pairs = suite.in_turn(beside_noise, lambda: _p99(made, server, quiet, suite.seconds))
    return [
        Row(
            "neighbour",
            "ms",
            "p99 of a quiet customer beside a noisy one",
            "p99 of the quiet customer alone",
            at_most(3),
            pairs,
        )
    ]


def _p99(made: Installation, server: Server, quiet: Buyer, seconds: float) -> Sample:
    sample = watched(
        made,
        server,
        lambda: load.orders(
            made, server, [quiet], connections=QUIET_CONNECTIONS, seconds=seconds, every_ms=QUIET_EVERY_MS
        ),
    )
    return Sample(sample.seen["p99_ms"], sample.seen)


@contextmanager
def _noise(made: Installation, server: Server, noisy: Buyer, seconds: float) -> Iterator[list[int]]:
    """Full load by another customer during the block; gives the sizes of the answers to its batches."""
    failures: list[BaseException] = []
    answers: list[int] = []
    quiet_again = threading.Event()

    def small() -> None:
        try:
            load.orders(made, server, [noisy], connections=NOISY_CONNECTIONS, seconds=seconds)
        except BaseException as error:  # noqa: BLE001 - raised again below
            failures.append(error)

    def large() -> None:
        try:
            while not quiet_again.is_set():
                answers.append(_batch(made, server, noisy))
        except BaseException as error:  # noqa: BLE001 - raised again below
            failures.append(error)

    threads = [threading.Thread(target=small), threading.Thread(target=large)]
    for thread in threads:
        thread.start()
    try:
        quiet_again.wait(1)  # until wrk is at full load
        yield answers
    finally:
        quiet_again.set()
        for thread in threads:
            thread.join()
    if failures:
        raise Failed(f"the noisy customer failed: {failures[0]!r}")


def _batch(made: Installation, server: Server, buyer: Buyer) -> int:
    body = {
        "productId": made.ids["products"]["coffee"],
        "value": 10,
        "codeQuantity": BATCH_CODES,
        "accountId": buyer.account_id,
    }
    headers = {"Authorization": f"Bearer {buyer.key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{server.url}/send/gift", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return len(answer.read())
