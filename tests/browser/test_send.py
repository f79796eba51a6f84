"""Somebody sends gifts in the web application: a hundred people from a file with rows to mend, without script, on a phone."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Visits = Callable[..., Any]


@pytest.fixture
def cookies(admin: Any) -> Any:
    """What the browser of an administrator keeps."""
    return admin


def draft(demo: Any, one: Any, rows: str, tmp_path: Path, *, check: bool = False) -> None:
    """From the first page to the rows of a file."""
    page = one.page
    page.goto(demo.url + "/app/send")
    page.get_by_role("link", name=re.compile("Coffee")).first.click()
    if check:
        one.check("2-amount")
    page.get_by_label(re.compile("Amount for each")).select_option("10.00")
    page.get_by_role("button", name="Next: recipients").click()
    if check:
        one.check("3-recipients")
    file = tmp_path / "people.csv"
    file.write_text(rows)
    page.get_by_label("CSV or Excel").set_input_files(file)
    page.get_by_role("button", name="Read the file").click()


def test_a_hundred_gifts_without_script_on_a_phone(
    demo: Any, cookies: Any, visit: Visits, tmp_path: Path
) -> None:
    one = visit("phone", "light", name="plain", java_script_enabled=False, storage_state=cookies)
    page = one.page
    rows = [
        f"p{n}@example.com,Person {n}" if n % 50 else f"p{n}.example.com,Person {n}" for n in range(1, 101)
    ]
    draft(demo, one, "\n".join(["email,name", *rows]), tmp_path)
    assert page.get_by_text("98 of 100 are fine").is_visible()
    for box in page.locator('input[name="email"]').all():
        box.fill(box.input_value().replace(".example", "@example", 1))
    page.get_by_role("button", name="Take these rows").click()
    assert page.get_by_text("All 100 are fine").is_visible()
    page.get_by_role("link", name="Next: message").click()
    page.get_by_label("Confetti").check()
    page.get_by_label("From", exact=True).fill("The People team")
    page.get_by_label("Message").fill("Thank you, all of you!")
    page.get_by_role("button", name="Show it").click()
    claim = page.frame_locator("iframe").nth(1)
    assert claim.get_by_role("heading").inner_text() == "Person 1, The People team sent you a gift"
    page.get_by_role("button", name="Next: when and who pays").click()
    page.get_by_label(re.compile("Acme float")).check()
    page.get_by_role("button", name="Next: review").click()
    page.get_by_role("button", name="Send 100 gifts for £1,000.00").click()
    assert page.get_by_role("heading", name="Sent").is_visible()
    assert one.said == []


@pytest.mark.parametrize(("window", "scheme"), [("phone", "dark"), ("desktop", "light"), ("desktop", "dark")])
def test_each_page_is_fit_to_be_seen(
    demo: Any, cookies: Any, visit: Visits, tmp_path: Path, window: str, scheme: str
) -> None:
    one = visit(window, scheme, name="send", storage_state=cookies)
    page = one.page
    page.goto(demo.url + "/app/send")
    one.check("1-gift")
    draft(demo, one, "email,name\na@example.com,A\nA@example.com,A\nnobody,N\n", tmp_path, check=True)
    one.check("4-mend")
    address = page.url.removesuffix("/recipients")
    page.get_by_role("button", name="Leave out the rows that are wrong").click()
    page.wait_for_url("**/recipients")
    for step in ("message", "delivery", "review"):
        one.open(f"{address}/{step}")
        one.check(f"5-{step}")
    one.open(f"{address}/delivery")
    page.get_by_label(re.compile("Acme float")).check()
    page.get_by_role("button", name="Next: review").click()
    page.wait_for_url("**/review")
    one.check("6-review")
    page.get_by_role("button", name="Send 2 gifts for £20.00").click()
    page.wait_for_url("**/sent")
    one.check("7-sent")
    assert one.said == []
