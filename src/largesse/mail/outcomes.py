"""Writes the outcomes of messages, many at once. Decides if a refusal is the fault of the recipient, which is a bounce, or of the mail server.

A misconfigured server (it wants a password, or does not relay for us) answers 5xx to every message. These messages must not be lost. The
enhanced status code (RFC 3463) decides, then the plain code (RFC 5321, 4.2.3). If a server sends neither, two patterns of words decide.

The messages that a worker has leased are shared by its connections to the mail server. A connection ends the text of a message only when the
outcome of the message before is in the database and the lease is certain. So at most one message of a connection has been sent and is not yet
recorded. Whatever goes wrong (a process killed or stopped for a minute, a database unavailable), at most one message for each connection is
sent twice.
"""

import asyncio
import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum

import msgspec
import structlog

from largesse.base import clock
from largesse.base.confidential import Confidential
from largesse.db.pool import DATABASE_FAILED, Connection, Database, commit_as_one, is_distributed
from largesse.db.scope import WORKER
from largesse.db.statements import read_now
from largesse.encryption.vault import Vault
from largesse.events.store import record_changes
from largesse.jobs.leases import LEASE_S, Lease, Leases, StillHeldError, held_columns
from largesse.jobs.recorder import Recorder
from largesse.lines.states import record_lifecycle
from largesse.mail import messages, store
from largesse.mail.letter import GIFT
from largesse.mail.messages import MESSAGES, SPREAD_S, Message
from largesse.mail.smtp import DATA, DOT, MAIL, RCPT, Handover


class Sent(Confidential, frozen=True):
    """The outcome of a message. `captured` is its encrypted text, if it goes to the captured mailbox."""

    message: Message
    state: str  # sent, held, captured, bounced, exhausted, or pending if it is tried again after `delay_s`
    delay_s: float = 0.0
    code: int | None = None  # the reply code of the mail server
    reason: str | None = None
    fault: str | None = None  # why it was not taken, as `Fault` has it
    stage: str | None = None  # where the handover to the mail server ended
    subject: str = ""
    captured: bytes | None = None
    claims: bool = False  # whether it goes to a test lab address that claims its gift when the mail is captured

    @property
    def is_given_up(self) -> bool:
        """Whether the message will not be tried again."""
        return self.state in {"bounced", "exhausted"}


def need_transaction(database: Database, sent: Sequence[Sent]) -> bool:
    """Returns whether `record` takes more than one statement for these outcomes."""
    return database.is_distributed or any(one.captured is not None or one.is_given_up for one in sent)


async def _record_on_nodes(connection: Connection, sent: Sequence[Sent]) -> None:
    """Records the events of messages if orders may be on other nodes than messages."""
    await commit_as_one(connection)
    at = await read_now(connection)
    for one in sent:
        event, letter = store.EVENTS.get(one.state), one.message.letter
        if event is not None and letter.kind == GIFT:
            order = one.message.lease.customer_id, one.message.order_id
            occurrence = f"{event.name}/{letter.edition}/{one.message.lease.fence}"
            await record_lifecycle(connection, event, *order, one.message.line_numbers, at, occurrence=occurrence)


async def record(connection: Connection, sent: Sequence[Sent], watched: Sequence[Message] = ()) -> tuple[int, set[int]]:
    """Writes the outcomes of messages whose lease is still valid. Returns how many leases were not, and which `watched` messages may be sent next.

    A watched message may be sent if nobody else has leased it since it was read, and none of its codes was voided. The same statement records
    the events of gifts that were sent or bounced. Also stores captured mail in the mailbox, and has the read models updated for messages that
    were given up: in these cases, and if customers are distributed, call it inside a transaction. An outcome that was written before changes
    nothing, and counts as one without a valid lease.
    """
    # Cancellations and corrections lock the messages of an order by their ids, too. In another order there would be deadlocks.
    sent = sorted(sent, key=lambda one: one.message.lease.key)
    rows = await connection.fetch(
        store.RECORD_ON_NODES if is_distributed(connection) else store.RECORD,
        *held_columns([one.message.lease for one in sent]),
        [one.state for one in sent],
        [one.delay_s for one in sent],
        [one.reason for one in sent],
        [one.fault for one in sent],
        SPREAD_S,
        *held_columns([message.lease for message in watched]),
        [f"{{{','.join(map(str, message.line_numbers))}}}" for message in watched],
        len(sent),
        len(watched),
    )
    ours = {row["id"] for row in rows if row["is_written"]}
    if is_distributed(connection):
        await _record_on_nodes(connection, [one for one in sent if one.message.lease.key in ours])
    captured = [one for one in sent if one.captured is not None and one.message.lease.key in ours]
    if captured:
        await _write_captured(connection, captured)
    if given_up := {(one.message.lease.customer_id, one.message.order_id) for one in sent if one.is_given_up}:
        await record_changes(connection, given_up)
    return len(sent) - len(ours), {row["id"] for row in rows if not row["is_written"]}


