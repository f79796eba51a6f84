"""A mail server that fails at mail to people: what is said of it, and what a worker that ends leaves behind."""

import asyncio

import pytest
import structlog
from tests.mail.people.test_sending import PUBLIC_URL, VAULT, database, somebody, worker
from tests.mail.stubborn import STAGES, TEXT, running

from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.jobs import outbox
from largesse.mail.people.sending import PeopleMailer
from largesse.mail.server import MailServer
from largesse.mail.smtp import DATA, DOT, SmtpTimeouts, SmtpTransport

__all__ = ["database", "worker"]  # the fixtures
ADA = "ada@acme.example"
IMPATIENT = SmtpTimeouts(5, 5, 0.3, 0.3, 0.3)


async def queued(database: Database, worker: Database, url: str, patience: SmtpTimeouts | None = None) -> PeopleMailer:
    """A mailer with one mail to send."""
    user_id, _ = await somebody(database, ADA)
    async with database.transaction(OPERATOR) as connection:
        await outbox.mail_users(connection, "invitation", [user_id])
    transport = SmtpTransport(MailServer.from_url(url), patience=patience)
    return PeopleMailer(worker, VAULT, transport, public_url=PUBLIC_URL, mail_from="Largesse <gifts@example.com>")


@pytest.mark.parametrize("stage", [stage for stage in STAGES if stage not in {TEXT, DOT}])
async def test_a_worker_that_ends_gives_back_what_it_has_not_sent(
    database: Database, worker: Database, stage: str
) -> None:
    async with running(**{stage: {"*": "hang"}}) as server:
        mailer = await queued(database, worker, server.url)
        step = asyncio.create_task(mailer.step())
        await server.is_stuck.wait()
        mailer.drain()
        await asyncio.wait_for(step, 10)
        assert not await mailer.step(), "it starts no other"
        await mailer.close()
        assert server.got == []
    row = await database.fetchrow(OPERATOR, "SELECT attempts, due_at <= clock_now() FROM people_mails")
    assert row is not None
    assert tuple(row) == (0, True)


async def test_a_worker_that_ends_waits_for_the_answer_to_a_text(
    database: Database, worker: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have been taken, so that it is not sent again at once."""
    monkeypatch.setattr("largesse.mail.people.sending.DRAIN_S", 0.3)
    async with running(**{DOT: {"*": "hang"}}) as server:
        mailer = await queued(database, worker, server.url)
        step = asyncio.create_task(mailer.step())
        await server.is_stuck.wait()
        mailer.drain()
        await asyncio.wait_for(step, 10)
        await mailer.close()
        assert server.got == [ADA]
    row = await database.fetchrow(OPERATOR, "SELECT attempts, due_at > clock_now() FROM people_mails")
    assert row is not None
    assert tuple(row) == (1, True)


@pytest.mark.parametrize(
    ("stage", "answer", "outcome", "reason"),
    [
        (DATA, "hang", "away", "the mail server did not answer before the text"),
        (DATA, "421 4.3.2 going down", "away", None),
        (DOT, "hang", "again", "the mail server did not answer after the text"),
        (DOT, "451 4.7.1 later", "again", None),
    ],
)
async def test_the_log_says_how_far_a_mail_got(
    database: Database, worker: Database, stage: str, answer: str, outcome: str, reason: str | None
) -> None:
    async with running(**{stage: {"*": answer}}) as server:
        mailer = await queued(database, worker, server.url, IMPATIENT)
        with structlog.testing.capture_logs() as lines:
            await mailer.step()
        await mailer.close()
    [told] = [line for line in lines if line["event"] == "people_mail"]
    assert (told["outcome"], told["stage"], told["reason"]) == (outcome, stage, reason)
