"""How 100 bad webhook receivers of one customer slow down another customer's good one: the 99th percentile of deliveries.

*How.* One worker delivers for two customers. The first has four subscriptions, whose receiver always answers, and orders every
20 ms. The second has 100, as many as a customer may have: a quarter of them hang, a quarter drip a byte a second, a quarter answer
500, and a quarter break the connection off. It orders twice a second, which makes 200 deliveries. The figure is the time from an
order's transaction to the answer of the first customer's receiver, over all its deliveries. In the reference, the second customer's
receivers answer 200. Both start fresh: no subscription is known to be bad, and the measured time includes the worst part, the first
attempts at all of them. An attempt may take 3 s here instead of 15, so that retries are included as well.

*What it means.* A dead receiver delays only its own deliveries.
"""

import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from bench import load, processes
from bench.installation import Failed, Installation, Server, stop
from bench.load import Buyer
from bench.outgoing import served
from bench.results import Row, Sample
from bench.suite import Suite, at_most
from bench.world import two_customers
from largesse.base.settings import load_settings
from largesse.customers.principal import Principal
from largesse.db.pool import Connection
from largesse.encryption.vault import load_vault
from largesse.webhooks.store import insert_subscription
from largesse.webhooks.targets import parse_target

GOOD_SUBSCRIPTIONS = 4
BAD = ("hang", "drip", "error", "reset")
OF_EACH_BAD = 25
GOOD_EVERY_MS = 20
BAD_EVERY_MS = 500
_LONGER = 3  # than other runs: attempts have to time out in it
_LIMIT_S = 60.0
_SETTINGS = {"LARGESSE_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8", "LARGESSE_WEBHOOK_TIMEOUT": "3"}


def run(suite: Suite) -> list[Row]:
    with (
        suite.installation("webhook-neighbour", two_customers()) as made,
        served("bench.difficult_receiver") as port,
        made.serve() as server,
    ):
        url = f"http://127.0.0.1:{port}"
        made.connected(partial(_subscribe, made, url))
        measure = partial(_p99, made, server, suite.seconds * _LONGER)

        def beside_bad() -> Sample:
            _tell(f"{url}/ill")
            return measure()

        def beside_good() -> Sample:
            _tell(f"{url}/healed")
            return measure()

        beside_good()  # warms everything up
        pairs = suite.in_turn(beside_bad, beside_good)
    return [
        Row(
            "webhook-neighbour",
            "ms",
            f"p99 of deliveries beside {len(BAD) * OF_EACH_BAD} receivers that hang, drip, answer 500 or break off",
            "p99 with those receivers answering",
            at_most(2),
            pairs,
        )
    ]


async def _subscribe(made: Installation, url: str, connection: Connection) -> None:
    """The first customer's subscriptions, and the second's."""
    settings = load_settings({**made.environment, **_SETTINGS})
    vault = load_vault(settings)
    rows = await connection.fetch(
        "SELECT customers.id, accounts.id AS account FROM customers JOIN service_accounts accounts ON customer_id = customers.id "
        "ORDER BY customers.key"
    )
    good, bad = (
        Principal(0, "production", row["id"], "", "enterprise", "balance", row["account"], "", True) for row in rows
    )
    paths = [(good, f"well/{number}") for number in range(GOOD_SUBSCRIPTIONS)]
    paths += [(bad, f"{kind}/{number}") for kind in BAD for number in range(OF_EACH_BAD)]
    for principal, path in paths:
        target = parse_target(f"{url}/{path}", settings.webhook_allowed_networks)
        await insert_subscription(connection, principal, vault, target, "order.created")


def _p99(made: Installation, server: Server, seconds: float) -> Sample:
    """The p99 of the first customer's deliveries in milliseconds, while both order."""
    good, bad = load.buyers(made)
    _forget(made)
    with _worker(made) as worker, _ordering(made, server, bad, seconds):
        began = made.sql("SELECT clock_timestamp()")[0][0]
        load.orders(made, server, [good], connections=1, seconds=seconds, every_ms=GOOD_EVERY_MS)
        _until_delivered(made, worker)
        cpu_s = processes.cpu_s(worker.pid)
    [found] = made.sql(_DELAYS, began)
    [others] = made.sql(_OTHERS, began)
    if others["hearing"] < len(BAD) * OF_EACH_BAD:
        raise Failed(f"only {others['hearing']} of the other customer's receivers were tried")
    seen = {
        "deliveries": float(found["count"]),
        "p50_ms": found["p50_ms"],
        "max_ms": found["max_ms"],
        "others_attempts": float(others["attempts"]),
        "others_failed": float(others["failed"]),
        "worker_cpu_s": cpu_s,
    }
    return Sample(found["p99_ms"], seen)


