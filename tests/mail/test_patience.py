"""Mail servers that take their time: they are waited for, and get no message a second time for it."""

import asyncio
import os

import pytest
from tests.mail.conftest import Office, PostOffice
from tests.mail.stubborn import running
from tests.waiting import until

from largesse.db.scope import OPERATOR
from largesse.mail.mailer import DRAIN_S
from largesse.mail.outcomes import MessageLeases
from largesse.mail.smtp import SmtpTimeouts

SAM, KIM = "sam@example.com", "kim@example.com"

# A second in the suite, with the other waits scaled down; SLOW_MAIL=36 is the true thing, with the true waits.
SLOW_S = float(os.environ.get("SLOW_MAIL", "1"))
PATIENCE = SmtpTimeouts() if SLOW_S > 1 else SmtpTimeouts(5, 5, SLOW_S / 2, SLOW_S / 2, 60)


def test_no_wait_is_shorter_than_the_protocol_asks_for() -> None:
    """RFC 5321, 4.5.3.2: greeting, MAIL and RCPT 5 minutes, DATA 2, the text 3, the answer to the final dot 10."""
    patience = SmtpTimeouts()
    assert (patience.greeting_s, patience.command_s) == (300, 300)
    assert (patience.data_s, patience.answer_s) == (120, 600)
    assert patience.connect_s == 30, "a connection that cannot be made is no slow server"


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_a_server_that_takes_its_time_gets_one_copy(office: Office, mail_server: PostOffice) -> None:
    mail_server.takes_s = SLOW_S
    office.use(office.server.url, PATIENCE)
    await office.send_order([(SAM, "Sam", 1), (KIM, None, 1)])
    assert mail_server.recipients() == [SAM, KIM]
    assert await office.states() == ["sent", "sent"]
    assert mail_server.connections == 1


async def test_what_may_have_been_taken_is_tried_again_later_and_not_at_once(
    office: Office, mail_server: PostOffice
) -> None:
    mail_server.hangs = {SAM}
    office.use(office.server.url, SmtpTimeouts(5, 5, 5, 5, answer_s=0.3))
    await office.order([(KIM, None, 1)])
    await office.order([(SAM, "Sam", 1)])
    await office.send_order([("lee@example.com", None, 1)])
    assert mail_server.recipients() == [KIM, SAM, "lee@example.com"]
    assert await office.states() == ["sent", "pending", "sent"]
    row = await office.database.fetchrow(OPERATOR, "SELECT attempts, reason FROM messages WHERE email = $1", SAM)
    assert row is not None
    assert (row["attempts"], row["reason"]) == (1, "the mail server did not answer after the text")
    mail_server.hangs.clear()
    await office.advance(40)
    await office.send()
    assert mail_server.recipients().count(SAM) == 2
    assert await office.states() == ["sent"] * 3


async def test_a_server_that_does_not_answer_gets_its_time_once(office: Office) -> None:
    """Over a connection that has sent before; a connection that the server has ended is made anew at once."""
    async with running(RCPT={SAM: "hang", "lee@example.com": "close"}) as server:
        office.use(server.url, SmtpTimeouts(5, 5, 0.3, 5, 5))
        await office.order([(KIM, None, 1)])
        await office.send_order([(SAM, "Sam", 1)])
        assert (server.got, server.connections) == ([KIM], 1)
        await office.order([(KIM, None, 1)])
        await office.send_order([("lee@example.com", None, 1)])
        assert (server.got, server.connections) == ([KIM, KIM], 3)
    rows = await office.database.fetch(OPERATOR, "SELECT reason FROM messages WHERE state = 'pending' ORDER BY id")
    assert [row["reason"] for row in rows] == [
        "the mail server did not answer before the text",
        "the mail server ended the connection before the text",
    ]


async def test_a_lease_that_ran_out_is_not_taken_anew_by_its_own_process(
    office: Office, mail_server: PostOffice
) -> None:
    """As after a minute without a database: what is under way is brought back under its lease, and not sent again."""
    mail_server.hangs = {SAM}
    leases = MessageLeases(office.database)
    office.use(office.server.url, PATIENCE, leases=leases)
    first = office.mailer
    await office.order([(SAM, "Sam", 1)])
    await office.fan_out()
    step = asyncio.create_task(first.step())
    await mail_server.has_taken.wait()
    await office.advance(60)
    assert await free(office) == 1
    office.use(office.server.url, PATIENCE, leases=leases)
    assert not await office.mailer.step()
    assert await free(office) == 0
    mail_server.released.set()
    await asyncio.wait_for(step, 10)
    await first.close()
    assert await office.states() == ["sent"]
    assert mail_server.recipients() == [SAM]


