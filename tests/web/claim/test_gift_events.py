"""The events of a gift's life, each recorded once and in its order, as recipients, workers and customers move a gift."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
from tests.web.claim.conftest import Recipient, link

from largesse.db.scope import WORKER
from largesse.events.kinds import GiftEvent
from largesse.fulfilment.tasks import expire_late


def events(service: Any, reference: str) -> list[GiftEvent]:
    """The events of an order's lines, as they were recorded."""
    rows = service.of_order(reference, "body", "events", "AND line_number IS NOT NULL ORDER BY id")
    return [msgspec.json.decode(row["body"], type=GiftEvent) for row in rows]


def names(service: Any, reference: str) -> list[tuple[int, str]]:
    return [(event.number, event.event.removeprefix("gift.")) for event in events(service, reference)]


def place(service: Any, count: int = 1, product: str = "coffee", **members: Any) -> tuple[str, list[dict[str, str]]]:
    answer = service.send("gift", product, codeQuantity=count, **members)
    assert answer.status_code == 200, answer.text
    return answer.json()["reference"], answer.json()["codes"]


def test_opening_and_claiming_are_told_once(service: Any, recipient: Recipient) -> None:
    reference, (first, second) = place(service, 2, value=10)
    for _ in range(2):
        assert recipient.post(f"{link(first)}/opened").status_code == 204
    assert names(service, reference) == [(1, "opened")]
    recipient.gift(first)
    assert recipient.claim(first).status_code == 409
    Recipient(service).gift(second)
    assert names(service, reference)[:2] == [(1, "opened"), (1, "claimed")]
    assert [name for name in names(service, reference) if name[0] == 2][:2] == [(2, "opened"), (2, "claimed")]
    found = events(service, reference)
    assert len({event.id for event in found}) == len(found)
    assert {(event.reference, event.recipient) for event in found} == {(reference, None)}
    for code in (first, second):
        bodies = service.sql("SELECT convert_from(body, 'UTF8') AS body FROM events WHERE line_number IS NOT NULL")
        assert not any(code["pin"] in row["body"] or code["code"] in row["body"] for row in bodies)


def test_a_cancelled_order_is_told_line_by_line(service: Any, recipient: Recipient) -> None:
    reference, codes = place(service, 3, value=10)
    recipient.gift(codes[1])
    before = len(events(service, reference))
    assert service.client("hr").post(f"/orders/{reference}/cancel").status_code == 200
    assert service.client("hr").post(f"/orders/{reference}/cancel").status_code == 200
    assert names(service, reference)[before:] == [(1, "cancelled"), (3, "cancelled")]


def test_a_voucher_makes_a_gift_fulfilled(service: Any, recipient: Recipient, stock: Callable[..., Any]) -> None:
    stock("coffee", ["EVENT-1"], "5")
    reference, [code] = place(service, value=5)
    recipient.gift(code)
    assert [name for _, name in names(service, reference)] == ["opened", "claimed", "fulfilled"]
    instants = [event.occurred_at for event in events(service, reference)]
    assert instants == sorted(instants)


def test_a_gift_expires_once(service: Any, recipient: Recipient, move_clock: Callable[[timedelta], None]) -> None:
    reference, [code] = place(service, product="hamper", expiryAfterDays=1)
    recipient.gift(code)
    move_clock(timedelta(days=2))

    async def expire(database: Any, _: Any) -> None:
        async with database.transaction(WORKER) as connection:
            await expire_late(connection)

    for _ in range(2):
        service.on_pool(expire)
    assert [name for _, name in names(service, reference)] == ["opened", "claimed", "expired"]
