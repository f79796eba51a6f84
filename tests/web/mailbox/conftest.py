"""The service of tests/api, and what stands in for the worker: mail that is due gets captured."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.web.api.conftest import Service, service, serving, staging, start_service

from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.encryption.vault import Vault
from largesse.mail.mailer import Mailer
from largesse.mail.messages import fan_out
from largesse.main import build_app

__all__ = ["service", "staging", "start_service"]


@pytest.fixture
def capture(service: Service) -> Callable[[], None]:
    """Captures the mail that is due."""
    return lambda: capture_mail(service)


def capture_mail(service: Service) -> None:
    """Captures all mail that is due, of both environments, as the demo's worker does."""

    async def run(database: Database, vault: Vault) -> None:
        mailer = Mailer(
            database,
            vault,
            public_url_of=lambda _: service.settings.public_url,
            mail_from=service.settings.mail_from,
            transport=None,
            captures=True,
        )
        async with database.transaction(OPERATOR) as connection:
            await fan_out(connection, 100)
        while await mailer.step():
            pass
        await mailer.close()

    service.on_pool(run)


@pytest.fixture(scope="module")
def demo(service: Service) -> Iterator[Any]:
    """A production process with the mailbox, as the demo has it."""
    app = build_app(service.settings, mailbox=True)
    with serving(app) as url:
        shown = replace(service, url=url, app=app, _clients={})
        yield shown
        for client in shown._clients.values():  # all else is the service's, which ends after it
            client.close()
