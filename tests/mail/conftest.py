from __future__ import annotations

import asyncio
import email
import email.policy
import ssl
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.message import EmailMessage
from functools import partial
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, Envelope, Session
from tests.chained import actor_on
from tests.distributed import IS_DISTRIBUTED

from largesse.customers.actor import Actor
from largesse.customers.principal import Principal
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.encryption.vault import Vault
from largesse.lines.codes import DrawnCode, SealedCodes, draw_codes
from largesse.mail.mailer import Mailer
from largesse.mail.messages import fan_out
from largesse.mail.recipients import RecipientDelivery, list_order_deliveries
from largesse.mail.resending import resend
from largesse.mail.server import MailServer
from largesse.mail.smtp import SmtpTimeouts, SmtpTransport
from largesse.orders.ids import new_reference

MAIL_FROM = "Largesse Gifts <gifts@example.com>"
PUBLIC_URL = "https://gifts.example.com"


@pytest.fixture
async def mail_server() -> AsyncIterator[PostOffice]:
    server = PostOffice()
    await server.start()
    yield server
    await server.close()


@pytest.fixture
async def office(database: Database, vault: Vault, mail_server: PostOffice) -> AsyncIterator[Office]:
    office = Office(database, vault, mail_server)
    await office.open()
    yield office
    await office.mailer.close()


def text_of(message: EmailMessage) -> str:
    """The plain text of a message."""
    body = message.get_body(("plain",))
    assert body is not None
    text: str = body.get_content()
    return text


@dataclass
class PostOffice:
    """A real SMTP server (aiosmtpd) on loopback. `says` answers addresses otherwise than `250 OK`.

    It takes `takes_s` over each message; to those for `hangs` it gives no answer until `released`, and to the name of a
    recipient of `ponders` none either.
    """

    got: list[Envelope] = field(default_factory=list)
    says: dict[str, str] = field(default_factory=dict)
    takes_s: float = 0.0
    hangs: set[str] = field(default_factory=set)
    ponders: set[str] = field(default_factory=set)
    is_asked: asyncio.Event = field(default_factory=asyncio.Event)  # for one of those
    has_taken: asyncio.Event = field(default_factory=asyncio.Event)  # one that gets no answer
    released: asyncio.Event = field(default_factory=asyncio.Event)
    connections: int = 0
    utf8: bool = True

    async def start(self) -> None:
        def serve() -> SMTP:
            self.connections += 1
            return self.protocol()

        self._server = await asyncio.get_running_loop().create_server(serve, "127.0.0.1", 0, ssl=self.listens_with)
        self.port = self._server.sockets[0].getsockname()[1]

    def protocol(self) -> SMTP:
        return SMTP(self, hostname="mail.example.com", enable_SMTPUTF8=self.utf8)

    @property
    def listens_with(self) -> ssl.SSLContext | None:
        """The TLS that connections begin with."""
        return None

    async def close(self) -> None:
        self.released.set()
        self._server.close()
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}"

    def messages(self) -> list[EmailMessage]:
        """What was got, parsed. No property: aiosmtpd reads all of them at each connection."""
        parse = partial(email.message_from_bytes, policy=email.policy.default)
        return [parse(envelope.original_content) for envelope in self.got]  # type: ignore[misc]

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        if address in self.ponders:
            self.is_asked.set()
            await self.released.wait()
        answer = self.says.get(address, "250 OK")
        if answer == "hang up":
            server.transport.abort()
            return "421 gone"
        if answer.startswith("25"):
            envelope.rcpt_tos.append(address)
        return answer

    async def handle_DATA(  # noqa: N802 - aiosmtpd's name
        self, _server: SMTP, _session: Session, envelope: Envelope
    ) -> str:
        self.got.append(envelope)
        await asyncio.sleep(self.takes_s)
        if self.hangs & set(envelope.rcpt_tos):
            self.has_taken.set()
            await self.released.wait()
        return "250 OK"

    def recipients(self) -> list[str]:
        """Of the messages that were got, in that order."""
        return [envelope.rcpt_tos[0] for envelope in self.got]


