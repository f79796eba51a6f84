"""Correcting an address beside what else changes the lines of an order and its mail: one waits for the other, and none for both."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest
from tests.chained import CHAIN
from tests.distributed import WAITING
from tests.mail.conftest import Office
from tests.waiting import until

from largesse.base.errors import InvalidRequest
from largesse.db.scope import OPERATOR
from largesse.jobs.outbox import hold_mail_back
from largesse.lines.states import lock_issued, record_cancelled
from largesse.mail.outcomes import MessageLeases, Sent, record
from largesse.mail.requeue import RequeueFilter, requeue
from largesse.mail.resending import correct_address, resend, resend_chosen, resend_unclaimed
from largesse.privacy.service import erase_lines

ADA, BEN, QUEEN = "ada@example.com", "ben@example.com", "queen@example.com"
Act = Callable[[Office, str, tuple[int, int]], Awaitable[None]]


async def correct(office: Office, reference: str, _: tuple[int, int]) -> None:
    async with office.database.transaction(OPERATOR) as connection:
        await correct_address(connection, CHAIN, office.principal, reference, ADA, QUEEN)


async def erase(office: Office, _: str, order: tuple[int, int]) -> None:
    async with office.database.transaction(OPERATOR) as connection:
        await erase_lines(connection, order, [2])


async def cancel(office: Office, _: str, order: tuple[int, int]) -> None:
    """What a cancellation does but for the money."""
    async with office.database.transaction(OPERATOR) as connection:
        issued = await lock_issued(connection, *order)
        at = await connection.fetchval("SELECT clock_now()")
        await record_cancelled(connection, *order, issued, at)
        await hold_mail_back(connection, *order)


@pytest.mark.parametrize(
    ("first", "second", "held", "left"),
    [
        # The correction stands before the first line while the second is erased.
        (correct, erase, 1, [QUEEN, "erased-2@erased.invalid"]),
        # The cancellation has the first line and stands before the second when the correction comes.
        (cancel, correct, 2, [QUEEN, BEN]),
    ],
)
async def test_locks_are_taken_in_one_order(
    office: Office, first: Act, second: Act, held: int, left: list[str]
) -> None:
    reference, _ = await office.order([(ADA, "Ada", 1), (BEN, "Ben", 1)])
    order_id = await office.database.fetchval(OPERATOR, "SELECT id FROM orders WHERE reference = $1", reference)
    order = (office.principal.customer_id, order_id)
    async with office.database.transaction(OPERATOR) as holder:
        await holder.execute(
            "SELECT FROM lines WHERE customer_id = $1 AND order_id = $2 AND number = $3 FOR UPDATE", *order, held
        )
        acting: list[asyncio.Task[None]] = []
        for act in (first, second):
            acting.append(asyncio.create_task(act(office, reference, order)))
            await waits_or_is_done(office, acting)
    await asyncio.gather(*acting)  # a deadlock would be raised here
    lines = await office.database.fetch(
        OPERATOR, "SELECT recipient_email FROM lines WHERE customer_id = $1 AND order_id = $2 ORDER BY number", *order
    )
    assert [line["recipient_email"] for line in lines] == left


async def send_again(office: Office, reference: str) -> None:
    async with office.database.transaction(OPERATOR) as connection:
        await resend(connection, office.principal, reference, ADA)


async def send_all_again(office: Office, reference: str) -> None:
    async with office.database.transaction(OPERATOR) as connection:
        await resend_unclaimed(connection, office.principal, reference)


async def send_chosen_again(office: Office, reference: str) -> None:
    actor = (await office.operator()).on_behalf_of(office.principal.customer_id, "production")
    await resend_chosen(actor, reference, {1: None})


@pytest.mark.parametrize("again", [send_again, send_all_again, send_chosen_again])
async def test_no_mail_is_sent_again_with_codes_that_are_just_being_cancelled(
    office: Office, again: Callable[[Office, str], Awaitable[None]]
) -> None:
    reference, _ = await office.send_order([(ADA, "Ada", 2)])
    order_id = await office.database.fetchval(OPERATOR, "SELECT id FROM orders WHERE reference = $1", reference)
    order = (office.principal.customer_id, order_id)
    async with office.database.transaction(OPERATOR) as connection:
        issued = await lock_issued(connection, *order)
        await record_cancelled(connection, *order, issued, await connection.fetchval("SELECT clock_now()"))
        await hold_mail_back(connection, *order)
        sending = asyncio.create_task(again(office, reference))
        await waits_or_is_done(office, [sending])
    with contextlib.suppress(InvalidRequest):  # where one recipient was named
        await sending
    await office.send()
    assert office.server.recipients() == [ADA], "once, before"


async def test_what_is_just_being_sent_again_is_not_requeued_as_well(office: Office) -> None:
    office.server.says = {ADA: "550 5.1.1 unknown"}
    reference, _ = await office.send_order([(ADA, "Ada", 1)])
    office.server.says = {}
    wanted = RequeueFilter(datetime(2020, 1, 1, tzinfo=UTC))
    async with office.database.transaction(OPERATOR) as connection:
        await resend(connection, office.principal, reference, ADA)
        requeuing = asyncio.create_task(requeue(await office.operator(), wanted))
        await until(lambda: requeuing.done() or office.database.fetchval(OPERATOR, WAITING))
    assert await requeuing == 0
    await office.send()
    assert office.server.recipients() == [ADA]


async def test_mail_of_a_worker_that_stood_still_goes_to_the_corrected_address(office: Office) -> None:
    """Its lease had run out, so that the address could be corrected; then it goes on with the letter that it has read."""
    reference, _ = await office.order([(BEN, "Ben", 1), (ADA, "Ada", 1)])
    await office.fan_out()
    office.server.hangs = {BEN}
    step = asyncio.create_task(office.mailer.step())
    await office.server.has_taken.wait()
    await office.advance(60)
    async with office.database.transaction(OPERATOR) as connection:
        await correct_address(connection, CHAIN, office.principal, reference, ADA, QUEEN)
    office.server.released.set()
    await step
    await office.send()
    assert office.server.recipients() == [BEN, QUEEN]
    assert await office.states() == ["sent", "sent"]


@pytest.mark.parametrize("act", [correct, cancel, None])
async def test_messages_of_an_order_are_locked_by_their_ids(office: Office, act: Act | None) -> None:
    """Also by a worker that has sent the last one first."""
    reference, _ = await office.order([(ADA, "Ada", 1), (BEN, "Ben", 1), ("cem@example.com", "Cem", 1)])
    await office.fan_out()
    order_id = await office.database.fetchval(OPERATOR, "SELECT id FROM orders WHERE reference = $1", reference)
    # The first one is the last of the table, and of the index by address.
    moved = "UPDATE messages SET email = 'zoe@example.com' WHERE id = (SELECT min(id) FROM messages) RETURNING id"
    first = await office.database.fetchval(OPERATOR, moved)
    leases = MessageLeases(office.database)
    messages = await leases.take(10, office.vault, lambda _: "https://gifts.example")
    sent = [Sent(one, "sent") for one in sorted(messages, key=lambda one: -one.lease.key)]

    async def record_outcomes() -> None:
        async with office.database.transaction(OPERATOR) as connection:
            await connection.execute("SET LOCAL enable_seqscan = off")  # as if there were more than three messages
            await record(connection, sent)

    async with office.database.transaction(OPERATOR) as holder:
        await holder.execute("SELECT FROM messages WHERE id = $1 FOR UPDATE", first)
        acting = asyncio.create_task(
            act(office, reference, (office.principal.customer_id, order_id)) if act else record_outcomes()
        )
        await waits_or_is_done(office, [acting])
        await holder.execute("SELECT FROM messages WHERE id <> $1 FOR UPDATE NOWAIT", first)
    await acting
    await leases.close()


async def waits_or_is_done(office: Office, acting: list[asyncio.Task[None]]) -> None:
    """Returns when each of the tasks waits for a lock or has ended."""
    async with asyncio.timeout(30):
        while await office.database.fetchval(OPERATOR, WAITING) < sum(not task.done() for task in acting):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
