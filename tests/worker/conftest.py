"""Worker processes on one database, with a receiver and a mail server in the test's own process."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from tests.mail.conftest import Office, PostOffice
from tests.waiting import until
from tests.webhooks.conftest import LOOPBACK, Receiver

from largesse.base.settings import Settings, load_settings
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.encryption.vault import Vault
from largesse.jobs.leases import LEASE_S
from largesse.lines.codes import SealedCode, SealedCodes, draw_codes
from largesse.orders.ids import new_reference
from largesse.webhooks.store import CreatedSubscription, insert_subscription
from largesse.webhooks.targets import parse_target

MASTER_KEY = bytes(range(32))
PATIENCE_S = 60.0  # until something that must happen counts as not happening


@pytest.fixture
async def works(database_url: str, tmp_path: Path, database: Database) -> AsyncIterator[Works]:
    works = Works(database_url, tmp_path, database)
    await works.open()
    yield works
    await works.close()


@dataclass
class Works:
    """A customer with a subscription, orders placed as the API places them, and the workers that deliver."""

    database_url: str
    folder: Path
    database: Database
    receiver: Receiver = field(default_factory=Receiver)
    mail: PostOffice = field(default_factory=PostOffice)
    workers: list[asyncio.subprocess.Process] = field(default_factory=list)

    async def open(self) -> None:
        await self.receiver.start()
        await self.mail.start()
        self.vault = Vault((MASTER_KEY,))
        self.office = Office(self.database, self.vault, self.mail)
        await self.office.open()
        self.subscription = await self.subscribe(self.receiver.url())

    async def close(self) -> None:
        for worker in self.workers:
            if worker.returncode is None:
                worker.kill()
                await worker.wait()
        await self.office.mailer.close()
        await self.receiver.close()
        await self.mail.close()

    async def subscribe(self, url: str) -> CreatedSubscription:
        async with self.database.connection(OPERATOR) as connection:
            return await insert_subscription(
                connection, self.office.principal, self.vault, parse_target(url, LOOPBACK), "order.created"
            )

    @property
    def environ(self) -> dict[str, str]:
        return {
            "LARGESSE_DATABASE_URL": self.database_url,
            "LARGESSE_MASTER_KEY": base64.b64encode(MASTER_KEY).decode(),
            "LARGESSE_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8",
            "LARGESSE_WEBHOOK_TIMEOUT": "5",
            "LARGESSE_SMTP_URL": self.mail.url,
            "LARGESSE_MAIL_FROM": "Largesse <gifts@example.com>",
            "LARGESSE_PUBLIC_URL": "https://gifts.example.com",
        }

    @property
    def settings(self) -> Settings:
        return load_settings(self.environ)

    async def start_worker(self, *, lease_s: float = LEASE_S) -> asyncio.subprocess.Process:
        """A `largesse worker` of its own process, its leases so long; its log goes to `worker.log`."""
        program = ["-m", "largesse", "worker"]
        if lease_s != LEASE_S:
            program = [str(Path(__file__).with_name("short_leases.py")), str(lease_s)]
        with (self.folder / "worker.log").open("ab") as log:
            worker = await asyncio.create_subprocess_exec(
                sys.executable, *program, env={**os.environ, **self.environ}, stdout=log, stderr=log
            )
        self.workers.append(worker)
        return worker

    async def until_logged(self, event: str) -> None:
        """Waits until a worker has logged `event`."""
        await until(lambda: event in (self.folder / "worker.log").read_text())

    async def place(self, count: int, *, due_in_s: float = 0.0) -> list[int]:
        """Places orders of one recipient each, all in one transaction; returns their ids."""
        principal = self.office.principal
        now = await self.database.fetchval(OPERATOR, "SELECT clock_now()")
        ids = [
            row["id"]
            for row in await self.database.fetch(
                OPERATOR, "SELECT nextval('orders_id_seq')::int AS id FROM generate_series(1, $1::int)", count
            )
        ]
        references = [new_reference(now) for _ in ids]
        sealed = self._seal_codes(references)
        async with self.database.transaction(OPERATOR) as connection:
            await connection.execute(
                """
                INSERT INTO orders (id, reference, customer_id, environment, service_account_id, source, gift_selection,
                    product_id, country, currency, value_minor, total_minor, code_count, recipient_count,
                    delivery_mode, wrapping_key, from_name, created_at)
                SELECT id, reference, $3, 'production', $4, 'api', 'gift', $5, 'GB', 'GBP', 1000, 1000, 1, 1, 'send',
                    'default', 'Ada', $6
                FROM unnest($1::int[], $2::text[]) AS new (id, reference)
                """,
                ids,
                references,
                principal.customer_id,
                principal.service_account_id,
                self.office.product_id,
                now,
            )
            await connection.execute(
                """
                INSERT INTO lines (customer_id, order_id, number, recipient_email, code_lookup, sealed)
                SELECT $4, id, 1, 'guest' || id || '@example.com', lookup, sealed
                FROM unnest($1::int[], $2::bigint[], $3::bytea[]) AS new (id, lookup, sealed)
                """,
                ids,
                [one.lookup for one in sealed],
                [one.sealed for one in sealed],
                principal.customer_id,
            )
            await connection.execute(
                """
                INSERT INTO events (order_id, customer_id, environment, event, body, created_at)
                SELECT id, $2, 'production', 'order.created', convert_to('{"id":' || id || '}', 'UTF8'), $3
                FROM unnest($1::int[]) AS id
                """,
                ids,
                principal.customer_id,
                now,
            )
            await connection.execute(
                """
                INSERT INTO mail_jobs (customer_id, order_id, environment, due_at)
                SELECT $3, id, 'production', $2 FROM unnest($1::int[]) AS id
                """,
                ids,
                now + timedelta(seconds=due_in_s),
                principal.customer_id,
            )
        return ids

    def _seal_codes(self, references: Sequence[str]) -> list[SealedCode]:
        """One new code for each of these orders."""
        return [
            one
            for code, reference in zip(draw_codes(len(references)), references, strict=True)
            for one in SealedCodes(self.vault, [code], reference)
        ]

    def events_heard(self, start: int = 0) -> list[int]:
        """The ids of the orders the receiver was told of, repeats included, from the `start`-th on."""
        return [int(got.body[6:-1]) for got in self.receiver.got[start:]]

    def mails_got(self, start: int = 0) -> list[int]:
        """The ids of the orders whose mail arrived, repeats included, from the `start`-th on."""
        return [int(envelope.rcpt_tos[0].removeprefix("guest").partition("@")[0]) for envelope in self.mail.got[start:]]

    async def until_arrived(self, events: set[int], mails: set[int], *, longest_s: float = PATIENCE_S) -> None:
        """Waits until the events and mails of all these orders have arrived."""

        missing_events, missing_mails = set(events), set(mails)
        seen_events = seen_mails = 0

        def arrived() -> bool:
            nonlocal seen_events, seen_mails
            new_events, new_mails = self.events_heard(seen_events), self.mails_got(seen_mails)
            seen_events, seen_mails = seen_events + len(new_events), seen_mails + len(new_mails)
            missing_events.difference_update(new_events)
            missing_mails.difference_update(new_mails)
            return not missing_events and not missing_mails

        await until(arrived, longest_s)

    async def until_more_arrived(self, more: int) -> None:
        """Waits until so many more events and mails have arrived."""
        wanted = len(self.receiver.got) + len(self.mail.got) + more
        await until(lambda: len(self.receiver.got) + len(self.mail.got) >= wanted)

    async def until_settled(self) -> None:
        """Waits until nothing is pending any more."""

        async def settled() -> bool:
            row = await self.database.fetchrow(
                OPERATOR,
                """
                SELECT FROM deliveries WHERE state = 'pending' UNION ALL SELECT FROM messages WHERE state = 'pending'
                """,
            )
            return row is None

        await until(settled)
