"""The check of the mail server: a conversation with it in which nothing is sent."""

from __future__ import annotations

import socket
import ssl

from aiosmtplib.errors import SMTPAuthenticationError, SMTPException, SMTPTimeoutError

from largesse.checkup.finding import Finding, error, ok
from largesse.delivery.mail.session import MailServerAwayError, Patience, Session
from largesse.delivery.mail.smtp import MailServer

_NAME = "LARGESSE_SMTP_URL"
_PATIENCE = Patience(connect_s=10.0, greeting_s=20.0, command_s=20.0)


async def check_mail_server(url: str | None, patience: Patience = _PATIENCE) -> list[Finding]:
    """Dials, encrypts and logs in as a worker would, and says goodbye."""
    if url is None:
        return []
    server = MailServer.from_url(url)
    where = f"{server.host}:{server.port}"
    try:
        session = await Session.open(server, patience, None)
    except MailServerAwayError as away:
        return [error(_NAME, f"{where} takes no mail: {_reason(away)}.")]
    how = "encrypted" if session.is_encrypted else "not encrypted"
    login = ", and takes the login" if server.username else ""
    letters = "any letters" if session.takes_international else "ASCII letters alone before the @"
    try:
        await session.ask_for_nothing()
    except MailServerAwayError as away:
        return [error(_NAME, f"{where} ended the conversation: {_reason(away)}.")]
    finally:
        await session.close()
    return [ok(_NAME, f"{where} answers, {how}{login}. It takes addresses of {letters}.")]


def _reason(away: MailServerAwayError) -> str:
    """What is wrong, for people, with what to do where that is known."""
    cause = away.__cause__
    while cause is not None and isinstance(cause.__cause__, ssl.SSLError | OSError):
        cause = cause.__cause__  # the library wraps what the socket said
    match cause:
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted ({cause.verify_message}); SSL_CERT_FILE may name your own authority's"
        case ssl.SSLError():
            return "it does not speak TLS there; say smtp:// with ?starttls=, or another port"
        case SMTPAuthenticationError():
            return f"it refuses the login ({cause.code})"
        case socket.gaierror():
            return "there is no host of that name"
        case ConnectionRefusedError():
            return "nobody listens there"
        case TimeoutError() | SMTPTimeoutError():
            return "it does not answer"
        case SMTPException() if "STARTTLS" in str(cause):
            return "it does not offer STARTTLS, which is required"
        case _:
            return str(away)
