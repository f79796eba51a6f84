"""A passkey as the second step of a member of staff, with Chromium's own authenticator."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.browser.conftest import add_authenticator

PASSWORD = "four plain words here"


def test_a_passkey_is_a_members_second_step(visit: Callable[..., Any], demo: Any) -> None:
    [link] = re.findall(r"^  (http\S+)/office/link/(\S+)$", demo.welcome, re.MULTILINE)
    site = link[0]
    one = visit("desktop", name="office-passkey")
    page = one.page
    devtools, authenticator = add_authenticator(page)
    page.goto(f"{site}/office/link/{link[1]}")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="Add a passkey").click()
    page.get_by_label("Name of the passkey").fill("My laptop")
    page.get_by_role("button", name="Create the passkey").click()
    page.get_by_role("heading", name="Your recovery codes").wait_for()
    page.goto(f"{site}/office/security")
    page.get_by_label("New password").fill(PASSWORD)
    page.get_by_role("button", name="Change").click()
    page.get_by_role("status").first.wait_for()

    def sign_in() -> None:
        page.context.clear_cookies()
        page.goto(f"{site}/office/sign-in")
        page.get_by_label("E-mail address").fill("owner@largesse.example")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("heading", name="One more step").wait_for()

    sign_in()
    page.get_by_role("button", name="Use a passkey").click()
    page.wait_for_url(f"{site}/office")
    # Whom the authenticator does not know as its owner, it answers nothing for.
    sign_in()
    devtools.send("WebAuthn.setUserVerified", {"authenticatorId": authenticator, "isUserVerified": False})
    page.get_by_role("button", name="Use a passkey").click()
    page.get_by_text("The passkey did not answer.").wait_for()
    assert one.said == []
