"""Everything breaks at once, and nothing is lost: no order, no mail, no webhook, and nobody waits long.

CHAOS_SECONDS and CHAOS_SEEDS lengthen it: docs/testing.md.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest
from tests.faults.chaos import Chaos, crowd_of, mails_by_recipient, slots_of, start_all, subscribe, until
from tests.faults.load import Load, order
from tests.faults.proxy import Proxy
from tests.mail.conftest import PostOffice, mail_server
from tests.webhooks.conftest import Receiver, receiver

__all__ = ["mail_server", "receiver"]

SECONDS = float(os.environ.get("CHAOS_SECONDS", "4"))
SEEDS = range(1, 1 + int(os.environ.get("CHAOS_SEEDS", "1")))
IS_LONG = "CHAOS_SECONDS" in os.environ
CLIENTS = 24
PAUSE_S = 0.1  # of a client between two orders: the clients are on the same machine as what they try
ANSWERED_WITHIN_S = 15.0
LONGEST_S = 20.0  # of a process or a network that stands still

COMMITS = ["commit before", "commit after", "commit during", "commit swallowed"]
KILLS = ["kill serve", "kill worker"]
BROKEN = [*KILLS, *COMMITS, "cut", "stop serve", "stop worker", "swallow"]
# Nobody can answer for a process that stands still, so none does where it is measured how long answers take.
SILENT = [*KILLS, *COMMITS, "swallow", "silence"]

FORMS = [
    pytest.param(BROKEN, id="broken"),
    pytest.param(SILENT, id="silent", marks=pytest.mark.skipif(not IS_LONG, reason="only with CHAOS_SECONDS")),
]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600 + 4 * SECONDS)]


@pytest.fixture
async def proxies(clone_database: Any) -> AsyncIterator[list[Proxy]]:
    url = clone_database()
    proxies = [Proxy(url), Proxy(url)]
    for proxy in proxies:
        await proxy.restore()
    yield proxies
    for proxy in proxies:
        await proxy.cut()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kinds", FORMS)
async def test_whatever_breaks_nothing_is_lost(
    kinds: list[str],
    seed: int,
    proxies: list[Proxy],
    receiver: Receiver,
    mail_server: PostOffice,
    start_installation: Any,
    check: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    moments = random.Random(seed)
    installation = await asyncio.to_thread(start_installation, url=proxies[0].target_url)
    installation.environ["LARGESSE_SMTP_URL"] = mail_server.url
    installation.environ["LARGESSE_WEBHOOK_ALLOWED_NETWORKS"] = "127.0.0.0/8"
    slots = slots_of(installation, proxies)
    chaos = Chaos(slots, proxies, moments, longest_s=min(LONGEST_S, SECONDS / 2))
    load = crowd_of(Load)(installation)
    load.slots, load.moments, load.pause_s = slots, moments, PAUSE_S
    try:
        await start_all(slots)
        for key in ("acme-prod", "globex-prod"):
            await subscribe(installation, slots[0].url or "", key, receiver.url())
        async with load.running(CLIENTS, hang_up_s=10.0 if "stop serve" in kinds else 45.0):
            await chaos.rage(SECONDS, kinds)
        delivered = Delivered(installation, load, receiver, mail_server)
        await until(delivered.is_whole, delivered.missing)
        found = await Found.read(proxies[0].target_url, load)
        slowest_s = max(reply.took_s for reply in load.replies)
        with capsys.disabled():
            sys.stdout.write(
                f"\nchaos, seed {seed}, {SECONDS:.0f} s: {found}; {_replies(load)}, slowest {slowest_s:.1f} s; "
            )
            sys.stdout.write(f"{delivered}; {', '.join(f'{n} {kind}' for kind, n in sorted(chaos.faults.items()))}\n")
        assert found.is_right
        assert load.statuses() <= {0, 200, 409, 503}
        if "stop serve" not in kinds:
            assert slowest_s < ANSWERED_WITHIN_S
        await until(lambda: all(slot.url for slot in slots if slot.command == "serve"), lambda: "not serving")
        await check(installation, load, slots[0])
        assert [await slot.end() for slot in slots] == [0] * len(slots)
        assert [slot.name for slot in slots if "request_failed" in slot.log()] == []
    finally:
        for slot in slots:
            await slot.kill()


def _replies(load: Load) -> str:
    statuses = [reply.status for reply in load.replies]
    counts = {"503": statuses.count(503), "409": statuses.count(409), "broken": statuses.count(0)}
    return f"{len(statuses):,} requests ({', '.join(f'{count:,} {name}' for name, count in counts.items())})"


class Delivered:
    """What the mail server and the receiver got, beside what they should have."""

    def __init__(self, installation: Any, load: Load, receiver: Receiver, mail_server: PostOffice) -> None:
        self._receiver = receiver
        self._mail_server = mail_server
        self._numbers = load.started
        mailed = {number for number in self._numbers if "recipients" in order(installation, number)[2]}
        self._recipients = {f"a{number}@example.com" for number in mailed}
        self._messages = 2 * len(mailed)  # one to `b@example.com`, too

    def is_whole(self) -> bool:
        mails = mails_by_recipient(self._mail_server.got)
        return (
            mails.keys() >= self._recipients
            and sum(map(len, mails.values())) == self._messages
            and self._hooked() == {f"order-{number}" for number in self._numbers}
        )

    def missing(self) -> str:
        mails = mails_by_recipient(self._mail_server.got)
        hooks = {f"order-{number}" for number in self._numbers} - self._hooked()
        return (
            f"not delivered: {sum(map(len, mails.values()))} of {self._messages} mails are there, none to "
            f"{self._recipients - mails.keys()}; no webhook of {hooks}"
        )

    def _hooked(self) -> set[str]:
        return {json.loads(got.body)["externalReference"] for got in self._receiver.got}

    def __str__(self) -> str:
        mails = mails_by_recipient(self._mail_server.got)
        twice = sum(sum(counts.values()) - len(counts) for counts in mails.values())
        hooks = len(self._receiver.got)
        return (
            f"{self._messages:,} mails ({twice} copies), {len(self._numbers):,} webhooks "
            f"({hooks - len(self._numbers)} copies)"
        )


class Found:
    """What of the orders is in the database."""

    def __init__(self, placed: int, lost: int, doubled: int, partial: int) -> None:
        self.placed, self.lost, self.doubled, self.partial = placed, lost, doubled, partial

    @classmethod
    async def read(cls, url: str, load: Load) -> Found:
        connection = await asyncpg.connect(url)
        try:
            rows = await connection.fetch(
                """
                SELECT o.external_reference AS reference, o.code_count,
                       (SELECT count(*) FROM lines l WHERE l.order_id = o.id) AS lines,
                       (SELECT count(*) FROM events e WHERE e.order_id = o.id AND e.event = 'order.created') AS events,
                       (SELECT sum(amount_minor) FROM entries e WHERE e.order_id = o.id AND amount_minor > 0) AS moved,
                       o.total_minor, o.delivery_mode,
                       (SELECT count(*) FROM mail_jobs m WHERE m.order_id = o.id) AS mail_jobs
                FROM orders o
                """
            )
        finally:
            await connection.close()
        references = [row["reference"] for row in rows]
        partial = [
            row
            for row in rows
            if (row["lines"], row["events"], row["moved"]) != (row["code_count"], 1, row["total_minor"])
            or row["mail_jobs"] != (row["delivery_mode"] == "send")
        ]
        lost = {f"order-{number}" for number in load.settled} - set(references)
        return cls(len(rows), len(lost), len(references) - len(load.started), len(partial))

    @property
    def is_right(self) -> bool:
        return (self.lost, self.doubled, self.partial) == (0, 0, 0)

    def __str__(self) -> str:
        return f"{self.placed:,} orders, {self.lost} lost, {self.doubled} doubled, {self.partial} partial"
