"""100,000 customers, each with a collection of its own, and 50,000 products, compared with a hundredth of them.

*How.* Customers, keys, collections and products are written by SQL, into a large installation and a small one. In both 1,000 customers order, in turn
with each other. Then the large world is compared with itself: while a product and somebody's own collection change, each once a second;
the first order of a customer, which makes its ledger accounts, with the next; `GET /products` right after a change of a product with one later.

*What it means.* What an order costs depends on what it is about, and not on how many customers and products there are.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from statistics import median

import asyncpg
import httpx

from bench import load
from bench.benchmarks.orders_hot import CONNECTIONS
from bench.benchmarks.processes import processor_time
from bench.benchmarks.start import serve
from bench.installation import Failed, Installation, Server
from bench.load import Buyer
from bench.results import Pair, Row, Sample
from bench.suite import WARM_UP_S, Suite, at_least, at_most, say, watched
from bench.world import two_customers
from largesse.customers.authenticator import new_secret, secret_hash

CUSTOMERS, PRODUCTS = 100_000, 50_000
QUICK_CUSTOMERS, QUICK_PRODUCTS = 2_000, 1_000
BUYERS = 1_000
_FIRST_ORDERS = 100  # of as many customers, in each run
_READ_LIMIT_S = 60.0
_EDIT_EVERY_S = 0.5  # a product and a collection in turn

_FILL = (
    """
    INSERT INTO products (key, name, is_digital, currency, countries, denominations_minor)
    SELECT 'many-' || n, 'Shop number ' || n || ' gift', true, 'GBP', '{GB,IE}', '{500,1000,2500}' FROM generate_series(1, $1::int) AS n
    """,
    """
    INSERT INTO customers (key, name, plan, funding) SELECT 'many-' || n, 'Customer ' || n, 'enterprise', 'invoiced' FROM generate_series(1, $1::int) AS n
    """,
    "INSERT INTO service_accounts (customer_id, key, name) SELECT id, 'bot', 'Bot' FROM customers WHERE key LIKE 'many-%'",
    """
    INSERT INTO collections (key, customer_id, name, country, currency, value_minor, product_ids)
    SELECT 'many-' || id, id, 'Thanks', 'GB', 'GBP', 2500, ARRAY[(SELECT id FROM products WHERE key = 'coffee')] FROM customers WHERE key LIKE 'many-%'
    """,
)
_KEYS = """
    INSERT INTO api_keys (customer_id, service_account_id, key, environment, hash)
    SELECT s.customer_id, s.id, 'many', 'production', h.hash FROM unnest($1::bytea[]) WITH ORDINALITY AS h (hash, number)
    JOIN (SELECT s.*, row_number() OVER (ORDER BY s.id) AS number FROM service_accounts s JOIN customers c ON c.id = s.customer_id
          WHERE c.key LIKE 'many-%') AS s USING (number)
