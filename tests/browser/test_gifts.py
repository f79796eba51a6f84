"""Templates and collections in a browser: made without script."""

from typing import Any

import pytest
from tests.browser.conftest import Visits


@pytest.mark.slow
def test_a_collection_and_a_template_of_it_are_made_without_script_by_keyboard(
    visit: Visits, demo: Any, admin: dict[str, Any]
) -> None:
    one = visit("phone", storage_state=admin, java_script_enabled=False)
    page = one.page
    page.goto(f"{demo.url}/app/collections/new")
    page.get_by_label("Name", exact=True).fill("Browser picks")
    page.get_by_label("Value for each recipient").fill("25")
    page.keyboard.press("Enter")  # shows what fits, and makes nothing
    page.get_by_role("heading", name="Gifts available for £25.00 in United Kingdom").wait_for()
    assert page.get_by_label("Name", exact=True).input_value() == "Browser picks"
    for name in ("Coffee House", "Supermarket"):
        page.get_by_role("checkbox", name=name).press("Space")
    page.get_by_role("button", name="Save the collection").press("Enter")
    page.get_by_role("heading", name="Browser picks").wait_for()
    choice = page.frame_locator("iframe")
    choice.get_by_text("Choose your gift, worth £25.00").wait_for()
    assert choice.get_by_role("radio").count() == 2
    assert choice.locator(".choice img").count() == 2

    page.locator("summary[aria-label='Actions for Browser picks']").press("Enter")
    page.get_by_role("link", name="Create a template from it").press("Enter")
    page.get_by_label("Name of the template").fill("Browser preset")
    page.get_by_label("Message").fill("Pick one!")
    page.get_by_role("button", name="Save", exact=True).press("Enter")
    page.get_by_text("The template was saved.").wait_for()
    assert page.frame_locator("iframe[title='The mail']").get_by_text("Pick one!").is_visible()

    sent = next(found for found in demo.call("GET", "/templates") if found["name"] == "Browser preset")
    body = {"templateId": sent["id"], "accountId": demo.id_of("/funding-accounts", "Acme float"), "codeQuantity": 1}
    assert demo.call("POST", "/send/template", json=body)["totalCost"] == 25.0
    assert one.said == []


@pytest.mark.slow
def test_the_mail_and_the_page_of_a_gift_stand_beside_each_other_on_a_tablet(
    visit: Visits, demo: Any, admin: dict[str, Any]
) -> None:
    page = visit("desktop", storage_state=admin, viewport={"width": 768, "height": 1024}).page
    page.goto(f"{demo.url}/app/templates/{demo.call('GET', '/templates')[0]['id']}")
    mail, claim = (page.locator(f"iframe[title='{title}']") for title in ("The mail", "The page of the gift"))
    assert mail.bounding_box()["y"] == claim.bounding_box()["y"]
    mail.scroll_into_view_if_needed()
    heading = page.frame_locator("iframe[title='The mail']").get_by_role("heading", level=1)
    assert 0 < heading.bounding_box()["y"] - mail.bounding_box()["y"] < 120, "nothing blank above it"
