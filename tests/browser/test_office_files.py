"""Files that forms of the back office answer with: the page stays as it was, and can be used again."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.browser.conftest import Demo
from tests.browser.test_office import Clerk

PASSWORD = "four plain words here"


def invited(demo: Demo) -> str:
    """The link of a new owner."""
    command = [str(Path(sys.executable).with_name("largesse")), "staff", "invite", "fay@largesse.example"]
    told = [*command, "--role", "owner", "--name", "Fay"]
    made = subprocess.run(told, env=demo.environment, capture_output=True, text=True, check=True)
    return next(word for word in made.stdout.split() if "/office/link/" in word).partition("/office")[2]


@pytest.fixture
def clerk(visit: Callable[..., Any], demo: Demo) -> Clerk:
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
    clerk.press("^Take it in")
    for _ in range(2):
        with clerk.page.expect_download() as begun:
            clerk.page.get_by_role("button", name="Download the copy").click()
        assert "sam@acme.example" in Path(begun.value.path()).read_text()
