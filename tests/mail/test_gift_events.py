"""The events of mail to recipients: gift.sent and gift.bounced, once for each mail and line, with its outcome."""

import msgspec
from tests.mail.conftest import Office

from largesse.db.scope import OPERATOR
from largesse.events.kinds import GiftEvent
from largesse.mail.outcomes import Sent, record
from largesse.mail.requeue import RequeueFilter, requeue

SAM, KIM = "sam@example.com", "kim@example.com"


async def events(office: Office) -> list[GiftEvent]:
    rows = await office.database.fetch(OPERATOR, "SELECT event, environment, line_number, body FROM events ORDER BY id")
    read = [msgspec.json.decode(row["body"], type=GiftEvent) for row in rows]
    assert [(row["event"], row["line_number"]) for row in rows] == [(event.event, event.number) for event in read]
    return read


def told(found: list[GiftEvent]) -> list[tuple[str, int, str | None]]:
    return [(event.event, event.number, event.recipient) for event in found]


async def test_each_line_of_a_mail_that_was_sent_is_told(office: Office) -> None:
    reference, codes = await office.send_order([(SAM, "Sam", 2), (KIM, None, 1)])
    found = await events(office)
    assert told(found) == [("gift.sent", 1, SAM), ("gift.sent", 2, SAM), ("gift.sent", 3, KIM)]
    assert {(event.reference, event.customer_id) for event in found} == {(reference, office.principal.customer_id)}
    assert len({event.id for event in found}) == 3
    bodies = [bytes(row["body"]) for row in await office.database.fetch(OPERATOR, "SELECT body FROM events")]
    assert not any(code.pin_text.encode() in body or code.code in body for code in codes for body in bodies)


async def test_mail_that_is_not_due_or_held_tells_nothing(office: Office) -> None:
    await office.send_order([(SAM, "Sam", 1)], due_in_s=3600)
    office.use(None)
    await office.send_order([(KIM, "Kim", 1)])
    assert (await office.states(), await events(office)) == (["held"], [])


async def test_captured_mail_counts_as_sent(office: Office) -> None:
    await office.send_order([(SAM, "Sam", 1)], environment="staging")
    assert told(await events(office)) == [("gift.sent", 1, SAM)]
    assert await office.database.fetchval(OPERATOR, "SELECT environment FROM events") == "staging"


async def test_a_bounce_is_told_and_each_mail_has_an_event_of_its_own(office: Office) -> None:
    office.server.says[SAM] = "550 5.1.1 no such user"
    reference, _ = await office.send_order([(SAM, "Sam", 1)])
    await requeue(
        await office.operator(),
        RequeueFilter(await office.database.fetchval(OPERATOR, "SELECT now() - interval '1 day'")),
    )
    await office.send()
    del office.server.says[SAM]
    await office.resend(reference, SAM)
    await office.send()
    found = await events(office)
    assert [event.event for event in found] == ["gift.bounced", "gift.bounced", "gift.sent"]
    assert len({event.id for event in found}) == 3


async def test_mail_given_up_after_three_days_is_told_as_bounced(office: Office) -> None:
    office.server.says[SAM] = "450 4.2.0 not now"
    await office.send_order([(SAM, "Sam", 1)])
    assert await events(office) == []
    await office.advance(3 * 86_400)
    await office.send()
    assert (await office.states(), told(await events(office))) == (["exhausted"], [("gift.bounced", 1, SAM)])


async def test_an_outcome_written_twice_is_told_once(office: Office) -> None:
    await office.order([(SAM, "Sam", 1)])
    await office.fan_out()
    [message] = await office.mailer._leases.take(1, office.vault, lambda _: "https://gifts.example.com")
    for _ in range(2):
        async with office.database.transaction(OPERATOR) as connection:
            await record(connection, [Sent(message, "sent")])
    assert told(await events(office)) == [("gift.sent", 1, SAM)]
