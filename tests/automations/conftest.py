"""A service with contacts, and what a worker and a serving process do for automations, called by hand."""

from collections.abc import Callable, Coroutine, Iterator
from datetime import date
from typing import Any

import pytest
from msgspec.structs import replace
from tests.budgets.conftest import perform as perform_as
from tests.campaigns.conftest import WORLD
from tests.chained import acting_on
from tests.web.api.conftest import Service, ServiceFactory, problem, start_service

from largesse.audit.service import Acting, by_person
from largesse.automations import placing
from largesse.automations.model import AutomationRule
from largesse.automations.placing import AutomationRunner
from largesse.automations.service import create_automation
from largesse.automations.tasks import plan
from largesse.customers.actor import Actor
from largesse.db.pool import Database
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR
from largesse.encryption.vault import Vault
from largesse.jobs.registry import WorkerContext
from largesse.web.kit.services import Services

__all__ = ["perform", "problem", "start_service"]


@pytest.fixture(scope="package", autouse=True)
def by_hand() -> Iterator[None]:
    """The services' own runners look once an hour: they would take gifts that a test is about to place."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placing, "_EVERY_S", 3600.0)
        yield


@pytest.fixture(scope="module")
def service(start_service: ServiceFactory) -> Service:
    return start_service(WORLD)


@pytest.fixture(autouse=True)
def as_before(service: Service) -> Iterator[None]:
    yield
    for table in ("automation_runs", "automations", "contact_members", "contact_groups", "contacts", "approval_rules"):
        service.sql(f"DELETE FROM {table}")
    service.sql("UPDATE clock SET ahead_by = '0'")
    service.sql(
        "UPDATE users SET is_active = true, role = CASE name WHEN 'Cem' THEN 'member' WHEN 'Fin' THEN 'finance' ELSE 'admin' END"
    )


def approve_all(service: Service) -> None:
    """Bea approves all automations."""
    [bea] = service.sql("SELECT id FROM users WHERE name = 'Bea'")
    approved = service.sql("UPDATE automations SET approved_by = $1, approved_at = now() RETURNING *", bea["id"])

    async def record(database: Database, vault: Vault) -> None:
        acting = Acting(by_person(bea["id"], "bea", None, None), (await acting_on(database, vault)).chains)
        async with database.transaction(OPERATOR) as connection:
            for row in approved:
                place = {"customer_id": row["customer_id"], "environment": row["environment"]}
                await acting.record(connection, "automation.approved", f"automation {row['id']}", **place)

    service.on_pool(record)


def rule(service: Service, **changes: Any) -> AutomationRule:
    """A birthday gift of £10, with changes."""
    usual = {
        "name": "Birthdays",
        "occasion": "birthday",
        "group_id": None,
        "template_id": service.ids["templates"]["welcome"],
        "account_id": service.ids["funding_accounts"]["gbp"],
        "zone": "Europe/London",
    }
    return AutomationRule(**{**usual, **changes})


def perform(service: Service, operation: Callable[..., Coroutine[Any, Any, Any]], *given: Any, **changes: Any) -> Any:
    """Performs an operation as Ada."""

    async def as_person(actor: Actor, *more: Any, **others: Any) -> Any:
        assert actor.person is not None, "Ada is one"
        return await operation(replace(actor, caller=actor.person.principal), *more, **others)

    return perform_as(service, as_person, *given, **changes)


@pytest.fixture
def automation(service: Service) -> Callable[..., int]:
    """`automation(**changes)`: sets one as Ada."""
    return lambda environment="production", **changes: perform(
        service, create_automation, rule(service, **changes), environment=environment
    )


def add_contact(service: Service, name: str, environment: str = "production", **columns: Any) -> int:
    """A contact, since long ago."""
    email = f"{name.lower()}@example.com"
    values = {"email": email, "email_key": email, "name": name, "sought": name.lower(), "country": "GB", **columns}
    names = ", ".join(values)
    marks = ", ".join(f"${number}" for number in range(2, 2 + len(values)))
    added: int = service.sql(
        f"INSERT INTO contacts (customer_id, environment, created_at, {names}) VALUES (1, $1, '2000-01-01Z', {marks}) RETURNING id",
        environment,
        *values.values(),
    )[0][0]
    return added


def add_group(service: Service, *contacts: int, name: str = "G", environment: str = "production") -> int:
    """A group with these contacts, since long ago."""
    group: int = service.sql(
        "INSERT INTO contact_groups (customer_id, environment, name) VALUES (1, $1, $2) RETURNING id", environment, name
    )[0][0]
    for contact in contacts:
        join(service, group, contact, date(2000, 1, 1))
    return group


def join(service: Service, group: int, contact: int, joined_on: date) -> None:
    service.sql("INSERT INTO contact_members VALUES (1, 'production', $1, $2, $3)", group, contact, joined_on)


def move_to(service: Service, instant: str) -> None:
    """Sets the database's clock."""
    service.sql(f"UPDATE clock SET ahead_by = '{instant}'::timestamptz - now()")


def work(service: Service, *, places: bool = True) -> None:
    """Plans as a worker does, and places as a serving process does, until there is nothing left to do."""

    async def run(database: Database, vault: Vault) -> None:
        await plan(WorkerContext(database, vault, lambda *_: None))

    async def place(services: Services) -> None:
        runner = AutomationRunner(services.database, services.orders, service.settings.environment)
        while await runner.step():
            pass

    service.on_pool(run, role=Role.WORKER)
    if places:
        service.on_services(place)


def runs(service: Service) -> list[tuple[str, date, str]]:
    """Whose gift, for which day, and how it stands."""
    rows = service.sql(
        """
        SELECT c.name, r.on_day, r.state FROM automation_runs r JOIN contacts c ON c.id = r.contact_id
        ORDER BY r.on_day, c.name
        """
    )
    return [tuple(row) for row in rows]


def placed(service: Service, year: int) -> list[tuple[str, str]]:
    """The recipients and references of the orders of automations for days of a year."""
    rows = service.sql(
        """
        SELECT l.recipient_email, o.external_reference FROM orders o JOIN lines l ON l.order_id = o.id AND l.customer_id = o.customer_id
        WHERE o.source = 'automation' AND o.external_reference LIKE $1 ORDER BY o.id
        """,
        f"automation-%-{year}-__-__",
    )
    return [tuple(row) for row in rows]
