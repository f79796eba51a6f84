"""Claim-by dates: what nobody has claimed by then is refunded, once, whatever races with it or is killed meanwhile."""

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest
from tests.chained import acting_on
from tests.web.api.conftest import work_off
from tests.web.claim.conftest import link

from largesse.customers.actor import command_actor
from largesse.db.pool import Database
from largesse.db.scope import WORKER
from largesse.encryption.vault import Vault
from largesse.mail.letter import write
from largesse.mail.messages import fan_out, take
from largesse.orders import tasks
from largesse.orders.follow_ups import NO_DEFAULTS, FollowUpDefaults
from largesse.orders.schedule import set_defaults
from largesse.orders.tasks import follow_up

Run = Callable[[], None]

_AT_ONCE = 50


@pytest.fixture
def follow_up_all(service: Any) -> Run:
    """Runs the worker's step until there is nothing left to do, with the rights of the worker."""

    return lambda: work_off(service, follow_up)


@pytest.fixture
def default(service: Any) -> Iterator[Callable[[FollowUpDefaults], None]]:
    """Sets the defaults of Acme for this test."""

    def set_them(defaults: FollowUpDefaults) -> None:
        async def work(database: Database, vault: Vault) -> None:
            await set_defaults(command_actor(database, await acting_on(database, vault)).on_behalf_of(1), defaults)

        service.on_pool(work)

    yield set_them
    set_them(NO_DEFAULTS)


def in_days(days: float) -> str:
    return (datetime.now(UTC) + timedelta(days=days)).isoformat()


def states(service: Any, *references: str) -> Counter[str]:
    rows = service.sql(
        """
        SELECT coalesce(s.state, 'issued') AS state
        FROM orders o JOIN lines l ON l.customer_id = o.customer_id AND l.order_id = o.id
        LEFT JOIN line_states s ON s.customer_id = l.customer_id AND s.order_id = l.order_id AND s.number = l.number
        WHERE o.reference = ANY($1::text[])
        """,
        list(references),
    )
    return Counter(row["state"] for row in rows)


def test_what_nobody_has_claimed_comes_back_in_full_and_once(
    service: Any, recipient: Any, follow_up_all: Run, move_clock: Any, verified: Any
) -> None:
    before = service.balance("gbp")
    order = service.send("collection", "treats", value=10, codeQuantity=3, claimBy=in_days(2)).json()
    claimed, open_, late = order["codes"]
    recipient.gift(claimed)
    follow_up_all()
    assert states(service, order["reference"]) == {"claimed": 1, "issued": 2}
    assert "Claim it by" in recipient.get(link(open_)).text
    move_clock(timedelta(days=3))
    follow_up_all()
    follow_up_all()
    assert states(service, order["reference"]) == {"claimed": 1, "cancelled": 2}
    assert service.balance("gbp") == pytest.approx(before - 10)
    page = recipient.get(link(open_))
    assert "This gift was not claimed in time" in page.text
    refused = recipient.claim(late)
    assert (refused.status_code, "not claimed in time" in refused.text) == (410, True)
    events = service.of_order(order["reference"], "event, count(*)", "events", "AND line_number > 1 GROUP BY 1")
    assert dict(events) == {"gift.expired": 2, "gift.cancelled": 2}
    [act] = service.sql(
        "SELECT actor, actor_name, after::jsonb ->> 'cancelled' FROM audit_events WHERE subject = $1 AND act = 'order.lapsed'",
        f"order {order['reference']}",
    )
    assert tuple(act) == ("worker", "claim-by", "2")
    assert verified() == []


def test_an_order_without_a_date_waits_for_ever(service: Any, follow_up_all: Run, move_clock: Any) -> None:
    order = service.send("collection", "treats", value=10, codeQuantity=2).json()
    move_clock(timedelta(days=4_000))
    follow_up_all()
    assert states(service, order["reference"]) == {"issued": 2}
    [[rows]] = service.of_order(order["reference"], "count(*)", "follow_ups")
    assert rows == 0


def test_an_offset_that_is_missing_is_utc_and_the_request_can_be_read_again(service: Any) -> None:
    at = (datetime.now(UTC) + timedelta(days=9)).replace(microsecond=0)
    order = service.send("collection", "treats", value=10, claimBy=f"{at:%Y-%m-%dT%H:%M:%S}").json()
    request = service.client("hr").get(f"/orders/{order['reference']}/request").json()
    assert request["claimBy"] == f"{at:%Y-%m-%dT%H:%M:%SZ}"


def test_a_default_is_for_orders_placed_after_it_and_for_the_api_only_if_chosen(service: Any, default: Any) -> None:
    def claim_by(**members: Any) -> str | None:
        order = service.send("collection", "treats", value=10, **members).json()
        claim_by: str | None = service.client("hr").get(f"/orders/{order['reference']}/request").json()["claimBy"]
        return claim_by

    earlier = service.send("collection", "treats", value=10).json()["reference"]
    default(FollowUpDefaults(claim_by_days=30))
    assert claim_by() is None
    default(FollowUpDefaults(claim_by_days=30, of_api=True))
    day = (datetime.now(UTC) + timedelta(days=30)).date()
    assert claim_by() == f"{day}T23:59:59Z"
    scheduled = claim_by(recipients=[{"email": "sam@example.com"}], sendAt=in_days(10))
    assert scheduled == f"{day + timedelta(days=10)}T23:59:59Z"
    own = (datetime.now(UTC) + timedelta(days=3)).replace(microsecond=0)
    assert claim_by(claimBy=own.isoformat()) == f"{own:%Y-%m-%dT%H:%M:%SZ}"
    assert service.client("hr").get(f"/orders/{earlier}/request").json()["claimBy"] is None


