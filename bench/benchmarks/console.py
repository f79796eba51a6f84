"""Pages of the web application with 5 million orders of one customer, one after another, as a person sees them.

*How.* An installation and its read models are filled (bench/fill.py) with gifts, sources, accounts, people, states and words,
some common to many orders and some rare (bench/history.py). A user signs in with a link of `largesse users invite` and gets each
page: the list of orders by every filter alone, by any two, by words, and by words and a filter, each from its beginning and from
the middle of all orders on; statements of any month, reports of any period. The figure is the 95th percentile of the time to the
last byte. The slowest pages are printed as it runs.

*What it means.* Lists, searches and sums use read models and indexes: a page takes as long as what it shows, whatever the tables
hold. A word that half of all recipients share is found as quickly as a rare one.
"""

import html
import json
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import combinations
from random import Random

import httpx

from bench.fill import YEARS, fill
from bench.installation import Failed, Installation
from bench.results import Pair, Row, Sample
from bench.suite import Suite, at_most, say
from bench.world import one_customer

ORDERS = 5_000_000
QUICK_ORDERS = 50_000
_EMAIL = "admin@example.com"
_MOST_MS = 150
_TRIES = 60
_QUICK_TRIES = 20
_TOLD = 5  # of the slowest
# What somebody may filter by: some of each kind, by name, what many orders have first and what hardly any has last.
Filters = dict[str, dict[str, str]]


def run(suite: Suite) -> list[Row]:
    orders = QUICK_ORDERS if suite.quick else ORDERS
    with suite.installation("console", one_customer()) as made:
        began = time.monotonic()
        fill(made, orders, reports=True)
        say(f"  filled with {orders:,} orders and their read models in {time.monotonic() - began:.0f} s")
        with (
            made.serve() as server,
            httpx.Client(base_url=server.url, headers={"Accept-Language": "en"}, timeout=60) as browser,
        ):
            sign_in(made, browser)
            rows = []
            for name, title, paths in pages(made, _QUICK_TRIES if suite.quick else _TRIES):
                pairs = [_pair(browser, paths) for _ in range(suite.pairs)]
                about = f"the page {title} with {orders:,} orders, p95 of {len(paths)}"
                rows.append(Row(f"console, {name}", "ms", about, "", at_most(_MOST_MS), pairs))
            return rows


def pages(made: Installation, tries: int) -> list[tuple[str, str, list[str]]]:
    """Each page by name and title, with the addresses to get: `tries` of those that differ in their month or period alone."""
    account = made.sql("SELECT id FROM accounts WHERE kind = 'funding' ORDER BY id")[0]["id"]
    orders = made.sql("SELECT max(id) FROM orders")[0][0]
    filters, words = _filters(made), _words(made, orders)
    random = Random(1)
    singles = [{kind: value} for kind, values in filters.items() for value in values.values()]
    twos = [
        {one: first, other: second}
        for one, other in combinations(filters, 2)
        for first in filters[one].values()
        for second in filters[other].values()
    ]
    searches = [{"q": word} for word in words]
    narrowed = [{"q": word, **single} for word in words for single in singles]
    return [
        ("home", "Home", ["/app"] * tries),
        ("orders", "Orders, by one filter,", _lists([{}, *singles], orders)),
        ("orders by two", "Orders, by any two filters,", _lists(twos, orders)),
        ("search", "Orders, by words,", _lists(searches, orders)),
        ("search by two", "Orders, by words and any filter,", _lists(narrowed, orders)),
        ("statement", "Statement", [f"/app/funding/{account}?month={_day(random):%Y-%m}" for _ in range(tries)]),
        ("reports", "Reports", _reports()),
    ]


