"""The letters in a real browser: nothing is cut off on a phone, and axe finds nothing, by day and by night."""

import email
import email.policy
from datetime import date
from itertools import cycle

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser
from tests.browser.conftest import AXE_OPTIONS
from tests.mail.test_letter import CODE, a_letter, bodies

from largesse.base.i18n.languages import LANGUAGES
from largesse.mail.letter import CHOICE, PARCEL, VOUCHER, write
from largesse.orders.options import WRAPPINGS

KINDS = [
    {"comes_as": VOUCHER},
    {"comes_as": PARCEL, "value_minor": None, "expiry_days": 90},
    {"comes_as": CHOICE, "codes": [CODE] * 3, "environment": "staging", "expiry_days": 1},
    {"kind": "voucher_ready"},
    {"kind": "shipped", "carrier": "DHL", "tracking_number": "JD014600003SE" * 6},
    {"kind": "returned", "gift": "g" * 200},
    {"kind": "reminder_last", "claim_by": date(2027, 2, 1)},
    {"kind": "campaign_code", "codes": [], "asked_code": "012345"},
    {"sender": "W" * 32, "name": "N" * 200, "message": "m" * 256, "gift": "g" * 200},
]


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_fit_a_phone_and_can_be_read_by_all(browser: Browser, scheme: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme=scheme)  # type: ignore[arg-type]
    wrappings = cycle(WRAPPINGS)
    for number, kind in enumerate(KINDS):
        language = LANGUAGES[list(LANGUAGES)[number % len(LANGUAGES)]]
        letter = a_letter(language=language, wrapping_key=next(wrappings), **kind)
        raw = write(letter, "Largesse <gifts@example.com>", at=0)
        page.set_content(bodies(email.message_from_bytes(raw, policy=email.policy.default))[0])
        width, window = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert width <= window, kind
        page.set_viewport_size({"width": 195, "height": 844})
        lines = page.evaluate("[...document.querySelectorAll('.go')].map(one => (one.offsetHeight - 28) / 20)")
        assert max(lines, default=0) <= 3, f"with text of twice the size, a button breaks between words: {kind}"
        page.set_viewport_size({"width": 390, "height": 844})
        found = Axe().run(
            page, options=AXE_OPTIONS | {"rules": {one: {"enabled": False} for one in ("landmark-one-main", "region")}}
        )
        assert found.violations_count == 0, found.generate_report()
    page.close()
