"""Guessing PINs, codes and addresses: what is counted, who waits, and what nobody can tell apart."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.web.claim.conftest import PATHS, Codes, lookup_of, wrong


def test_a_wrong_pin_an_unknown_code_and_a_paused_one_answer_the_same_bytes(
    service: Any, recipient: Any, codes: Codes
) -> None:
    code, paused, cancelled = codes(*PATHS, 3, value=10)
    for _ in range(5):
        recipient.claim(paused, wrong(paused))
    answers = [
        recipient.claim(code, wrong(code)),
        recipient.post("/claim", code=code["code"], pin=wrong(code)),
        recipient.claim(paused),
        recipient.post("/claim", code=paused["code"], pin=paused["pin"]),
        recipient.post("/claim", code="0000-0000-0000-0000-0", pin="123456"),
        recipient.post("/claim", code="7QK2-M0TX-9ZVA-4RBE-H", pin="123456"),
        recipient.post("/claim", code="nonsense", pin=""),
        recipient.post("/claim", other=""),
        recipient.post("/claim/" + "A" * 40, pin="123456"),
        recipient.post("/claim/none", pin="123456"),
    ]
    assert {answer.status_code for answer in answers} == {403}
    assert len({answer.content for answer in answers}) == 1
    kept = [{k: v for k, v in answer.headers.items() if k not in {"date", "x-request-id"}} for answer in answers]
    assert all(headers == kept[0] for headers in kept)
    assert cancelled["code"] not in answers[0].text


def test_five_wrong_pins_pause_a_code_each_time_for_twice_as_long(
    service: Any, recipient: Any, codes: Codes, move_clock: Callable[[timedelta], None]
) -> None:
    code = codes("collection", "treats", value=10)[0]
    for pause_minutes in (15, 30, 60):
        for _ in range(5):
            assert recipient.claim(code, wrong(code)).status_code == 403
        assert recipient.claim(code).status_code == 403, "even the right PIN waits"
        move_clock(timedelta(minutes=pause_minutes) - timedelta(seconds=20))
        assert recipient.claim(code).status_code == 403
        move_clock(timedelta(seconds=21))
    assert recipient.claim(code).status_code == 303
    assert service.sql("SELECT FROM pin_failures WHERE NOT decoy AND key = $1", lookup_of(service, code)) == []


@pytest.mark.slow
def test_an_address_that_guesses_waits_and_others_do_not(
    recipient: Any, codes: Codes, move_clock: Callable[[timedelta], None]
) -> None:
    first, second = codes("collection", "treats", 2, value=10)
    for _ in range(100):
        began_s = time.monotonic()
        assert recipient.post("/claim", code="0000-0000-0000-0000-0", pin="123456").status_code == 403
        move_clock(timedelta(seconds=began_s - time.monotonic()))  # so that no try comes back on a slow machine
    slowed = recipient.claim(first)
    assert slowed.status_code == 429
    assert 1 <= int(slowed.headers["retry-after"]) <= 9
    assert "too many tries from your connection" in slowed.text
    recipient.host = "203.0.113.2"
    assert recipient.claim(second).status_code == 303


def test_no_address_is_kept_in_clear(service: Any, recipient: Any) -> None:
    recipient.host = "203.0.113.77"
    recipient.post("/claim", code="0000-0000-0000-0000-0", pin="123456")
    rows = service.sql("SELECT * FROM claim_addresses")
    assert rows
    assert "203.0.113.77" not in str(rows)


@pytest.mark.slow
def test_unknown_codes_fill_a_bounded_number_of_rows(service: Any, recipient: Any) -> None:
    for number in range(60):
        recipient.host = f"192.0.2.{number}"
        recipient.post("/claim", code="nonsense", pin="123456")
    keys = [row["key"] for row in service.sql("SELECT key FROM pin_failures WHERE decoy")]
    assert keys
    assert all(0 <= key < 65_536 for key in keys)
