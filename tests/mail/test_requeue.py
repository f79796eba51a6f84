"""`largesse mail requeue`: what was given up goes out again, once."""

import asyncio
import base64
import os
import sys
from datetime import UTC, datetime, timedelta

import pytest
from tests.mail.conftest import Office, text_of

from largesse.db.scope import OPERATOR
from largesse.mail.mailer import GIVE_UP_AFTER_S
from largesse.mail.requeue import RequeueFilter, count_given_up, requeue

SAM, KIM, LEE = "sam@example.com", "kim@example.com", "lee@example.com"
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


async def bounce(office: Office, answers: dict[str, str], quantity: int = 1) -> str:
    """An order to those recipients, whose mail the server refuses with those answers; returns its reference."""
    office.server.says = dict(answers)
    reference, _ = await office.send_order([(address, None, quantity) for address in answers])
    office.server.says = {}
    return reference


async def test_what_bounced_for_a_reason_since_then_goes_out_again_once(office: Office) -> None:
    await bounce(office, {SAM: "550 5.1.1 Unknown", KIM: "552 5.2.2 full"})
    await office.advance(3600)
    since = await office.database.fetchval(OPERATOR, "SELECT clock_now()")
    await bounce(office, {LEE: "550 5.1.1 unknown"})
    assert await office.states() == ["bounced"] * 3
    for wanted, count in (
        (RequeueFilter(LONG_AGO), 3),
        (RequeueFilter(since), 1),
        (RequeueFilter(LONG_AGO, "UNKNOWN"), 2),
        (RequeueFilter(LONG_AGO, "%"), 0),
        (RequeueFilter(since + timedelta(days=1)), 0),
    ):
        assert await count_given_up(await office.operator(), wanted) == count, wanted
    assert await requeue(await office.operator(), RequeueFilter(since)) == 1
    await office.send()
    assert office.server.recipients() == [LEE]
    assert await requeue(await office.operator(), RequeueFilter(LONG_AGO, "5.1.1")) == 1
    assert await requeue(await office.operator(), RequeueFilter(LONG_AGO, "5.1.1")) == 0
    await office.send()
    assert office.server.recipients() == [LEE, SAM]
    assert await office.states() == ["sent", "bounced", "sent"]
    kept = await office.database.fetch(OPERATOR, "SELECT since, reason, messages FROM mail_requeues ORDER BY id")
    assert [tuple(row) for row in kept] == [(since, None, 1), (LONG_AGO, "5.1.1", 1), (LONG_AGO, "5.1.1", 0)]


async def test_of_a_parcel_that_came_back_no_mail_goes_out_again(office: Office) -> None:
    """It would say that the parcel is on its way."""
    await bounce(office, {SAM: "550 5.1.1 Unknown"})
    execute = office.database.execute
    await execute(OPERATOR, "UPDATE messages SET kind = 'shipped', edition = 1")
    await execute(
        OPERATOR,
        """
        INSERT INTO shipments (customer_id, order_id, number, environment, product_id, country, sealed_address, requested_at, shipped_at, carrier, sendings)
        SELECT customer_id, order_id, 1, environment, $1, 'GB', 'x', now(), now(), 'DHL', 1 FROM messages
        """,
        office.product_id,
    )
    assert await count_given_up(await office.operator(), RequeueFilter(LONG_AGO)) == 1
    await execute(OPERATOR, "UPDATE shipments SET returned_at = shipped_at, return_reason = 'absent'")
    assert await requeue(await office.operator(), RequeueFilter(LONG_AGO)) == 0


async def test_of_a_parcel_that_was_sent_again_only_the_last_mail_goes_out_again(office: Office) -> None:
    await bounce(office, {SAM: "550 5.1.1 Unknown"})
    execute = office.database.execute
    await execute(OPERATOR, "UPDATE messages SET kind = 'shipped', edition = 1")
    assert await count_given_up(await office.operator(), RequeueFilter(LONG_AGO)) == 1
    await execute(
        OPERATOR,
        """
        INSERT INTO messages (customer_id, order_id, environment, kind, edition, email, line_numbers, due_at, rank_at, created_at)
        SELECT customer_id, order_id, environment, 'shipped_2', 1, email, line_numbers, due_at, rank_at, created_at FROM messages
        """,
    )
    assert await count_given_up(await office.operator(), RequeueFilter(LONG_AGO)) == 0
    office.server.says = {SAM: "550 5.1.1 Unknown"}
    await office.send()
    assert await count_given_up(await office.operator(), RequeueFilter(LONG_AGO)) == 1