def test_the_mail_says_until_when(service: Any) -> None:
    at = datetime.now(UTC) + timedelta(days=40)
    to = [{"email": "until@example.com"}]
    service.send("collection", "treats", value=10, recipients=to, claimBy=f"{at.date()}T23:59:59Z")

    async def read(database: Database, vault: Vault) -> list[str]:
        async with database.transaction(WORKER) as connection:
            while (await fan_out(connection, 100))[0]:
                pass
            taken = await take(connection, 1_000, vault, lambda _: "https://gifts.example")
        return [
            write(one.letter, "Gifts <gifts@example.com>", at=0).decode()
            for one in taken
            if one.letter.email == "until@example.com"
        ]

    [letter] = service.on_pool(read)
    said = f"Claim it by {at.day} {at:%B %Y}"
    assert said in letter.replace("=\r\n", "")


# Claims at once with the worker, which is killed again and again.

CODES = int(os.environ.get("RACING_CLAIM_BY", "200"))


def start_worker(service: Any) -> subprocess.Popen[bytes]:
    environ = {
        **os.environ,
        "LARGESSE_DATABASE_URL": service.database_url,
        "LARGESSE_MASTER_KEY": service.settings.master_keys[0].hex(),
        "LARGESSE_DATA_DIR": str(service.settings.data_dir),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "largesse", "worker"], env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


async def kill_when_it_has_worked(service: Any, references: list[str], kills: int, begun: asyncio.Event) -> int:
    """Kills workers in the middle of their work, then lets one finish. Sets `begun` once one has worked. Returns how many were killed."""

    def cancelled() -> int:
        return states(service, *references)["cancelled"]

    def left() -> int:
        return states(service, *references)["issued"]

    killed = 0
    while await asyncio.to_thread(left):
        before = await asyncio.to_thread(cancelled)
        worker = await asyncio.to_thread(start_worker, service)
        try:
            while await asyncio.to_thread(left):
                assert worker.poll() is None, "it works until it is killed"
                if await asyncio.to_thread(cancelled) > before:
                    begun.set()
                    if killed < kills:
                        break
        finally:
            begun.set()
            worker.send_signal(signal.SIGKILL)
            await asyncio.to_thread(worker.wait)
        killed += 1
    return killed


async def race(service: Any, orders: list[dict[str, Any]], kills: int) -> tuple[Counter[int], int]:
    statuses: Counter[int] = Counter()
    # A connection for each claim: one that is kept may be closed just as the next claim is written to it, which is then neither sent nor answered.
    connector = aiohttp.TCPConnector(limit=_AT_ONCE, force_close=True)
    async with aiohttp.ClientSession(service.url, connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:

        async def claim(at: int, code: dict[str, str]) -> None:
            headers = {"X-Forwarded-For": f"10.{at >> 16}.{at >> 8 & 255}.{at & 255}"}
            form = {"pin": code["pin"]}
            async with session.post(link(code), data=form, headers=headers, allow_redirects=False) as answer:
                statuses[answer.status] += 1

        # Every other code: the workers have the rest to themselves.
        codes = [code for order in orders for code in order["codes"][::2]]
        first, *racing = codes
        await claim(0, first)  # so that a claim is among them however the race goes
        begun = asyncio.Event()
        references = [order["reference"] for order in orders]
        killing = asyncio.create_task(kill_when_it_has_worked(service, references, kills, begun))
        await begun.wait()
        await asyncio.gather(*(claim(at, code) for at, code in enumerate(racing, 1)))
        killed = await killing
    return statuses, killed


def race_codes(
    service: Any, verified: Any, move_clock: Any, *, orders: int, codes: int, kills: int, least_killed: int
) -> None:
    before = service.balance("gbp")
    placed = [
        service.send("collection", "treats", value=10, codeQuantity=codes, claimBy=in_days(1)).json()
        for _ in range(orders)
    ]
    move_clock(timedelta(days=2))
    statuses, killed = service.run(lambda _: race(service, placed, kills))
    found = states(service, *(order["reference"] for order in placed))
    assert killed >= least_killed
    assert found["claimed"] + found["cancelled"] == orders * codes
    assert statuses == {303: found["claimed"], 410: orders * codes // 2 - found["claimed"]}
    assert found["claimed"]
    assert found["cancelled"]
    assert service.balance("gbp") == pytest.approx(before - 10 * found["claimed"])
    assert verified() == []


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_a_claim_that_races_with_the_date_wins_or_is_refunded(service: Any, verified: Any, move_clock: Any) -> None:
    """Long: RACING_CLAIM_BY=10000."""
    race_codes(service, verified, move_clock, orders=20, codes=CODES // 20, kills=2, least_killed=1)


def test_orders_that_cannot_be_refunded_stop_no_other(
    service: Any, follow_up_all: Run, move_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest come first. As many as a worker looks at in one step would be looked at again and again."""
    monkeypatch.setattr(tasks, "_ORDERS_AT_ONCE", 2)
    odd = [
        service.send("gift", "coffee", value=5, account="team", claimBy=in_days(1)).json()["reference"]
        for _ in range(2)
    ]
    other = service.send("gift", "coffee", value=5, claimBy=in_days(2)).json()["reference"]
    of_odd = "WHERE key = 'team'"
    balance = service.sql(f"SELECT balance_minor FROM accounts {of_odd}")[0][0]
    service.sql(f"UPDATE accounts SET balance_minor = 9223372036854775807 {of_odd}")
    move_clock(timedelta(days=3))
    follow_up_all()
    assert states(service, other) == {"cancelled": 1}
    assert states(service, *odd) == {"issued": 2}
    service.sql(f"UPDATE accounts SET balance_minor = $1 {of_odd}", balance)
    move_clock(timedelta(days=3, minutes=1))
    follow_up_all()
    assert states(service, *odd) == {"cancelled": 2}
