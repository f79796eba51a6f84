"""Two releases run side by side: pages show a kind, state or role that only the later one knows as it is, and do not fail."""

import pytest
from tests.distributed import IS_DISTRIBUTED
from tests.web.api.conftest import Service
from tests.web.console.everything import Walk
from tests.web.console.test_every_page import WORLD as WORLD  # noqa: PLC0414 - the module's world
from tests.web.console.test_every_page import walk as walk  # noqa: PLC0414

LATER = "later_value"
# The values that a later release may add, by the tables and the columns that hold them.
COLUMNS = {
    "approval_requests": ("state",),
    "approval_rules": ("role",),
    "automation_runs": ("state",),
    "automations": ("occasion", "weekend", "leap_day"),
    "budgets": ("kind", "period"),
    "deliveries": ("state",),
    "messages": ("kind", "state"),
    "order_acts": ("act",),
    "orders": ("delivery_mode", "gift_selection"),
    "top_ups": ("state",),
    "webhook_subscriptions": ("event",),
}
OF_OTHERS = "UPDATE users SET role = '{}' WHERE email <> 'ada@acme.example'"
CHECKS = "SELECT conname FROM pg_constraint WHERE conrelid = '{}'::regclass AND contype = 'c'"


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.skipif(IS_DISTRIBUTED, reason="the constraints would have to be dropped on each node")
def test_values_of_a_later_release_are_shown_as_they_are(service: Service, walk: Walk) -> None:
    for table in (*COLUMNS, "users"):
        for (check,) in service.sql(CHECKS.format(table)):
            service.sql(f"ALTER TABLE {table} DROP CONSTRAINT {check}")
        service.sql(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    for table, columns in COLUMNS.items():
        for column in columns:
            service.sql(f"UPDATE {table} SET {column} = '{LATER}' WHERE {column} IS NOT NULL")
    service.sql(OF_OTHERS.format(LATER))
    seen = {path: walk.browser.get(path) for path, page in walk.pages.items() if page.status_code == 200}
    assert {path: page.status_code for path, page in seen.items() if page.status_code >= 500} == {}
    for path in ("/app/approvals/rules", "/app/automations", "/app/people", "/app/webhooks"):
        assert LATER in seen[path].text, path
