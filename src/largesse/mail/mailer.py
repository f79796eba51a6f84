"""Sends the mail of a worker: takes due messages, hands them to the mail server one by one, and writes the outcomes."""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable
from email.utils import parseaddr
from functools import partial

import structlog

from largesse.base import clock
from largesse.base.email import Behaviour, behaviour_of, to_dial
from largesse.db.pool import DATABASE_FAILED, Database
from largesse.encryption.vault import Vault
from largesse.jobs import metrics
from largesse.jobs.job_loop import Schedule
from largesse.mail import letter as letters
from largesse.mail import requeue
from largesse.mail.away import MailServerAwayError
from largesse.mail.mailbox import sealing_context
from largesse.mail.messages import UNREADABLE, Message
from largesse.mail.outcomes import Fault, MessageLeases, NotNowError, Sent, fault_of
from largesse.mail.smtp import Handover, SmtpTransport

SCHEDULE = Schedule(first_s=30.0, factor=2.0, cap_s=3600.0)
# For a message that the server may have taken: each further try may be one more copy.
UNANSWERED = Schedule(first_s=30.0, factor=8.0, cap_s=12 * 3600.0)
# Invented answers of a mail server for test lab addresses, and the delay of late mail in seconds.
_BOUNCED = "550 5.1.1 The address does not exist (test lab)"
_LATE = "451 4.7.1 Try again later (test lab)"
LATE_S = 3600.0
GIVE_UP_AFTER_S = 3 * 86400.0
_AT_ONCE = 50  # messages that a connection leases together
TURN_S = 10.0  # after this time a step leaves the messages it has not begun to other connections
_IDLE_S = 10.0  # an idle connection is closed after this time
DRAIN_S = 20.0  # the longest that an ending worker waits for the answer to a text
_REST = Schedule(first_s=1.0, factor=2.0, cap_s=30.0)  # the pauses while the mail server is unavailable

log = structlog.get_logger(__name__)


class UnwritableError(Exception):
    """A message has a value with which no mail can be written."""