async def test_what_another_worker_has_taken_over_can_be_taken_again_later(
    office: Office, mail_server: PostOffice
) -> None:
    """As after a minute in which the process stood still: the other one tried, put the message off, and has ended."""
    mail_server.hangs = {KIM}
    office.use(office.server.url, PATIENCE, leases=MessageLeases(office.database, lease_s=0.2))
    first = office.mailer
    await office.order([(KIM, None, 1)])
    await office.order([(SAM, "Sam", 1)])
    await office.fan_out()
    step = asyncio.create_task(first.step())
    await mail_server.has_taken.wait()
    await asyncio.sleep(0.3)
    other = PostOffice(says={SAM: "451 later"})
    await other.start()
    office.use(other.url)
    await office.send()
    await office.mailer.close()
    await other.close()
    assert await office.states() == ["sent", "pending"]
    mail_server.released.set()
    await asyncio.wait_for(step, 10)
    await office.advance(40)
    office.mailer = first
    await office.send()
    assert await office.states() == ["sent", "sent"]


async def test_a_message_that_hangs_holds_up_no_others(
    office: Office, mail_server: PostOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were leased together: another connection takes those behind it, and each arrives once."""
    monkeypatch.setattr("largesse.mail.mailer.TURN_S", 0.2)
    mail_server.ponders = {SAM}
    leases = MessageLeases(office.database)
    office.use(office.server.url, PATIENCE, leases=leases)
    hanging = office.mailer
    await office.order([(SAM, "Sam", 1), (KIM, None, 1), ("lee@example.com", None, 1)])
    await office.fan_out()
    step = asyncio.create_task(hanging.step())
    await mail_server.is_asked.wait()
    office.use(office.server.url, PATIENCE, leases=leases)
    await until(office.mailer.step)
    assert sorted(mail_server.recipients()) == [KIM, "lee@example.com"]
    mail_server.released.set()
    await asyncio.wait_for(step, 10)
    await hanging.close()
    assert await office.states() == ["sent"] * 3
    assert sorted(mail_server.recipients()) == [KIM, "lee@example.com", SAM]


async def test_stopping_waits_for_the_answer_under_way(office: Office, mail_server: PostOffice) -> None:
    mail_server.hangs = {SAM}
    office.use(office.server.url, PATIENCE)
    await office.order([(SAM, "Sam", 1), (KIM, None, 1)])
    await office.fan_out()
    step = asyncio.create_task(office.mailer.step())
    await mail_server.has_taken.wait()
    office.mailer.drain()
    mail_server.released.set()
    await asyncio.wait_for(step, 10)
    assert await office.states() == ["sent", "pending"]
    assert await free(office) == 1


async def test_stopping_waits_no_longer_than_it_says(office: Office, mail_server: PostOffice) -> None:
    """The message that waits may have been taken: it has had its attempt. The others go back untouched."""
    assert DRAIN_S == 20
    mail_server.hangs = {SAM}
    office.use(office.server.url, PATIENCE, drain_s=0.3)
    await office.order([(SAM, "Sam", 1), (KIM, None, 1)])
    await office.fan_out()
    step = asyncio.create_task(office.mailer.step())
    await mail_server.has_taken.wait()
    office.mailer.drain()
    await asyncio.wait_for(step, 10)
    await asyncio.wait_for(office.mailer.close(), 10)
    rows = await office.database.fetch(OPERATOR, "SELECT attempts, reason FROM messages ORDER BY id")
    assert [tuple(row) for row in rows] == [(1, "the worker stopped before the mail server had answered"), (0, None)]
    assert await free(office) == 2
    assert mail_server.recipients() == [SAM]


async def free(office: Office) -> int:
    """How many pending messages nobody has leased."""
    count: int = await office.database.fetchval(
        OPERATOR, "SELECT count(*) FROM messages WHERE state = 'pending' AND leased_until <= clock_now()"
    )
    return count
