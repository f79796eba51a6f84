"""The mail about gifts of an automation that were refused or missed says how they are when it is sent."""

from tests.mail.conftest import text_of
from tests.mail.people.test_sending import (
    PUBLIC_URL,
    People,
    database,
    mailer,
    people,
    set_automation,
    somebody,
    waiting,
    worker,
)

from largesse.db.scope import OPERATOR
from largesse.jobs import outbox

__all__ = ["database", "mailer", "people", "worker"]


async def test_refused_gifts_of_an_automation_are_told_unless_they_were_sent_meanwhile(people: People) -> None:
    user_id, _ = await somebody(people.database, "una@acme.example")
    automation_id = await set_automation(people.database, user_id)
    await people.database.execute(
        OPERATOR,
        """
        INSERT INTO automation_runs (customer_id, environment, automation_id, contact_id, on_day, send_on, due_at, look_at, state, reason, ended_at)
        SELECT customer_id, 'production', $1, contact, current_date, current_date, now(), now(), state, reason,
               CASE WHEN state <> 'waiting' THEN now() END
        FROM users CROSS JOIN (VALUES (1, 'waiting', 'balance'), (2, 'waiting', 'balance'), (3, 'missed', NULL), (4, 'waiting', NULL),
                                      (5, 'waiting', 'not_approved')) AS new (contact, state, reason)
        WHERE users.id = $2
        """,
        automation_id,
        user_id,
    )
    told = await people.sent(outbox.mail_users, "automation_refused", [user_id], automation_id=automation_id)
    assert (told["To"], told["Subject"]) == ("una@acme.example", "3 gifts of “Birthdays” were not sent")
    assert "2 gifts were refused. The account's balance was too low." in text_of(told).replace("\r\n", "\n")
    assert "1 gift was missed" in text_of(told)
    assert f"{PUBLIC_URL}/app/automations/{automation_id}" in text_of(told)
    for change in (
        "UPDATE users SET role = 'viewer' WHERE name = 'Somebody'",
        "UPDATE automation_runs SET state = 'waiting', reason = NULL, ended_at = NULL",
    ):
        await people.queue(outbox.mail_users, "automation_refused", [user_id], automation_id=automation_id)
        await people.database.execute(OPERATOR, change)
        assert await people.mailer.step()
        assert await waiting(people.database) == 0
        assert len(people.server.messages()) == 1, change
        await people.database.execute(OPERATOR, "UPDATE users SET role = 'member' WHERE name = 'Somebody'")
