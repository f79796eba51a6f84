"""The order in which due messages leave."""

from datetime import UTC, datetime

from tests.mail.conftest import Office

from largesse.db.scope import OPERATOR
from largesse.mail.messages import SPREAD_S
from largesse.mail.requeue import RequeueFilter, requeue

SAM, KIM = "sam@example.com", "kim@example.com"


async def test_a_large_order_leaves_in_chunks_and_lets_others_pass(office: Office) -> None:
    await office.order([(f"guest{n}@example.com", None, 1) for n in range(1000)])
    await office.fan_out()
    await office.advance(1)
    await office.order([(SAM, "Sam", 1)], due_in_s=1 - await office.late_s())
    await office.fan_out()
    await office.mailer.step()
    assert len(office.server.got) == 50
    await office.send()
    order = [envelope.rcpt_tos[0] for envelope in office.server.got]
    assert order.index(SAM) <= 300
    assert len(set(order)) == len(order) == 1001
    assert office.server.connections == 3, "a connection is renewed after 500 messages"


async def test_a_single_gift_passes_large_orders_that_a_slow_server_has_not_taken_for_a_minute(office: Office) -> None:
    for order in range(4):
        await office.order([(f"guest{order}-{n}@example.com", None, 1) for n in range(300)])
    await office.fan_out()
    await office.advance(60)
    await office.order([(SAM, "Sam", 1)])
    await office.fan_out()
    for _ in range(6):
        await office.mailer.step()
    assert SAM in office.server.recipients()


async def test_what_is_due_later_is_ranked_behind_what_is_due(office: Office) -> None:
    """A worker reads all that is ranked up to `SPREAD_S` from now."""
    office.server.says = {SAM: "450 later", KIM: "550 5.1.1 Unknown"}
    await office.send_order([(SAM, None, 1), (KIM, None, 1)])
    await requeue(await office.operator(), RequeueFilter(datetime(2026, 1, 1, tzinfo=UTC)))
    ranked = await office.database.fetch(
        OPERATOR, "SELECT rank_at - due_at AS later FROM messages WHERE state = 'pending'"
    )
    assert [row["later"].total_seconds() for row in ranked] == [SPREAD_S] * 2
