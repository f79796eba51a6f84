"""The web application's ground floor in a browser: menu, forms and passkeys."""

import base64
import time
from typing import Any

import pytest
from tests.browser.conftest import Visits, add_authenticator
from tests.browser.keys import Keys
from tests.browser.looks import wrong_with

from largesse.customers.second_step import _totp

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def member(browser: Any, demo: Any, admin: Any) -> dict[str, Any]:
    """What the browser of somebody keeps whom the administrator invited. Neither ran any script."""
    inviting = browser.new_context(java_script_enabled=False, locale="en-GB", storage_state=admin)
    page = inviting.new_page()
    page.goto(f"{demo.url}/app/people")
    page.get_by_label("E-mail address").fill("Bo <browser@acme.example>")  # as pasted: no browser refuses it
    page.get_by_role("main").get_by_role("button", name="Invite", exact=True).click()
    link = page.locator("code.secret").inner_text()
    invited = browser.new_context(java_script_enabled=False, locale="de-DE")
    page = invited.new_page()
    page.goto(demo.url + link[link.index("/app") :])
    page.get_by_label("Passwort").fill("four plain words here")
    page.get_by_role("main").get_by_role("button").click()
    assert page.url == f"{demo.url}/app"
    # A second step, with the keyboard alone.
    page.goto(f"{demo.url}/app/security/app")
    secret = base64.b32decode(page.locator("code.secret").inner_text().replace(" ", ""))
    page.get_by_role("main").get_by_role("textbox").focus()
    page.keyboard.type(_totp(secret).generate(time.time()).decode())
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Ihre Wiederherstellungscodes").wait_for()
    kept = invited.storage_state()
    inviting.close()
    invited.close()
    return dict(kept)


def test_the_menu_of_a_phone_opens_without_script_and_shows_what_the_role_may(
    visit: Visits, demo: Any, member: dict[str, Any]
) -> None:
    one = visit("phone", "light", name="console-menu", storage_state=member, java_script_enabled=False, locale="de-DE")
    one.page.goto(f"{demo.url}/app")
    menu = one.page.locator(".bar")
    assert not menu.get_by_role("link", name="Start").is_visible()
    menu.locator("summary").first.press("Enter")
    menu.get_by_role("link", name="Start").wait_for()
    assert menu.get_by_role("link", name="Personen").count() == 0
    menu.get_by_role("button", name="Im Testmodus ausprobieren").click()
    one.page.get_by_text("Testmodus: Nichts wird versendet oder abgebucht.").wait_for()


@pytest.mark.parametrize(("window", "scheme"), [("phone", "dark"), ("desktop", "light")])
def test_slash_opens_the_search_on_any_page_and_enter_what_was_found(
    visit: Visits, demo: Any, admin: dict[str, Any], window: str, scheme: str
) -> None:
    one = visit(window, scheme, name="search", storage_state=admin)
    page = one.page
    page.goto(f"{demo.url}/app/people")
    page.keyboard.press("/")
    dialog = page.get_by_role("dialog")
    page.keyboard.type("coffee")  # nothing is lost that is typed before anything was found
    dialog.get_by_role("heading", name="Gifts").wait_for()
    one.check("dialog")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.closest('.found li') !== null")
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
    page.get_by_role("button", name="Invite").first.focus()
    page.keyboard.press("/")
    page.keyboard.type("top up")
    page.keyboard.press("Enter")
    page.wait_for_url("**/app/funding/top-ups/new")
    page.get_by_role("link", name="Search").locator("visible=true").click()
    page.keyboard.type("audit")
    dialog.get_by_role("link", name="Audit log").click()
    page.wait_for_url("**/app/audit")
    assert one.said == []


def test_a_slash_in_a_field_is_a_slash(visit: Visits, demo: Any, admin: dict[str, Any]) -> None:
    one = visit("desktop", name="slash", storage_state=admin)
    one.page.goto(f"{demo.url}/app/people")
    field = one.page.get_by_label("Name (optional)")
    field.press("/")
    assert field.input_value() == "/"
    assert not one.page.get_by_role("dialog").is_visible()


def test_the_search_page_works_without_script_and_follows_typing_with_it(
    visit: Visits, demo: Any, admin: dict[str, Any]
) -> None:
    plain = visit("phone", name="search-page", java_script_enabled=False, storage_state=admin).page
    plain.goto(f"{demo.url}/app")
    plain.get_by_role("link", name="Search").locator("visible=true").click()
    plain.get_by_role("searchbox").fill("coffee")
    plain.get_by_role("main").get_by_role("button", name="Search").click()
    plain.get_by_role("heading", name="Gifts").wait_for()
    one = visit("phone", name="search-page", storage_state=admin)
    one.open(f"{demo.url}/app/search")
    one.page.get_by_role("main").get_by_role("searchbox").press_sequentially("coffee")
    one.page.get_by_role("heading", name="Gifts").wait_for()
    one.page.wait_for_url("**/app/search?q=coffee")
    one.check("page")


