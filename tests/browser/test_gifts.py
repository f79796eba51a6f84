"""The catalogue, templates and collections in a browser: fit to be seen at every width, without script, by keyboard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Visits = Callable[..., Any]


@pytest.fixture(scope="module")
def paths(demo: Any) -> dict[str, str]:
    """The pages by what they show."""
    hamper = demo.id_of("/products?limit=200", "Autumn hamper")
    template = next(one["id"] for one in demo.call("GET", "/templates") if one["name"] == "Birthday")
    thanks = demo.id_of("/collections", "Acme thanks")
    return {
        "catalogue": "/app/catalogue?country=IE",
        "gift": f"/app/catalogue/{hamper}?country=GB",
        "templates": "/app/templates",
        "template": f"/app/templates/{template}",
        "remove-template": f"/app/templates/{template}/remove",
        "collections": "/app/collections",
        "collection": f"/app/collections/{thanks}",
        "new-collection": "/app/collections/new?country=GB&currency=GBP&value=25&product=1",
    }


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (768, "light"), (1280, "light")])
def test_each_page_is_fit_to_be_seen(
    visit: Visits, demo: Any, admin: dict[str, Any], paths: dict[str, str], width: int, scheme: str
) -> None:
    one = visit(
        "desktop",
        scheme,
        name=f"gifts-{width}",
        storage_state=admin,
        viewport={"width": width, "height": 900},
    )
    for name, path in paths.items():
        one.open(demo.url + path)
        one.page.wait_for_load_state("networkidle")
        one.check(name)
    assert one.said == []


def test_a_collection_and_a_template_of_it_are_made_without_script_by_keyboard(
    visit: Visits, demo: Any, admin: dict[str, Any]
) -> None:
    one = visit("phone", storage_state=admin, java_script_enabled=False)
    page = one.page
    page.goto(f"{demo.url}/app/collections/new")
    page.get_by_label("Name", exact=True).fill("Browser picks")
    page.get_by_label("Value for each").fill("25")
    page.keyboard.press("Enter")  # shows what fits, and makes nothing
    page.get_by_role("heading", name="What can be had for £25.00 in United Kingdom").wait_for()
    assert page.get_by_label("Name", exact=True).input_value() == "Browser picks"
    for name in ("Coffee House", "Supermarket"):
        page.get_by_role("checkbox", name=name).press("Space")
    page.get_by_role("button", name="Save the collection").press("Enter")
    page.get_by_role("heading", name="Browser picks").wait_for()
    choice = page.frame_locator("iframe")
    choice.get_by_text("Choose your gift, worth £25.00").wait_for()
    assert choice.get_by_role("radio").count() == 2
    assert choice.locator(".choice img").count() == 2

    page.get_by_role("link", name="Make a template of it").press("Enter")
    page.get_by_label("Name of the template").fill("Browser preset")
    page.get_by_label("Message").fill("Pick one!")
    page.get_by_role("button", name="Save", exact=True).press("Enter")
    page.get_by_text("The template was saved.").wait_for()
    assert page.frame_locator("iframe[title='The mail']").get_by_text("Pick one!").is_visible()

    sent = next(found for found in demo.call("GET", "/templates") if found["name"] == "Browser preset")
    body = {
        "templateId": sent["id"],
        "accountId": demo.id_of("/funding-accounts", "Acme float"),
        "codeQuantity": 1,
    }
    assert demo.call("POST", "/send/template", json=body)["totalCost"] == 25.0
    assert one.said == []