async def _write_captured(connection: Connection, captured: Sequence[Sent]) -> None:
    await connection.execute(
        store.CAPTURE_ALL,
        [one.message.lease.customer_id for one in captured],
        [one.message.lease.key for one in captured],
        [one.message.letter.environment for one in captured],
        [one.message.letter.email for one in captured],
        [one.subject for one in captured],
        [one.captured for one in captured],
        [one.claims for one in captured],
    )


class Fault(StrEnum):
    """Why a message was not taken."""

    RECIPIENT = "recipient"  # the address, or this one message: it bounces
    SERVER = "server"  # the server, or its trust in us: the message is tried again later
    SERVICE = "service"  # the service, which could not write the message: it is tried again later
    UNSURE = "unsure"  # the recipient if the same connection takes another message, else the server


def fault_of(handover: Handover) -> Fault | None:
    """Returns whose fault it is that a message was not taken. None if it was, or if the server only says to come back later for this recipient."""
    if handover.code is None:
        return Fault.SERVER
    if handover.refused:
        return rule_of(handover).fault
    if handover.taken:
        return None
    is_plain = handover.stage == DOT and not _LATER.match(handover.text)
    is_ours = handover.ends_connection or handover.stage in {MAIL, DATA} or is_plain
    return Fault.SERVER if is_ours or handover.text.startswith("4.3.") else None


class Rule(msgspec.Struct, frozen=True):
    """One row of the table. None or empty fields match anything. `status` is the start of the enhanced code."""

    fault: Fault
    why: str
    stages: Sequence[str] = ()
    status: str = ""
    codes: Sequence[int] = ()
    words: re.Pattern[str] | None = None
    is_plain: bool = False  # matches only answers without an enhanced code

    def fits(self, stage: str, code: int, status: str, text: str) -> bool:
        """Returns whether an answer matches the rule: its stage, reply code, enhanced status (may be empty) and text."""
        return (
            (not self.stages or stage in self.stages)
            and status.startswith(self.status)
            and (not self.codes or code in self.codes)
            and not (self.is_plain and status)
            and (self.words is None or self.words.search(text) is not None)
        )


_RELAY = re.compile(r"\brelay", re.IGNORECASE)
_NO_SUCH_USER = re.compile(
    r"\b(no such|unknown) (user|mailbox|recipient)\b|\b(user|mailbox|recipient) (unknown|not found)\b"
    r"|\bunrouteable address\b",
    re.IGNORECASE,
)
# We sent as much as we may for now. A recipient's own quota, such as a full mailbox, has other words.
_OUR_LIMIT = re.compile(
    r"\b(daily|hourly|sending|outgoing|outbound|submission|relay)\s+(\w+\s+){0,3}(limit|quota)\b|SubmissionQuota"
    r"|\b(e-?mails|messages|recipients)\s+per\s+(minute|hour|day)\b",
    re.IGNORECASE,
)
_TOO_LARGE = re.compile(r"\b(message|mail)\b.*\b(size|large|big)\b", re.IGNORECASE)
_OUR_SENDER = re.compile(r"\bSendAsDenied|\bOutboundSpam|not allowed to send as", re.IGNORECASE)
_RECIPIENT, _SERVER, _UNSURE = Fault.RECIPIENT, Fault.SERVER, Fault.UNSURE

