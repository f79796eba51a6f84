"""Kinds of messages: a worker takes those that it can write."""

import re

from tests.mail.conftest import Office

from largesse.db.scope import OPERATOR
from largesse.mail import messages


async def test_mail_of_the_next_release_is_left_to_its_workers(office: Office) -> None:
    """This release would send other words, and the mail would count as sent."""
    await office.order([("sam@example.com", "Sam", 1)])
    await office.fan_out()
    allowed = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'messages_kind_check'"
    known = [
        *re.findall(r"'(\w+)'", await office.database.fetchval(OPERATOR, allowed)),
        *("shipped_2", "shipped_10", "returned_2"),
    ]
    async with office.database.transaction(OPERATOR) as connection:
        await connection.execute("ALTER TABLE messages DROP CONSTRAINT messages_kind_check")
        taken = []
        for kind in [*known, "anniversary", "gift_again", "reminder_4"]:
            await connection.execute("UPDATE messages SET kind = $1, leased_until = '-infinity'", kind)
            taken += [row["kind"] for row in await messages.MESSAGES.take(connection, 1)]
    assert taken == known
    assert "gift" in known
