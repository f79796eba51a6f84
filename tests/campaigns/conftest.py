"""A service with campaigns, their visitors without a browser, and what a worker does for them, called by hand."""

from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from tests.orders.builder import open_session
from tests.web.api.conftest import Service, ServiceFactory, problem, start_service, work_off

from largesse.audit.service import Acting, by_person
from largesse.campaigns.model import CampaignRule
from largesse.campaigns.service import create_campaign
from largesse.campaigns.tasks import end_campaigns, mail_codes
from largesse.customers.actor import Actor, person_actor
from largesse.customers.authenticator import Caller, person_calls
from largesse.customers.sessions import Person
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR, for_customer
from largesse.encryption.vault import Vault
from largesse.lines.codes import asked_code
from largesse.web.kit.page_services import PageServices, page_services
from largesse.web.kit.services import Services

__all__ = ["problem", "start_service"]

WORLD = """
customers:
  - key: acme
    name: Acme Ltd
    plan: enterprise
    funding: balance
    users:
      - {email: ada@acme.example, name: Ada, role: admin}
      - {email: bea@acme.example, name: Bea, role: admin}
      - {email: cem@acme.example, name: Cem, role: member}
      - {email: fin@acme.example, name: Fin, role: finance}
    service_accounts: [{key: hr-bot, name: HR bot}]
    api_keys:
      - {key: hr, service_account: hr-bot, environment: production}
      - {key: hr-test, service_account: hr-bot, environment: staging}
    funding_accounts:
      - {key: gbp, name: Acme float, master: true, currency: GBP, balance: 1000000.00}
      - {key: small, name: Small pot, currency: GBP, balance: 25.00}
      - {key: test-gbp, name: Test float, master: true, currency: GBP, environment: staging, balance: 1000000.00}
    templates:
      - {key: welcome, name: Welcome, product: coffee, value: 10, country: GB, from_name: Acme, message: "Hello {first_name|you}"}
      - {key: parcel, name: Parcel, product: hamper, country: GB, from_name: Acme}
  - key: globex
    name: Globex
    plan: pro
    funding: invoiced
    users:
      - {email: gil@globex.example, name: Gil, role: admin}
    templates:
      - {key: hello, name: Hello, product: coffee, value: 5, country: GB}
products:
  - {key: coffee, name: Coffee House e-gift, digital: true, currency: GBP, countries: [GB], denominations: [5, 10, 25]}
  - {key: hamper, name: Hamper, digital: false, currency: GBP, cost: 35.00, markup_percent: 10, postage: {GB: 4.95}, vat_percent: {GB: 20}}
"""


@pytest.fixture(scope="module")
def service(start_service: ServiceFactory) -> Service:
    return start_service(WORLD)


@pytest.fixture(autouse=True)
def as_before(service: Service) -> Iterator[None]:
    yield
    service.sql("UPDATE campaigns SET due_at = clock_now(), closes_at = clock_now() WHERE ended_at IS NULL")
    work(service)
    service.sql("UPDATE campaigns SET ended_at = clock_now() WHERE ended_at IS NULL")
    service.sql("UPDATE clock SET ahead_by = '0'")
    service.sql("DELETE FROM claim_addresses")
    service.sql("DELETE FROM messages WHERE kind = 'campaign_code'")
    service.sql("DELETE FROM approval_rules")
    service.sql("UPDATE users SET is_active = true")


@dataclass
class Desk:
    """Whoever is signed in, with the services of a process."""

    services: PageServices
    actor: Actor
    caller: Caller


def on_desk(
    service: Service,
    work: Callable[[Desk], Coroutine[Any, Any, Any]],
    email: str = "ada@acme.example",
    environment: str = "production",
) -> Any:
    """Runs `work` as somebody who is signed in."""

    async def sign_in(database: Database, _: Vault) -> tuple[asyncpg.Record, int]:
        async with database.transaction(OPERATOR) as connection:
            row = await connection.fetchrow(
                "SELECT u.*, c.name AS customer, c.plan, c.funding FROM users u JOIN customers c ON c.id = u.customer_id WHERE u.email = $1",
                email,
            )
            return row, await open_session(connection, row["id"])

    row, session_id = service.on_pool(sign_in)

    async def run(services: Services) -> Any:
        async with services.database.connection(for_customer(row["customer_id"], environment)) as own:
            caller = await person_calls(
                own, user_id=row["id"], customer_id=row["customer_id"], environment=environment, session_id=session_id
            )
        person = Person(
            session_id, row["person_id"], row["id"], email, row["name"], row["role"], row["customer_id"], row["customer"], row["plan"],
            row["funding"], environment, is_proved=True,
        )  # fmt: skip
        acting = Acting(by_person(row["id"], email, None, None), services.chains)
        return await work(Desk(page_services(services), person_actor(services.database, person, acting), caller))

    return service.on_services(run)


def rule(service: Service, **changes: Any) -> CampaignRule:
    """Twenty gifts of £10 for addresses at acme.example, from an hour ago to tomorrow, with changes."""
    now = datetime.now(UTC)
    usual: dict[str, Any] = {
        "name": f"Summer {now.timestamp()}",
        "template_id": service.ids["templates"]["welcome"],
        "account_id": service.ids["funding_accounts"]["gbp"],
        "gifts": 20,
        "opens_at": now - timedelta(hours=1),
        "closes_at": now + timedelta(days=1),
        "domains": ("acme.example",),
    }
    return CampaignRule(**{**usual, **changes})


def reserve(service: Service, email: str = "ada@acme.example", **changes: Any) -> str:
    """Sets a campaign and orders its gifts; returns the token of its link."""

    async def work(desk: Desk) -> str:
        campaign = await create_campaign(desk.actor, desk.caller, rule(service, **changes))
        await desk.services.drafts.send(desk.caller, campaign.order_reference, None)
        return campaign.token

    return str(on_desk(service, work, email))


def work(service: Service) -> None:
    """Does what a worker does for campaigns, until there is nothing left to do."""
    work_off(service, mail_codes, end_campaigns)


def code_of(service: Service, email: str) -> str | None:
    """The code that was mailed last to an address."""
    rows = service.sql(
        "SELECT customer_id, line_numbers FROM messages WHERE kind = 'campaign_code' AND email = $1 ORDER BY id DESC LIMIT 1",
        email,
    )
    return asked_code(Vault(service.settings.master_keys), rows[0][0], -rows[0][1][0]) if rows else None


def taken(service: Service, token: str) -> list[tuple[str, int]]:
    """Who has a gift of a campaign, and which: mailbox and number."""
    rows = service.sql(
        """
        SELECT p.mailbox, p.number FROM campaign_people p JOIN campaigns c ON c.customer_id = p.customer_id AND c.id = p.campaign_id
        WHERE c.token = $1 AND p.number IS NOT NULL ORDER BY p.number
        """,
        token,
    )
    return [tuple(row) for row in rows]
