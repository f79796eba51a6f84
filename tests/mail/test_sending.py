import asyncio
import re

import pytest
from msgspec.structs import replace
from tests.chained import CHAIN
from tests.mail.conftest import PUBLIC_URL, Office, text_of

from largesse.base.errors import InvalidRequest, NotFound, TooManyRequests
from largesse.db.scope import OPERATOR
from largesse.mail import messages
from largesse.mail.mailbox import list_captured, open_captured
from largesse.mail.mailer import Mailer
from largesse.mail.outcomes import FRESH_S, Sent, record
from largesse.mail.recipients import list_order_deliveries
from largesse.mail.resending import resend
from largesse.mail.server import MailServer
from largesse.mail.smtp import SmtpTransport
from largesse.orders.acts import void_unclaimed

SAM, KIM = "sam@example.com", "kim@example.com"


async def test_each_recipient_gets_one_message_with_all_their_codes(office: Office) -> None:
    _, codes = await office.send_order([(SAM, "Sam", 2), (KIM, None, 1), ("SAM@example.com", None, 1)])
    sam, kim = office.server.messages()
    assert (sam["To"], kim["To"]) == ("Sam <sam@example.com>", KIM)
    assert [envelope.rcpt_tos for envelope in office.server.got] == [[SAM], [KIM]]
    assert {envelope.mail_from for envelope in office.server.got} == {"gifts@example.com"}
    assert office.server.connections == 1
    for message, expected in ((sam, [codes[0], codes[1], codes[3]]), (kim, [codes[2]])):
        text = text_of(message)
        assert re.findall(r"Code: +(\S+)", text) == [code.code_text for code in expected]
        assert re.findall(r"PIN: +(\S+)", text) == [code.pin_text for code in expected]
        assert re.findall(r"https://\S+", text) == [
            f"{PUBLIC_URL}/claim/{office.token(code.code)}#pin={code.pin_text}" for code in expected
        ]
    assert await office.states() == ["sent", "sent"]


async def test_nothing_leaves_before_its_time(office: Office) -> None:
    reference, _ = await office.order([(SAM, "Sam", 1)], due_in_s=3600)
    await office.advance(3590)
    await office.send()
    assert office.server.got == []
    assert await _states_told(office, reference) == ["scheduled"]
    await office.advance(10)
    await office.send()
    assert len(office.server.got) == 1
    assert await _states_told(office, reference) == ["sent"]


async def test_lines_that_begin_with_a_dot_arrive_as_written(office: Office) -> None:
    await office.send_order([(SAM, "Sam", 1)])
    [message] = office.server.messages()
    html = message.get_body(("html",))
    assert html is not None
    lines = html.get_content().splitlines()
    assert [line.split()[0] for line in lines if line.startswith(".")][:2] == [".paper", ".card"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("answer", "state", "reason"),
    [
        ("550 5.1.1 no such user", "bounced", "550 5.1.1 no such user"),
        ("554 spam", "bounced", "554 spam"),
        ("450 4.2.0 greylisted", "pending", "450 4.2.0 greylisted"),
        ("421 closing", "pending", "421 closing"),
        ("hang up", "pending", "the mail server ended the connection before the text"),
        ("perhaps", "pending", "the mail server gave an unexpected answer (-1)"),
        ("354 go ahead", "pending", "the mail server gave an unexpected answer (354)"),
    ],
)
async def test_what_the_mail_server_answers(office: Office, answer: str, state: str, reason: str) -> None:
    office.server.says[SAM] = answer
    reference, _ = await office.send_order([(SAM, "Sam", 1), (KIM, "Kim", 1)])
    assert await office.states() == [state, "sent"]
    [sam, kim] = await office.deliveries(reference)
    assert (sam.email, sam.state, sam.reason, sam.attempts, sam.sent_at) == (SAM, state, reason, 1, None)
    assert (kim.state, kim.reason, kim.code_count) == ("sent", None, 1)
    assert kim.sent_at is not None
    if state == "pending":
        office.server.says.clear()
        await office.advance(20)
        await office.send()
        assert await office.states() == ["pending", "sent"]
        await office.advance(20)
        await office.send()
        assert await office.states() == ["sent", "sent"]


