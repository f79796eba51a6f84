"""Thank-you notes on the page of a claimed gift."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from tests.web.claim.conftest import Codes, Recipient, form_of
from tests.web.claim.test_fulfilling import WORLD


@pytest.fixture(scope="module")
def service(start_service: Any) -> Any:
    return start_service(WORLD)


@pytest.fixture(autouse=True)
def no_notes(service: Any) -> Iterator[None]:
    yield
    service.sql("DELETE FROM thank_you_notes")
    service.sql("UPDATE customers SET takes_notes = true")


def stored(service: Any) -> int:
    return int(service.sql("SELECT count(*) FROM thank_you_notes")[0][0])


def thank(recipient: Recipient, gift: str, note: str) -> httpx.Response:
    return recipient.post(f"{gift}/thank", key=form_of(recipient.get(gift)).get("key", ""), note=note)


def test_a_recipient_writes_one_note(service: Any, codes: Codes, verified: Callable[[], list[str]]) -> None:
    recipient = Recipient(service)
    gift = recipient.gift(codes("gift", "coffee", value=10)[0])
    assert "Say thank you" in recipient.get(gift).text
    note = "Thank you, <b>all</b>!\nIt is lovely."
    answer = thank(recipient, gift, note)
    assert (answer.status_code, answer.headers["location"]) == (303, f"{gift}#thanks")
    page = recipient.get(gift).text
    assert "Thank you, &lt;b&gt;all&lt;/b&gt;!\nIt is lovely." in page
    assert f"{gift}/thank" not in page
    assert thank(recipient, gift, "Another").status_code == 303
    assert stored(service) == 1
    assert not service.sql("SELECT 1 FROM thank_you_notes WHERE position('lovely' IN encode(sealed, 'escape')) > 0")
    assert service.sql("SELECT count(*) FROM people_mails")[0][0] == 0  # nobody sent it: an API key did
    assert verified() == []
    service.sql("UPDATE thank_you_notes SET number = 77")
    assert any("notes-thank-for-gifts" in finding for finding in verified())


@pytest.mark.parametrize(
    ("note", "said"),
    [
        ("x" * 501, "at most 500 characters"),
        ("see evil.com/x", "leave out links"),
        ("  ", "fill this in"),
        ("a\x1bb", "ordinary signs"),
    ],
)
def test_what_is_wrong_with_a_note_is_said_beside_it_and_it_stays(
    service: Any, codes: Codes, note: str, said: str
) -> None:
    recipient = Recipient(service)
    gift = recipient.gift(codes("gift", "coffee", value=10)[0])
    answer = thank(recipient, gift, note)
    assert answer.status_code == 422
    assert said in answer.text
    assert "maxlength" not in answer.text.partition("<textarea")[2].partition(">")[0], (
        "browsers cut the end off in silence"
    )
    assert 'aria-describedby="note-hint note-error"' in answer.text
    assert f">{note.strip()}</textarea>" in answer.text or not note.strip() or "\x1b" in note
    assert stored(service) == 0
    assert thank(recipient, gift, "x" * 500).status_code == 303
    assert stored(service) == 1


def test_of_many_at_once_one_is_stored(service: Any, codes: Codes) -> None:
    recipient = Recipient(service)
    gift = recipient.gift(codes("gift", "coffee", value=10)[0])
    key = form_of(recipient.get(gift))["key"]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: recipient.post(f"{gift}/thank", key=key, note=f"Note {n}"), range(8)))
    assert {answer.status_code for answer in answers} == {303}
    assert stored(service) == 1


def test_a_note_needs_the_session_of_its_gift(service: Any, codes: Codes) -> None:
    one, other = Recipient(service), Recipient(service)
    first, second = codes("gift", "coffee", 2, value=10)
    gift, another = one.gift(first), other.gift(second)
    foreign = form_of(other.get(another))["key"]
    for key in ("", "x", foreign):
        assert one.post(f"{gift}/thank", key=key, note="Hello").status_code >= 400
    assert other.post(f"{gift}/thank", key=foreign, note="Hello").status_code >= 400
    assert stored(service) == 0


def test_before_the_choice_and_when_they_are_off_there_is_no_note(service: Any, codes: Codes) -> None:
    recipient = Recipient(service)
    gift = recipient.gift(codes("collection", "treats", value=50)[0])
    assert "Say thank you" not in recipient.get(gift).text
    asked = recipient.get(f"{gift}/choose?product={service.ids['products']['shop']}")
    assert recipient.post(f"{gift}/thank", **form_of(asked), note="Hello").status_code == 303
    gift = recipient.gift(codes("gift", "coffee", value=10)[0])
    service.sql("UPDATE customers SET takes_notes = false")
    assert "Say thank you" not in recipient.get(gift).text
    assert stored(service) == 0


def test_who_wrote_a_note_while_they_were_turned_off_reads_so_and_keeps_the_text(service: Any, codes: Codes) -> None:
    recipient = Recipient(service)
    gift = recipient.gift(codes("gift", "coffee", value=10)[0])
    key = form_of(recipient.get(gift))["key"]
    service.sql("UPDATE customers SET takes_notes = false")
    answer = recipient.post(f"{gift}/thank", key=key, note="A long <b>note</b>")
    assert answer.status_code == 409
    assert "Your note was not sent" in answer.text
    assert "A long &lt;b&gt;note&lt;/b&gt;" in answer.text
    assert f"{gift}/thank" not in answer.text
    assert stored(service) == 0
