"""While everything breaks, every event of a gift's life is recorded once, delivered at least once, and streamed in its order.

CHAOS_SECONDS and CHAOS_SEEDS lengthen it, as they do test_chaos: docs/testing.md.
"""

import asyncio
import json
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from operator import itemgetter
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import asyncpg
import pytest
from aiohttp import web
from tests.faults.chaos import Chaos, Slot, crowd_of, slots_of, start_all, until
from tests.faults.load import Load, Reply
from tests.faults.proxy import Proxy
from tests.faults.test_chaos import BROKEN, CLIENTS, LONGEST_S, PAUSE_S, SECONDS, SEEDS, mail_server, proxies, receiver
from tests.mail.conftest import PostOffice
from tests.webhooks.conftest import Receiver

from largesse.events.kinds import EVENTS, GIFT_BOUNCED, GIFT_SENT

__all__ = ["mail_server", "proxies", "receiver"]

pytestmark = [pytest.mark.long, pytest.mark.timeout(600 + 4 * SECONDS)]

# What a move of a line is called as an event, and which lines have a recipient.
_MOVES = """
    SELECT o.reference, e.number, 'gift.' || CASE e.event WHEN 'lapsed' THEN 'expired' ELSE e.event END
    FROM line_events e JOIN orders o ON o.customer_id = e.customer_id AND o.id = e.order_id
"""
_MAILED = """
    SELECT o.reference, l.number FROM lines l JOIN orders o ON o.customer_id = l.customer_id AND o.id = l.order_id
    WHERE l.recipient_email IS NOT NULL
"""
OF_MAIL = {GIFT_SENT.name, GIFT_BOUNCED.name}
_UNSENT = "SELECT 1 FROM messages WHERE state = 'pending' UNION ALL SELECT 1 FROM mail_jobs WHERE fanned_out_at IS NULL LIMIT 1"
_EVENTS = "SELECT convert_from(body, 'UTF8') FROM events"


class Actions:
    """Claims the first gift of each batch and cancels the rest of every third order, again and again until it is answered."""

    def __init__(self, installation: Any, slots: list[Slot], moments: random.Random) -> None:
        self._keys = installation.world["api_keys"]
        self._slots, self._moments = slots, moments
        self.claimed = self.cancelled = 0

    async def follow(self, load: Load) -> None:
        """Acts on what the load places, until it is cancelled; then on the rest."""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10)) as session:
            done: set[int] = set()
            while True:
                waiting = [reply for number, reply in load.settled.items() if number not in done]
                done |= {reply.number for reply in waiting}
                await asyncio.gather(*(self._act(session, reply) for reply in waiting[:50]))
                done -= {reply.number for reply in waiting[50:]}
                if load.stopping and load.settled.keys() <= done:
                    return
                await asyncio.sleep(0.1)

    async def _act(self, session: aiohttp.ClientSession, reply: Reply) -> None:
        codes = reply.body.get("codes")
        if reply.status == 200 and codes:
            path = urlsplit(codes[0]["redemptionUrl"]).path
            await self._until_answered(session, path, {303, 409}, data={"pin": codes[0]["pin"]})
            self.claimed += 1
        if reply.status == 200 and reply.number % 3 == 0:
            key = self._keys["globex-prod" if reply.number % 7 in {3, 6} else "acme-prod"]
            path = f"/orders/{reply.body['reference']}/cancel"
            await self._until_answered(session, path, {200}, headers={"Authorization": f"Bearer {key}"})
            self.cancelled += 1

    async def _until_answered(self, session: aiohttp.ClientSession, path: str, right: set[int], **sent: Any) -> None:
        while True:
            if urls := [slot.url for slot in self._slots if slot.url]:
                try:
                    url = self._moments.choice(urls) + path
                    async with session.post(url, allow_redirects=False, **sent) as response:
                        if response.status in right:
                            return
                        assert response.status in {429, 503}, (path, response.status, await response.text())
                except (aiohttp.ClientError, TimeoutError):
                    pass
            await asyncio.sleep(0.1)


@pytest.fixture
async def listener() -> AsyncIterator[Receiver]:
    """A receiver that fails the first delivery of each third event."""
    listener = Receiver()
    await listener.start()
    seen: set[str] = set()

    async def answer(request: web.Request) -> web.StreamResponse:
        is_new = (event := request.headers["webhook-id"]) not in seen
        seen.add(event)
        return web.Response(status=500 if is_new and len(seen) % 3 == 0 else 204)

    listener.answer = answer
    yield listener
    await listener.close()


