"""Each page of a send is fit to be seen, from the gift to what was sent, with rows to mend between. `test_keyboard` goes through it without script."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Visits = Callable[..., Any]


pytestmark = pytest.mark.slow


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


def test_each_page_is_fit_to_be_seen(demo: Any, cookies: Any, visit: Visits, tmp_path: Path) -> None:
    one = visit("phone", "dark", name="send", storage_state=cookies)
    page = one.page
    page.goto(demo.url + "/app/send")
    one.check("1-gift")
    draft(demo, one, "email,name\na@example.com,A\nA@example.com,A\nnobody,N\n", tmp_path, check=True)
    one.check("4-mend")
    address = page.url.removesuffix("/recipients")
    page.get_by_role("button", name="Leave out the rows with errors").click()
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
