"""Orders of a customer and others, and what a worker does with them, for tests of the pages about orders."""

import re
from typing import Any

import pytest
from tests.reports.conftest import take_all
from tests.web.api.conftest import OF_ORDER, RICH_WORLD, Service
from tests.web.console.conftest import Browser, signed_in

from largesse.db.pool import Database
from largesse.db.scope import WORKER
from largesse.encryption.vault import Vault
from largesse.mail.messages import fan_out

WORLD = RICH_WORLD.replace(
    "      - {email: bob@acme.example, name: Bob, role: member, active: false}\n",
    "      - {email: bob@acme.example, name: Bob, role: member, active: false}\n"
    "      - {email: fay@acme.example, name: Fay, role: finance}\n"
    "      - {email: vic@acme.example, name: Vic, role: viewer}\n",
)
TWO = [
    {"email": "ada.king@acme.example", "name": "Ada King", "quantity": 2},
    {"email": "ben@acme.example", "name": "=Ben"},
]


def work(service: Service) -> None:
    """What a worker does: mail is fanned out, and the read models follow."""

    async def do(database: Database, _: Vault) -> None:
        async with database.transaction(WORKER) as connection:
            await fan_out(connection, 100)
        await take_all(database)

    service.on_pool(do)


def send(service: Service, **members: Any) -> str:
    return service.send("gift", "coffee", **{"value": 10, "recipients": TWO, **members}).json()["reference"]


def sent_mail(service: Service, reference: str, state: str = "sent", fault: str | None = None) -> None:
    reason = "550 no such user" if state == "bounced" else None
    change = f"UPDATE messages SET state = $2, finished_at = now(), reason = $3, fault = $4 WHERE {OF_ORDER}"
    service.sql(change, reference, state, reason, fault)
    changed(service, reference)


def change_mail(service: Service, reference: str, change: str, who: str = "%") -> None:
    """Changes the messages of an order to addresses like `who`."""
    service.sql(f"UPDATE messages SET {change} WHERE {OF_ORDER} AND email ILIKE $2", reference, who)


def put_away(service: Service, reference: str) -> None:
    """Out of the way of other tests."""
    service.sql("UPDATE orders SET environment = 'staging' WHERE reference = $1", reference)
    changed(service, reference)
    work(service)


def changed(service: Service, reference: str) -> None:
    service.sql(
        """
        INSERT INTO order_changes (customer_id, order_id, changed_at)
        SELECT customer_id, id, now() FROM orders WHERE reference = $1
        """,
        reference,
    )


def placed_by(service: Service, reference: str, email: str) -> None:
    """As if that person had placed the order in the web application."""
    service.sql(
        "UPDATE orders SET service_account_id = NULL, user_id = (SELECT id FROM users WHERE email = $2) WHERE reference = $1",
        reference,
        email,
    )


@pytest.fixture(scope="module")
def ada(service: Service) -> Browser:
    return signed_in(service, "ada@acme.example")


@pytest.fixture(scope="module")
def cem(service: Service) -> Browser:
    return signed_in(service, "cem@acme.example")


@pytest.fixture(scope="module")
def filled(service: Service) -> dict[str, str]:
    """The orders of `fill`, which a module's tests share."""
    return fill(service)


def fill(service: Service) -> dict[str, str]:
    """An order of a batch, one to two recipients, one that the member Cem placed, another customer's and one of staging."""
    orders = {
        "batch": send(service, recipients=None, codeQuantity=3, source="crm", externalReference="BATCH-1"),
        "sent": send(service, externalReference="PO-77", fromName="The board", message="Well done"),
        "own": send(service, source="web", message="From Cem"),
        "foreign": send(service, key="globex", account="globex-gbp"),
        "staging": service.send("gift", "coffee", value=5).json()["reference"],
    }
    placed_by(service, orders["own"], "cem@acme.example")
    service.sql("UPDATE orders SET environment = 'staging' WHERE reference = $1", orders["staging"])
    work(service)
    return orders


def listed(browser: Browser, query: str = "") -> list[str]:
    assert browser.get(f"/app/orders{query}").status_code == 200, browser.page
    return re.findall(r'<th scope="row">.*?<a href="/app/orders/(\w+)">', browser.page.text, re.DOTALL)