async def test_mail_speaks_the_language_of_the_orders_country_and_then_what_the_recipient_chose(office: Office) -> None:
    german, _ = await office.order([(SAM, "Sam", 2)])
    await office.database.execute(OPERATOR, "UPDATE orders SET country = 'DE'")
    await office.send_order([(KIM, None, 1)])
    await office.database.execute(
        OPERATOR,
        """
        INSERT INTO line_states (customer_id, order_id, number, state, claimed_at, language)
        SELECT customer_id, id, 2, 'claimed', now(), 'fr' FROM orders WHERE reference = $1
        """,
        german,
    )
    await office.resend(german, SAM)
    await office.send()
    first, other, again = office.server.messages()
    assert [message["Content-Language"] for message in (first, other, again)] == ["de", "en", "fr"]
    assert first["Subject"] == "Geschenke für Sie von Ada"
    assert again["Subject"] == "Des cadeaux pour vous, offerts par Ada"


async def test_mail_to_a_contact_speaks_its_language_until_the_recipient_chooses_another(office: Office) -> None:
    customer_id = office.principal.customer_id
    await office.database.execute(
        OPERATOR,
        """
        INSERT INTO contacts (customer_id, environment, created_at, email, email_key, name, sought, language)
        SELECT $1, unnest('{production,staging}'::text[]), now(), $2, lower($2), '', '', unnest('{de,fr}'::text[])
        """,
        customer_id,
        SAM,
    )
    reference, _ = await office.order([(SAM.upper(), "Sam", 1)])
    await office.send_order([(KIM, None, 1)])
    await office.database.execute(
        OPERATOR,
        """
        INSERT INTO line_states (customer_id, order_id, number, state, claimed_at, language)
        SELECT customer_id, id, 1, 'claimed', now(), 'fr' FROM orders WHERE reference = $1
        """,
        reference,
    )
    await office.resend(reference, SAM)
    await office.send()
    assert [message["Content-Language"] for message in office.server.messages()] == ["de", "en", "fr"]


async def test_a_retry_is_the_same_message(office: Office) -> None:
    await office.send_order([(SAM, "Sam", 1)])
    await office.database.execute(OPERATOR, "UPDATE messages SET state = 'pending', finished_at = NULL")
    await office.send()
    first, second = office.server.messages()
    assert first["Message-ID"] == second["Message-ID"]


@pytest.mark.slow
async def test_three_days_are_enough(office: Office) -> None:
    office.server.says[SAM] = "450 later"
    await office.order([(SAM, "Sam", 1)])
    await office.fan_out()
    tries = 0
    while await office.states() == ["pending"]:
        await office.send()
        tries += 1
        await office.advance(3600)
    assert await office.states() == ["exhausted"]
    assert 60 <= tries <= 90


async def test_an_away_server_costs_no_attempt_and_the_messages_go_back(office: Office) -> None:
    await office.order([(SAM, "Sam", 1), (KIM, "Kim", 1)])
    await office.server.close()
    await office.send()
    row = await office.database.fetchrow(
        OPERATOR, "SELECT max(attempts) AS attempts, max(leased_until) AS leased FROM messages"
    )
    assert row is not None
    assert row["attempts"] == 0
    await office.server.start()
    assert not await office.mailer.step(), "it rests for a second"
    office.use(office.server.url)
    await office.send()
    assert await office.states() == ["sent", "sent"]


async def test_international_addresses_need_a_server_that_takes_them(office: Office) -> None:
    await office.send_order([("zoë@bücher.example", "Zoë", 1), ("sam@bücher.example", "Sam", 1)])
    assert [envelope.rcpt_tos for envelope in office.server.got] == [
        ["zoë@xn--bcher-kva.example"],
        ["sam@xn--bcher-kva.example"],
    ]
    office.server.utf8 = False
    office.use(office.server.url)
    await office.send_order([("zoë@bücher.example", "Zoë", 1), (SAM, "Sam", 1)])
    assert (await office.states())[2:] == ["bounced", "sent"]


async def test_a_sender_with_letters_beyond_ascii_before_the_at_is_announced(office: Office) -> None:
    async def allow() -> None: ...

    transport = SmtpTransport(MailServer.from_url(office.server.url))
    await transport.hand_over("grüße@example.com", SAM, b"Subject: A gift\r\n\r\nHello\r\n", allow)
    await transport.close()
    assert [(got.mail_from, got.smtp_utf8) for got in office.server.got] == [("grüße@example.com", True)]


