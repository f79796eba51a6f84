"""`sendAt` is judged by the clock that deliveries go by: the database's. The application's own may say anything."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest


@pytest.fixture
def move_clock(service: Any) -> Any:
    """Sets how far the clock that deliveries go by is ahead of the one this process has."""

    def move(ahead_by: timedelta) -> None:
        service.sql("UPDATE clock SET ahead_by = $1", ahead_by)

    yield move
    move(timedelta())


@pytest.mark.parametrize("hours", [-3, 3])
def test_send_at_is_judged_by_the_databases_clock(service: Any, problem: Any, move_clock: Any, hours: int) -> None:
    move_clock(timedelta(hours=hours))
    there = datetime.now(UTC) + timedelta(hours=hours)
    recipients = [{"email": "sam@example.com"}]

    def send(send_at: datetime) -> Any:
        return service.send("gift", "coffee", value=5, recipients=recipients, sendAt=send_at.isoformat())

    assert "`sendAt` must be in the future" in problem(send(there - timedelta(minutes=1)), 400)
    send_at = (there + timedelta(minutes=1)).replace(microsecond=0)
    answer = send(send_at)
    assert answer.status_code == 200
    reference = answer.json()["reference"]
    (row,) = service.sql(
        """
        SELECT due_at, due_at > clock_now() AS waits, abs(extract(epoch FROM clock_now() - created_at)) AS age_s
        FROM mail_jobs JOIN orders ON orders.id = order_id WHERE reference = $1
        """,
        reference,
    )
    assert (row["due_at"], row["waits"]) == (send_at, True)
    assert row["age_s"] < 600
    record = service.client("hr").get("/orders?limit=1").json()[0]
    assert record["reference"] == reference
    assert abs(datetime.fromisoformat(record["creationDate"]) - there) < timedelta(minutes=10)


def test_a_service_whose_clock_is_moved_places_and_delivers_at_once(service: Any, move_clock: Any) -> None:
    """An order without `sendAt` is due the moment it is placed, whichever clock is ahead."""
    for hours in (-3, 3):
        move_clock(timedelta(hours=hours))
        answer = service.send("gift", "coffee", value=5, recipients=[{"email": "sam@example.com"}])
        due = "SELECT due_at <= clock_now() AS due FROM mail_jobs ORDER BY order_id DESC LIMIT 1"
        assert answer.json()["scheduledFor"] is None
        assert service.sql(due)[0]["due"]
