"""API keys, service accounts and people in a browser: fit to be seen at every width, and changed without script, by keyboard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Visits = Callable[..., Any]
PATHS = {
    "home": "/app",
    "keys": "/app/keys",
    "key": "/app/keys/1",
    "service-accounts": "/app/service-accounts",
    "service-account": "/app/service-accounts/1",
    "person": "/app/people/2",
}


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_each_page_is_fit_to_be_seen(
    visit: Visits, demo: Any, admin: dict[str, Any], width: int, scheme: str
) -> None:
    one = visit(
        "desktop",
        scheme,
        name=f"settings-{width}",
        storage_state=admin,
        viewport={"width": width, "height": 900},
    )
    for name, path in PATHS.items():
        one.open(demo.url + path)
        one.check(name)
    assert one.said == []


def test_a_key_is_narrowed_and_replaced_without_script_by_keyboard(
    visit: Visits, demo: Any, admin: dict[str, Any]
) -> None:
    one = visit("phone", storage_state=admin, java_script_enabled=False)
    page = one.page
    page.goto(f"{demo.url}/app/keys")
    page.get_by_label("Name", exact=True).fill("Till")
    page.get_by_label("From where").fill("192.0.2.1/24")
    page.get_by_role("button", name="Make a key").press("Enter")
    page.get_by_text("No network: 192.0.2.1/24 (192.0.2.0/24?)").wait_for()
    page.get_by_label("From where").fill("192.0.2.0/24")
    page.get_by_role("checkbox", name="Webhooks").press("Space")
    page.get_by_role("button", name="Make a key").press("Enter")
    page.get_by_role("heading", name="The key Till is made").wait_for()
    page.get_by_role("link", name="See the key").press("Enter")
    page.get_by_role("button", name="Make the second key").press("Enter")
    page.get_by_role("heading", name="The key Till 2 is made").wait_for()
    page.get_by_role("link", name="See the key").press("Enter")
    page.get_by_role("link", name="Delete Till", exact=True).press("Enter")
    page.get_by_role("main").get_by_role("button", name="Delete").press("Enter")
    page.get_by_text("The key Till was deleted.").wait_for()
    row = page.get_by_role("row", name="Till 2")
    assert "read, send, codes" in row.inner_text()
    assert "192.0.2.0/24" in row.inner_text()
    # Of the form that was wrong, Chromium says what it was answered.
    assert [said for said in one.said if "status of 422" not in said] == []
