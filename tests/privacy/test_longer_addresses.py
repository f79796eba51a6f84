"""An address is told apart from longer ones that end or begin as it does."""

import json

import asyncpg
import pytest
from tests.privacy.conftest import ALEX, Run, dump
from tests.reports.generator import generate
from tests.web.api.conftest import Service

from largesse.orders.erasing import _TEXTS, find_orders_mentioning


def test_an_address_is_not_found_in_a_longer_one(service: Service, run: Run) -> None:
    """Fred has nothing to do with Ed, nor with who has the same address under a shorter domain."""
    longer, draft = "Zedfred@zed.example.com", "00000000000000000002"
    gift = {"value": 5, "recipients": [{"email": ALEX}]}
    sent = service.send("gift", "coffee", **gift, message=f"Ask {longer}", externalReference=longer)
    service.send("gift", "coffee", **gift, message=f"{{name}} {longer}", placeholders=True)
    note = "INSERT INTO customer_notes (customer_id, author, note, written_at) VALUES (1, 'Eve', $1, now())"
    service.sql(note, longer)
    service.sql(
        """
        WITH person AS (SELECT id, customer_id FROM users ORDER BY id LIMIT 1)
        INSERT INTO drafts (customer_id, environment, id, user_id, content, created_at, changed_at)
        SELECT customer_id, 'production', $1, id, $2::jsonb, now(), now() FROM person
        """,
        draft,
        json.dumps({"message": f"To\n{longer}"}),
    )
    service.sql(
        """
        INSERT INTO contacts (customer_id, environment, created_at, email, email_key, name, sought, own_fields)
        VALUES (1, 'production', now(), 'kim@example.com', 'kim@example.com', '', '', $1::jsonb)
        """,
        json.dumps({"boss": longer}),
    )
    for part in ("fred@zed.example.com", "zedfred@zed.example.co"):
        assert run("privacy", "export", part).exit_code == 1
        assert run("privacy", "erase", part).exit_code == 1
    held = json.loads(run("privacy", "export", longer).stdout)
    assert [order["external_reference"] for order in held["orders"]] == [longer, None]
    assert (held["drafts"], len(held["customer_notes"])) == (1, 1)
    receipt = json.loads(run("privacy", "erase", longer, "--json").stdout)
    assert [receipt[name] for name in ("texts", "drafts", "contacts", "customer_notes")] == [2, 1, 1, 1]
    assert service.client("hr").get(f"/orders/{sent.json()['reference']}/request").json()["message"] == "Ask …"
    assert longer.lower() not in dump(service)


@pytest.mark.parametrize("column", _TEXTS)
async def test_an_address_is_found_in_each_text(connection: asyncpg.Connection, column: str) -> None:
    await generate(connection, 20)
    await connection.execute(f"UPDATE orders SET {', '.join(f'{name} = NULL' for name in _TEXTS)}")
    order = await connection.fetchrow("SELECT customer_id, id FROM orders ORDER BY id DESC LIMIT 1")
    await connection.execute(f"UPDATE orders SET {column} = 'Ask Ada@Example.com!' WHERE id = $1", order["id"])
    assert await find_orders_mentioning(connection, "ada@example.com", None) == [tuple(order)]
    assert await find_orders_mentioning(connection, "ada@example.com", order["customer_id"] + 1) == []
    assert await find_orders_mentioning(connection, "da@example.com", None) == []
