"""A connection to the mail server, which sends one message after the other.

A session knows how far a message got. Before the final dot, the server has not taken the message. After it, only the answer says so: if the
connection breaks before the answer, it is unknown whether the message was taken.
"""

import asyncio
import re
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Self

import aiosmtplib
import msgspec
from aiosmtplib.email import quote_address
from aiosmtplib.errors import (
    SMTPDataError,
    SMTPException,
    SMTPHeloError,
    SMTPNotSupported,
    SMTPResponseException,
    SMTPTimeoutError,
)
from aiosmtplib.protocol import SMTPProtocol

from largesse.base import clock
from largesse.mail.away import MailServerAwayError, as_text, cause_of, why
from largesse.mail.server import MailServer

Allow = Callable[[], Awaitable[None]]

MAIL, RCPT, DATA, DOT = "MAIL", "RCPT", "DATA", "the final dot"  # the stages of a handover

_CLOSING = 421  # the server is about to end the connection (RFC 5321, 3.8)
_START_INPUT = 354
_NOT_POSSIBLE = 553
_QUIT_S = 5.0
_BREAK_OFF_S = 1.0  # how long an ending worker waits for a server that does not have the text yet
_MAX_ON_ONE_CONNECTION = 500  # messages: many servers end a connection after some hundreds
_STOPPED = "the worker stopped before the mail server had answered"
_UNSAFE = re.compile(r'[\s<>"\x00-\x1f\x7f]')

# A server that is gone answers no probes: its connection ends after 80 s. A slow one answers them, and gets the time of `SmtpTimeouts`.
_KEEPALIVE = ((socket.TCP_KEEPIDLE, 30), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 5))


class SmtpTimeouts(msgspec.Struct, frozen=True):
    """How long a mail server may take, in seconds: at least what RFC 5321 (4.5.3.2) requires of a client.

    `answer_s` matters most (4.5.3.2.6): if a client gives up too early after the final dot, the server often takes the message, and then gets
    it twice. It includes the time for sending the text (4.5.3.2.5), as a message is written to the socket at once.
    """

    connect_s: float = 30.0
    greeting_s: float = 300.0  # RFC 5321, 4.5.3.2.1
    command_s: float = 300.0  # RFC 5321, 4.5.3.2.2 and 4.5.3.2.3: MAIL, RCPT and all commands before them
    data_s: float = 120.0  # RFC 5321, 4.5.3.2.4
    answer_s: float = 600.0  # RFC 5321, 4.5.3.2.5 and 4.5.3.2.6


class Handover(msgspec.Struct, frozen=True):
    """The mail server's answer to one message, and the stage it came at. `code` is None if the connection broke before an answer."""

    stage: str
    code: int | None
    text: str
    timed_out: bool = False  # the server did not answer for as long as `SmtpTimeouts` says

    @property
    def taken(self) -> bool:
        """Whether the server has taken the message."""
        return self.code is not None and self.code < 400

    @property
    def refused(self) -> bool:
        """Whether the server refused the message for good. `outcomes` decides whose fault that is."""
        return self.code is not None and self.code >= 500

    @property
    def ends_connection(self) -> bool:
        """Whether the connection cannot be used any more: it broke, or the server announced its end."""
        return self.code in {None, _CLOSING}

    @property
    def may_have_been_taken(self) -> bool:
        """Whether the server had the whole message and did not answer."""
        return self.code is None and self.stage == DOT

    @property
    def may_mean_the_connection(self) -> bool:
        """Whether the server may have had enough of this connection: it refused our address, or counts recipients (RFC 5321, 4.5.3.1.10)."""
        if self.code is None or self.code < 400:
            return False
        return self.stage == MAIL or (self.stage == RCPT and self.text.startswith("4.5.3"))

    @property
    def reason(self) -> str:
        """The code and the server's words for people, without bytes that cannot be stored."""
        return as_text(self.code, self.text)


