"""Production without a mail server: what is due is held, and leaves once there is one."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.mail.conftest import Office

from largesse.base.errors import InvalidRequest
from largesse.db.migrate import REVISIONS
from largesse.db.scope import OPERATOR
from largesse.housekeeping import measure
from largesse.jobs import metrics
from largesse.mail import requeue as holding
from largesse.mail.mailbox import list_captured
from largesse.mail.mailer import GIVE_UP_AFTER_S
from largesse.mail.requeue import RequeueFilter, requeue

SAM, KIM = "sam@example.com", "kim@example.com"


async def release(office: Office) -> int:
    async with office.database.transaction(OPERATOR) as connection:
        return await holding.release(connection)


async def test_production_without_a_mail_server_holds_its_mail_until_there_is_one(office: Office) -> None:
    office.use(None)
    reference, _ = await office.send_order([(SAM, "Sam", 1), (KIM, None, 1)])
    for told in await office.deliveries(reference):
        assert (told.state, told.sent_at, told.attempts) == ("held", None, 0)
        assert told.reason == "no mail server is set"
    async with office.database.connection(OPERATOR) as connection:
        assert await list_captured(connection, "production") == []

    office.use(office.server.url)
    assert await release(office) == 2
    assert await release(office) == 0
    await office.send()
    assert [envelope.rcpt_tos for envelope in office.server.got] == [[SAM], [KIM]]
    for told in await office.deliveries(reference):
        assert (told.state, told.reason, told.attempts) == ("sent", None, 1)
        assert told.sent_at is not None


async def test_staging_is_captured_beside_held_mail_and_the_demo_captures_both(office: Office) -> None:
    office.use(None)
    await office.order([(SAM, "Sam", 1)])
    await office.send_order([(SAM, "Sam", 1)], environment="staging")
    assert await office.states() == ["held", "captured"]
    office.use(None, captures=True)
    await office.send_order([(SAM, "Sam", 1)])
    assert await office.states() == ["held", "captured", "captured"]


async def test_what_production_captured_before_is_given_up_and_can_be_sent(office: Office) -> None:
    office.use(None, captures=True)
    reference, _ = await office.order([(SAM, "Sam", 1)])
    await office.send_order([(KIM, None, 1)], environment="staging")
    assert await office.states() == ["captured", "captured"]
    await office.database.execute(OPERATOR, (REVISIONS / "0009_captured_in_production.sql").read_text())
    assert await office.states() == ["exhausted", "captured"]
    [told] = await office.deliveries(reference)
    assert (told.state, told.sent_at, told.reason) == ("exhausted", None, "no mail server was set")

    office.use(office.server.url)
    assert await release(office) == 0
    await office.send()
    assert office.server.got == [], "nothing leaves by itself"
    wanted = RequeueFilter(datetime.now(UTC) - timedelta(days=1), "no mail server")
    assert await requeue(await office.operator(), wanted) == 1
    await office.send()
    assert [envelope.rcpt_tos for envelope in office.server.got] == [[SAM]]
    [told] = await office.deliveries(reference)
    assert (told.state, told.reason) == ("sent", None)


@pytest.mark.long
async def test_held_mail_leaves_in_bites_and_new_mail_passes(office: Office) -> None:
    office.use(None)
    await office.send_order([(f"guest{n}@example.com", None, 1) for n in range(1100)])
    assert set(await office.states()) == {"held"}
    await office.advance(10)
    office.use(office.server.url)
    assert await release(office) == 1000
    assert await release(office) == 0, "the first bite has not left yet"
    await office.send_order([(SAM, None, 1)])
    assert len(office.server.got) == 1001
    assert [SAM] in [envelope.rcpt_tos for envelope in office.server.got], "it passes those that are held"
    assert await release(office) == 100
    await office.send()
    assert len({envelope.rcpt_tos[0] for envelope in office.server.got}) == len(office.server.got) == 1101


async def test_a_mail_held_for_long_still_has_three_days_to_be_taken(office: Office) -> None:
    office.use(None)
    await office.send_order([(SAM, None, 1)])
    await office.advance(10 * GIVE_UP_AFTER_S)
    office.use(office.server.url)
    office.server.says[SAM] = "450 later"
    await release(office)
    await office.send()
    assert await office.states() == ["pending"]
    await office.advance(GIVE_UP_AFTER_S + 1)
    await office.send()
    assert await office.states() == ["exhausted"]


async def test_held_mail_has_not_left_to_be_sent_again(office: Office) -> None:
    office.use(None)
    reference, _ = await office.send_order([(SAM, None, 1)])
    with pytest.raises(InvalidRequest, match="not left"):
        await office.resend(reference, SAM)


async def test_how_much_is_held_is_measured(office: Office) -> None:
    office.use(None)
    await office.send_order([(SAM, None, 1), (KIM, None, 1)])
    async with office.database.connection(OPERATOR) as connection:
        await measure(connection)
    assert metrics.MAIL_HELD._value.get() == 2
    await release(office)
    async with office.database.connection(OPERATOR) as connection:
        await measure(connection)
    assert metrics.MAIL_HELD._value.get() == 0