async def test_what_was_given_up_after_three_days_has_three_more(office: Office) -> None:
    office.server.says[SAM] = "450 later"
    reference, _ = await office.send_order([(SAM, None, 1)])
    await office.advance(GIVE_UP_AFTER_S + 1)
    await office.send()
    assert await office.states() == ["exhausted"]
    assert await requeue(await office.operator(), RequeueFilter(LONG_AGO)) == 1
    await office.send()
    assert await office.states() == ["pending"]
    [told] = await office.deliveries(reference)
    assert (told.attempts, told.reason) == (1, "450 later")
    office.server.says.clear()
    await office.advance(40)
    await office.send()
    assert await office.states() == ["sent"]


async def test_what_waits_for_a_server_goes_out_when_asked_for_unless_it_leaves_already(office: Office) -> None:
    """One that the server may have taken is tried again after up to 12 hours, though the server is repaired."""
    office.server.says = {SAM: "hang up", KIM: "450 4.2.1 full"}
    await office.send_order([(SAM, None, 1), (KIM, None, 1)])
    office.server.says = {}
    await office.send()
    assert office.server.got == []
    waiting = RequeueFilter(LONG_AGO, states=["pending"])
    execute = office.database.execute
    await execute(OPERATOR, "UPDATE messages SET leased_until = clock_now() + interval '15 seconds'")
    assert (
        await count_given_up(await office.operator(), waiting),
        await requeue(await office.operator(), waiting),
    ) == (0, 0)
    await execute(OPERATOR, "UPDATE messages SET leased_until = '-infinity'")
    assert await requeue(await office.operator(), RequeueFilter(LONG_AGO, states=["held"])) == 0
    assert await requeue(await office.operator(), waiting) == 1
    await office.send()
    assert office.server.recipients() == [SAM], "Kim's waits because of Kim"


async def test_what_is_held_goes_out_when_asked_for(office: Office) -> None:
    url = office.server.url
    office.use(None)
    await office.send_order([(SAM, None, 1)])
    assert await office.states() == ["held"]
    office.use(url)
    assert await requeue(await office.operator(), RequeueFilter(LONG_AGO, "no mail server")) == 1
    await office.send()
    assert await office.states() == ["sent"]


async def test_cancelled_codes_and_mail_that_was_asked_for_again_stay(office: Office) -> None:
    refused = "550 5.1.1 unknown"
    reference = await bounce(office, {SAM: refused, KIM: refused, LEE: refused}, quantity=2)
    await office.cancel(reference, 1, 2, 3)  # Sam's both, and one of Kim's
    await office.resend(reference, LEE)
    await office.send()
    assert office.server.recipients() == [LEE]
    assert await count_given_up(await office.operator(), RequeueFilter(LONG_AGO)) == 1
    assert await requeue(await office.operator(), RequeueFilter(LONG_AGO)) == 1
    await office.send()
    assert office.server.recipients() == [LEE, KIM]
    [message] = office.server.messages()[1:]
    assert text_of(message).count("https://") == 1, "the code that still stands"
    assert await office.states() == ["bounced", "sent", "bounced", "sent"]


@pytest.mark.slow
async def test_many_go_out_in_bites_and_new_mail_passes(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("largesse.mail.requeue._BITE", 30)
    await bounce(office, {f"guest{number}@example.com": "550 5.1.1 unknown" for number in range(120)})
    assert await requeue(await office.operator(), RequeueFilter(LONG_AGO)) == 120
    await office.order([(SAM, None, 1)])
    async with asyncio.timeout(30):
        while len(order := office.server.recipients()) < 121:  # they become due one after another
            await office.send()
            await asyncio.sleep(0.05)
    assert len(set(order)) == len(order) == 121
    assert order.index(SAM) < 120


async def largesse(office: Office, url: str, *arguments: str) -> tuple[int | None, str]:
    """What the command says, and its exit status."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "largesse",
        *arguments,
        env={
            **os.environ,
            "LARGESSE_DATABASE_URL": url,
            "LARGESSE_MASTER_KEY": base64.b64encode(bytes(range(32))).decode(),
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    return process.returncode, said.decode()


@pytest.mark.slow
async def test_the_command_says_how_many(office: Office, database_url: str) -> None:
    await bounce(office, {SAM: "550 5.1.1 unknown", KIM: "552 5.2.2 full"})
    command = ["mail", "requeue", "--since"]
    assert await largesse(office, database_url, *command, "2020-01-01", "--dry-run") == (
        0,
        "Messages that would be sent again: 2\n",
    )
    assert await office.states() == ["bounced", "bounced"]
    assert await largesse(office, database_url, *command, "2020-01-01T10:00+02:00", "--reason", "FULL") == (
        0,
        "Messages to be sent again: 1\n",
    )
    assert await office.states() == ["bounced", "pending"]