@pytest.mark.parametrize("seed", SEEDS)
async def test_every_event_is_recorded_once_and_delivered(
    seed: int,
    proxies: list[Proxy],
    listener: Receiver,
    mail_server: PostOffice,
    start_installation: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    moments = random.Random(seed)
    installation = await asyncio.to_thread(start_installation, url=proxies[0].target_url)
    installation.environ["LARGESSE_SMTP_URL"] = mail_server.url
    installation.environ["LARGESSE_WEBHOOK_ALLOWED_NETWORKS"] = "127.0.0.0/8"
    slots = slots_of(installation, proxies)
    chaos = Chaos(slots, proxies, moments, longest_s=min(LONGEST_S, SECONDS / 2))
    load = crowd_of(Load)(installation)
    load.slots, load.moments, load.pause_s = slots, moments, 2 * PAUSE_S
    actions = Actions(installation, [slot for slot in slots if slot.command == "serve"], moments)
    try:
        await start_all(slots)
        for key in ("acme-prod", "globex-prod"):
            await _subscribe_to_all(installation, slots[0].url or "", key, listener.url())
        following = asyncio.create_task(actions.follow(load))
        async with load.running(CLIENTS // 2, hang_up_s=10.0):
            await chaos.rage(SECONDS, BROKEN)
        await asyncio.wait_for(following, 120)
        recorded = await _delivered(proxies[0].target_url, listener)
        moved = Counter(row for row in await _rows(proxies[0].target_url, _MOVES) if row[2] in EVENTS)
        sent = {tuple(line): 1 for line in await _rows(proxies[0].target_url, _MAILED)}
        _check_recorded(recorded, moved, sent)
        await until(lambda: bool(slots[0].url), lambda: "not serving")
        streamed = Counter[str]()
        for key in ("acme-prod", "globex-prod"):
            streamed += await _check_stream(installation, slots[0].url or "", key)
        assert streamed == Counter(one["event"] for one in recorded)
        with capsys.disabled():
            sys.stdout.write(
                f"\nevents, seed {seed}, {SECONDS:.0f} s: {len(recorded):,} events recorded, {len(listener.got):,} deliveries, "
                f"{actions.claimed:,} claimed, {actions.cancelled:,} orders cancelled; "
                f"{', '.join(f'{n} {kind}' for kind, n in sorted(chaos.faults.items()))}\n"
            )
        assert (await asyncio.to_thread(installation.verify))["findings"] == []
    finally:
        for slot in slots:
            await slot.kill()


async def _subscribe_to_all(installation: Any, url: str, key: str, target: str) -> None:
    headers = {"Authorization": f"Bearer {installation.world['api_keys'][key]}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(f"{url}/webhooks", json={"targetUrl": target, "events": sorted(EVENTS)}) as response,
    ):
        assert response.status == 201, await response.text()


async def _rows(url: str, query: str) -> list[tuple[Any, ...]]:
    connection = await asyncpg.connect(url)
    try:
        return [tuple(row) for row in await connection.fetch(query)]
    finally:
        await connection.close()


async def _delivered(url: str, listener: Receiver) -> list[dict[str, Any]]:
    """Waits until nothing is recorded any more and everything that is was delivered. Returns the events."""
    deadline = asyncio.get_running_loop().time() + 180
    while True:
        before = [json.loads(body) for (body,) in await _rows(url, _EVENTS)]
        await asyncio.sleep(3)
        recorded = [json.loads(body) for (body,) in await _rows(url, _EVENTS)]
        got = {json.dumps(json.loads(one.body), sort_keys=True) for one in listener.got}
        missing = [event for event in recorded if json.dumps(event, sort_keys=True) not in got]
        if not missing and len(before) == len(recorded) and not await _rows(url, _UNSENT):
            return recorded
        assert asyncio.get_running_loop().time() < deadline, f"{len(missing)} not delivered, such as {missing[:3]}"


def _check_recorded(recorded: list[dict[str, Any]], moved: Counter[Any], mailed: Mapping[Any, int]) -> None:
    """Each move of a line is one event, each line with a recipient has one `gift.sent` unless it was cancelled, and no event has another's id."""
    of_lines = Counter((one["reference"], one["number"], one["event"]) for one in recorded if "number" in one)
    sent = Counter({key: count for key, count in of_lines.items() if key[2] == GIFT_SENT.name})
    assert of_lines - sent == moved
    assert set(sent.values()) <= {1}
    assert {key[:2] for key in sent} <= mailed.keys()
    cancelled = {key[:2] for key in moved if key[2] == "gift.cancelled"}
    assert mailed.keys() - {key[:2] for key in sent} <= cancelled
    ids = [one["id"] for one in recorded]
    assert len(set(ids)) == len(ids)


async def _check_stream(installation: Any, url: str, key: str) -> Counter[str]:
    """The stream has the moves of a line in the order in which they happened. Returns how many there are of each event.

    A mail may be on its way while its gift is cancelled: either may come first.
    """
    headers = {"Authorization": f"Bearer {installation.world['api_keys'][key]}"}
    lines: dict[tuple[str, int], list[tuple[datetime, str]]] = {}
    after, found = "start", Counter[str]()
    async with aiohttp.ClientSession(headers=headers) as session:
        while True:
            async with session.get(f"{url}/events", params={"after": after, "limit": 200}) as response:
                assert response.status == 200, await response.text()
                page = await response.json()
            if not page:
                break
            after = page[-1]["cursor"]
            found.update(event["event"] for event in page)
            for event in page:
                if "number" in event["data"] and event["event"] not in OF_MAIL:
                    line = event["data"]["reference"], event["data"]["number"]
                    lines.setdefault(line, []).append(
                        (datetime.fromisoformat(event["data"]["occurredAt"]), event["event"])
                    )
    assert [one for one in lines.values() if one != sorted(one, key=itemgetter(0))] == []
    return found
