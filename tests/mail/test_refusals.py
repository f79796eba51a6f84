"""Permanent refusals: which are bounces, and which are a mail server's that is set up wrongly."""

import asyncio
from collections.abc import Callable

import pytest
from aiosmtpd.smtp import SMTP, Envelope, Session
from tests.mail.conftest import Office, PostOffice

from largesse.db.scope import OPERATOR
from largesse.jobs import metrics
from largesse.mail import letter
from largesse.mail.mailer import GIVE_UP_AFTER_S
from largesse.mail.outcomes import RULES, Fault, rule_of
from largesse.mail.smtp import DATA, DOT, MAIL, RCPT, Handover

SAM, KIM, LEE = "sam@example.com", "kim@example.com", "lee@example.com"
RECIPIENT, SERVER, UNSURE = Fault.RECIPIENT, Fault.SERVER, Fault.UNSURE

# One at least for each row of the table, in the words of servers that people run.
SAID = [
    (DOT, 550, "5.4.5 Daily user sending limit exceeded. For more information", SERVER),
    (RCPT, 550, "5.4.5 Daily SMTP relay limit exceeded for customer", SERVER),
    (MAIL, 550, "5.4.5 Congestion", SERVER),
    (DOT, 550, "5.4.5 Try another day", SERVER),
    (
        DOT,
        550,
        "5.1.90 Your message can't be sent because you've reached your daily limit for message recipients",
        SERVER,
    ),
    (
        RCPT,
        550,
        "Domain example.com has exceeded the max emails per hour (150/150 (100%)) allowed. Message discarded.",
        SERVER,
    ),
    (
        DOT,
        554,
        "5.2.0 STOREDRV.Submission.Exception:SubmissionQuotaExceededException; Failed to process message",
        SERVER,
    ),
    (DOT, 554, "5.2.0 STOREDRV.Submission.Exception:SendAsDeniedException.MapiExceptionSendAsDenied; Failed", SERVER),
    (DOT, 554, "5.2.252 SendAsDenied; gifts@example.com not allowed to send as ada@example.com", SERVER),
    (RCPT, 552, "5.2.2 The email account that you tried to reach is over quota", RECIPIENT),
    (RCPT, 552, "Requested mail action aborted: exceeded storage allocation", RECIPIENT),
    (
        RCPT,
        550,
        "5.2.1 The user you are trying to contact is receiving mail at a rate that prevents delivery",
        RECIPIENT,
    ),
    (RCPT, 553, "5.1.7 <gifts@>: Sender address rejected: bad address syntax", SERVER),
    (MAIL, 553, "5.1.8 <gifts@example.com>... Domain of sender address does not exist", SERVER),
    (RCPT, 530, "5.7.0 Authentication required", SERVER),
    (RCPT, 530, "Must issue a STARTTLS command first", SERVER),
    (DOT, 535, "5.7.8 Authentication failed", SERVER),
    (RCPT, 538, "5.7.11 Encryption required", SERVER),
    (MAIL, 552, "5.3.4 Message size exceeds fixed limit", SERVER),
    (DOT, 552, "5.3.4 Message too big", SERVER),
    (RCPT, 552, "5.3.4 Message too big for this recipient", RECIPIENT),
    (MAIL, 552, "5.2.3 Message too large for the mailbox", RECIPIENT),
    (MAIL, 552, "Message size exceeds maximum permitted", SERVER),
    (DOT, 552, "Message size exceeds maximum permitted", SERVER),
    (DOT, 552, "Requested mail action aborted: exceeded storage allocation", UNSURE),
    (RCPT, 553, "5.6.7 Non-ASCII addresses not permitted", RECIPIENT),
    (MAIL, 550, "5.7.1 Client does not have permissions to send as this sender", SERVER),
    (MAIL, 550, "5.1.1 no such sender", SERVER),
    (MAIL, 554, "SMTP synchronization error", SERVER),
    (RCPT, 550, "5.1.0 <gifts@example.com>: Sender address rejected: User unknown", UNSURE),
    (RCPT, 550, "5.1.1 <sam@example.com>: Recipient address rejected: User unknown", RECIPIENT),
    (RCPT, 550, "Requested action not taken: mailbox unavailable (#5.1.1)", RECIPIENT),
    (RCPT, 556, "5.1.10 Recipient address has null MX", RECIPIENT),
    (RCPT, 550, "Hello\n5.1.2 Domain not found", RECIPIENT),
    (RCPT, 552, "5.2.2 Over quota", RECIPIENT),
    (RCPT, 550, "5.2.1 The account is disabled", RECIPIENT),
    (RCPT, 550, "5.3.5 System incorrectly configured", SERVER),
    (RCPT, 550, "5.4.1 Recipient address rejected: Access denied", RECIPIENT),
    (RCPT, 550, "5.5.0 Requested action not taken", UNSURE),
    (DATA, 503, "5.5.1 Error: need RCPT command", SERVER),
    (RCPT, 554, "5.7.1 <sam@example.com>: Relay access denied", SERVER),
    (RCPT, 550, "5.7.1 Relaying denied", SERVER),
    (RCPT, 553, "sorry, that domain isn't in my list of allowed rcpthosts (#5.7.1)", SERVER),
    (DOT, 554, "5.7.1 Message rejected as spam", UNSURE),
    (DOT, 550, "5.7.26 Unauthenticated email is not accepted", UNSURE),
    (RCPT, 554, "5.0.0 Rejected", UNSURE),
    (RCPT, 521, "example.com does not accept mail", SERVER),
    (RCPT, 503, "bad sequence of commands", SERVER),
    (RCPT, 555, "RCPT TO parameters not recognized or not implemented", SERVER),
    (RCPT, 552, "mailbox full", RECIPIENT),
    (RCPT, 556, "domain does not accept mail", RECIPIENT),
    (RCPT, 550, "relay not permitted", SERVER),
    (RCPT, 550, "no such user", RECIPIENT),
    (RCPT, 550, "Unrouteable address", RECIPIENT),
    (RCPT, 554, "no such user", UNSURE),
    (RCPT, 550, "Administrative prohibition", UNSURE),
    (RCPT, 554, "Transaction failed", UNSURE),
    (DOT, 554, "Email address is not verified", UNSURE),
]