async def test_staging_mail_is_captured_and_sealed(office: Office) -> None:
    _, [code] = await office.order([(SAM, "Sam", 1)], environment="staging")
    await office.send()
    assert office.server.got == []
    assert await office.states() == ["captured"]
    async with office.database.connection(OPERATOR) as connection:
        assert await list_captured(connection, "production") == []
        [listed] = await list_captured(connection, "staging")
        assert (listed.recipient, listed.subject) == (SAM, "Ada sent you a gift")
        with pytest.raises(NotFound):
            await open_captured(connection, office.vault, "production", listed.id)
        opened = await open_captured(connection, office.vault, "staging", listed.id)
        row = await connection.fetchrow("SELECT * FROM captured_mail")
    assert opened is not None
    assert code.code_text in opened.html
    assert code.code_text in opened.text
    assert opened.recipient == "Sam <sam@example.com>"
    assert code.code_text.encode() not in row["sealed"]


@pytest.mark.slow
async def test_mailers_that_race_send_each_message_once(office: Office) -> None:
    await office.order([(f"guest{n}@example.com", None, 1) for n in range(400)])
    first = office.mailer
    office.use(office.server.url)

    async def send(mailer: Mailer) -> None:
        while await mailer.step():
            pass

    await asyncio.gather(*(office.fan_out() for _ in range(3)))
    await asyncio.gather(send(first), send(office.mailer))
    await first.close()
    assert len(office.server.got) == 400
    assert set(await office.states()) == {"sent"}


async def test_an_outdated_lease_writes_nothing(office: Office) -> None:
    await office.order([(SAM, "Sam", 1)])
    await office.fan_out()
    taken = []
    for _ in range(2):
        async with office.database.transaction(OPERATOR) as connection:
            [message] = await messages.take(connection, 10, office.vault, lambda _: PUBLIC_URL)
            assert await messages.take(connection, 10, office.vault, lambda _: PUBLIC_URL) == []
        taken.append(message)
        await office.advance(20)
    for message, state in zip(taken, ("pending", "sent"), strict=True):
        async with office.database.transaction(OPERATOR) as connection:
            await record(connection, [Sent(message, "sent")])
        assert await office.states() == [state]


async def test_a_resend_is_a_message_of_its_own_at_most_5_a_day(office: Office) -> None:
    reference, _ = await office.send_order([(SAM, "Sam", 2), (KIM, None, 1)])
    for number in range(1, 6):
        sent_again = await office.resend(reference, "SAM@EXAMPLE.COM")
        assert (sent_again.email, sent_again.state, sent_again.resends) == (SAM, "pending", number)
        await office.send()
        await office.advance(60)
    with pytest.raises(TooManyRequests) as refused:
        await office.resend(reference, SAM)
    assert 86_400 - 305 <= refused.value.retry_after_s <= 86_400 - 295
    await office.resend(reference, KIM)
    await office.send()
    ids = [message["Message-ID"] for message in office.server.messages() if message["To"].startswith("Sam")]
    assert len(ids) == len(set(ids)) == 6
    [sam, kim] = await office.deliveries(reference)
    assert (sam.email, sam.state, sam.resends, sam.code_count) == (SAM, "sent", 5, 2)
    assert (kim.email, kim.resends) == (KIM, 1)
    await office.advance(86_400 - 300)
    assert (await office.resend(reference, SAM)).resends == 6


@pytest.mark.parametrize(
    "spelling",
    [
        "SAM@xn--bcher-kva.example",
        "sam@bu\u0308cher.example",
        " sam@B\u00dcCHER.example ",
        "sam@b\u00fccher\uff0eexample",
    ],
)
async def test_a_resend_finds_a_recipient_by_each_spelling_that_a_send_takes(office: Office, spelling: str) -> None:
    reference, _ = await office.send_order([("sam@b\u00fccher.example", "Sam", 1)])
    assert (await office.resend(reference, spelling)).email == "sam@b\u00fccher.example"


async def test_resends_that_race_stay_within_the_limit(office: Office) -> None:
    reference, _ = await office.send_order([(SAM, "Sam", 1)])

    async def ask() -> bool:
        try:
            await office.resend(reference, SAM)
        except (InvalidRequest, TooManyRequests):
            return False
        return True

    assert sum(await asyncio.gather(*(ask() for _ in range(6)))) == 1, "one under way is enough"


