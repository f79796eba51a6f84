"""The service of tests/api, and what stands in for the worker: mail that is due gets captured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.background import run_in_thread
from tests.web.api.conftest import Service, service, serving, staging, start_service

from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.encryption.vault import load_vault
from largesse.mail.mailer import Mailer
from largesse.mail.messages import fan_out
from largesse.main import build_app

__all__ = ["service", "staging", "start_service"]


@pytest.fixture
def capture(service: Service) -> Callable[[], None]:
    """Captures all mail that is due, of both environments, as the demo's worker does."""

    async def run() -> None:
        database = await Database.connect(service.database_url, max_connections=4)
        public_url = service.settings.public_url
        mailer = Mailer(
            database,
            load_vault(service.settings),
            public_url_of=lambda _: public_url,
            mail_from=service.settings.mail_from,
            transport=None,
            captures=True,
        )
        async with database.transaction(OPERATOR) as connection:
            await fan_out(connection, 100)
        while await mailer.step():
            pass
        await mailer.close()
        await database.close()

    return lambda: run_in_thread(run())


@pytest.fixture(scope="module")
def demo(service: Service) -> Iterator[Any]:
    """A production process with the mailbox, as the demo has it."""
    app = build_app(service.settings, mailbox=True)
    with serving(app) as url:
        shown = replace(service, url=url, app=app, _clients={})
        yield shown
        shown.close()
