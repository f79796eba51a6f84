"""The conversation with a mail server: a real one, to which nothing is sent."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.mail.conftest import PostOffice
from tests.mail.test_tls import PASSWORD, Guarded, Offering, make_tls, url_of
from tests.worker.test_metrics import free_port

from largesse.doctor.checks import CheckResult, Level
from largesse.doctor.machine import check_mail_server
from largesse.mail.smtp import SmtpTimeouts

# aiosmtpd means STARTTLS, which a server that speaks TLS from the start does not need.
pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")

SHORT = SmtpTimeouts(connect_s=1.0, greeting_s=1.0, command_s=1.0)


@pytest.fixture
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    context, certificate = make_tls(tmp_path, "127.0.0.1")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    return context


async def finding(server: PostOffice, url: str) -> CheckResult:
    """What is found about a server that runs, which gets no mail of it."""
    await server.start()
    try:
        [found] = await check_mail_server(url.replace("PORT", str(server.port)))
    finally:
        await server.close()
    assert server.got == []
    assert found.setting == "LARGESSE_SMTP_URL"
    assert PASSWORD not in found.text
    return found


async def test_no_server_is_no_conversation() -> None:
    assert await check_mail_server(None) == []


async def test_a_server_that_will_do() -> None:
    found = await finding(PostOffice(), "smtp://127.0.0.1:PORT")
    assert found.level is Level.OK
    assert "answers, not encrypted. It takes addresses of any letters." in found.text
    found = await finding(PostOffice(utf8=False), "smtp://127.0.0.1:PORT")
    assert "ASCII letters alone before the @" in found.text


@pytest.mark.parametrize("implicit", [False, True], ids=["starttls", "smtps"])
async def test_it_is_encrypted_with_and_logged_in_to(trusted: ssl.SSLContext, implicit: bool) -> None:
    server = Guarded(tls=trusted, implicit=implicit)
    scheme = "smtps" if implicit else "smtp"
    found = await finding(server, f"{scheme}://gifts:{quote(PASSWORD, safe='')}@127.0.0.1:PORT")
    assert found.level is Level.OK
    assert "encrypted, and takes the login" in found.text
    assert server.logins == [(b"gifts", PASSWORD.encode())]
    assert server.encrypted == [True]


async def test_a_refused_login(trusted: ssl.SSLContext) -> None:
    server = Guarded(tls=trusted)
    await server.start()
    [found] = await check_mail_server(url_of(server, password="wrong"))
    await server.close()
    assert (found.level, found.setting) == (Level.ERROR, "LARGESSE_SMTP_URL")
    assert "refuses the login (535)" in found.text
    assert "wrong" not in found.text


async def test_starttls_that_is_required_and_not_offered() -> None:
    found = await finding(Offering(), "smtp://127.0.0.1:PORT?starttls=required")
    assert found.level is Level.ERROR
    assert "does not offer STARTTLS" in found.text


@pytest.mark.parametrize("implicit", [False, True], ids=["starttls", "smtps"])
async def test_a_certificate_that_nobody_vouches_for(tmp_path: Path, implicit: bool) -> None:
    tls, _ = make_tls(tmp_path, "127.0.0.1")
    server = Guarded(tls=tls, implicit=implicit)
    scheme = "smtps" if implicit else "smtp"
    found = await finding(server, f"{scheme}://gifts:{quote(PASSWORD, safe='')}@127.0.0.1:PORT")
    assert found.level is Level.ERROR
    assert "its certificate is not trusted (self-signed certificate)" in found.text
    assert server.logins == []


async def test_tls_where_none_is_spoken() -> None:
    found = await finding(PostOffice(), "smtps://127.0.0.1:PORT")
    assert found.level is Level.ERROR
    assert "does not speak TLS there" in found.text


async def test_nobody_listens() -> None:
    [found] = await check_mail_server(f"smtp://127.0.0.1:{free_port()}")
    assert found.level is Level.ERROR
    assert "nobody listens there" in found.text


async def test_somebody_listens_and_says_nothing() -> None:
    silent = asyncio.Event()

    async def wait(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await silent.wait()
        writer.close()

    server = await asyncio.start_server(wait, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    [found] = await check_mail_server(f"smtp://127.0.0.1:{port}", SHORT)
    silent.set()
    server.close()
    assert found.level is Level.ERROR
    assert "does not answer" in found.text
