"""A worker that ends while a mail server does not answer."""

import asyncio

import pytest
from tests.mail.conftest import Office, PostOffice
from tests.mail.stubborn import STAGES, TEXT, running

from largesse.db.scope import OPERATOR
from largesse.mail.away import MailServerAwayError
from largesse.mail.server import MailServer
from largesse.mail.smtp import DOT, SmtpTransport

SAM, KIM = "sam@example.com", "kim@example.com"


@pytest.mark.parametrize("stage", [stage for stage in STAGES if stage not in {TEXT, DOT}])
async def test_stopping_waits_for_no_server_that_does_not_have_the_text_yet(office: Office, stage: str) -> None:
    async with running(**{stage: {"*": "hang"}}) as server:
        office.use(server.url, drain_s=3600.0)
        await office.order([(SAM, "Sam", 1), (KIM, None, 1)])
        await office.fan_out()
        step = asyncio.create_task(office.mailer.step())
        await server.is_stuck.wait()
        office.mailer.drain()
        await asyncio.wait_for(step, 10)
        assert server.got == []
    rows = await office.database.fetch(
        OPERATOR, "SELECT attempts, leased_until <= clock_now() AS is_free FROM messages"
    )
    assert [tuple(row) for row in rows] == [(0, True), (0, True)]


async def test_no_text_leaves_a_worker_that_ends(mail_server: PostOffice) -> None:
    """It was about to send one: the last check of the message had just ended."""
    transport = SmtpTransport(MailServer.from_url(mail_server.url))

    async def allow() -> None:
        transport.hurry(3600.0)

    for _ in range(2):
        with pytest.raises(MailServerAwayError):
            await transport.hand_over("gifts@example.com", SAM, b"Subject: Hello\r\n\r\nSam\r\n", allow)
    assert mail_server.got == []
    assert mail_server.connections == 1