async def test_what_cannot_be_resent(office: Office) -> None:
    reference, _ = await office.order([(SAM, "Sam", 1)], due_in_s=60)
    with pytest.raises(InvalidRequest, match="not left"):
        await office.resend(reference, SAM)
    await office.advance(60)
    await office.send()
    with pytest.raises(InvalidRequest, match="`email`"):
        await office.resend(reference, KIM)
    strangers = [
        replace(office.principal, customer_id=office.principal.customer_id + 1),
        replace(office.principal, environment="staging"),
    ]
    for principal in strangers:
        async with office.database.transaction(OPERATOR) as connection:
            with pytest.raises(NotFound):
                await resend(connection, principal, reference, SAM)
            with pytest.raises(NotFound):
                await list_order_deliveries(connection, principal, reference)


async def test_cancelled_codes_are_mailed_to_nobody(office: Office) -> None:
    reference, codes = await office.order([(SAM, "Sam", 2), (KIM, None, 1)])
    late, late_codes = await office.order([(SAM, "Sam", 2), (KIM, None, 1)], due_in_s=60)
    await office.cancel(late, 1, 3)
    await office.send()
    await office.cancel(reference, 1, 3)
    with pytest.raises(InvalidRequest, match="cancelled"):
        await office.resend(reference, KIM)
    assert (await office.resend(reference, SAM)).code_count == 1
    await office.advance(60)
    await office.send()
    with pytest.raises(InvalidRequest, match="cancelled"):
        await office.resend(late, KIM)
    with pytest.raises(InvalidRequest, match="not a recipient"):
        await office.resend(late, "ada@example.com")
    *_, again, scheduled = office.server.messages()
    for message, code in ((again, codes[1]), (scheduled, late_codes[1])):
        assert re.findall(r"Code: +(\S+)", text_of(message)) == [code.code_text]


async def test_mail_that_is_leased_is_withdrawn_by_a_cancellation(office: Office) -> None:
    """While the mail server still has the message before it: nothing goes out then, or only what stands."""
    await office.order([("first@example.com", None, 1)])
    void, _ = await office.order([(KIM, None, 1)])
    half, codes = await office.order([(SAM, "Sam", 2)])
    await office.fan_out()
    office.server.hangs = {"first@example.com"}
    step = asyncio.create_task(office.mailer.step())
    await office.server.has_taken.wait()
    await office.database.execute(
        OPERATOR,
        """
        INSERT INTO line_states (customer_id, order_id, number, state, claimed_at)
        SELECT customer_id, id, 2, 'claimed', now() FROM orders WHERE reference = $1
        """,
        half,
    )
    for reference in (void, half):
        async with office.database.transaction(OPERATOR) as connection:
            assert (await void_unclaimed(connection, office.principal, CHAIN, reference)).cancelled_count == 1
    office.server.released.set()
    await step
    await office.send()
    assert office.server.recipients() == ["first@example.com", SAM]
    assert re.findall(r"Code: +(\S+)", text_of(office.server.messages()[1])) == [codes[1].code_text]
    assert await office.states() == ["sent", "cancelled", "sent"]


async def test_a_look_at_a_message_counts_for_a_moment_only(office: Office) -> None:
    """The outcome before it was written, and its row looked at, while the mail server thought about its recipient."""
    await office.order([("first@example.com", None, 1)])
    void, _ = await office.order([(KIM, None, 1)])
    await office.fan_out()
    office.server.ponders = {KIM}
    step = asyncio.create_task(office.mailer.step())
    await office.server.is_asked.wait()
    async with asyncio.timeout(10):
        while await office.states() != ["sent", "pending"]:
            pass
    await asyncio.sleep(2 * FRESH_S)
    async with office.database.transaction(OPERATOR) as connection:
        assert (await void_unclaimed(connection, office.principal, CHAIN, void)).cancelled_count == 1
    office.server.released.set()
    await step
    assert office.server.recipients() == ["first@example.com"]
    assert await office.states() == ["sent", "cancelled"]


async def _states_told(office: Office, reference: str) -> list[str]:
    return [one.state for one in await office.deliveries(reference)]