class Mailer:
    """Sends over one connection. A worker has several, which share leases. Captures the mail of staging.

    Without a `transport`, mail of production is held until a worker has one, or captured too with `captures`, as in the demo.
    `public_url_of` returns the start of the links in an environment's mail. Without `leases`, it makes its own.
    """

    def __init__(
        self,
        database: Database,
        vault: Vault,
        *,
        public_url_of: Callable[[str], str],
        mail_from: str,
        transport: SmtpTransport | None,
        captures: bool = False,
        leases: MessageLeases | None = None,
        drain_s: float = DRAIN_S,
    ) -> None:
        for outcome in ("sent", "retry", "server_away", "server_failed", "server_refused"):
            metrics.MAILS.labels(outcome)  # exported from the start, as 0
        self._leases = leases or MessageLeases(database)
        self._vault = vault
        self._public_url_of = public_url_of
        self._mail_from = mail_from
        self._sender = to_dial(parseaddr(mail_from)[1])
        self._transport = transport
        self._captures = captures and transport is None
        self._drain_s = drain_s
        self._draining = False
        self._rests = 0
        self._resting_until = 0.0
        self._doubts: list[
            tuple[Message, Handover, float]
        ] = []  # refusals that are unclear until the connection takes another message
        self._last: asyncio.Future[bool] | None = None  # the outcome of the last message that was sent

    async def step(self) -> bool:
        """Sends as many messages as are leased at once. Returns True if more may be due."""
        if self._draining or clock.passed_s() < self._resting_until:
            return False
        taken = await self._leases.take(_AT_ONCE, self._vault, self._public_url_of)
        if not taken:
            await self._close_idle()
            return False
        unsent = deque(taken)
        away: str | None = None
        is_over = asyncio.Event()
        leaving = asyncio.create_task(self._leave_to_others(unsent, is_over))
        try:
            away = await self._send_all(unsent)
        finally:
            is_over.set()
            await leaving
            self._settle_doubts(is_trusted=False)
            if unsent:
                await self._leases.give_back([message.lease for message in unsent], away)
        await self._leases.settle()
        return True

    def drain(self) -> None:
        """Starts no more messages, and gives leased ones back. Waits for the answer to a text for a limited time.

        A message without an answer by then may have been accepted, but is sent again.
        """
        self._draining = True
        if self._transport is not None:
            self._transport.hurry(self._drain_s)

    async def close(self) -> None:
        """Writes all outcomes and closes the connection."""
        await self._leases.close()
        if self._transport is not None:
            await self._transport.close()

    async def _leave_to_others(self, unsent: deque[Message], is_over: asyncio.Event) -> None:
        """Gives back the messages behind the current one if the step is not over after TURN_S: the answer may take minutes."""
        try:
            await asyncio.wait_for(is_over.wait(), TURN_S)
        except TimeoutError:
            waiting = [unsent.pop().lease for _ in range(len(unsent) - 1)]
            with contextlib.suppress(*DATABASE_FAILED):  # the leases are no longer renewed, so they run out
                await self._leases.give_back(waiting)

    async def _send_all(self, unsent: deque[Message]) -> str | None:
        """Sends the messages in `unsent` and removes each one that was sent. Returns why the mail server is unavailable, if it is."""
        try:
            while unsent and not self._draining:
                if await self._leases.is_ours(unsent[0]):
                    await self._try(unsent[0])
                else:  # otherwise the next `take` would find it held, and raise StillHeldError
                    await self._leases.give_back([unsent[0].lease])
                unsent.popleft()
            self._rests = 0
        except MailServerAwayError as error:
            if not self._draining:
                return self._rest(error)
        except NotNowError as error:
            log.warning("mail.not_sent", reason=str(error))
        return None

    async def _try(self, message: Message) -> None:
        """Sends one message. One that cannot be written is tried again later, and does not stop the others."""
        started = clock.passed_s()
        try:
            await self._send(message)
        except UnwritableError as error:
            log.exception(
                "mail.unreadable", message_id=message.lease.key, order_id=message.order_id, exc_info=error.__cause__
            )
            is_old = message.age_s > GIVE_UP_AFTER_S
            state, delay_s = ("exhausted", 0.0) if is_old else ("pending", SCHEDULE.delay_s(message.attempts + 1))
            self._tell(Sent(message, state, delay_s, reason=UNREADABLE, fault=Fault.SERVICE), started)

    async def _send(self, message: Message) -> None:
        """Sends one message, and writes its outcome if it is known yet."""
        started = clock.passed_s()
        if self._captures or message.letter.environment != "production":
            self._tell(self._keep(message), started)
            await asyncio.sleep(0)  # lets other tasks run between two messages
        elif self._transport is None:
            self._tell(Sent(message, "held", reason=requeue.REASON), started)
        else:
            recipient = to_dial(message.letter.email)
            written = self._write_letter(message)
            allow = partial(self._allow, message)
            opened = self._transport.opened
            with self._leases.watch(message):
                handover = await self._transport.hand_over(self._sender, recipient, written, allow)
            if self._transport.opened != opened:
                self._settle_doubts(is_trusted=False)  # these refusals belong to the former connection
            self._judge(message, handover, started)

    def _judge(self, message: Message, handover: Handover, started: float) -> None:
        """Writes the outcome of a message, or leaves an unclear refusal open until the connection takes another message."""
        assert self._transport is not None
        fault = fault_of(handover)
        if fault is Fault.UNSURE:
            if not self._transport.is_trusted:
                self._doubts.append((message, handover, started))
                return
            fault = Fault.RECIPIENT
        self._tell(judge(message, handover, fault), started)
        if handover.taken:
            self._settle_doubts(is_trusted=True)

    def _settle_doubts(self, *, is_trusted: bool) -> None:
        """Decides the open refusals: they are bounces if the connection took another message, otherwise faults of the server."""
        doubts, self._doubts = self._doubts, []
        fault = Fault.RECIPIENT if is_trusted else Fault.SERVER
        for message, handover, started in doubts:
            self._tell(judge(message, handover, fault), started)

    async def _allow(self, message: Message) -> None:
        """Checks the message once more before its last bytes. Raises NotNowError unless it may be sent."""
        await self._leases.allow(message, self._last)

    def _write_letter(self, message: Message) -> bytes:
        try:
            return letters.write(message.letter, self._mail_from, at=clock.now().timestamp())
        except Exception as error:
            raise UnwritableError from error

    def _keep(self, message: Message) -> Sent:
        """Returns the outcome of a message that is not sent: captured, or as its test lab address requires."""
        letter = message.letter
        behaviour = (
            behaviour_of(letter.email) if letter.environment == "staging" and letter.kind == letters.GIFT else None
        )
        if behaviour is Behaviour.BOUNCE:
            return Sent(message, "bounced", code=550, reason=_BOUNCED, fault=Fault.RECIPIENT)
        if behaviour is Behaviour.LATE and message.attempts == 0:
            return Sent(message, "pending", LATE_S, 451, _LATE)
        sealed = self._vault.captured.seal(self._write_letter(message), sealing_context(message.lease.key))
        claims = behaviour in {Behaviour.CLAIMS, Behaviour.NO_STOCK}
        return Sent(message, "captured", subject=letter.subject, captured=sealed, claims=claims)

    async def _close_idle(self) -> None:
        if self._transport is not None and self._transport.idle_s > _IDLE_S:
            await self._transport.close()

    def _rest(self, away: MailServerAwayError) -> str:
        self._rests += 1
        rest_s = _REST.delay_s(self._rests)
        self._resting_until = clock.passed_s() + rest_s
        metrics.MAILS.labels("server_away").inc()
        log.warning("mail.server_away", error=str(away), again_in_s=round(rest_s, 1))
        return f"the mail server takes no mail: {away}"

    def _tell(self, sent: Sent, started: float) -> None:
        """Writes, logs and counts an outcome."""
        self._last = self._leases.write_down(sent)
        message = sent.message
        seconds = clock.passed_s() - started
        outcome = sent.state
        if sent.state == "pending":
            has_failed = sent.stage is not None and (sent.code or 0) < 500
            of_server = "server_failed" if has_failed else "server_refused"
            by_fault: dict[str | None, str] = {Fault.SERVER: of_server, Fault.SERVICE: "unreadable"}
            outcome = by_fault.get(sent.fault, "retry")
        metrics.MAILS.labels(outcome).inc()
        metrics.MAIL_SECONDS.observe(seconds)
        if message.attempts == 0 and sent.state in {"sent", "captured"}:
            metrics.MAIL_LATENESS_SECONDS.observe((clock.now() - message.due_at).total_seconds())
        log.log(
            logging.WARNING if sent.fault in {Fault.SERVER, Fault.SERVICE} else logging.INFO,
            "mail.message",
            message_id=message.lease.key,
            order_id=message.order_id,
            attempt=message.attempts + 1,
            outcome=outcome,
            stage=sent.stage,
            code=sent.code,
            reason=sent.reason if sent.code is None else None,  # the server's words may name the recipient
            fault=sent.fault,
            duration_ms=round(seconds * 1000),
            retry_in_s=round(sent.delay_s) or None,
        )


def judge(message: Message, handover: Handover, fault: Fault | None) -> Sent:
    """Returns the outcome of a message. A refusal because of the recipient is final. Anything else is retried for three days."""
    state, delay_s = "pending", 0.0
    reason: str | None = handover.reason
    if handover.taken:
        state, reason = "sent", None
    elif fault is Fault.RECIPIENT:
        state = "bounced"
    elif message.age_s > GIVE_UP_AFTER_S:
        state = "exhausted"
    else:
        schedule = UNANSWERED if handover.may_have_been_taken else SCHEDULE
        delay_s = schedule.delay_s(message.attempts + 1)
    return Sent(message, state, delay_s, handover.code, reason, fault, stage=handover.stage)