"""


def run(suite: Suite) -> list[Row]:
    customers, products = (QUICK_CUSTOMERS, QUICK_PRODUCTS) if suite.quick else (CUSTOMERS, PRODUCTS)
    with (
        suite.installation("customers, few", two_customers()) as small,
        suite.installation("customers", two_customers()) as large,
    ):
        began = time.monotonic()
        secrets, few_secrets = _fill(large, customers, products), _fill(small, BUYERS, BUYERS)
        say(f"  filled with {customers:,} customers and {products:,} products in {time.monotonic() - began:.0f} s")
        spread, few_spread = ([Buyer(secret, None) for secret in some[:BUYERS]] for some in (secrets, few_secrets))
        new = iter(secrets[BUYERS:])
        with small.serve() as few, large.serve() as many:
            _read_catalogue(many, spread[0].key)
            _read_catalogue(few, few_spread[0].key)
            product = partial(_place, large, many, spread, suite.seconds)
            _place(large, many, spread, WARM_UP_S)
            _place(small, few, few_spread, WARM_UP_S)
            orders = suite.in_turn(product, partial(_place, small, few, few_spread, suite.seconds))
            edited = suite.in_turn(partial(_while_edited, large, product), product)
            first = [_first_orders(large, many, new) for _ in range(suite.pairs)]
            listed = [_listed(large, many, secrets[0]) for _ in range(suite.pairs)]
        started = suite.in_turn(partial(serve, large), partial(serve, small))
    return _rows(customers, products, orders, edited, first, listed, started)


def _rows(
    customers: int,
    products: int,
    orders: list[Pair],
    edited: list[Pair],
    first: list[Pair],
    listed: list[Pair],
    started: list[Pair],
) -> list[Row]:
    large = f"{customers:,} customers and {products:,} products"
    cpu = [Pair(processor_time(pair.product), processor_time(pair.reference)) for pair in orders]
    return [
        Row("customers", "µs", f"processor time of an order, {large}", f"{BUYERS:,} and {BUYERS:,}", at_most(1.2), cpu),
        Row("customers, edits", "orders/s", f"{large}, 2 edits a second", "the same, no edits", at_least(0.9), edited),
        Row(
            "customers, first order", "ms", "p50 of first orders of customers", "p50 of their next", at_most(1.5), first
        ),
        Row("customers, list", "ms", "GET /products?limit=100 right after an edit", "the same later", None, listed),
        Row("customers, start", "s", f"start, {large}", f"start, {BUYERS:,} and {BUYERS:,}", None, started),
    ]


def _fill(made: Installation, customers: int, products: int) -> list[str]:
    """Writes the customers and products; returns the secret of a key of each customer."""
    secrets = [new_secret("production") for _ in range(customers)]

    async def fill(connection: asyncpg.Connection[asyncpg.Record]) -> None:
        for number, statement in enumerate(_FILL):
            await connection.execute(statement, *((products, customers)[number : number + 1]), timeout=600)
        await connection.execute(_KEYS, [secret_hash(secret) for secret in secrets], timeout=600)
        await connection.execute("VACUUM ANALYZE", timeout=600)

    made.connected(fill)
    return secrets


def _read_catalogue(server: Server, secret: str) -> None:
    """Has a process read the whole catalogue, however long that takes a busy machine: a caller is answered 503 after a while."""
    deadline = time.monotonic() + _READ_LIMIT_S
    while True:
        try:
            server.get("/products?limit=1", secret)
        except Failed:
            if time.monotonic() > deadline:
                raise
        else:
            return


def _place(made: Installation, server: Server, who: list[Buyer], seconds: float) -> Sample:
    return watched(made, server, lambda: load.orders(made, server, who, connections=CONNECTIONS, seconds=seconds))


def _while_edited(made: Installation, place: Callable[[], Sample]) -> Sample:
    with _edits(made):
        return place()


@contextmanager
def _edits(made: Installation) -> Iterator[None]:
    """Changes a product and a customer's own collection in turn, one every half a second."""
    over = threading.Event()
    edits = (
        "UPDATE products SET name = name || '' WHERE key = 'many-1'",
        "UPDATE collections SET name = name || '' WHERE key = (SELECT max(key) FROM collections)",
    )

    def edit() -> None:
        for statement in itertools.cycle(edits):
            if over.wait(_EDIT_EVERY_S):
                return
            made.sql(statement)

    thread = threading.Thread(target=edit)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _first_orders(made: Installation, server: Server, secrets: Iterator[str]) -> Pair:
    """The middle time of the first orders of some customers, and of their next."""
    who = list(itertools.islice(secrets, _FIRST_ORDERS))
    with httpx.Client(base_url=server.url) as client:
        runs = [[_order_ms(made, client, secret, f"{secret[-8:]}-{number}") for secret in who] for number in (1, 2, 3)]
    return Pair(Sample(median(runs[0])), Sample(median(runs[1] + runs[2])))


def _order_ms(made: Installation, client: httpx.Client, secret: str, reference: str) -> float:
    body = {**load.order_body(made, Buyer(secret, None)), "externalReference": reference}
    began = time.perf_counter()
    answer = client.post("/send/gift", json=body, headers={"Authorization": f"Bearer {secret}"})
    took_ms = (time.perf_counter() - began) * 1e3
    if answer.status_code != 200:
        raise Failed(f"POST /send/gift: {answer.status_code} {answer.text[:300]}")
    return took_ms


def _listed(made: Installation, server: Server, secret: str) -> Pair:
    """The middle time of GET /products right after an edit, and of the next."""
    after: list[float] = []
    later: list[float] = []
    for _ in range(20):
        made.sql("UPDATE products SET name = name || '' WHERE key = 'many-2'")
        for times in (after, later):
            began = time.perf_counter()
            server.get("/products?limit=100", secret)
            times.append((time.perf_counter() - began) * 1e3)
    return Pair(Sample(median(after)), Sample(median(later)))
