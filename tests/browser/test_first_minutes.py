"""The first minutes with a demo, as somebody new to it would spend them: from the link it prints to what was spent."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.browser.conftest import Visits

SETTLED_S = 30
PASSWORD = "four plain words here"


def until(page: Any, address: str, said: str) -> None:
    """Loads a page again until the worker has done its part."""
    ends = time.monotonic() + SETTLED_S
    page.goto(address)
    while page.get_by_text(said).count() == 0:
        assert time.monotonic() < ends, f"{said} is not seen at {address}"
        time.sleep(0.2)
        page.reload()


def joined(visit: Visits, demo: Any, admin: dict[str, Any]) -> Any:
    """The window of a second administrator, whom the first one invites."""
    first = visit("desktop", "light", name="first", storage_state=admin).page
    first.goto(f"{demo.url}/app/people")
    first.get_by_label("E-mail address").fill("second@acme.example")
    first.get_by_label("Role", exact=True).last.select_option("admin")
    first.get_by_role("main").get_by_role("button", name="Invite", exact=True).click()
    link = first.locator("code.secret").inner_text()
    one = visit("desktop", "light", name="second")
    one.page.goto(demo.url + link[link.index("/app") :])
    one.page.get_by_label("Password").fill(PASSWORD)
    one.page.get_by_role("button", name="Accept the invitation").click()
    assert one.page.url == f"{demo.url}/app"
    return one


def made_and_used_a_key(page: Any, url: str) -> None:
    """A key, tried with the command beside it."""
    page.goto(f"{url}/app/keys")
    page.get_by_label("Name", exact=True).fill("Payroll")
    page.get_by_role("main").get_by_role("button", name="Create a key").click()
    command = page.locator("code.secret").nth(1).inner_text()
    answer = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(answer.stdout), answer.stderr


def saved_a_template(page: Any, url: str) -> None:
    """A gift to be sent again and again, made from the catalogue."""
    page.goto(f"{url}/app/catalogue")
    page.get_by_role("main").get_by_role("link", name=re.compile("Coffee")).first.click()
    page.get_by_role("link", name="Create a template from it").click()
    page.get_by_label("Name of the template").fill("Well done")
    page.get_by_role("button", name="Save").click()
    page.goto(f"{url}/app/templates")
    page.get_by_role("link", name="Well done", exact=True).wait_for()


def sent_two_hundred(page: Any, url: str, file: Path) -> None:
    """Gifts to two hundred from a file, three rows of which are wrong at first."""
    rows = [f"p{n}@example.com,Person {n}" if n % 66 else f"p{n}.example.com,Person {n}" for n in range(1, 201)]
    file.write_text("\n".join(["email,name", *rows]))
    page.goto(f"{url}/app/send")
    page.get_by_role("link", name=re.compile("Coffee")).first.click()
    page.get_by_label(re.compile("Amount for each")).select_option("5.00")
    page.get_by_role("button", name="Next: recipients").click()
    page.get_by_label("CSV, Excel").set_input_files(file)
    page.get_by_role("button", name="Read the file").click()
    page.get_by_role("link", name="To fix 3").wait_for()
    page.get_by_role("button", name="Use all 3 corrections").click()
    page.get_by_role("link", name="Continue with 200").click()
    page.get_by_role("button", name="Next: when and who pays").click()
    page.get_by_role("radio", name=re.compile("Acme float")).check()
    page.get_by_role("button", name="Next: review").click()
    page.get_by_role("button", name="Send 200 gifts for £1,000.00").click()
    page.get_by_role("heading", name=re.compile("^(Sent|Sending)$")).wait_for()


def found_and_sent_again(page: Any, url: str) -> None:
    """The order, found by one who gets it, whose mail is sent again."""
    until(page, f"{url}/app/orders?q=p77%40example.com", "of 200")
    page.locator("main tbody").get_by_role("link").first.click()
    page.get_by_role("heading", name=re.compile("and 199 others")).wait_for()
    until(page, page.url, "Send again")
    page.locator("main tbody .row-menu > summary").first.click()
    page.get_by_role("button", name=re.compile("^Send again")).first.click()
    page.get_by_role("status").get_by_role("paragraph").wait_for()


def topped_up(page: Any, demo: Any) -> None:
    """Money: asked for here, confirmed at the shell by whoever runs it."""
    page.goto(f"{demo.url}/app/funding/top-ups/new")
    page.get_by_label("Amount", exact=True).fill("2500")
    page.get_by_role("button", name="Request the top-up").click()
    page.get_by_role("main").get_by_text("Waiting for the transfer").wait_for()
    confirm = [str(Path(sys.executable).with_name("largesse")), "top-ups", "confirm", page.url.rpartition("/")[2]]
    done = subprocess.run(confirm, env=demo.environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    page.reload()
    assert page.get_by_text("Waiting for the transfer").count() == 0


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_everything_a_company_begins_with(demo: Any, admin: dict[str, Any], visit: Visits, tmp_path: Path) -> None:
    # The link that the demo prints signed the first one in.
    one = joined(visit, demo, admin)
    made_and_used_a_key(one.page, demo.url)
    saved_a_template(one.page, demo.url)
    sent_two_hundred(one.page, demo.url, tmp_path / "people.csv")
    found_and_sent_again(one.page, demo.url)
    topped_up(one.page, demo)
    # And what was spent, by where it came from.
    one.page.goto(f"{demo.url}/app/reports")
    one.page.get_by_role("link", name="Source", exact=True).click()
    row = one.page.get_by_role("main").get_by_role("row", name=re.compile("web", re.IGNORECASE)).first
    assert "£" in row.inner_text()
    assert one.said == []
