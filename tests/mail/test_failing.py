"""A mail server that can be reached and fails: what is its fault is counted apart from what is a recipient's."""

import pytest
import structlog
from tests.mail.conftest import Office
from tests.mail.stubborn import running

from largesse.mail.smtp import DATA, DOT, MAIL, RCPT, SmtpTimeouts

SAM = "sam@example.com"
IMPATIENT = SmtpTimeouts(5, 5, 0.3, 0.3, 0.3)
SILENT, BROKEN = "the mail server did not answer {} the text", "the mail server ended the connection {} the text"


@pytest.mark.parametrize("stage", [MAIL, RCPT, DATA, DOT])
@pytest.mark.parametrize(("answer", "words"), [("hang", SILENT), ("close", BROKEN), ("421 4.3.2 going down", None)])
async def test_a_server_that_fails(office: Office, stage: str, answer: str, words: str | None) -> None:
    told = await try_one(office, stage, answer)
    assert (told["outcome"], told["fault"], told["stage"]) == ("server_failed", "server", stage)
    assert told["reason"] == (words and words.format("after" if stage == DOT else "before"))


@pytest.mark.parametrize(
    ("stage", "answer", "outcome"),
    [
        (MAIL, "452 4.3.1 disk full", "server_failed"),
        (MAIL, "451 later", "server_failed"),
        (RCPT, "451 4.3.0 temporary lookup failure", "server_failed"),
        (RCPT, "451 later", "retry"),
        (RCPT, "450 4.7.1 greylisted", "retry"),
        (RCPT, "452 4.2.2 mailbox full", "retry"),
        (DATA, "451 4.7.1 later", "server_failed"),
        (DOT, "451 later", "server_failed"),
        (DOT, "451 4.7.1 greylisted", "retry"),
    ],
)
async def test_whose_fault_a_temporary_refusal_is(office: Office, stage: str, answer: str, outcome: str) -> None:
    told = await try_one(office, stage, answer)
    assert (told["outcome"], told["code"], told["reason"]) == (outcome, int(answer[:3]), None)


async def test_a_server_that_never_answers_gets_few_copies(office: Office) -> None:
    """Each may reach the recipient: every hour for three days would be seventy."""
    async with running(**{DOT: {"*": "close"}}) as server:
        office.use(server.url)
        reference, _ = await office.send_order([(SAM, None, 1)])
        for _ in range(90):
            await office.advance(3600)
            await office.send()
        assert 9 <= len(server.got) <= 12
    [told] = await office.deliveries(reference)
    assert (told.state, told.reason) == ("exhausted", BROKEN.format("after"))


async def try_one(office: Office, stage: str, answer: str) -> structlog.typing.EventDict:
    """Returns the line of the log about one message to a server that fails so."""
    async with running(**{stage: {"*": answer}}) as server:
        office.use(server.url, IMPATIENT)
        with structlog.testing.capture_logs() as lines:
            await office.send_order([(SAM, None, 1)])
    [told] = [line for line in lines if line["event"] == "mail.message"]
    assert await office.states() == ["pending"]
    return told
