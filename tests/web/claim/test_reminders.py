"""Reminders: by day, each once, and never after a claim, a cancellation, a bounce or the recipient's "no more"."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.web.api.conftest import Service
from tests.web.claim.conftest import link
from tests.web.claim.test_claim_by import default, follow_up_all

from largesse.base.email import email_key
from largesse.db.pool import Database
from largesse.db.roles import Role
from largesse.db.scope import WORKER
from largesse.encryption.vault import Vault
from largesse.mail.letter import message_id, write
from largesse.mail.messages import Message, fan_out, take
from largesse.mail.outcomes import Sent, record
from largesse.orders.follow_ups import FollowUpDefaults

__all__ = ["default", "follow_up_all"]

Mailed = Callable[..., list[str]]
# A Monday at ten, when it is day in all of Europe, so that hours do not decide which test passes.
TEN = datetime(2030, 6, 3, 10, tzinfo=UTC)


@pytest.fixture
def service(own_service: Service) -> Service:
    """A service with a new database for each test: all mails that are due are sent."""
    return own_service


@pytest.fixture(autouse=True)
def ten_o_clock(service: Service) -> None:
    at(service, TEN)


def at(service: Any, instant: datetime) -> None:
    """Sets the clock that the database goes by."""
    service.sql("UPDATE clock SET ahead_by = $1 - now()", instant)


def days(service: Any, count: float) -> None:
    at(service, TEN + timedelta(days=count))


@pytest.fixture
def mailed(service: Any) -> Mailed:
    """Sends what is due, as the mailer does; returns whom, `reminder_1 sam@example.com`. `bounces` are refused, `letters` gets the mails."""

    def run(*, bounces: tuple[str, ...] = (), letters: list[str] | None = None, only: str = "reminder") -> list[str]:
        async def send(_: Any) -> list[str]:
            database = await Database.connect(service.database_url, role=Role.WORKER)
            async with database.transaction(WORKER) as connection:
                while (await fan_out(connection, 100))[0]:
                    pass
            async with database.transaction(WORKER) as connection:
                taken = await take(
                    connection, 10_000, Vault(service.settings.master_keys), lambda _: "https://gifts.example"
                )
                await record(connection, [_outcome(one, bounces) for one in taken])
            await database.close()
            for one in taken:
                if letters is not None and one.letter.kind.startswith(only):
                    letters.append(write(one.letter, "Gifts <gifts@example.com>", at=0).decode())
            return sorted(f"{one.letter.kind} {one.letter.email}" for one in taken if one.letter.kind.startswith(only))

        sent: list[str] = service.run(send)
        return sent

    return run


def _outcome(message: Message, bounces: tuple[str, ...]) -> Sent:
    is_refused = email_key(message.letter.email) in bounces
    return Sent(message, "bounced" if is_refused else "sent", fault="recipient" if is_refused else None)


def send(service: Any, *names: str, **members: Any) -> dict[str, Any]:
    to = [{"email": f"{name}@example.com", "name": name.title()} for name in names]
    answer = service.send("collection", "treats", value=10, recipients=to, **members)
    assert answer.status_code == 200, answer.text
    order: dict[str, Any] = answer.json()
    return order


def links(letter: str) -> list[str]:
    """The claim links in a mail, as paths."""
    return re.findall(
        r"https://gifts\.example(/claim/[\w-]+)#pin=(\d+)", letter.replace("=\r\n", "").replace("=3D", "=")
    )  # type: ignore[return-value]


def test_reminders_leave_by_day_each_once_and_in_the_words_of_the_recipient(
    service: Any, follow_up_all: Any, mailed: Mailed, verified: Any
) -> None:
    send(service, "ann", "bob", reminderDays=[2, 5], sendAt=None)
    assert mailed(only="gift") == ["gift ann@example.com", "gift bob@example.com"]
    days(service, 1.9)
    follow_up_all()
    assert mailed() == []
    days(service, 2 - 8 / 24 + 1)  # after the two days, in the night
    follow_up_all()
    assert mailed() == []
    days(service, 3)
    follow_up_all()
    follow_up_all()
    letters: list[str] = []
    assert mailed(letters=letters) == ["reminder_1 ann@example.com", "reminder_1 bob@example.com"]
    assert "You have not opened this gift yet." in letters[0].replace("=\r\n", "")
    assert "List-Unsubscribe-Post: List-Unsubscribe=One-Click" in letters[0]
    assert re.search(r"List-Unsubscribe: <https://gifts\.example/claim/[\w-]+/reminders>", letters[0])
    follow_up_all()
    assert mailed() == []
    days(service, 5.1)
    follow_up_all()
    assert mailed() == ["reminder_2 ann@example.com", "reminder_2 bob@example.com"]
    days(service, 300)
    follow_up_all()
    assert mailed() == []
    assert verified() == []


def test_missed_reminders_become_one(service: Any, follow_up_all: Any, mailed: Mailed) -> None:
    send(service, "late", reminderDays=[1, 2, 3])
    mailed()
    days(service, 30)
    follow_up_all()
    assert mailed() == ["reminder_3 late@example.com"]
    days(service, 60)
    follow_up_all()
    assert mailed() == []


@pytest.mark.slow
def test_there_is_one_before_the_claim_by_date_and_none_after(
    service: Any, follow_up_all: Any, mailed: Mailed, verified: Any
) -> None:
    send(service, "cat", claimBy=(TEN + timedelta(days=10)).isoformat())
    mailed()
    days(service, 6.9)
    follow_up_all()
    assert mailed() == []
    days(service, 7.1)
    follow_up_all()
    letters: list[str] = []
    assert mailed(letters=letters) == ["reminder_last cat@example.com"]
    assert "Claim it by 12 June 2030" in letters[0].replace("=\r\n", "")
    days(service, 11)
    follow_up_all()
    assert mailed() == []
    assert verified() == []


@pytest.mark.slow
def test_nobody_is_reminded_after_a_claim_a_cancellation_a_bounce_or_no_more(
    service: Any, recipient: Any, follow_up_all: Any, mailed: Mailed, verified: Any
) -> None:
    order = send(service, "claims", "bounces", "stops", "stays", reminderDays=[2, 4])
    letters: list[str] = []
    mailed(bounces=("bounces@example.com",), letters=letters, only="gift")
    by_name = {name: next(one for one in letters if f"<{name}@example.com>" in one) for name in ("claims", "stops")}
    [(path, pin)] = set(links(by_name["claims"]))
    assert recipient.post(path, pin=pin).status_code == 303
    [(path, _)] = set(links(by_name["stops"]))
    page = recipient.get(f"{path}/reminders")
    assert "End the reminders?" in page.text
    days(service, 2.1)
    follow_up_all()  # which makes reminders for two, and then one of them wants no more
    done = service.client().post(f"{path}/reminders", content="List-Unsubscribe=One-Click")
    assert (done.status_code, "You get no more of these reminders." in done.text) == (200, True)
    assert "No more reminders" in recipient.get(f"{path}/reminders").text
    assert mailed() == ["reminder_1 stays@example.com"]
    assert recipient.post(path, pin="0").status_code == 403  # the gift is still there to be claimed
    service.client("hr").post(f"/orders/{order['reference']}/cancel")
    days(service, 5)
    follow_up_all()
    assert mailed() == []
    assert verified() == []


@pytest.mark.slow
def test_a_claim_and_a_cancellation_take_back_a_reminder_that_has_not_left(
    service: Any, recipient: Any, follow_up_all: Any, mailed: Mailed, verified: Any
) -> None:
    to = [{"email": "many@example.com", "quantity": 3}]
    order = service.send("collection", "treats", value=10, recipients=to, reminderDays=[2]).json()
    letters: list[str] = []
    mailed(letters=letters, only="gift")
    first, second, _ = sorted(set(links(letters[0])))
    days(service, 2.1)
    follow_up_all()
    assert recipient.post(first[0], pin=first[1]).status_code == 303
    [row] = service.sql(
        "SELECT state, cardinality(line_numbers) FROM messages WHERE kind = 'reminder_1' AND email = 'many@example.com'"
    )
    assert tuple(row) == ("pending", 2)
    assert verified() == []
    assert recipient.post(second[0], pin=second[1]).status_code == 303
    service.client("hr").post(f"/orders/{order['reference']}/cancel")
    [row] = service.sql("SELECT state FROM messages WHERE kind = 'reminder_1' AND email = 'many@example.com'")
    assert row[0] == "cancelled"
    assert mailed() == []
    assert verified() == []


def test_a_reminder_that_bounces_is_the_last(service: Any, follow_up_all: Any, mailed: Mailed) -> None:
    send(service, "gone", reminderDays=[2, 4])
    mailed()
    days(service, 2.1)
    follow_up_all()
    assert mailed(bounces=("gone@example.com",)) == ["reminder_1 gone@example.com"]
    days(service, 4.1)
    follow_up_all()
    assert mailed() == []


def test_the_message_id_is_of_the_recipient_and_the_reminder(service: Any, follow_up_all: Any, mailed: Mailed) -> None:
    order = send(service, "one", "two", reminderDays=[2, 4])
    mailed()
    found: list[str] = []
    for later in (2.1, 4.1):
        days(service, later)
        follow_up_all()
        letters: list[str] = []
        mailed(letters=letters)
        found += [re.findall(r"Message-ID: (\S+)", one)[0] for one in letters]
    assert len(set(found)) == 4
    rows = service.of_order(
        order["reference"], "count(*), count(DISTINCT (email, kind, edition))", "messages", "AND kind LIKE 'reminder%'"
    )
    assert tuple(rows[0]) == (4, 4)
    assert message_id is not None


def test_a_scheduled_order_is_reminded_from_when_it_leaves(service: Any, follow_up_all: Any, mailed: Mailed) -> None:
    send(service, "soon", sendAt=(TEN + timedelta(days=5)).isoformat(), reminderDays=[2])
    days(service, 3)
    follow_up_all()
    assert mailed(only="") == []
    days(service, 5.01)
    follow_up_all()
    assert mailed(only="") == ["gift soon@example.com"]
    days(service, 7.02)
    follow_up_all()
    assert mailed() == ["reminder_1 soon@example.com"]


def test_a_default_reminds_and_an_empty_list_does_not(service: Any, default: Any) -> None:
    def stored(**members: Any) -> list[int]:
        order = send(service, "pat", **members)
        got: list[int] = service.client("hr").get(f"/orders/{order['reference']}/request").json()["reminderDays"]
        return got

    assert stored() == []
    default(FollowUpDefaults(reminder_days=(3, 9)))
    assert stored() == []
    default(FollowUpDefaults(reminder_days=(3, 9), of_api=True))
    assert stored() == [3, 9]
    assert stored(reminderDays=[]) == []
    assert stored(reminderDays=[1]) == [1]
    batch = service.send("collection", "treats", value=10, codeQuantity=1, reminderDays=[1]).json()
    assert service.client("hr").get(f"/orders/{batch['reference']}/request").json()["reminderDays"] == []


def test_a_link_that_leads_nowhere_ends_no_reminders(service: Any, codes: Any) -> None:
    path = link(codes("collection", "treats", value=10)[0])
    assert service.client().post(f"{path[:-4]}AAAA/reminders").status_code == 404
    assert service.client().post(f"{path}/reminders", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
