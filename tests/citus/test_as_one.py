"""What is written on a customer's node and beside it, on the coordinator, is there together or not at all."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.chained import CHAIN, acting_on, actor_on
from tests.citus.conftest import Asked, Overheard, nodes_of, place, principal_of, recipients
from tests.distributed import SOMEBODY_WAITS
from tests.orders.builder import VAULT

from largesse.customers.access import member_statuses
from largesse.customers.actor import Actor
from largesse.customers.members import add_user, set_user_role
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR, for_customer
from largesse.fulfilment.inventory import find_inventory_product, import_vouchers
from largesse.fulfilment.shipments import import_shipments
from largesse.ledger.accounts import transfer
from largesse.lines.attempts import Attempt
from largesse.lines.claiming import Outcome
from largesse.lines.states import LineKey
from largesse.mail.resending import resend, resend_unclaimed
from largesse.orders.acts import void_unclaimed

CUSTOMER = 1
SCOPE = for_customer(CUSTOMER, "production")
COFFEE, HAMPER = 1, 2
SENT = """
    INSERT INTO messages (customer_id, order_id, environment, email, line_numbers, state, due_at, rank_at, created_at, finished_at)
    SELECT customer_id, id, environment, 'mia@example.com', '{1}', 'sent', created_at, created_at, created_at, created_at
    FROM orders WHERE customer_id = $1 AND reference = $2
"""
ADDRESS = {"name": "Mia", "street_address": "1 High St", "city": "Leeds", "country_code": "GB"}


@pytest.fixture
async def operator(spread: Overheard, database_url: str) -> AsyncIterator[Overheard]:
    """The same cluster, as who types commands."""
    operator = await Overheard.connect(database_url, role=Role.OPERATOR)
    assert isinstance(operator, Overheard)
    yield operator
    await operator.close()


@asynccontextmanager
async def as_one(spread: Overheard) -> AsyncIterator[None]:
    """What is done meanwhile is written on the customer's node, and committed by it and the coordinator in two phases."""
    spread.asked = Asked()
    yield
    home = (await nodes_of(spread))[CUSTOMER]
    assert spread.asked.nodes == {home}, spread.asked.commands
    assert len(spread.asked.prepared) == 1, spread.asked.commands


async def claimed(spread: Overheard, product_id: int) -> LineKey:
    """A gift that was claimed, both as one."""
    (code,) = (await place(spread, CUSTOMER, product_id=product_id)).codes
    claiming, _ = recipients(spread)
    async with as_one(spread):
        claim = await claiming.claim(Attempt(code.code, code.pin_text, "192.0.2.1", CUSTOMER), None)
    assert claim.outcome is Outcome.CLAIMED
    assert claim.line is not None
    return claim.line


async def test_a_cancellation_and_the_mail_that_it_holds_back(spread: Overheard) -> None:
    order = await place(spread, CUSTOMER)
    async with as_one(spread), spread.transaction(SCOPE) as connection:
        await void_unclaimed(connection, principal_of(CUSTOMER), CHAIN, order.reference)


async def test_a_claim_and_the_parcel_that_leaves(spread: Overheard, operator: Overheard, tmp_path: Path) -> None:
    line = await claimed(spread, HAMPER)
    _, gifts = recipients(spread)
    async with as_one(spread):
        await gifts.deliver_to(line, ADDRESS, "mia@example.com", "de")
    actor = await actor_on(operator, VAULT)
    parcels = tmp_path / "parcels.csv"
    parcels.write_text("shipment,carrier\n1,Post\n")
    async with as_one(operator):
        assert await import_shipments(actor, VAULT, "production", parcels) == (1, 0)


async def test_a_claim_and_the_number_that_it_waited_for(
    spread: Overheard, operator: Overheard, tmp_path: Path
) -> None:
    line = await claimed(spread, COFFEE)
    _, gifts = recipients(spread)
    await gifts.tell(line, "mia@example.com", None)
    numbers = tmp_path / "numbers.csv"
    numbers.write_text("NUMBER-1\n")
    actor = await actor_on(operator, VAULT)
    async with operator.connection(OPERATOR) as connection:
        stocked = await find_inventory_product(connection, "coffee")
    async with as_one(operator):
        imported = await import_vouchers(actor, VAULT, stocked, numbers)
    assert imported.served == 1


@pytest.mark.parametrize("all_of_them", [False, True])
async def test_mail_that_is_sent_again_and_who_asked_for_it(
    spread: Overheard, operator: Overheard, *, all_of_them: bool
) -> None:
    order = await place(spread, CUSTOMER)
    await operator.execute(OPERATOR, SENT, CUSTOMER, order.reference)
    principal = principal_of(CUSTOMER)
    async with as_one(spread), spread.transaction(SCOPE) as connection:
        if all_of_them:
            assert await resend_unclaimed(connection, principal, order.reference) == 1
        else:
            await resend(connection, principal, order.reference, "mia@example.com")


async def test_what_is_done_and_what_the_audit_log_keeps_of_it(spread: Overheard, operator: Overheard) -> None:
    acting = await acting_on(operator, VAULT)
    funding = "SELECT id FROM accounts WHERE customer_id = $1 AND kind = 'funding' ORDER BY id"
    master, other = [row["id"] for row in await operator.fetch(OPERATOR, funding, CUSTOMER)]
    actor = Actor(acting, lambda _: spread.transaction(SCOPE), CUSTOMER, "production")
    async with as_one(spread):
        await transfer(actor, from_id=master, to_id=other, amount_minor=100)


async def test_people_who_write_do_not_wait_for_each_other_but_a_change_of_a_role_waits_for_them(
    operator: Overheard,
) -> None:
    async with operator.transaction(OPERATOR) as connection:
        members = [await add_user(connection, CUSTOMER, f"{one}@acme.example", one, "admin") for one in ("ada", "eve")]

    async def demote() -> None:
        async with operator.transaction(OPERATOR) as connection:
            await set_user_role(connection, CUSTOMER, members[0], "viewer")

    async with operator.transaction(OPERATOR) as one, operator.transaction(OPERATOR) as other:
        for connection in (one, other):
            held = await member_statuses(connection, members)
            assert [held[-member].role for member in members] == ["admin", "admin"]
        demoting = asyncio.create_task(demote())
        while not await operator.fetchval(OPERATOR, SOMEBODY_WAITS):
            assert not demoting.done()
            await asyncio.sleep(0.01)
    await demoting
    async with operator.transaction(OPERATOR) as connection:
        assert (await member_statuses(connection, members))[-members[0]].role == "viewer"