def _lists(asked: Sequence[Mapping[str, str]], orders: int) -> list[str]:
    """The first page of each list, and one from the middle of all orders on."""
    return [
        f"/app/orders?{httpx.QueryParams({**one, **deep})}"
        for one in asked
        for deep in ({}, {"before": str(orders // 2)})
    ]


def _filters(made: Installation) -> Filters:
    ids = {
        table: [row[0] for row in made.sql(f"SELECT id FROM {table} WHERE {which} ORDER BY id")]
        for table, which in (
            ("accounts", "kind = 'funding'"), ("products", "is_digital"), ("collections", "true"), ("service_accounts", "true"),
            ("users", "role = 'member'"),
        )
    }  # fmt: skip
    today = datetime.now(UTC).date()
    return {
        "state": {state: state for state in ("waiting", "claimed", "cancelled", "bounced", "scheduled")},
        "since": {"week": f"{today - timedelta(days=7)}", "year": f"{today - timedelta(days=365)}"},
        "until": {"year": f"{today - timedelta(days=365)}", "first": f"{today - timedelta(days=365 * YEARS - 3)}"},
        "source": {name: name for name in ("api", "birthdays", "survey")},
        "account": {name: str(ids["accounts"][at]) for name, at in _FIRST_AND_LAST},
        "gift": {
            **{f"{name} product": f"product-{ids['products'][at]}" for name, at in _FIRST_AND_LAST},
            **{f"{name} collection": f"collection-{ids['collections'][at]}" for name, at in _FIRST_AND_LAST},
        },
        "by": {
            **{f"{name} key": f"key-{ids['service_accounts'][at]}" for name, at in _FIRST_AND_LAST},
            **{f"{name} person": f"person-{ids['users'][at]}" for name, at in _FIRST_AND_LAST},
        },
    }


_FIRST_AND_LAST = (("first", 0), ("last", -1))


def _words(made: Installation, orders: int) -> list[str]:
    """What may be typed: references, recipients, senders and messages, rare and common, alone and together."""
    reference = made.sql("SELECT reference FROM orders WHERE id = $1", orders // 3)[0][0]
    return [
        reference, f"bench000-{orders // 3:011d}", "bench000", "guest0007919@example.com", "guest0007919", "guest", "Ada", "Guest7",
        "Grace Guest7", "People Team", "Team 10", "wonderful", "Happy birthday", "Ada wonderful", "guest0007919 wonderful", "nobody",
        "people nobody", "gu wo",
    ]  # fmt: skip


def _reports() -> list[str]:
    return [
        f"/app/reports?period={period}&by={by}"
        for period in ("this-month", "last-month", "3-months", "12-months")
        for by in ("gift", "source", "account", "placed_by", "user", "service_account")
    ]


def _day(random: Random) -> datetime:
    return datetime.now(UTC) - timedelta(days=random.randrange(365 * YEARS))


def _pair(browser: httpx.Client, paths: Sequence[str]) -> Pair:
    """The same on both sides: nothing else is measured beside it."""
    browser.get(paths[0])
    took = []
    for path in paths:
        began = time.perf_counter()
        answer = browser.get(path)
        took.append(((time.perf_counter() - began) * 1_000, path))
        if answer.status_code != 200:
            raise Failed(f"GET {path}: {answer.status_code}")
    took.sort()
    for took_ms, path in took[: -_TOLD - 1 : -1]:
        say(f"  {took_ms:7.1f} ms {path}")
    middle, most = took[len(took) // 2][0], took[-1][0]
    sample = Sample(took[int(len(took) * 0.95)][0], {"p50_ms": middle, "max_ms": most, "bytes": len(answer.content)})
    return Pair(sample, sample)


def sign_in(made: Installation, browser: httpx.Client) -> None:
    """Has the browser be signed in as an administrator."""
    customer = made.sql("SELECT key FROM customers")[0]["key"]
    invited = made.command("users", "invite", _EMAIL, "--customer", customer, "--role", "admin", "--json")
    link = "/app/link/" + json.loads(invited)["link"].rpartition("/")[2]
    token = re.findall(r'name="token" value="([^"]+)"', browser.get(link).text)[0]
    secret = secrets.token_hex()
    answer = browser.post(
        link, data={"token": html.unescape(token), "name": "Admin", "password": secret, "again": secret}
    )
    if answer.headers.get("location") != "/app":
        raise Failed(f"signing in: {answer.status_code} {answer.text[:500]}")