class Session:
    """An open connection, made by `open`. It cannot be used after a handover that `ends_connection`."""

    def __init__(self, smtp: aiosmtplib.SMTP, patience: SmtpTimeouts) -> None:
        self._smtp = smtp
        self._patience = patience
        self.handed_over = 0
        self.stage = MAIL  # the stage of the current message

    @classmethod
    async def open(cls, server: MailServer, patience: SmtpTimeouts) -> Self:
        """Returns a connection, encrypted and logged in as configured. Raises MailServerAwayError if it cannot be opened."""
        smtp: aiosmtplib.SMTP | None = None
        try:
            has_tls = server.tls or server.starttls is not False
            tls = await asyncio.to_thread(ssl.create_default_context) if has_tls else None
            dialled = await _dial(server.host, server.port, patience.connect_s)
            # From here on the socket is the transport's, which closes it.
            smtp = aiosmtplib.SMTP(
                hostname=server.host,
                sock=dialled,
                username=server.username,
                password=server.password,
                use_tls=server.tls,
                start_tls=server.starttls,
                tls_context=tls,
                timeout=patience.command_s,
            )
            await smtp.connect(timeout=patience.greeting_s)
            await _greet(smtp)
        except BaseException as error:
            if smtp is not None:
                smtp.close()
            if not isinstance(error, (SMTPException, OSError, ValueError)):  # our side broke it off
                raise
            cause = cause_of(error)
            raise MailServerAwayError(why(cause)) from cause
        return cls(smtp, patience)

    async def hand_over(self, sender: str, recipient: str, message: bytes, allow: Allow) -> Handover:
        """Hands one message to the server. Calls `allow` before the text: if that raises, the message is not sent."""
        self.stage = MAIL
        try:
            await self._say_sender(sender, recipient, len(message))
            self.stage = RCPT
            await self._say(b"RCPT", b"TO:" + _path(recipient))
            self.stage = DATA
            await self._begin_text()
            await allow()
            self.stage = DOT
            text = await self._send_text(message)
        except SMTPResponseException as error:
            if not 400 <= error.code < 600:  # after that, it is unknown which command the next answer is for
                self.break_off()
                return Handover(self.stage, None, f"the mail server gave an unexpected answer ({error.code})")
            handover = Handover(self.stage, error.code, error.message)
            await self._reset()
            return handover
        except SMTPNotSupported:
            return Handover(RCPT, _NOT_POSSIBLE, "5.6.7 the mail server takes no international addresses")
        except ValueError:
            if self.stage == MAIL:
                return Handover(MAIL, _NOT_POSSIBLE, "5.1.7 nothing can be sent from our address")
            await self._reset()
            return Handover(RCPT, _NOT_POSSIBLE, "5.1.3 the address cannot be mailed to")
        except (SMTPException, OSError) as error:
            self.break_off()
            is_slow = isinstance(error, SMTPTimeoutError)
            broken = "did not answer" if is_slow else "ended the connection"
            when = "after" if self.stage == DOT else "before"
            return Handover(self.stage, None, f"the mail server {broken} {when} the text", timed_out=is_slow)
        except BaseException:  # our side broke it off
            self.break_off()
            raise
        self.handed_over += 1
        return Handover(self.stage, 250, text)

    async def ask_for_nothing(self) -> None:
        """Checks with NOOP that the server still answers. Raises MailServerAwayError."""
        try:
            await self._smtp.noop()
        except (SMTPException, OSError) as error:
            raise MailServerAwayError(why(error)) from error

    @property
    def is_encrypted(self) -> bool:
        """Whether the connection uses TLS, from the start or since STARTTLS."""
        return self._smtp.get_transport_info("sslcontext") is not None

    @property
    def takes_international(self) -> bool:
        """Whether the server accepts addresses with letters beyond ASCII before the @ (RFC 6531)."""
        return self._smtp.supports_extension("smtputf8")

    async def close(self) -> None:
        """Sends QUIT, if there is a connection, and closes it."""
        try:
            await self._smtp.quit(timeout=_QUIT_S)
        except (SMTPException, OSError):
            self.break_off()

    def break_off(self) -> None:
        """Closes the connection at once."""
        self._smtp.close()

    async def _say_sender(self, sender: str, recipient: str, size: int) -> None:
        words = [b"FROM:" + _path(sender)]
        if self._smtp.supports_extension("size"):
            words.append(b"SIZE=%d" % size)
        if not recipient.isascii() and not self.takes_international:
            raise SMTPNotSupported("SMTPUTF8")
        if not (sender + recipient).isascii() and self.takes_international:
            words += [b"SMTPUTF8", b"BODY=8BITMIME"]
        await self._say(b"MAIL", *words)

    async def _say(self, *words: bytes) -> None:
        answer = await self._smtp.execute_command(*words)
        if not _is_done(answer.code):
            raise SMTPResponseException(answer.code, answer.message)

    async def _begin_text(self) -> None:
        answer = await self._smtp.execute_command(b"DATA", timeout=self._patience.data_s)
        if answer.code != _START_INPUT:
            raise SMTPDataError(answer.code, answer.message)

    async def _send_text(self, message: bytes) -> str:
        """Returns the server's answer once it has taken the text. Raises SMTPDataError with its refusal."""
        protocol = self._smtp.protocol
        if not isinstance(protocol, SMTPProtocol):
            raise aiosmtplib.SMTPServerDisconnected("the connection was lost before the message was sent")
        protocol.write(message.replace(b"\n.", b"\n..") + b".\r\n")  # the first line is a header
        answer = await protocol.read_response(timeout=self._patience.answer_s)
        if not _is_done(answer.code):
            raise SMTPDataError(answer.code, answer.message)
        return answer.message

    async def _reset(self) -> None:
        """Resets the session after a refused message, or closes the connection if the reset fails."""
        self.stage = MAIL
        try:
            await self._smtp.rset()
        except (SMTPException, OSError):
            self.break_off()


