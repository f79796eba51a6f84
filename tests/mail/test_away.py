"""What is said of a mail server that cannot be reached or used, against real ones."""

import pytest
from tests.mail.stubborn import EHLO, GREETING, running
from tests.worker.test_metrics import free_port

from largesse.mail.away import MailServerAwayError
from largesse.mail.server import MailServer
from largesse.mail.smtp import Session, SmtpTimeouts

IMPATIENT = SmtpTimeouts(5, 0.3, 0.3, 0.3, 0.3)


async def said_of(url: str) -> str:
    with pytest.raises(MailServerAwayError) as away:
        await Session.open(MailServer.from_url(url), IMPATIENT)
    return str(away.value)


@pytest.mark.parametrize("stage", [GREETING, EHLO])
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("hang", "it does not answer"),
        ("close", "it ended the connection"),
        ("421 4.7.0 too many connections", "it answers 421 4.7.0 too many connections"),
        ("this is no mail server", "it does not speak SMTP there"),
    ],
)
async def test_a_server_that_does_not_greet(stage: str, answer: str, words: str) -> None:
    async with running(**{stage: {"*": answer}}) as server:
        assert await said_of(server.url) == words


async def test_a_server_without_tls() -> None:
    async with running() as server:
        assert await said_of(server.url.replace("smtp:", "smtps:")) == "it does not speak TLS there"
        assert await said_of(f"{server.url}?starttls=required") == "it does not offer STARTTLS, which is required"


@pytest.mark.parametrize("name", ["nobody.invalid", "a" * 64])
async def test_a_name_that_is_not_found(name: str) -> None:
    assert await said_of(f"smtp://{name}:25") == "its name was not found"


async def test_a_port_that_nobody_listens_at() -> None:
    assert await said_of(f"smtp://127.0.0.1:{free_port()}") == "nobody listens there"