@pytest.mark.parametrize(("stage", "code", "text", "fault"), SAID)
def test_whose_fault_it_is(stage: str, code: int, text: str, fault: Fault) -> None:
    assert rule_of(Handover(stage, code, text)).fault is fault


def test_every_row_of_the_table_is_needed() -> None:
    used = {rule_of(Handover(stage, code, text)) for stage, code, text, _ in SAID}
    assert [rule for rule in RULES if rule not in used] == []


class Refusing(PostOffice):
    """A mail server that gives an answer at one stage for as long as `refuses` says so."""

    def __init__(self, stage: str, answer: str) -> None:
        super().__init__()
        self.stage, self.answer = stage, answer

    def refuses(self, _session: Session) -> bool:
        raise NotImplementedError

    async def handle_MAIL(  # noqa: N802 - aiosmtpd's name
        self, _server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self.stage == MAIL and self.refuses(session):
            return self.answer
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 OK"

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self.stage == RCPT and self.refuses(session):
            return self.answer
        return await super().handle_RCPT(server, session, envelope, address, options)

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - aiosmtpd's name
        if self.stage == DOT and self.refuses(session):
            return self.answer
        return await super().handle_DATA(server, session, envelope)


class Strict(Refusing):
    """A mail server that is set up wrongly: it refuses whatever it is given, until `answer` is empty."""

    def refuses(self, _session: Session) -> bool:
        return self.answer != ""


class Counting(Refusing):
    """A relay that takes two messages over a connection."""

    def __init__(self, stage: str, answer: str) -> None:
        super().__init__(stage, answer)
        self.taken: dict[object, int] = {}

    def refuses(self, session: Session) -> bool:
        return self.taken.get(session.peer, 0) >= 2

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - aiosmtpd's name
        self.taken[session.peer] = self.taken.get(session.peer, 0) + 1
        return await super().handle_DATA(server, session, envelope)


@pytest.mark.parametrize(
    ("stage", "answer"),
    [
        (MAIL, "451 4.7.0 Too many messages on this connection"),
        (MAIL, "550 5.7.0 Too many messages on this connection"),
        (RCPT, "452 4.5.3 Too many recipients"),
    ],
)
async def test_a_relay_that_takes_few_messages_over_a_connection_gets_the_rest_over_others(
    office: Office, stage: str, answer: str
) -> None:
    server = Counting(stage, answer)
    await server.start()
    office.use(server.url)
    await office.order([(f"guest{n}@example.com", None, 1) for n in range(7)])
    await office.send()
    assert set(await office.states()) == {"sent"}
    assert len(server.taken) == 4
    await office.mailer.close()
    await server.close()


@pytest.mark.sampled(7)
@pytest.mark.parametrize(
    ("stage", "answer"),
    [
        (RCPT, "530 5.7.0 Authentication required"),
        (RCPT, "554 Transaction failed"),
        (RCPT, "550 5.7.1 Relaying denied"),
        (RCPT, "550 relay not permitted"),
        (MAIL, "550 5.7.1 not your address"),
        (MAIL, "554 no"),
        (DOT, "554 5.7.1 our policy"),
    ],
)
async def test_a_server_that_refuses_everything_bounces_nobody(office: Office, stage: str, answer: str) -> None:
    server = Strict(stage, answer)
    await server.start()
    office.use(server.url)
    reference, _ = await office.order([(f"guest{n}@example.com", None, 1) for n in range(50)])
    counted = metrics.MAILS.labels("server_refused")._value
    before = counted.get()
    await office.send()
    assert server.got == []
    assert set(await office.states()) == {"pending"}
    assert counted.get() - before == 50
    told = await office.deliveries(reference)
    assert {(one.state, one.fault, one.reason, one.attempts) for one in told} == {("pending", "server", answer, 1)}
    server.answer = ""  # the operator has put it right
    await office.advance(40)
    await office.send()
    assert set(await office.states()) == {"sent"}
    assert len(server.got) == 50
    told = await office.deliveries(reference)
    assert {(one.fault, one.reason) for one in told} == {(None, None)}
    await office.mailer.close()
    await server.close()


async def test_one_recipient_that_does_not_exist_bounces_alone_too(office: Office) -> None:
    for number, answer in enumerate(["550 5.1.1 unknown", "550 no such user", "552 5.2.2 mailbox full"]):
        office.server.says[SAM] = answer
        reference, _ = await office.send_order([(SAM, None, 1)])
        assert (await office.states())[number] == "bounced", answer
    [told] = await office.deliveries(reference)
    assert (told.state, told.fault, told.reason) == ("bounced", "recipient", "552 5.2.2 mailbox full")


async def test_mail_counts_as_sent_only_once_its_text_was_taken(office: Office) -> None:
    """A server that was set up wrongly answered DATA as if it were NOOP, and gifts counted as sent that nobody got."""
    office.server.says[LEE] = "252 not checked, but taken"
    await office.send_order([(LEE, None, 1)])
    assert (await office.states(), office.server.recipients()) == (["sent"], [LEE])

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail\r\n")
        while await reader.readline():
            writer.write(b"250 OK\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    office.use(f"smtp://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    reference, _ = await office.send_order([(SAM, None, 1), (KIM, None, 1)])
    server.close()
    told = await office.deliveries(reference)
    assert {(one.state, one.reason) for one in told} == {("pending", "the mail server gave an unexpected answer (250)")}


@pytest.mark.parametrize("answer", ["554 Transaction failed", "550 Administrative prohibition"])
@pytest.mark.parametrize("place", [0, 1, 2])
async def test_an_unclear_refusal_is_a_bounce_where_the_connection_takes_another(
    office: Office, answer: str, place: int
) -> None:
    recipients = [KIM, LEE]
    recipients.insert(place, SAM)
    office.server.says[SAM] = answer
    await office.send_order([(address, None, 1) for address in recipients])
    states = await office.states()
    assert states.pop(place) == "bounced"
    assert states == ["sent", "sent"]


async def test_an_unclear_refusal_alone_is_tried_again_until_it_is_clear(office: Office) -> None:
    office.server.says[SAM] = "554 Transaction failed"
    await office.send_order([(SAM, None, 1)])
    assert await office.states() == ["pending"]
    await office.advance(40)
    await office.send_order([(KIM, None, 1)])
    assert await office.states() == ["bounced", "sent"]


async def test_what_an_earlier_connection_refused_is_not_explained_by_the_next(office: Office) -> None:
    """The server is put right, and started again, while a worker goes on."""
    office.server.says = {SAM: "554 Transaction failed", KIM: "hang up"}
    await office.send_order([(SAM, None, 1), (KIM, None, 1), (LEE, None, 1)])
    assert await office.states() == ["pending", "pending", "sent"]


async def test_a_limit_of_our_own_bounces_nobody_who_comes_after_it(office: Office) -> None:
    """The same connection took mail before: without its words, the answer would be taken for one about the recipient."""
    for address in (KIM, LEE):
        office.server.says[address] = "550 Domain example.com has exceeded the max emails per hour (150/150) allowed"
    await office.send_order([(SAM, None, 1), (KIM, None, 1), (LEE, None, 1)])
    assert await office.states() == ["sent", "pending", "pending"]
    office.server.says.clear()
    await office.advance(3600)
    await office.send()
    assert await office.states() == ["sent"] * 3


async def test_the_fault_of_a_server_lasts_three_days_at_most(office: Office) -> None:
    office.server.says[SAM] = "530 5.7.0 Authentication required"
    await office.send_order([(SAM, None, 1)])
    await office.advance(GIVE_UP_AFTER_S + 1)
    await office.send()
    assert await office.states() == ["exhausted"]


@pytest.mark.parametrize(
    ("greeting", "said"),
    [
        ("554 no mail here", "it answers 554 no mail here"),
        ("421 too many connections", "it answers 421 too many connections"),
    ],
)
async def test_a_server_that_will_not_talk_is_said_to_take_no_mail(office: Office, greeting: str, said: str) -> None:
    async def refuse(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(f"{greeting}\r\n".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    office.use(f"smtp://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    reference, _ = await office.send_order([(SAM, None, 1), (KIM, None, 1)])
    server.close()
    told = await office.deliveries(reference)
    assert [(one.state, one.attempts, one.fault) for one in told] == [("pending", 0, "server")] * 2
    assert {one.reason for one in told} == {f"the mail server takes no mail: {said}"}


@pytest.mark.parametrize("spoil", [lambda said: said + "\x00\x1b[31m", lambda said: said + " \udcff\udce9"])
async def test_whatever_bytes_a_server_says_are_written_down(office: Office, spoil: Callable[[str], str]) -> None:
    """Reasons that the database refused were never written, and their messages went out again and again."""
    office.server.says[SAM] = spoil("450 4.2.0 later")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail\r\n")
        while line := await reader.readline():
            said = "250 OK"
            if line.startswith(b"RCPT"):
                said = office.server.says[SAM]
            writer.write(said.encode(errors="surrogateescape") + b"\r\n")
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    office.use(f"smtp://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    await office.send_order([(SAM, None, 1)])
    row = await office.database.fetchrow(OPERATOR, "SELECT attempts, reason FROM messages")
    assert row is not None
    assert row["attempts"] == 1
    assert row["reason"].startswith("450 4.2.0 later")
    await office.mailer.close()
    server.close()


async def test_a_message_that_cannot_be_decrypted_stops_no_other(office: Office) -> None:
    """It would come first in each lease, and nobody else's mail would leave."""
    odd, _ = await office.order([(SAM, "Sam", 1)])
    await office.order([(KIM, None, 1)])
    of_odd = "WHERE order_id = (SELECT id FROM orders WHERE reference = $1)"
    sealed = await office.database.fetchval(OPERATOR, f"SELECT sealed FROM lines {of_odd}", odd)
    await office.database.execute(OPERATOR, f"UPDATE lines SET sealed = sealed || 'x' {of_odd}", odd)
    await office.send()
    assert [envelope.rcpt_tos for envelope in office.server.got] == [[KIM]]
    told = "SELECT state, reason, fault, attempts FROM messages " + of_odd
    [row] = await office.database.fetch(OPERATOR, told, odd)
    assert tuple(row) == ("pending", "The mail could not be written.", "service", 1), (
        "the mail server has no part in it"
    )
    await office.database.execute(OPERATOR, f"UPDATE lines SET sealed = $2 {of_odd}", odd, sealed)
    await office.advance(3590)
    await office.send()
    assert len(office.server.got) == 1
    await office.advance(10)
    await office.send()
    assert [envelope.rcpt_tos for envelope in office.server.got] == [[KIM], [SAM]]


async def test_a_message_that_cannot_be_written_stops_no_other(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    write = letter.write

    def fail(one: letter.Letter, mail_from: str, *, at: float) -> bytes:
        if one.email == SAM:
            raise LookupError
        return write(one, mail_from, at=at)

    monkeypatch.setattr(letter, "write", fail)
    refused, unreadable = (metrics.MAILS.labels(outcome)._value for outcome in ("server_refused", "unreadable"))
    before = refused.get(), unreadable.get()
    await office.send_order([(SAM, "Sam", 1), (KIM, None, 1)])
    assert (refused.get(), unreadable.get()) == (before[0], before[1] + 1)
    assert [envelope.rcpt_tos for envelope in office.server.got] == [[KIM]]
    monkeypatch.setattr(letter, "write", write)
    await office.advance(60)
    await office.send()
    assert [envelope.rcpt_tos for envelope in office.server.got] == [[KIM], [SAM]]
