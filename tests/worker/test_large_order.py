"""One order of many recipients: not before its time, in bounded chunks, through a kill and a restart.

Few recipients in the suite, more on demand: LARGE_ORDER=5000.
"""

import asyncio
import os
import signal
from collections import defaultdict

import pytest
from tests.waiting import until
from tests.worker.conftest import PATIENCE_S, Works

from largesse.base.settings import MAIL_CONNECTIONS
from largesse.db.scope import OPERATOR
from largesse.jobs.leases import LEASE_S

RECIPIENTS = int(os.environ.get("LARGE_ORDER", "800"))
MOST_LEASED = MAIL_CONNECTIONS * 50  # a worker's connections to the mail server, and what each leases at once


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_a_large_scheduled_order_leaves_whole_and_in_chunks(works: Works) -> None:
    longest_s = PATIENCE_S + RECIPIENTS / 20
    guests = {f"large{number}@example.com" for number in range(RECIPIENTS)}
    await works.office.order([(address, None, 1) for address in sorted(guests)], due_in_s=3600)
    message_ids: dict[str, set[str]] = defaultdict(set)
    most_leased = 0
    worker = await works.start_worker()

    async def arrived(count: int) -> None:
        async def enough() -> bool:
            nonlocal most_leased
            leased = await works.database.fetchval(
                OPERATOR, "SELECT count(*) FROM messages WHERE state = 'pending' AND leased_until > clock_now()"
            )
            most_leased = max(most_leased, leased)
            return len(works.mail.got) >= count

        await until(enough, longest_s)

    for step_s in (0, 3540):  # however long a busy machine takes, there is time left
        await works.office.advance(step_s)
        others = set(await works.place(3))
        await works.until_arrived(others, others)
        assert not heard(works) & guests, "nothing leaves before its time, while other mail does"

    await works.office.advance(60)
    await arrived(6 + RECIPIENTS // 4)
    worker.kill()
    await worker.wait()
    assert len(heard(works) & guests) < RECIPIENTS, "it was killed in the middle"
    await works.office.advance(LEASE_S + 1)
    worker = await works.start_worker()
    await arrived(6 + RECIPIENTS // 2)
    worker.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(worker.wait(), PATIENCE_S) == 0
    await works.start_worker()
    await arrived(6 + RECIPIENTS)
    await works.until_settled()

    for message in works.mail.messages():
        message_ids[message["To"]].add(message["Message-ID"])
    repeats = len(works.mail.got) - len(message_ids)
    print(f"{RECIPIENTS} recipients: {repeats} sent twice, at most {most_leased} leased")  # noqa: T201
    assert set(message_ids) >= guests, "nobody is left out"
    assert {len(ids) for ids in message_ids.values()} == {1}, "a repeat is the same message"
    assert len({*map(min, message_ids.values())}) == len(message_ids)
    assert repeats <= MOST_LEASED
    assert most_leased <= MOST_LEASED
    states = await works.database.fetch(OPERATOR, "SELECT DISTINCT state FROM messages")
    assert [row["state"] for row in states] == ["sent"]


def heard(works: Works) -> set[str]:
    """The addresses whose mail has arrived."""
    return {address for envelope in works.mail.got for address in envelope.rcpt_tos}
