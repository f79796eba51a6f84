"""A member of staff in a real browser: a passkey as the second step, and files that forms answer with, after which the page can be used again."""

import itertools
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.browser.conftest import Demo, Visits, add_authenticator
from tests.browser.test_office import Clerk

PASSWORD = "four plain words here"
_numbers = itertools.count(1)


def test_a_passkey_is_a_members_second_step(visit: Visits, demo: Any) -> None:
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


def invited(demo: Demo) -> str:
    """The link of a new owner."""
    command = [
        str(Path(sys.executable).with_name("largesse")),
        "staff",
        "invite",
        f"fay{next(_numbers)}@largesse.example",
    ]
    told = [*command, "--role", "owner", "--name", "Fay"]
    made = subprocess.run(told, env=demo.environment, capture_output=True, text=True, check=True)
    return next(word for word in made.stdout.split() if "/office/link/" in word).partition("/office")[2]


@pytest.fixture
def clerk(visit: Visits, demo: Demo) -> Clerk:
    clerk = Clerk(visit("desktop", name="office-files").page)
    clerk.page.goto(f"{demo.url.replace('127.0.0.1', 'localhost')}/office{invited(demo)}")
    clerk.type("New password", PASSWORD)
    clerk.press("^Save and sign in")
    clerk.set_up_app()
    return clerk


def test_a_file_can_be_downloaded_again(clerk: Clerk, demo: Demo) -> None:
    demo.call(
        "POST",
        "/send/gift",
        json={"productId": 1, "value": 10, "accountId": 1, "recipients": [{"email": "sam@acme.example"}]},
    )
    clerk.go("Privacy")
    clerk.type("E-mail address", "sam@acme.example")
    clerk.press("^Record the request")
    for _ in range(2):
        with clerk.page.expect_download() as begun:
            clerk.page.get_by_role("button", name="Download the copy").click()
        assert "sam@acme.example" in Path(begun.value.path()).read_text()


def test_each_packing_slip_has_a_page_of_its_own(clerk: Clerk) -> None:
    clerk.go("Parcels")
    clerk.page.evaluate(
        """document.querySelector('main').innerHTML = `<div class="slips">${'<section class="panel slip">1</section>'.repeat(3)}</div>`"""
    )
    assert re.findall(rb"/Count (\d+)", clerk.page.pdf()) == [b"3"]
