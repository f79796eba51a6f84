"""Whatever an order and its recipients ask of a cluster is for one shard of one node."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.chained import CHAIN
from tests.citus.conftest import CUSTOMERS, Asked, Overheard, Told, nodes_of, place, principal_of, recipients
from tests.orders.builder import VAULT

from largesse.db import sharding
from largesse.db.scope import for_customer
from largesse.lines.attempts import Attempt
from largesse.lines.claiming import Outcome
from largesse.lines.codes import draw_codes
from largesse.orders.acts import read_order, void_unclaimed
from largesse.orders.listing import OrderLists

WRITES_AND_READS = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")
# What a node is asked for: its port, and how it goes about it. Only what it does with rows of customers, as the others are everywhere.
TASK = re.compile(r"Node: host=\S+ port=(\d+)(.*?)(?=Node: |Distributed Subplan|$)", re.DOTALL)
SHARD = re.compile(rf" on ({'|'.join(sharding.DISTRIBUTED)})_\d+")
# A code that is typed tells nobody whose it is: all nodes are asked, each apart.
FOR_ALL_NODES = "customers_of_code("


async def plan_of(spread: Overheard, told: Told) -> str:
    """How the statement would be run."""
    async with spread.transaction(told.scope) as connection:
        rows = await connection.fetch(f"EXPLAIN (COSTS OFF) {told.query}", *told.arguments)
    return "\n".join(row[0] for row in rows)


async def require_one_shard(spread: Overheard, heard: list[Told], home: str) -> int:
    """Every statement asks one shard of that node, or none; how many asked one."""
    asking = 0
    for told in heard:
        if not told.query.lstrip().startswith(WRITES_AND_READS) or FOR_ALL_NODES in told.query:
            continue
        several = isinstance(told.arguments, list)  # of a statement that was run for each of them
        for arguments in told.arguments[:1] if several else [told.arguments]:
            plan = await plan_of(spread, told._replace(arguments=arguments))
            tasks = re.findall(r"Task Count: (\d+)", plan)
            nodes = {f"127.0.0.1:{port}" for port, task in TASK.findall(plan) if SHARD.search(task)}
            assert set(tasks) <= {"1"}, f"{told.query}\n{plan}"
            assert nodes <= {home}, f"{nodes} {told.query}\n{plan}"
            assert "pulled to coordinator" not in plan, f"{told.query}\n{plan}"
            asking += bool(tasks)
    return asking


@asynccontextmanager
async def listening(spread: Overheard, home: str) -> AsyncIterator[list[Told]]:
    """What is told meanwhile is for one shard of that node."""
    spread.told, spread.asked = [], Asked()
    heard = spread.told
    yield heard
    asked = spread.asked
    assert asked.nodes == {home}, asked.commands
    assert await require_one_shard(spread, list(heard), home)


async def test_an_order_from_placing_to_cancelling(spread: Overheard) -> None:
    for customer_id, home in (await nodes_of(spread)).items():
        await go_through_an_order(spread, customer_id, home)


async def go_through_an_order(spread: Overheard, customer_id: int, home: str) -> None:
    principal = principal_of(customer_id)
    lists = OrderLists(spread, lambda records: str([record.reference for record in records]).encode())
    scope = for_customer(customer_id, "production")
    for codes in (2, 101):
        async with listening(spread, home):
            order = await place(spread, customer_id, codes=codes, external_reference=f"{codes}")
        assert spread.asked.prepared == []
        async with listening(spread, home):
            assert order.reference.encode() in await lists.newest(principal, limit=10)
            assert order.reference.encode() in await lists.after(principal, 0, limit=10)
        async with listening(spread, home), spread.transaction(scope) as connection:
            receipt = await read_order(connection, principal, VAULT, "https://x.example", order.reference)
            assert len(receipt.codes) == codes
        async with listening(spread, home), spread.transaction(scope) as connection:
            cancelled = await void_unclaimed(connection, principal, CHAIN, order.reference, address="::1")
            assert cancelled.cancelled_count == codes
    await lists.close()


async def test_a_gift_from_its_link_to_its_page(spread: Overheard) -> None:
    for customer_id, home in (await nodes_of(spread)).items():
        await go_through_a_gift(spread, customer_id, home)


async def go_through_a_gift(spread: Overheard, customer_id: int, home: str) -> None:
    (code,) = (await place(spread, customer_id)).codes
    claiming, gifts = recipients(spread)
    async with listening(spread, home):
        line, _ = await claiming.find(VAULT.token(code.code, customer_id))
        await claiming.open(VAULT.token(code.code, customer_id))
    wrong = f"{(code.pin + 1) % 1_000_000:06d}"
    for pin, outcome in ((wrong, Outcome.REFUSED), (code.pin_text, Outcome.CLAIMED)):
        async with listening(spread, home):
            claim = await claiming.claim(Attempt(code.code, pin, "192.0.2.1", customer_id), "fr")
            assert claim.outcome is outcome
    async with listening(spread, home):
        assert await gifts.read(line.key)
        await gifts.tell(line.key, "mia@example.com", "de")


async def test_a_code_that_is_typed_is_found_whosever_it_is(spread: Overheard) -> None:
    claiming, _ = recipients(spread)
    for customer_id in range(1, CUSTOMERS + 1):
        (code,) = (await place(spread, customer_id)).codes
        line, _ = await claiming.find(VAULT.token(code.code))  # a link from before customers were distributed
        assert line.customer_id == customer_id
        claim = await claiming.claim(Attempt(code.code, code.pin_text, "192.0.2.1"), None)
        assert (claim.outcome, claim.line) == (Outcome.CLAIMED, line.key)
    (unknown,) = draw_codes(1)
    attempt = Attempt(unknown.code, unknown.pin_text, "192.0.2.1")
    assert (await claiming.claim(attempt, None)).outcome is Outcome.REFUSED
