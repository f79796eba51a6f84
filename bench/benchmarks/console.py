"""The web application with 5 million orders of one customer: its pages, one after another, as a person sees them.

*How.* An installation is filled, its read models too (bench/fill.py, bench/read_models.py), and somebody signs in by a link of
`largesse users invite`. Each page is got again and again with other filters, words and months; what counts is the time to
the last byte that 95 in 100 stay below.

*What it means.* Lists, searches and sums come from read models and by indexes: a page takes as long as what it shows, whatever the
tables hold. A word that half of all recipients share is found as quickly as one that is rare.
"""

from __future__ import annotations

import html
import json
import re
import secrets
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random

import httpx

from bench.fill import YEARS, fill, fill_read_models
from bench.installation import LARGESSE, Failed, Installation
from bench.results import Pair, Row, Sample
from bench.suite import Suite, at_most, row, say
from bench.world import one_account

ORDERS = 5_000_000
QUICK_ORDERS = 50_000
_EMAIL = "admin@example.com"
_MOST_MS = 150
_TRIES = 60
_QUICK_TRIES = 20
_STATES = ("scheduled", "bounced", "waiting", "claimed", "cancelled")
_WORDS = (
    "Ada",
    "Guest",
    "wonderful",
    "People Team 3",
    "Grace Guest7",
    "guest0007919@example.com",
    "bench000-00000012345",
    "nobody",
)


def run(suite: Suite) -> list[Row]:
    orders = QUICK_ORDERS if suite.quick else ORDERS
    with suite.installation("console", one_account()) as made:
        began = time.monotonic()
        fill(made, orders)
        filled = time.monotonic()
        say(f"  filled with {orders:,} orders in {filled - began:.0f} s")
        fill_read_models(made)
        say(f"  read models made in {time.monotonic() - filled:.0f} s")
        with (
            made.serve() as server,
            httpx.Client(base_url=server.url, headers={"Accept-Language": "en"}) as browser,
        ):
            _sign_in(made, browser)
            tries = _QUICK_TRIES if suite.quick else _TRIES
            return [
                row(
                    f"console, {name}",
                    "ms",
                    f"the page {title} with {orders:,} orders, p95 of {tries}",
                    "",
                    at_most(_MOST_MS),
                    [_pair(browser, path, tries) for _ in range(suite.pairs)],
                )
                for name, title, path in _pages(made)
            ]


def _pages(made: Installation) -> list[tuple[str, str, Callable[[Random], str]]]:
    account = made.sql("SELECT id FROM accounts WHERE kind = 'funding'")[0]["id"]
    return [
        ("home", "Home", lambda _: "/app"),
        ("orders", "Orders, by any filter,", _orders),
        (
            "search",
            "Orders, by a word,",
            lambda random: f"/app/orders?q={random.choice(_WORDS).replace(' ', '+')}",
        ),
        ("statement", "Statement", lambda random: f"/app/funding/{account}?month={_day(random):%Y-%m}"),
        ("reports", "Reports", _reports),
    ]


def _orders(random: Random) -> str:
    asked = {
        "state": random.choice(("", *_STATES)),
        "since": random.choice(("", f"{_day(random):%Y-%m-%d}")),
        "until": random.choice(("", f"{_day(random):%Y-%m-%d}")),
        "source": random.choice(("", "api", "crm", "birthdays")),
        "by": random.choice(("", "key-1")),
        "gift": random.choice(("", "product-1")),
    }
    return f"/app/orders?{httpx.QueryParams(asked)}"


def _reports(random: Random) -> str:
    period = random.choice(("this-month", "last-month", "3-months", "12-months"))
    return f"/app/reports?period={period}&by={random.choice(('gift', 'source', 'account', 'placed_by'))}"


def _day(random: Random) -> datetime:
    return datetime.now(UTC) - timedelta(days=random.randrange(365 * YEARS))


def _pair(browser: httpx.Client, path: Callable[[Random], str], tries: int) -> Pair:
    """The same on both sides: nothing else is measured beside it."""
    random = Random(1)
    browser.get(path(random))
    took_ms = []
    for _ in range(tries):
        asked = path(random)
        began = time.perf_counter()
        answer = browser.get(asked)
        took_ms.append((time.perf_counter() - began) * 1_000)
        if answer.status_code != 200:
            raise Failed(f"GET {asked}: {answer.status_code}")
    took_ms.sort()
    sample = Sample(
        took_ms[int(tries * 0.95)],
        {"p50_ms": took_ms[tries // 2], "max_ms": took_ms[-1], "bytes": len(answer.content)},
    )
    return Pair(sample, sample)


def _sign_in(made: Installation, browser: httpx.Client) -> None:
    customer = made.sql("SELECT key FROM customers")[0]["key"]
    invited = _command(made, "users", "invite", _EMAIL, "--customer", customer, "--role", "admin", "--json")
    link = "/app/link/" + json.loads(invited)["link"].rpartition("/")[2]
    token = re.findall(r'name="token" value="([^"]+)"', browser.get(link).text)[0]
    secret = secrets.token_hex()
    answer = browser.post(
        link, data={"token": html.unescape(token), "name": "Admin", "password": secret, "again": secret}
    )
    if answer.headers.get("location") != "/app":
        raise Failed(f"signing in: {answer.status_code} {answer.text[:500]}")


def _command(made: Installation, *arguments: str) -> str:
    done = subprocess.run(
        [LARGESSE, *arguments], env=made.environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Failed(f"largesse {arguments[0]}: {done.stdout}{done.stderr}")
    return done.stdout
