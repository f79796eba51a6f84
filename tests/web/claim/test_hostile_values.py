"""Claim pages of a real gift with what nobody types, in the query and in every field: no fault of ours."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote_to_bytes

import httpx
import pytest
from tests.web.claim.conftest import Codes, Recipient, form_of, link
from tests.web.claim.test_fulfilling import ADDRESS, WORLD
from tests.web.hostile import IN_STEPS, VALUES, pairs

__all__ = ["WORLD"]


@pytest.fixture(scope="module")
def service(start_service: Any) -> Any:
    return start_service(WORLD)


def tried(recipient: Recipient, path: str, fields: dict[str, str], step: int) -> Iterator[httpx.Response]:
    """Posts each field with each value, or a part of the pairs, the other fields as they should be."""
    for name, value in pairs(fields, VALUES.values(), step):
        typed = unquote_to_bytes(value).decode("latin-1")
        recipient.host = Recipient(recipient.service).host  # wrong PINs are counted by address, too
        yield recipient.post(path, **{**fields, name: typed})


@IN_STEPS
def test_no_value_on_a_claim_page_is_a_fault_of_ours(service: Any, codes: Codes, step: int) -> None:
    for code, guessed in (codes("collection", "treats", 2, value=50), codes("gift", "hamper", 2)):
        recipient = Recipient(service)
        for path, value in pairs((link(code), f"{link(code)}/reminders"), VALUES.values(), step):
            assert recipient.get(f"{path}?lang={value}&x={value}").status_code < 500
        answers = [
            *tried(recipient, link(guessed), {"pin": "000000"}, step),
            *tried(recipient, "/claim", {"code": "A", "pin": "1"}, step),
        ]
        assert {answer.status_code for answer in answers} <= {400, 403, 413, 422, 429}
        gift = recipient.gift(code)
        page = recipient.get(gift)
        form = {**form_of(page), "product": "1", "sure": "yes", **ADDRESS, "country": "GB", "email": "sam@example.com"}
        for _, value in pairs((gift,), VALUES.values(), step):
            assert recipient.get(f"{gift}?lang={value}&x={value}").status_code < 500
        for act in re.findall(rf'action="[^"]*{gift}/(\w+)"', page.text):
            for answer in tried(recipient, f"{gift}/{act}", form, step):
                assert answer.status_code < 500, (act, answer.text)