def test_a_wrong_field_has_the_focus_and_keeps_what_was_typed(visit: Visits, demo: Any, admin: dict[str, Any]) -> None:
    one = visit("desktop", "light", name="console-wrong", storage_state=admin)
    one.open(f"{demo.url}/app/people")
    page = one.page
    page.get_by_label("E-mail address").fill("ada@acme.example")
    page.get_by_label("Name (optional)").fill("Somebody")
    page.get_by_role("main").get_by_role("button", name="Invite", exact=True).click()
    page.get_by_text("belongs to your company already").wait_for()
    assert page.evaluate("document.activeElement.id") == "email"
    assert page.get_by_label("Name (optional)").input_value() == "Somebody"
    one.check("people-wrong")


def test_a_form_that_was_stopped_can_be_sent_again(visit: Visits, demo: Any, admin: dict[str, Any]) -> None:
    page = visit("desktop", storage_state=admin).page
    page.goto(f"{demo.url}/app/contacts/new")
    page.get_by_label("E-mail address").fill("stopped@example.com")
    save = page.get_by_role("main").get_by_role("button", name="Save")
    save.evaluate(
        """(button) => new Promise((stopped) => {
            navigation.addEventListener("navigateerror", () => stopped());
            button.click();
            setTimeout(stop);
        })"""
    )
    assert save.is_enabled()
    save.click()
    page.get_by_text("The contact was saved.").wait_for()


def test_a_form_sent_without_a_connection_keeps_what_was_typed(visit: Visits, demo: Any, admin: dict[str, Any]) -> None:
    page = visit("desktop", storage_state=admin).page
    page.goto(f"{demo.url}/app/contacts/new")
    page.get_by_label("E-mail address").fill("offline@example.com")
    save = page.get_by_role("main").get_by_role("button", name="Save")
    page.context.set_offline(True)
    save.click()
    page.get_by_text("You are offline. Nothing was sent").wait_for()
    assert page.get_by_label("E-mail address").input_value() == "offline@example.com"
    page.context.set_offline(False)
    save.click()
    page.get_by_text("The contact was saved.").wait_for()


def test_a_filter_closes_with_escape_and_with_a_click_elsewhere(
    visit: Visits, demo: Any, admin: dict[str, Any]
) -> None:
    page = visit("desktop", storage_state=admin).page
    page.goto(f"{demo.url}/app/orders?state=waiting")
    filters = page.locator(".filter[open]")
    page.get_by_text("Period", exact=True).click()
    assert filters.count() == 1
    page.keyboard.press("Escape")
    assert filters.count() == 0
    assert page.evaluate("document.activeElement.textContent.trim()") == "Period"
    page.keyboard.press("Enter")
    page.get_by_label("From (UTC)").click()
    assert filters.count() == 1
    page.get_by_role("heading", level=1).click()
    assert filters.count() == 0


def test_paper_is_light_and_has_nothing_to_press(visit: Visits, demo: Any, admin: dict[str, Any]) -> None:
    order = demo.send("gift", "Autumn hamper")["reference"]
    page = visit("desktop", "dark", storage_state=admin).page
    for path in ("/app/orders?period=this-month", f"/app/orders/{order}", "/app/reports"):
        page.goto(demo.url + path)
        page.emulate_media(media="screen")
        pressed = page.locator("main :is(input, button, summary, a.chip):not([type=hidden], [aria-current])")
        assert any(one.is_visible() for one in pressed.all()), path
        company = page.locator("main").get_by_text("Acme Ltd", exact=True)
        assert not company.is_visible(), path
        page.emulate_media(media="print")
        assert not any(one.is_visible() for one in pressed.all()), path
        assert company.is_visible(), path
        colour = page.locator("main").evaluate("(one) => getComputedStyle(one).getPropertyValue('--panel')")
        assert colour == "#ffffff", path
    page.goto(demo.url + "/app/audit")
    assert page.locator("main .log").evaluate("(one) => getComputedStyle(one).breakInside") == "auto", (
        "it begins on the first sheet"
    )
    page.goto(demo.url + "/app/budgets")
    assert not page.locator("main form").first.is_visible(), "paper has no empty card"
    assert not page.get_by_role("heading", name="Create a budget").is_visible()


