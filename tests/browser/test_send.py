"""Each page of a send is fit to be seen, from the gift to what was sent, with rows to mend between. `test_keyboard` goes through it without script."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.browser.conftest import Visits

pytestmark = pytest.mark.slow


def draft(demo: Any, one: Any, rows: str, tmp_path: Path, *, check: bool = False, data: bytes | None = None) -> None:
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
    file.write_bytes(data or rows.encode())
    page.get_by_label("CSV, Excel").set_input_files(file)
    page.get_by_role("button", name="Read the file").click()


@pytest.mark.long
def test_each_page_is_fit_to_be_seen(demo: Any, admin: Any, visit: Visits, tmp_path: Path) -> None:
    one = visit("phone", "dark", name="send", storage_state=admin)
    page = one.page
    page.goto(demo.url + "/app/send")
    one.check("1-gift")
    draft(demo, one, "email,name\na@example.com,A\nA@example.com,A\nnobody,N\n", tmp_path, check=True)
    one.check("4-mend")
    address = page.url.removesuffix("/recipients")
    page.get_by_role("link", name="Fix 1 row").click()
    one.check("4-fix")
    page.get_by_role("button", name="Remove 1 row to fix").click()
    page.wait_for_url("**/recipients")
    for step in ("message", "delivery", "review"):
        one.open(f"{address}/{step}")
        one.check(f"5-{step}")
    one.open(f"{address}/delivery")
    page.get_by_role("radio", name=re.compile("Acme float")).check()
    page.get_by_role("button", name="Next: review").click()
    page.wait_for_url("**/review")
    one.check("6-review")
    page.get_by_role("button", name="Send 2 gifts for £20.00").click()
    page.wait_for_url("**/sent")
    one.check("7-sent")
    assert one.said == []


def test_one_of_five_thousand_is_found_while_typing_and_forty_rows_are_fixed_at_once(
    demo: Any, admin: Any, visit: Visits, tmp_path: Path
) -> None:
    one = visit("desktop", name="send-many", storage_state=admin)
    page = one.page
    rows = [f"name.{n}@acme.example,Recipient {n}" for n in range(1, 5_001)]
    for n in range(40):
        rows[n * 120] = rows[n * 120].replace("@acme.example", "@acme" if n % 2 else "@acme..example")
    draft(demo, one, "email,name\n" + "\n".join(rows), tmp_path)
    page.get_by_role("link", name="To fix 40").wait_for()

    page.get_by_role("searchbox").press_sequentially("recipient 4200")
    page.get_by_text("1 recipient found").wait_for()
    assert page.get_by_role("table").get_by_text("name.4200@acme.example").is_visible()
    assert "q=recipient+4200" in page.url
    one.check("found")
    page.get_by_role("searchbox").fill("")
    page.get_by_text("Page 1 of 100").wait_for()
    page.get_by_role("link", name="To fix 40").click()
    page.get_by_role("button", name="Use all 40 corrections").click()
    page.get_by_role("link", name="Continue with 5,000").wait_for()
    assert page.get_by_role("link", name="To fix").count() == 0 or page.get_by_text("Nothing to fix any more.").count()

    # What was typed into the list is asked about before it is lost, and so are contacts that were chosen and not added.
    recipients = page.url.partition("?")[0]
    page.goto(recipients + "?edit=2")
    page.get_by_label("Name, 2").fill("Somebody else")
    asked: list[str] = []
    page.once("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    contact = {"email": "chosen@example.com", "name": "Chosen"}
    assert demo.reader(admin).submit("/app/contacts/new", "/app/contacts", **contact).status_code == 303
    page.goto(recipients.replace("/recipients", "/contacts"))
    page.locator("input[name=contact]").first.check()
    page.once("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    page.goto(demo.url + "/app")
    # Searching the list below them leaves recipients that are typed above it as they are, and leaving asks about them.
    page.goto(recipients + "?tab=paste")
    assert page.evaluate("document.querySelectorAll('[id=rows]').length") == 1
    page.get_by_role("textbox", name="Recipients").fill("new@acme.example")
    page.get_by_role("searchbox").press_sequentially("recipient 4200")
    page.get_by_text("1 recipient found").wait_for()
    assert page.get_by_role("table").get_by_text("name.4199@acme.example").count() == 0
    assert page.get_by_role("textbox", name="Recipients").input_value() == "new@acme.example"
    page.once("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    page.goto(demo.url + "/app")
    assert asked == ["beforeunload"] * 3
    assert one.said == []


# The text of a cell's first line.
FIRST_LINE = """(cell) => {
  const range = document.createRange(), walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  let line = '', top;
  while (walker.nextNode()) for (let at = 0; at < walker.currentNode.length; at += 1) {
    range.setStart(walker.currentNode, at);
    range.setEnd(walker.currentNode, at + 1);
    const found = range.getBoundingClientRect();
    top ??= found.top;
    if (Math.abs(found.top - top) < 5) line += walker.currentNode.data[at];
  }
  return line;
}"""


def test_addresses_in_lists_are_in_one_line_or_break_after_the_at(
    demo: Any, admin: Any, visit: Visits, tmp_path: Path
) -> None:
    one = visit("desktop", name="addresses", storage_state=admin)
    page = one.page
    draft(demo, one, "email,name\nnobody,N\nbarto.featherstone@department.acme.example,Barto\n", tmp_path)
    assert page.locator("td.long").evaluate(FIRST_LINE) == "barto.featherstone@"
    for column in (".says > :first-child", ".row-menu"):
        lefts = page.locator(f".recipients {column}").evaluate_all(
            "(all) => all.map((one) => one.getBoundingClientRect().left)"
        )
        assert len(lefts) == 2
        assert lefts[0] == lefts[1], "a row to fix is in line with the others"

    page.goto(demo.url + "/app/contacts/import")
    file = tmp_path / "contacts.csv"
    file.write_text(
        "email,birthday\n" + "".join(f"a{n}@acme.example,12/25/1990 or some other day of that year\n" for n in range(2))
    )
    page.get_by_label("CSV, Excel").set_input_files(file)
    page.get_by_role("button", name="Read the file").click()
    assert page.locator("th.long").first.evaluate(FIRST_LINE) == "a0@acme.example"


def test_a_choice_above_the_list_takes_effect_at_once(demo: Any, admin: Any, visit: Visits, tmp_path: Path) -> None:
    one = visit("phone", name="send-odd", storage_state=admin)
    page = one.page
    draft(demo, one, "", tmp_path, data="email,name\nz@x.example,Иван Петров\n".encode("cp1251"))
    page.get_by_text("Some names have odd letters").wait_for()
    one.check("odd")
    page.locator("details.reading summary").click()
    page.get_by_label("Encoding").select_option("cp1251")
    page.get_by_role("rowheader", name="Иван Петров").wait_for()
    one.check("read")
    assert one.said == []


def test_the_preview_follows_the_typing_and_what_is_pressed_meanwhile_is_taken(
    demo: Any, admin: Any, visit: Visits, tmp_path: Path
) -> None:
    one = visit("desktop", name="send-preview", storage_state=admin)
    page = one.page
    draft(demo, one, "email,name\na@example.com,A\n", tmp_path)
    page.get_by_role("link", name="Continue with 1").wait_for()
    address = page.url.partition("/recipients")[0]
    page.goto(f"{address}/message")
    mail = page.frame_locator("iframe[title='The mail']:not(.next)")
    page.get_by_label("Message").press_sequentially("For all you do")
    mail.get_by_text("For all you do").wait_for()
    page.get_by_label("From").fill("The People team")
    mail.get_by_text("A gift from The People team").wait_for()
    # What follows is the brand's name and subject, which another test may have set.
    page.get_by_text("The People team via").wait_for()
    page.get_by_label("Desktop").check()
    assert page.locator("iframe.phone").first.bounding_box()["width"] > 500
    one.check("desktop")
    page.get_by_label("Message").press_sequentially("!")
    page.wait_for_timeout(450)  # the form is being saved
    page.get_by_role("button", name="Next: when and who pays").click()
    page.wait_for_url("**/delivery")
    page.goto(f"{address}/message")
    assert page.get_by_label("Message").input_value() == "For all you do!"
    assert one.said == []
    # In a form that was refused, the preview returns once it is saved.
    page.get_by_label("Message").fill("{first_nam}")
    page.get_by_role("button", name="Next: when and who pays").click()
    page.get_by_text("The preview follows.").wait_for()
    page.get_by_label("Message").fill("Thank you")
    mail.get_by_text("Thank you", exact=True).wait_for()
    # What cannot be saved while it is typed is said, as the preview does not show it.
    unsaved = page.get_by_text("What you typed is not saved.")
    page.get_by_label("Message").fill("{first_nam}")
    unsaved.wait_for()
    page.get_by_label("Message").fill("Thank you all")
    mail.get_by_text("Thank you all").wait_for()
    unsaved.wait_for(state="hidden")


def test_gifts_are_found_while_typing(demo: Any, admin: Any, visit: Visits) -> None:
    one = visit("phone", name="send-gifts", storage_state=admin)
    page = one.page
    page.goto(demo.url + "/app/send")
    page.get_by_role("searchbox").press_sequentially("hamper")
    page.locator("#gifts .card", has_text="Autumn hamper").wait_for()
    page.locator("#gifts .card", has_text="Coffee").wait_for(state="detached")
    one.check("found")
    page.get_by_label("Country").select_option("FR")
    page.wait_for_url("**country=FR**")
    assert one.said == []