def _is_done(code: int) -> bool:
    """Returns whether a reply says that a command was carried out, by its first digit (RFC 5321, 4.3.2): some servers answer RCPT with 252."""
    return 200 <= code < 300


def _path(email: str) -> bytes:
    """Returns an e-mail address for a command. Raises ValueError for one that could end the command."""
    # The library's own parser would take a fifth of a message's time.
    return (quote_address(email) if _UNSAFE.search(email) else f"<{email}>").encode()


async def _greet(smtp: aiosmtplib.SMTP) -> None:
    """Sends EHLO, unless logging in or encryption has sent it."""
    if not smtp.is_ehlo_or_helo_needed:
        return
    try:
        await smtp.ehlo()
    except SMTPHeloError:
        await smtp.helo()


async def _dial(host: str, port: int, longest_s: float) -> socket.socket:
    """Returns a connected socket, to the first address of `host` that answers. Raises OSError."""
    loop = asyncio.get_running_loop()
    failure: OSError = OSError("no address")
    async with asyncio.timeout(longest_s):
        addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        for family, kind, protocol, _, address in addresses:
            one = socket.socket(family, kind, protocol)
            try:
                one.setblocking(False)
                _keep_alive(one)
                await loop.sock_connect(one, address)
            except OSError as error:
                one.close()
                failure = error
            except BaseException:
                one.close()
                raise
            else:
                return one
    raise failure


def _keep_alive(dialled: socket.socket) -> None:
    dialled.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE:
        dialled.setsockopt(socket.IPPROTO_TCP, option, value)


class SmtpTransport:
    """Hands over one message at a time, over a connection that it opens when needed."""

    def __init__(self, server: MailServer, *, patience: SmtpTimeouts | None = None) -> None:
        self._server = server
        self._patience = patience or SmtpTimeouts()
        self._session: Session | None = None
        self.opened = 0  # the number of connections opened so far
        self._used_at = 0.0
        self._is_ending = False
        self._limit: asyncio.Timeout | None = None  # the timeout of the current handover

    @property
    def idle_s(self) -> float:
        """For how long the open connection has been idle; 0 if there is none."""
        return clock.passed_s() - self._used_at if self._session is not None else 0.0

    @property
    def is_trusted(self) -> bool:
        """Whether this connection has taken a message."""
        return self._session is not None and self._session.handed_over > 0

    async def hand_over(self, sender: str, recipient: str, message: bytes, allow: Allow) -> Handover:
        """Hands one message to the server. Raises MailServerAwayError if it cannot connect.

        Calls `allow` when the server waits for the text. If that raises, the message is not sent, the connection is closed, and the
        exception is passed on.

        If an idle connection has ended, or the server takes no more over one that has taken messages, the message is sent over a new one,
        unless the server may have taken it, or did not answer in time: it would have its whole time again.
        """

        async def allow_now() -> None:
            await allow()
            self._require_not_ending()

        try:
            async with asyncio.timeout(None) as self._limit:
                return await self._hand_over(sender, recipient, message, allow_now)
        except TimeoutError:
            is_sent, self._session = self._waits_for_answer, None
            if not is_sent:
                raise MailServerAwayError(_STOPPED) from None
            return Handover(DOT, None, _STOPPED)
        finally:
            self._limit = None

    def hurry(self, longest_s: float) -> None:
        """Sends no more texts, because the worker ends. Waits `longest_s` for the answer to one, and a second for a server that does not have it yet."""
        self._is_ending = True
        if self._limit is not None:
            wait_s = longest_s if self._waits_for_answer else _BREAK_OFF_S
            self._limit.reschedule(asyncio.get_running_loop().time() + wait_s)

    async def close(self) -> None:
        """Ends the connection, if there is one."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    @property
    def _waits_for_answer(self) -> bool:
        return self._session is not None and self._session.stage == DOT

    def _require_not_ending(self) -> None:
        if self._is_ending:
            raise MailServerAwayError(_STOPPED)

    async def _hand_over(self, sender: str, recipient: str, message: bytes, allow: Allow) -> Handover:
        self._require_not_ending()
        if self._session is not None:
            was_trusted = self.is_trusted
            handover = await self._try(self._session, sender, recipient, message, allow)
            if was_trusted and handover.may_mean_the_connection:
                await self.close()
            elif not handover.ends_connection or handover.may_have_been_taken or handover.timed_out:
                return handover
            self._require_not_ending()
        self._session = await Session.open(self._server, self._patience)
        self.opened += 1
        return await self._try(self._session, sender, recipient, message, allow)

    async def _try(self, session: Session, sender: str, recipient: str, message: bytes, allow: Allow) -> Handover:
        handover = await session.hand_over(sender, recipient, message, allow)
        self._used_at = clock.passed_s()
        if handover.ends_connection:
            session.break_off()
            self._session = None
        elif session.handed_over >= _MAX_ON_ONE_CONNECTION:
            await self.close()
        return handover
