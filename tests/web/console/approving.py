"""Approvals without a browser: a world with approvers, and the steps before what is tried."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser
from tests.web.console.sending import WORLD as SENDING
from tests.web.console.sending import ready

WORLD = SENDING.replace(
    "      - {email: fin@acme.example",
    "      - {email: bea@acme.example, name: Bea, role: admin}\n"
    "      - {email: mel@acme.example, name: Mel, role: member}\n"
    "      - {email: viv@acme.example, name: Viv, role: viewer}\n"
    "      - {email: fin@acme.example",
)
ROLES = {"ada": "admin", "bea": "admin", "cem": "member", "mel": "member", "fin": "finance", "viv": "viewer"}


@pytest.fixture(autouse=True)
def as_before(service: Service) -> Iterator[None]:
    yield
    tables = (
        "approval_decisions approval_requests approval_rules drafts budget_orders budget_periods budgets people_mails"
    )

    async def restore(connection: Any) -> None:
        await connection.execute("UPDATE clock SET ahead_by = '0'")
        for table in tables.split():
            await connection.execute(f"DELETE FROM {table}")
        await connection.execute("UPDATE accounts SET has_budgets = false")
        for name, role in ROLES.items():
            await _change(connection, name, f"role = '{role}', is_active = true")

    service.ask(restore)


def set_user(service: Service, name: str, changes: str) -> None:
    service.ask(lambda connection: _change(connection, name, changes))


async def _change(connection: Any, name: str, changes: str) -> None:
    async with connection.transaction():
        await connection.execute("SET LOCAL session_replication_role = replica")
        await connection.execute(f"UPDATE users SET {changes} WHERE email = $1", f"{name}@acme.example")


def user_id(service: Service, name: str) -> int:
    found: int = service.sql("SELECT id FROM users WHERE email = $1", f"{name}@acme.example")[0]["id"]
    return found


def set_rule(admin: Browser, **fields: Any) -> Any:
    admin.get("/app/approvals/rules")
    form = {"name": "Above ten", "role": "anybody", "above": "10", "currency": "GBP", "needed": "1", "days": "7"}
    return admin.post("/app/approvals/rules", **{**form, **fields})


def asked(sender: Browser, service: Service, **gift: Any) -> str:
    """A send that waits for approval; its reference."""
    path = ready(sender, service, **gift)
    assert "This send needs approval" in sender.read(f"{path}/review")
    answer = sender.post(f"{path}/ask")
    assert answer.status_code == 303, answer.text
    reference = path.rpartition("/")[2]
    assert answer.headers["location"] == f"/app/approvals/{reference}"
    return reference


def decided(approver: Browser, reference: str, decision: str = "approve", note: str = "") -> Any:
    return decided_as_seen(approver, approver.get(f"/app/approvals/{reference}").text, reference, decision, note)


def decided_as_seen(approver: Browser, page: str, reference: str, decision: str = "approve", note: str = "") -> Any:
    """Decides in a window that has that page of the send."""
    seen = {name: re.findall(rf'name="{name}" value="([^"]+)"', page) for name in ("token", "round")}
    fields = {name: found[0] for name, found in seen.items() if found}
    return approver.post(f"/app/approvals/{reference}", **fields, decision=decision, note=note)


def state(service: Service, reference: str) -> str:
    found: str = service.sql("SELECT state FROM approval_requests WHERE id = $1", reference)[0]["state"]
    return found


def orders_of(service: Service, reference: str) -> list[Any]:
    return service.sql("SELECT user_id, total_minor FROM orders WHERE reference = $1", reference)


def mails(service: Service) -> list[tuple[str, str]]:
    rows = service.sql(
        "SELECT m.kind, u.name FROM people_mails m JOIN users u ON u.id = m.user_id ORDER BY m.kind, u.name"
    )
    return [tuple(row) for row in rows]
