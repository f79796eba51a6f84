"""Hands messages to the mail server over one connection."""

from __future__ import annotations

import asyncio
import ssl

from largesse.base import clock
from largesse.mail.smtp import DOT, Allow, Handover, MailServer, MailServerAwayError, Session, SmtpTimeouts

_MAX_ON_ONE_CONNECTION = 500  # servers tend to end a connection after some hundreds
_STOPPED = "the worker stopped before the mail server had answered"


class SmtpTransport:
    """Hands over one message at a time, over a connection that it opens when needed."""

    def __init__(
        self, server: MailServer, *, patience: SmtpTimeouts | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self._server = server
        self._patience = patience or SmtpTimeouts()
        self._tls = tls
        self._session: Session | None = None
        self.opened = 0  # connections so far
        self._used_at = 0.0
        self._ends: float | None = None  # by the event loop's clock
        self._limit: asyncio.Timeout | None = None  # of the handover under way

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

        If an idle connection has ended, the message is sent over a new one, unless the server may have taken it.
        """
        try:
            async with asyncio.timeout_at(self._ends) as self._limit:
                return await self._hand_over(sender, recipient, message, allow)
        except TimeoutError:
            session, self._session = self._session, None
            if session is None or session.stage != DOT:
                raise MailServerAwayError(_STOPPED) from None
            return Handover(DOT, None, _STOPPED)
        finally:
            self._limit = None

    def hurry(self, longest_s: float) -> None:
        """Breaks off the current message at that time, because the worker ends."""
        self._ends = asyncio.get_running_loop().time() + longest_s
        if self._limit is not None:
            self._limit.reschedule(self._ends)

    async def close(self) -> None:
        """Ends the connection, if there is one."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _hand_over(self, sender: str, recipient: str, message: bytes, allow: Allow) -> Handover:
        if self._session is not None:
            handover = await self._try(self._session, sender, recipient, message, allow)
            if not handover.ends_connection or handover.may_have_been_taken:
                return handover
        self._session = await Session.open(self._server, self._patience, self._tls)
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