_DELAYS = """
    SELECT count(*), max(delay_ms) AS max_ms, percentile_cont(0.5) WITHIN GROUP (ORDER BY delay_ms) AS p50_ms,
           percentile_cont(0.99) WITHIN GROUP (ORDER BY delay_ms) AS p99_ms
    FROM (
        SELECT extract(epoch FROM started_at - events.created_at)::float8 * 1000 + duration_ms AS delay_ms
        FROM delivery_attempts
        JOIN deliveries ON deliveries.id = delivery_id
        JOIN events ON events.id = event_id
        JOIN webhook_subscriptions ON webhook_subscriptions.id = deliveries.subscription_id
        WHERE target_url LIKE '%/well/%' AND deliveries.created_at > $1) AS delays
"""
_OTHERS = """
    SELECT count(DISTINCT subscription_id) AS hearing, count(*) AS attempts,
           count(*) FILTER (WHERE status IS DISTINCT FROM 200) AS failed
    FROM delivery_attempts
    JOIN deliveries ON deliveries.id = delivery_id
    JOIN webhook_subscriptions ON webhook_subscriptions.id = deliveries.subscription_id
    WHERE target_url NOT LIKE '%/well/%' AND deliveries.created_at > $1
"""


def _forget(made: Installation) -> None:
    """Makes both customers' subscriptions as good as new; no worker is running."""
    made.sql("UPDATE events SET fanned_out_at = now() WHERE fanned_out_at IS NULL")
    made.sql("UPDATE deliveries SET state = 'cancelled', finished_at = now() WHERE state = 'pending'")
    made.sql("UPDATE subscription_queues SET failing = false, due_at = 'infinity', leased_until = '-infinity'")


@contextmanager
def _worker(made: Installation) -> Iterator[subprocess.Popen[bytes]]:
    with (made.folder / "worker.log").open("wb") as output:
        worker = subprocess.Popen(
            [sys.executable, "-m", "largesse", "worker"],
            env={**made.environment, **_SETTINGS},
            stdout=output,
            stderr=output,
        )
    try:
        deadline = time.monotonic() + _LIMIT_S
        while b"worker.started" not in (made.folder / "worker.log").read_bytes():
            if worker.poll() is not None or time.monotonic() > deadline:
                raise Failed("the worker did not start")
            time.sleep(0.05)
        yield worker
    finally:
        stop(worker)


@contextmanager
def _ordering(made: Installation, server: Server, buyer: Buyer, seconds: float) -> Iterator[None]:
    """The second customer's orders, from a little before the block on."""
    failures: list[BaseException] = []

    def order() -> None:
        try:
            load.orders(made, server, [buyer], connections=1, seconds=seconds, every_ms=BAD_EVERY_MS)
        except BaseException as error:  # noqa: BLE001 - raised again below
            failures.append(error)

    thread = threading.Thread(target=order)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    if failures:
        raise Failed(f"the other customer failed: {failures[0]!r}")


def _until_delivered(made: Installation, worker: subprocess.Popen[bytes]) -> None:
    """Waits until nothing of the first customer's is pending."""
    deadline = time.monotonic() + _LIMIT_S
    waiting = """
        SELECT EXISTS (SELECT FROM events WHERE fanned_out_at IS NULL) OR EXISTS (
            SELECT FROM deliveries JOIN webhook_subscriptions ON webhook_subscriptions.id = subscription_id
            WHERE state = 'pending' AND target_url LIKE '%/well/%')
    """
    while made.sql(waiting)[0][0]:
        if worker.poll() is not None or time.monotonic() > deadline:
            raise Failed("the worker did not finish")
        time.sleep(0.2)


def _tell(url: str) -> None:
    with urllib.request.urlopen(url, timeout=10) as answer:
        answer.read()
