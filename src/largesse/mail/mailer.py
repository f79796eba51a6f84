"""A worker's mail side: takes messages that are due, hands them over one by one, and has the outcomes written."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parseaddr
from functools import partial

import structlog

from largesse.database import Database
from largesse.mail import holding
from largesse.mail import letter as letters
from largesse.mail.desk import Desk, NotNowError
from largesse.mail.mailbox import sealing_context
from largesse.mail.messages import Message, Sent
from largesse.mail.postman import Postman
from largesse.mail.session import Handover, MailServerAwayError
from largesse.outbox import Schedule, metrics
from largesse.vault import Vault

SCHEDULE = Schedule(first_s=30.0, factor=2.0, cap_s=3600.0)
GIVE_UP_AFTER_S = 3 * 86400.0
_AT_ONCE = 100  # leased together
_TURN_S = 30.0  # then what is still leased goes back, so that a slow server holds up nobody's share
_IDLE_S = 10.0  # then the connection is closed
DRAIN_S = 20.0  # what a message under way may still take when the worker is to end
_REST = Schedule(first_s=1.0, factor=2.0, cap_s=30.0)  # after the mail server was away

log = structlog.get_logger(__name__)


class Mailer:
    """Sends over one connection; a worker has several, which share a desk. Staging's mail is captured.

    `postman` None: mail of production is held until a worker has one, or captured too if `captures`, as in the demo.
    `public_url_of` gives the address that the links of an environment's mail begin with. `desk` None: one of its own.
    """

    def __init__(
        self,
        database: Database,
        vault: Vault,
        *,
        public_url_of: Callable[[str], str],
        mail_from: str,
        postman: Postman | None,
        captures: bool = False,
        desk: Desk | None = None,
        drain_s: float = DRAIN_S,
    ) -> None:
        self._desk = desk or Desk(database)
        self._vault = vault
        self._public_url_of = public_url_of
        self._mail_from = mail_from
        self._sender = parseaddr(mail_from)[1]
        self._postman = postman
        self._captures = captures and postman is None
        self._drain_s = drain_s
        self._draining = False
        self._rests = 0
        self._resting_until = 0.0
        self._last: asyncio.Future[bool] | None = None  # the outcome of the last message handed over

    async def step(self) -> bool:
        """Sends up to a lease's worth of messages; True when there may be more due."""
        if self._draining or time.monotonic() < self._resting_until:
            return False
        taken = await self._desk.take(_AT_ONCE, self._vault, self._public_url_of)
        if not taken:
            await self._close_idle()
            return False
        unsent = deque(taken)
        try:
            await self._send_all(unsent)
        finally:
            if unsent:
                await self._desk.give_back([message.lease for message in unsent])
        await self._desk.settle()
        return True

    def drain(self) -> None:
        """Starts no more messages; what is leased goes back. The one under way is waited for, so long and no longer.

        One that has no answer by then may have been taken, and is tried again.
        """
        self._draining = True
        if self._postman is not None:
            self._postman.hurry(self._drain_s)

    async def close(self) -> None:
        """Ends the connection, with all outcomes written."""
        await self._desk.close()
        if self._postman is not None:
            await self._postman.close()

    async def _send_all(self, unsent: deque[Message]) -> None:
        """Sends what is in `unsent` and takes it out; what stays in it was not sent."""
        ends = time.monotonic() + _TURN_S
        try:
            while unsent and not self._draining and time.monotonic() < ends:
                if not await self._desk.is_ours(unsent[0]):
                    unsent.popleft()  # somebody else has it
                    continue
                sent = await self._send(unsent[0])
                self._last = self._desk.write_down(sent)
                unsent.popleft()
            self._rests = 0
        except MailServerAwayError as away:
            if not self._draining:
                self._rest(away)
        except NotNowError as error:
            log.warning("mail.not_sent", reason=str(error))

    async def _send(self, message: Message) -> Sent:
        started = time.perf_counter()
        if self._captures or message.letter.environment != "production":
            sent = self._capture(message, self._write_letter(message))
            await asyncio.sleep(0)  # others get their turn between two messages
        elif self._postman is None:
            sent = Sent(message, "held", reason=holding.REASON)
        else:
            recipient = letters.to_dial(message.letter.email)
            written = self._write_letter(message)
            allow = partial(self._allow, message)
            sent = judge(message, await self._postman.hand_over(self._sender, recipient, written, allow))
        seconds = time.perf_counter() - started
        self._tell(sent, seconds)
        return sent

    async def _allow(self, message: Message) -> None:
        """The last look, when the server awaits the end of the text: raises NotNowError unless the message may be sent."""
        if self._draining:
            raise NotNowError("the worker is to end")
        await self._desk.allow(message, self._last)

    def _write_letter(self, message: Message) -> bytes:
        return letters.write(message.letter, self._mail_from, at=time.time())

    def _capture(self, message: Message, written: bytes) -> Sent:
        sealed = self._vault.seal(written, sealing_context(message.lease.key))
        return Sent(message, "captured", subject=message.letter.subject, captured=sealed)

    async def _close_idle(self) -> None:
        if self._postman is not None and self._postman.idle_s > _IDLE_S:
            await self._postman.close()

    def _rest(self, away: MailServerAwayError) -> None:
        self._rests += 1
        rest_s = _REST.delay_s(self._rests)
        self._resting_until = time.monotonic() + rest_s
        metrics.MAILS.labels("server_away").inc()
        log.warning("mail.server_away", error=str(away), again_in_s=round(rest_s, 1))

    def _tell(self, sent: Sent, seconds: float) -> None:
        message = sent.message
        outcome = "retry" if sent.state == "pending" else sent.state
        metrics.MAILS.labels(outcome).inc()
        metrics.MAIL_SECONDS.observe(seconds)
        if message.attempts == 0 and sent.state in {"sent", "captured"}:
            metrics.MAIL_LATENESS_SECONDS.observe((datetime.now(UTC) - message.due_at).total_seconds())
        log.info(
            "mail.message",
            message_id=message.lease.key,
            order_id=message.order_id,
            attempt=message.attempts + 1,
            outcome=outcome,
            code=sent.code,
            duration_ms=round(seconds * 1000),
            retry_in_s=round(sent.delay_s) or None,
        )


def judge(message: Message, handover: Handover) -> Sent:
    """What becomes of a message: 5xx is for good, everything else is tried again for three days."""
    state, delay_s = "pending", 0.0
    reason: str | None = handover.reason
    if handover.taken:
        state, reason = "sent", None
    elif handover.refused_for_good:
        state = "bounced"
    elif message.age_s > GIVE_UP_AFTER_S:
        state = "exhausted"
    else:
        delay_s = SCHEDULE.delay_s(message.attempts + 1)
    return Sent(message, state, delay_s, handover.code, reason)