def test_a_search_shares_its_row_with_the_buttons_in_german(visit: Visits, demo: Any, admin: dict[str, Any]) -> None:
    page = visit("desktop", storage_state=admin, locale="de-DE").page
    page.goto(demo.url + "/app/orders")
    search = page.locator(".find input").bounding_box()
    button = page.get_by_role("main").get_by_role("link", name="Geschenk versenden").first.bounding_box()
    assert search is not None
    assert button is not None
    assert abs(search["y"] - button["y"]) < 2
    assert search["width"] > 160
    page.set_viewport_size({"width": 700, "height": 900})
    heading, search = page.locator("h1").bounding_box(), page.locator(".find input").bounding_box()
    assert heading is not None
    assert search is not None
    assert abs(heading["y"] - search["y"]) < 8


def test_a_long_name_of_a_view_stays_on_its_chip(visit: Visits, demo: Any, admin: dict[str, Any]) -> None:
    reader = demo.reader(admin)
    reader.get("/app/orders?state=waiting")
    assert reader.post("/app/orders/views?state=waiting", name="x" * 60).status_code == 303
    one = visit("phone", storage_state=admin)
    one.open(f"{demo.url}/app/orders")
    assert one.page.get_by_role("link", name="x" * 60).is_visible()
    assert wrong_with(one.page, 390) == []


def test_unbroken_words_keep_lists_with_menus_within_the_window(
    visit: Visits, demo: Any, admin: dict[str, Any]
) -> None:
    columns = ("service_accounts", "name"), ("templates", "gift_name"), ("templates", "name")
    for table, column in columns:
        demo.sql(f"UPDATE {table} SET {column} = {column} || repeat('W', 100)")
    try:
        seen = visit("desktop", storage_state=admin)
        for path in ("/app/keys", "/app/templates"):
            seen.open(f"{demo.url}{path}")
            assert "W" * 100 in seen.page.content(), path
            width, window = seen.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            assert width <= window, path
    finally:
        for table, column in columns:
            demo.sql(f"UPDATE {table} SET {column} = replace({column}, repeat('W', 100), '')")


def test_a_passkey_is_made_and_asked_for(visit: Visits, demo: Any, browser: Any, admin: dict[str, Any]) -> None:
    """With Chromium's own authenticator and by keyboard: from an invitation to signing in by password and passkey."""
    app = demo.url.replace("127.0.0.1", "localhost")
    inviting = visit("desktop", "light", name="console-inviting", storage_state=admin)
    inviting.open(f"{demo.url}/app/people")
    inviting.page.get_by_label("E-mail address").fill("passkeys@acme.example")
    inviting.page.get_by_role("main").get_by_role("button", name="Invite", exact=True).click()
    link = inviting.page.locator("code.secret").inner_text()
    one = visit("phone", "light", name="console-passkey")
    page = one.page
    devtools, authenticator = add_authenticator(page)
    one.open(app + link[link.index("/app") :])
    keys = Keys(page)
    keys.type("^Password", "four plain words here")
    keys.press("^Accept the invitation")
    one.open(f"{app}/app/security")
    keys.press("^Add a passkey")
    keys.type("^Name of the passkey", "My phone")
    one.check("passkey")
    keys.press("^Create the passkey")
    page.get_by_role("heading", name="Your recovery codes").wait_for()
    one.open(f"{app}/app/security")
    one.check("security-with-passkey")
    keys.press("^Add a passkey")
    keys.type("^Name of the passkey", "My phone again")
    page.get_by_role("button", name="Create the passkey").press("Enter")
    page.get_by_text("You already have a passkey on this device.").wait_for()

    def sign_in() -> None:
        page.context.clear_cookies()
        page.goto(f"{app}/app/sign-in")
        keys.type("^E-mail address", "passkeys@acme.example")
        keys.type("^Password", "four plain words here")
        keys.press("^Sign in$")
        page.get_by_role("heading", name="One more step").wait_for()

    sign_in()
    one.check("second-step")
    keys.press("^Use a passkey")
    page.wait_for_url(f"{app}/app")
    # Whom the authenticator does not know as its owner, it answers nothing for.
    sign_in()
    devtools.send("WebAuthn.setUserVerified", {"authenticatorId": authenticator, "isUserVerified": False})
    page.get_by_role("button", name="Use a passkey").press("Enter")
    page.get_by_text("The passkey did not answer.").wait_for()
    assert one.said == []
