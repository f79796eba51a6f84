"""The service of tests/web/api, with budgets that are set by an administrator."""

from collections.abc import Callable, Coroutine, Iterator
from itertools import count
from typing import Any

import pytest
from tests.chained import actor_on
from tests.web.api.conftest import Service, problem, service, staging, start_service

from largesse.budgets.service import NewBudget, create_budget
from largesse.db.pool import Database
from largesse.encryption.vault import Vault

__all__ = ["problem", "service", "staging", "start_service"]


def perform(service: Service, operation: Callable[..., Coroutine[Any, Any, Any]], *given: Any, **changes: Any) -> Any:
    """Performs an operation as an administrator of the first customer, in the environment `environment`."""
    environment = changes.pop("environment", "production")

    async def work(database: Database, vault: Vault) -> Any:
        customer, ada = service.ids["customers"]["acme"], user(service, "ada@acme.example")
        return await operation(await actor_on(database, vault, customer, environment, ada), *given, **changes)

    return service.on_pool(work)


def user(service: Service, email: str) -> int:
    """The id of a member."""
    found: int = service.sql("SELECT id FROM users WHERE email = $1", email)[0]["id"]
    return found


_YEARS = count(2040)


@pytest.fixture
def budget(service: Service) -> Iterator[Callable[..., int]]:
    """`budget(name, limit=…, per_gift=…, …)` in minor units of pounds, of hr-bot by default; without budgets again afterwards.

    Each test has a year of its own, in which nothing was spent before.
    """
    service.sql(f"UPDATE clock SET ahead_by = '{next(_YEARS)}-05-10 12:00Z' - now()")

    def create(
        name: str, limit: int | None = None, per_gift: int | None = None, environment: str = "production", **of: Any
    ) -> int:
        if "kind" not in of:
            of |= {"kind": "service_account", "subject_id": service.ids["service_accounts"]["hr-bot"]}
        new = NewBudget(name=name, currency="GBP", limit_minor=limit, per_gift_minor=per_gift, **of)
        created: int = perform(service, create_budget, new, environment=environment)
        return created

    yield create
    service.sql("UPDATE clock SET ahead_by = '0'")
    for table in ("budget_orders", "budget_periods", "budget_people", "budgets"):
        service.sql(f"DELETE FROM {table}")
    service.sql("UPDATE accounts SET has_budgets = false")
