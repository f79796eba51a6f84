"""One connection to the mail server, kept open for many messages."""

from __future__ import annotations

import ssl
import time
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit

import aiosmtplib
from aiosmtplib.errors import SMTPException, SMTPNotSupported, SMTPRecipientsRefused, SMTPResponseException

_COMMAND_TIMEOUT_S = 30.0
_CLOSING = 421  # the server is about to end the connection (RFC 5321, 3.8)
_NOT_POSSIBLE = 553
_MAX_ON_ONE_CONNECTION = 500  # servers tend to end a connection after some hundreds
_REASON_CHARACTERS = 500


class MailServerAwayError(Exception):
    """The mail server cannot be talked to at all; says how that showed."""


@dataclass(frozen=True, slots=True)
class MailServer:
    """Where mail goes, from LARGESSE_SMTP_URL. `starttls` None: if the server offers it."""

    host: str
    port: int
    username: str | None
    password: str | None = field(repr=False)
    tls: bool
    starttls: bool | None

    @classmethod
    def from_url(cls, url: str) -> MailServer:
        """The server of `smtp://user:pass@host:port?starttls=true` or `smtps://…`.

        With a password STARTTLS is required, unless `starttls=false` says that it may travel in clear.
        """
        parts = urlsplit(url)
        tls = parts.scheme == "smtps"
        asked = parse_qs(parts.query).get("starttls", [""])[0].lower()
        starttls: bool | None = True if parts.password else None
        if asked in {"true", "1", "yes", "required"}:
            starttls = True
        elif asked in {"false", "0", "no", "never"}:
            starttls = False
        return cls(
            host=parts.hostname or "localhost",
            port=parts.port or (465 if tls else 587 if parts.username else 25),
            username=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password) if parts.password else None,
            tls=tls,
            starttls=False if tls else starttls,
        )


@dataclass(frozen=True, slots=True)
class Handover:
    """What the mail server said to one message. `code` None: the connection broke before it said anything."""

    code: int | None
    text: str

    @property
    def taken(self) -> bool:
        return self.code is not None and self.code < 400

    @property
    def refused_for_good(self) -> bool:
        return self.code is not None and self.code >= 500

    @property
    def reason(self) -> str:
        """For people: the code and the server's words."""
        return f"{self.code or ''} {self.text}".strip()[:_REASON_CHARACTERS]


class Postman:
    """Hands messages to the mail server, one at a time, over a connection it opens when needed."""

    def __init__(self, server: MailServer, *, tls: ssl.SSLContext | None = None) -> None:
        self._server = server
        self._tls = tls
        self._connection: aiosmtplib.SMTP | None = None
        self._handed_over = 0
        self._used_at = 0.0

    @property
    def idle_s(self) -> float:
        """For how long an open connection has not been used; 0 when there is none."""
        return time.monotonic() - self._used_at if self._connection is not None else 0.0

    async def hand_over(self, sender: str, recipient: str, message: bytes) -> Handover:
        """Gives one message to the server. Raises MailServerAwayError when no connection can be had.

        A connection from before may have ended meanwhile: then a fresh one gets the message too.
        """
        if self._connection is not None:
            handover = await self._try(self._connection, sender, recipient, message)
            if handover.code not in {None, _CLOSING}:
                return handover
        await self.close()
        self._connection = await self._connect()
        handover = await self._try(self._connection, sender, recipient, message)
        if handover.code in {None, _CLOSING}:
            await self.close()
        return handover

    async def close(self) -> None:
        """Says goodbye, if there is anybody to say it to."""
        connection, self._connection = self._connection, None
        self._handed_over = 0
        if connection is None:
            return
        try:
            await connection.quit(timeout=5)
        except (SMTPException, OSError):
            connection.close()

    async def _connect(self) -> aiosmtplib.SMTP:
        server = self._server
        connection = aiosmtplib.SMTP(
            hostname=server.host,
            port=server.port,
            username=server.username,
            password=server.password,
            use_tls=server.tls,
            start_tls=server.starttls,
            tls_context=self._tls,
            timeout=_COMMAND_TIMEOUT_S,
        )
        try:
            await connection.connect()
        except (SMTPException, OSError, ValueError) as error:
            connection.close()
            code = f" {error.code}" if isinstance(error, SMTPResponseException) else ""
            raise MailServerAwayError(f"{type(error).__name__}{code}") from None
        return connection

    async def _try(
        self, connection: aiosmtplib.SMTP, sender: str, recipient: str, message: bytes
    ) -> Handover:
        options = () if recipient.isascii() else ("SMTPUTF8", "BODY=8BITMIME")
        try:
            _, text = await connection.sendmail(sender, [recipient], message, mail_options=options)
        except SMTPRecipientsRefused as error:
            return Handover(error.recipients[0].code, error.recipients[0].message)
        except SMTPResponseException as error:
            return Handover(error.code, error.message)
        except SMTPNotSupported:
            return Handover(_NOT_POSSIBLE, "the mail server takes no international addresses")
        except ValueError:
            return Handover(_NOT_POSSIBLE, "the address cannot be mailed to")
        except (SMTPException, OSError) as error:
            return Handover(None, f"the connection broke ({type(error).__name__})")
        self._used_at = time.monotonic()
        self._handed_over += 1
        if self._handed_over >= _MAX_ON_ONE_CONNECTION:
            await self.close()
        return Handover(250, text)
