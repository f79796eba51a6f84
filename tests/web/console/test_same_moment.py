"""Two administrators who save the same object at the same moment, each another field of it: both changes are kept."""

import asyncio
import json
from types import ModuleType
from typing import Any

import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser, SignIn
from tests.web.console.sending import WORLD

from largesse.budgets import service as budgets
from largesse.customers import service_accounts

BEA = "      - {email: cem@acme.example"
WORLD = WORLD.replace(BEA, "      - {email: bea@acme.example, name: Bea, role: admin}\n" + BEA)


@pytest.fixture
def save_both(sign_in: SignIn, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Saves a form of two people who have opened the page. The second saves it after the first one's handler has read the object."""

    def save(
        page: str, path: str, module: ModuleType, operation: str, first: dict[str, str], second: dict[str, str]
    ) -> None:
        ada, bea = (sign_in(f"{name}@acme.example") for name in ("ada", "bea"))
        carry_out = getattr(module, operation)

        async def after_the_other(*given: Any, **changes: Any) -> Any:
            monkeypatch.undo()
            assert (await asyncio.to_thread(bea.post, path, **second)).status_code == 303
            return await carry_out(*given, **changes)

        for browser in (ada, bea):
            browser.get(page)
        monkeypatch.setattr(module, operation, after_the_other)
        assert ada.post(path, **first).status_code == 303

    return save


def test_a_budget(service: Service, ada: Browser, save_both: Any) -> None:
    new = {"name": "Thanks", "of": "role-member", "currency": "GBP", "period": "month", "limit": "25", "per_gift": "9"}
    assert ada.submit("/app/budgets", **new).status_code == 303
    [budget] = service.sql("SELECT id FROM budgets")
    here, shown = f"/app/budgets/{budget['id']}", {"name": "Thanks", "limit": "25.00", "per_gift": "9.00"}
    form = shown | {f"was_{name}": value for name, value in shown.items()}
    save_both(here, here, budgets, "change_budget", form | {"limit": "50"}, form | {"per_gift": "7", "name": "More"})
    [row] = service.sql("SELECT name, limit_minor, per_gift_minor FROM budgets")
    assert tuple(row) == ("More", 50_00, 7_00)


def test_the_limits_of_a_service_account(service: Service, save_both: Any) -> None:
    here = f"/app/service-accounts/{service.ids['service_accounts']['bot']}"
    form = {"currency": "GBP", "largest_order": "", "daily": "", "was_largest_order": "", "was_daily": ""}
    both = form | {"largest_order": "10"}, form | {"daily": "20"}
    save_both(here, f"{here}/limit", service_accounts, "limit_service_account", *both)
    [row] = service.sql("SELECT limits FROM service_accounts")
    assert json.loads(row["limits"]) == {"GBP": {"largest_order_minor": 10_00, "daily_minor": 20_00}}
