"""Webhook deliveries: waiting orders, four subscriptions, one worker.

*How.* Orders are placed while no worker runs, then `largesse worker` starts. The figure is its deliveries a second from the first
attempt to the last outcome written: leased, signed, posted, judged, logged, and recorded with its answer. The receiver is a
separate process on the same machine (`bench/receiver.py`). The reference posts the same bodies to the same receiver with aiohttp, 16
at once, and does nothing else.

*What it means.* How much of a client's speed remains when every delivery must survive a crash. Both share two cores with the
receiver, and the worker shares them with PostgreSQL too.
"""

import asyncio
import time
from collections.abc import Iterator
from functools import partial

import aiohttp
import uvloop

from bench.installation import Installation
from bench.outgoing import place_orders, run_worker, served
from bench.results import Row, Sample
from bench.suite import Suite, at_least
from bench.world import one_account
from largesse.base.settings import load_settings
from largesse.customers.principal import Principal
from largesse.db.pool import Connection
from largesse.encryption.vault import load_vault
from largesse.webhooks.store import insert_subscription
from largesse.webhooks.targets import parse_target

SUBSCRIPTIONS = 4
IN_FLIGHT = 16
_SETTINGS = {"LARGESSE_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8"}
_MOST_POSTED = 20_000


def run(suite: Suite) -> list[Row]:
    with suite.installation("deliveries", one_account()) as made, served("bench.receiver") as port:
        url = f"http://127.0.0.1:{port}/hook"
        made.connected(partial(_subscribe, made, url))
        pairs = suite.in_turn(partial(_deliver, made, suite.seconds), partial(_post, made, url))
    return [
        Row(
            "deliveries",
            "deliveries/s",
            f"one worker, {SUBSCRIPTIONS} subscriptions",
            f"aiohttp posting the same bodies, {IN_FLIGHT} at once",
            at_least(0.7),
            pairs,
        )
    ]


async def _subscribe(made: Installation, url: str, connection: Connection) -> None:
    settings = load_settings({**made.environment, **_SETTINGS})
    customer = await connection.fetchrow(
        "SELECT customers.id, accounts.id AS account FROM customers JOIN service_accounts accounts ON customer_id = customers.id"
    )
    assert customer is not None
    principal = Principal(0, "production", customer["id"], "", "enterprise", "balance", customer["account"], "", True)
    target = parse_target(url, settings.webhook_allowed_networks)
    for _ in range(SUBSCRIPTIONS):
        await insert_subscription(connection, principal, load_vault(settings), target, "order.created")


def _deliver(made: Installation, seconds: float) -> Sample:
    place_orders(made, seconds / SUBSCRIPTIONS)
    made.sql("UPDATE mail_jobs SET fanned_out_at = now() WHERE fanned_out_at IS NULL")
    return run_worker(
        made, _SETTINGS, "deliveries", "SELECT min(started_at) FROM delivery_attempts WHERE started_at > $1"
    )


def _post(made: Installation, url: str) -> Sample:
    bodies = [row["body"] for row in made.sql("SELECT body FROM events LIMIT $1", _MOST_POSTED)]
    return Sample(uvloop.run(_post_all(url, bodies)))


async def _post_all(url: str, bodies: list[bytes]) -> float:
    """Posts a second."""

    async def post(session: aiohttp.ClientSession, left: Iterator[bytes]) -> None:
        for body in left:
            async with session.post(url, data=body) as answer:
                await answer.read()

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        left = iter(bodies)
        began = time.perf_counter()
        await asyncio.gather(*(post(session, left) for _ in range(IN_FLIGHT)))
        return len(bodies) / (time.perf_counter() - began)