# The first rule that matches decides.
RULES = (
    Rule(_SERVER, "we have sent as much as we may for now", words=_OUR_LIMIT),
    Rule(_SERVER, "the mail system is congested", status="5.4.5"),
    Rule(_SERVER, "we may not send as this sender (Exchange)", status="5.2.", words=_OUR_SENDER),
    Rule(_SERVER, "our address is not well formed", status="5.1.7"),
    Rule(_SERVER, "the domain of our address is unknown", status="5.1.8"),
    Rule(_SERVER, "a password is wanted", codes=(530, 534, 535, 538)),
    Rule(_RECIPIENT, "the message is too large for this recipient", (RCPT,), status="5.3.4"),
    Rule(_RECIPIENT, "the message is too large for the mailbox", status="5.2.3"),
    Rule(_SERVER, "the message is larger than the server takes", (MAIL, DOT), codes=(552,), words=_TOO_LARGE),
    Rule(_RECIPIENT, "what the message is made of, such as an international address", status="5.6."),
    Rule(_SERVER, "our address may not send here", (MAIL,)),
    Rule(_UNSURE, "an address, but which one is not said", status="5.1.0"),
    Rule(_RECIPIENT, "the address does not exist", status="5.1."),
    Rule(_RECIPIENT, "the mailbox is full or switched off", status="5.2."),
    Rule(_SERVER, "the mail system is full, closed or set up wrongly", status="5.3."),
    Rule(_RECIPIENT, "there is no way to the address", status="5.4."),
    Rule(_UNSURE, "nothing more is said", status="5.5.0"),
    Rule(_SERVER, "the two do not speak the same protocol", status="5.5."),
    Rule(_SERVER, "we may not send, or not without a password", (RCPT, DATA), status="5.7."),
    Rule(_UNSURE, "spam, or our domain is not trusted", (DOT,), status="5.7."),
    Rule(_UNSURE, "nothing more is said", status="5."),
    Rule(_SERVER, "the server takes no mail (RFC 7504)", codes=(521,)),
    Rule(_SERVER, "the two do not speak the same protocol", codes=(500, 501, 502, 503, 504, 555)),
    Rule(_RECIPIENT, "the address is elsewhere, its mailbox full or its domain without mail", (RCPT,), codes=(551, 552, 556)),
    Rule(_SERVER, "it does not relay for us", (RCPT,), words=_RELAY),
    Rule(_RECIPIENT, "the address does not exist", (RCPT,), codes=(550, 553), words=_NO_SUCH_USER),
    Rule(_UNSURE, "nothing more is said"),
)  # fmt: skip

# The enhanced code: at the beginning of a line, or at its end, where qmail writes it.
_STATUS = re.compile(r"^(5\.\d{1,3}\.\d{1,3})\b|\(#(5\.\d{1,3}\.\d{1,3})\)", re.MULTILINE)

_LATER = re.compile(r"4\.\d{1,3}\.\d{1,3}\b")


def rule_of(handover: Handover) -> Rule:
    """Returns the row of the table for a permanent refusal."""
    assert handover.code is not None
    found = _STATUS.search(handover.text)
    status = (found[1] or found[2]) if found else ""
    return next(rule for rule in RULES if rule.fits(handover.stage, handover.code, status, handover.text))


log = structlog.get_logger(__name__)


# How old the last check of a message's row may be when its text is sent. A cancellation after the check comes too late.
FRESH_S = 0.05


class NotNowError(Exception):
    """A message may not be sent now, and was not sent."""