@dataclass
class Office:
    """A database with a catalogue and a customer, and a mailer to step by hand."""

    database: Database
    vault: Vault
    server: PostOffice

    def token(self, code: bytes) -> str:
        """What the link of one of the customer's codes ends with."""
        return self.vault.token(code, self.principal.customer_id if IS_DISTRIBUTED else None)

    async def operator(self) -> Actor:
        """An operator's command."""
        return await actor_on(self.database, self.vault)

    async def late_s(self) -> float:
        """How long ago the mail of the only order was due: it may have taken long to write it."""
        query = "SELECT extract(epoch FROM clock_now() - due_at)::float8 FROM mail_jobs"
        late_s: float = await self.database.fetchval(OPERATOR, query)
        return late_s

    async def open(self) -> None:
        self.principal = await self._make_customer("acme")
        self.product_id = await self.database.fetchval(
            OPERATOR,
            """
            INSERT INTO products (key, name, is_digital, currency, countries, denominations_minor)
            VALUES ('coffee', 'Coffee House e-gift', true, 'GBP', '{GB}', '{1000}') RETURNING id
            """,
        )
        self.use(self.server.url)

    def use(self, url: str | None, patience: SmtpTimeouts | None = None, **more: Any) -> None:
        """Sends through that server from now on; None: there is none. `more` is the mailer's."""
        transport = SmtpTransport(MailServer.from_url(url), patience=patience) if url else None
        self.mailer = Mailer(
            self.database,
            self.vault,
            public_url_of=lambda _: PUBLIC_URL,
            mail_from=MAIL_FROM,
            transport=transport,
            **more,
        )

    async def order(
        self,
        recipients: Sequence[tuple[str, str | None, int]],
        *,
        environment: str = "production",
        from_name: str | None = "Ada",
        message: str | None = "Well done!",
        wrapping_key: str = "confetti",
        due_in_s: float = 0.0,
        expiry_after_days: int | None = None,
    ) -> tuple[str, list[DrawnCode]]:
        """Writes an order as placing one does; returns its reference and codes, in line order."""
        lines = [(address, name) for address, name, quantity in recipients for _ in range(quantity)]
        codes, customer_id = draw_codes(len(lines)), self.principal.customer_id
        order_id = await self.database.fetchval(OPERATOR, "SELECT nextval('orders_id_seq')::int")
        now: datetime = await self.database.fetchval(OPERATOR, "SELECT clock_now()")
        reference = new_reference(now)
        sealed = list(SealedCodes(self.vault, codes, reference))
        async with self.database.transaction(OPERATOR) as connection:
            await connection.execute(
                """
                INSERT INTO orders (id, reference, customer_id, environment, service_account_id, source, gift_selection,
                    product_id, country, currency, value_minor, total_minor, code_count, recipient_count,
                    delivery_mode, wrapping_key, from_name, message, expiry_after_days, created_at)
                VALUES ($1, $2, $3, $4, $5, 'api', 'gift', $6, 'GB', 'GBP', 1000, 1000, $7, $8, 'send', $9, $10, $11,
                    $12, $13)
                """,
                order_id,
                reference,
                customer_id,
                environment,
                self.principal.service_account_id,
                self.product_id,
                len(lines),
                len({address.casefold() for address, _ in lines}),
                wrapping_key,
                from_name,
                message,
                expiry_after_days,
                now,
            )
            await connection.executemany(
                """
                INSERT INTO lines (customer_id, order_id, number, recipient_email, recipient_name, code_lookup, sealed)
                VALUES ($1, $2, $3, $4, $5, $6, $7)
                """,
                [
                    (customer_id, order_id, number, address, name, one.lookup, one.sealed)
                    for number, ((address, name), one) in enumerate(zip(lines, sealed, strict=True), 1)
                ],
            )
            await connection.execute(
                "INSERT INTO mail_jobs (customer_id, order_id, environment, due_at) VALUES ($1, $2, $3, $4)",
                customer_id,
                order_id,
                environment,
                now + timedelta(seconds=due_in_s),
            )
        return reference, codes

    async def resend(self, reference: str, address: str) -> RecipientDelivery:
        async with self.database.transaction(OPERATOR) as connection:
            return await resend(connection, self.principal, reference, address)

    async def deliveries(self, reference: str) -> list[RecipientDelivery]:
        async with self.database.connection(OPERATOR) as connection:
            return await list_order_deliveries(connection, self.principal, reference)

    async def cancel(self, reference: str, *numbers: int) -> None:
        """Voids lines as cancelling an order does."""
        await self.database.execute(
            OPERATOR,
            """
            INSERT INTO line_states (customer_id, order_id, number, state)
            SELECT customer_id, id, unnest($2::int[]), 'cancelled' FROM orders WHERE reference = $1
            """,
            reference,
            numbers,
        )

    async def fan_out(self) -> int:
        async with self.database.transaction(OPERATOR) as connection:
            _, made = await fan_out(connection, 100)
        return made

    async def send_order(
        self, recipients: Sequence[tuple[str, str | None, int]], **said: Any
    ) -> tuple[str, list[DrawnCode]]:
        """Writes an order and sends what is due now; returns what `order` does."""
        written = await self.order(recipients, **said)
        await self.send()
        return written

    async def send(self) -> None:
        """Sends what is due now until nothing is."""
        await self.fan_out()
        while await self.mailer.step():
            pass

    async def advance(self, seconds: float) -> None:
        """Moves the clock that mail goes by."""
        await self.database.execute(
            OPERATOR, "UPDATE clock SET ahead_by = ahead_by + $1 * interval '1 second'", seconds
        )

    async def states(self) -> list[str]:
        return [row["state"] for row in await self.database.fetch(OPERATOR, "SELECT state FROM messages ORDER BY id")]

    async def _make_customer(self, name: str) -> Principal:
        customer_id = await self.database.fetchval(
            OPERATOR,
            "INSERT INTO customers (key, name, plan, funding) VALUES ($1, $1, 'pro', 'invoiced') RETURNING id",
            name,
        )
        service_account_id = await self.database.fetchval(
            OPERATOR,
            "INSERT INTO service_accounts (customer_id, key, name) VALUES ($1, 'bot', 'Bot') RETURNING id",
            customer_id,
        )
        return Principal(1, "production", customer_id, name, "pro", "invoiced", service_account_id, "Bot", True)
