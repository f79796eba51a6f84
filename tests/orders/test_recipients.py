"""Who gets one message: the addresses that differ in letter case alone, and no others."""

from typing import Any

from largesse.db.pool import Connection
from largesse.mail.messages import fan_out


def test_addresses_that_only_look_alike_get_their_own_codes(service: Any) -> None:
    sent = service.send(
        "gift",
        "coffee",
        value=5,
        recipients=[
            {"email": "stra\u00dfe@example.com"},
            {"email": "strasse@example.com"},
            {"email": "STRASSE@example.com", "quantity": 2},
        ],
    ).json()
    assert (sent["codeCount"], sent["recipientCount"]) == (4, 2)

    customers = [row["customer_id"] for row in service.sql("SELECT customer_id FROM orders")]

    async def make_messages(connection: Connection) -> None:
        async with connection.transaction():
            await fan_out(connection, 10, customers)

    service.run(make_messages)
    rows = service.sql("SELECT email, line_numbers FROM messages ORDER BY line_numbers")
    assert [tuple(row) for row in rows] == [("stra\u00dfe@example.com", [1]), ("strasse@example.com", [2, 3, 4])]