class MessageLeases:
    """Leases messages and writes their outcomes, for all connections of a process."""

    def __init__(self, database: Database, *, lease_s: float = LEASE_S) -> None:
        self._database = database
        self._leases = Leases(MESSAGES, lease_s=lease_s)
        self._recorder: Recorder[Sent] = Recorder("mail", self._write)
        # Messages being sent, by lease. With each, whether it could be sent when outcomes were last written, and the time of that.
        self._watched: dict[Lease, tuple[Message, bool | None, float]] = {}

    async def take(self, limit: int, vault: Vault, public_url_of: Callable[[str], str]) -> list[Message]:
        """Leases up to `limit` due messages; none while outcomes cannot be written."""
        if self._recorder.is_stuck:
            return []
        asked_at = self._leases.now()
        try:
            async with self._database.transaction(WORKER) as connection:
                taken = await messages.take(connection, limit, vault, public_url_of, self._leases.terms)
        except StillHeldError:
            await self.renew()
            return []
        self._leases.hold((message.lease for message in taken), asked_at)
        return taken

    async def renew(self) -> None:
        """Renews the leases of all current messages, and of messages whose outcome is not written yet."""
        async with self._database.connection(WORKER) as connection:
            await self._leases.renew(connection)

    async def is_ours(self, message: Message) -> bool:
        """Returns whether the message's lease is certainly valid. If the clock cannot tell, renews it in the database."""
        if not self._leases.certain_s(message.lease):
            await self.renew()
        return self._leases.certain_s(message.lease) > 0

    @contextlib.contextmanager
    def watch(self, message: Message) -> Iterator[None]:
        """Watches a message while it is handed over: statements that write outcomes meanwhile read its row too."""
        self._watched[message.lease] = message, None, 0.0
        try:
            yield
        finally:
            del self._watched[message.lease]

    async def allow(self, message: Message, last: asyncio.Future[bool] | None) -> None:
        """Checks a message for the last time before it is sent. Raises NotNowError unless it may be sent.

        Reads its row too, as its gift may have been cancelled since it was leased. Waits for `last`, the outcome of the message before it
        on the connection, as long as the lease is certain. If a statement that just wrote outcomes read the row, this saves a round trip.
        """
        try:
            await self._settle_last(message, last)
            _, stands, looked_at = self._watched[message.lease]
            if stands is None or clock.passed_s() - looked_at > FRESH_S:
                stands = await self._database.read(WORKER, messages.still_stands, message)
            is_ours = await self.is_ours(message)
        except DATABASE_FAILED as error:
            raise NotNowError(f"the lease is in doubt ({type(error).__name__})") from None
        if not is_ours:
            raise NotNowError("the lease has run out")
        if not stands:
            raise NotNowError("its order was cancelled meanwhile")

    async def _settle_last(self, message: Message, last: asyncio.Future[bool] | None) -> None:
        if last is not None and not last.done():
            self._recorder.hasten()
            await asyncio.wait({last}, timeout=self._leases.certain_s(message.lease))
            if not last.done():
                raise NotNowError("the outcome of the last message cannot be written")

    def write_down(self, sent: Sent) -> asyncio.Future[bool]:
        """Writes an outcome, now or when the database is back. The future is done once it is written."""
        return self._recorder.add(sent)

    async def settle(self) -> None:
        """Waits until all outcomes are written, or a try has failed."""
        await self._recorder.settle()

    async def give_back(self, leases: Sequence[Lease], reason: str | None = None) -> None:
        """Frees messages that were not sent, with the reason if it is the mail server's fault."""
        self._leases.drop(leases)
        async with self._database.connection(WORKER) as connection:
            if reason is None:
                await self._leases.give_back(connection, leases)
            else:
                await messages.put_back(connection, leases, reason)

    async def close(self) -> None:
        """Waits until all outcomes are written, for ten seconds at most."""
        await self._recorder.close()

    async def _write(self, sent: list[Sent]) -> None:
        # A single statement needs no transaction, which saves two round trips.
        is_one = not need_transaction(self._database, sent)
        async with self._database.connection(WORKER) if is_one else self._database.transaction(WORKER) as connection:
            looked_at = clock.passed_s()
            watched = [message for message, _, _ in self._watched.values()]
            lost, standing = await record(connection, sent, watched)
        for message in watched:
            if message.lease in self._watched:
                self._watched[message.lease] = message, message.lease.key in standing, looked_at
        self._leases.drop(one.message.lease for one in sent)
        if lost:
            # Another worker has leased them, as this process was stopped for longer than its clock shows.
            log.warning("mail.lease_lost", messages=lost)
            self._leases.doubt()
