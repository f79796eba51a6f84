"""The recipient's pages as people meet them: on a phone and on a desktop, light and dark, with and without JavaScript."""

import re
import subprocess
from typing import Any

import pytest
from tests.browser.conftest import EVERY_PAGE, Visits
from tests.browser.looks import BROKEN
from tests.waiting import wait_until

from largesse.orders.options import WRAPPINGS

# Each window and scheme once; with `EVERY_PAGE=1` each window in each scheme.
LOOKS = [("phone", "light"), pytest.param("desktop", "dark", marks=pytest.mark.slow)]
if EVERY_PAGE:
    LOOKS += [("phone", "dark"), ("desktop", "light")]
COLLECTION = "Everyday treats"


def birthday(demo: Any) -> dict[str, Any]:
    sent: dict[str, Any] = demo.send(
        "collection",
        COLLECTION,
        value=25,
        wrappingKey="birthday",
        fromName="Your team",
        message="Happy birthday!\nPick something nice.",
    )
    return sent


def other(pin: str) -> str:
    return f"{(int(pin) + 1) % 1_000_000:06d}"


@pytest.mark.parametrize(("window", "scheme"), LOOKS)
def test_a_collection_from_its_link_to_the_voucher(demo: Any, visit: Visits, window: str, scheme: str) -> None:
    code = birthday(demo)
    one = visit(window, scheme)
    page = one.page
    one.open(code["redemptionUrl"])
    assert page.get_by_role("heading").inner_text() == "Your team sent you a gift"
    one.check("1-wrapped")
    one.type_pin(code["pin"])
    page.wait_for_url("**/claim/gift/**")
    one.check("2-choose")
    page.get_by_label("Bookshop").or_(page.get_by_label("Supermarket")).first.check()
    page.get_by_role("button", name="Continue").click()
    one.check("3-confirm")
    page.get_by_role("button", name="Yes, this one").click()
    page.wait_for_url("**#open")
    one.check("4-voucher")
    number = page.locator("#number").inner_text()
    assert number.startswith("TEST-")
    assert page.locator("svg.qr").is_visible()
    page.emulate_media(media="print")
    assert not page.locator("#thanks").is_visible(), "paper has no form to fill in"
    ink = page.locator("h1").evaluate("(one) => getComputedStyle(one).color")
    card = page.locator(".gift-card .gift-name")
    assert card.evaluate("(one) => getComputedStyle(one).color") == ink, "paper has no background for white letters"
    assert len(re.findall(rb"/Type /Page\b", page.pdf(format="A4"))) == 1, "gift, QR code and number stay together"
    page.emulate_media(media="screen", forced_colors="active")
    edge = page.locator(".qr-frame").evaluate("(one) => getComputedStyle(one).backgroundColor")
    assert edge == "rgb(255, 255, 255)", "a scanner needs the white edge in any scheme"
    page.emulate_media(forced_colors="none")
    page.reload()
    assert page.locator("#number").inner_text() == number
    assert one.said == []


@pytest.mark.parametrize(("window", "scheme"), LOOKS[:2])
def test_a_parcel_from_a_typed_code_to_its_address(demo: Any, visit: Visits, window: str, scheme: str) -> None:
    code = demo.send("gift", "Autumn hamper", wrappingKey="garden", fromName="Acme", message="Five years. Thank you!")
    one = visit(window, scheme, name="parcel")
    page = one.page
    one.open(f"{demo.url}/claim")
    one.check("1-enter")
    page.get_by_label("Code").fill(code["code"].lower())
    one.type_pin(code["pin"])
    page.wait_for_url("**/claim/gift/**")
    one.check("2-address")
    assert one.said == []
    page.get_by_label("Full name").fill("Sam Doe")
    page.get_by_label("Street and number").fill("1 High Street")
    page.get_by_label("Town").fill("Leeds")
    page.get_by_label("Postcode").fill("75001")
    page.get_by_role("button", name="Send it there").click()
    page.get_by_text("This does not look right.").wait_for()
    assert page.evaluate("document.activeElement.id") == "postal_code"
    one.check("3-invalid")
    page.get_by_label("Postcode").fill("LS1 4DY")
    page.get_by_label("E-mail").fill("sam@example.com")
    page.get_by_role("button", name="Send it there").click()
    page.get_by_text("We will write to you when the parcel leaves.").wait_for()
    one.check("4-thanks")


@pytest.mark.slow
def test_the_wrapping_opens_where_people_like_things_to_move(demo: Any, visit: Visits) -> None:
    code = birthday(demo)
    one = visit("phone", name="opening", reduced_motion="no-preference")
    one.open(code["redemptionUrl"])
    one.type_pin(code["pin"])
    one.page.wait_for_url("**/claim/gift/**#open")
    moving = one.page.evaluate("document.getAnimations().map((one) => one.animationName)")
    assert {"lift", "leave", "unfold"} <= set(moving)
    one.check("rested")
    one.page.reload()
    one.rest()
    assert one.page.get_by_role("radio").first.is_visible()


def test_the_link_of_a_mail_opens_the_gift_with_one_press_and_leaves_no_pin_behind(demo: Any, visit: Visits) -> None:
    code = birthday(demo)
    one = visit("phone", name="filled")
    page = one.page
    sent: list[str] = []
    page.on("request", lambda request: sent.append(f"{request.url} {request.headers}"))
    page.goto(f"{demo.url}/claim")
    page.goto(f"{code['redemptionUrl']}#pin={code['pin']}")
    page.get_by_text("Your PIN is filled in.").wait_for()
    assert page.url == code["redemptionUrl"]
    assert page.get_by_label("PIN").input_value() == code["pin"]
    one.check("1-filled")
    page.get_by_role("link", name="Deutsch").click()
    page.get_by_text("Ihre PIN ist schon eingetragen.").wait_for()
    assert page.url == f"{code['redemptionUrl']}?lang=de"
    assert not [one for one in sent if f"pin={code['pin']}" in one], "nothing on the way to a server has the PIN"
    page.get_by_role("button", name="Geschenk öffnen").click()
    page.wait_for_url("**/claim/gift/**")
    page.go_back()
    assert page.url == f"{code['redemptionUrl']}?lang=de", "nor has the history"


@pytest.mark.slow
def test_with_text_of_twice_the_size_all_digits_show_and_no_word_is_broken(demo: Any, visit: Visits) -> None:
    page = visit("phone", locale="de-DE").page
    page.context.new_cdp_session(page).send("Page.setFontSizes", {"fontSizes": {"standard": 32, "fixed": 26}})
    page.goto(birthday(demo)["redemptionUrl"])
    page.get_by_label("PIN").fill("888888")
    assert page.evaluate("(([pin]) => pin.scrollWidth <= pin.clientWidth)(document.querySelectorAll('.pin'))")
    assert page.evaluate(BROKEN) == []


def test_what_is_no_pin_is_not_filled_in(demo: Any, visit: Visits) -> None:
    code = birthday(demo)
    one = visit("phone")
    for carried in ("12345", "1234567", "<b>123", "%31%32%33%34%35%36"):
        one.page.goto("about:blank")
        one.page.goto(f"{code['redemptionUrl']}#pin={carried}")
        one.page.wait_for_url(code["redemptionUrl"])
        assert one.page.get_by_label("PIN").input_value() == ""
    assert one.page.get_by_text("Type the PIN that came with this link").is_visible()
    one.page.goto(f"{code['redemptionUrl']}#pin={other(code['pin'])}).")
    one.page.get_by_text("Your PIN is filled in.").wait_for()
    assert one.page.url == code["redemptionUrl"], "opened again in the same window"
    one.page.get_by_role("button", name="Open my gift").click()
    one.page.get_by_role("alert").wait_for()
    one.page.goto(f"{code['redemptionUrl']}#pin={code['pin']}")
    one.page.get_by_role("alert").wait_for(state="hidden")
    assert one.page.get_by_label("PIN").input_value() == code["pin"]


@pytest.mark.slow
@pytest.mark.parametrize("window", ["phone", "desktop"])
def test_a_wrong_pin_is_told_in_place(demo: Any, visit: Visits, window: str) -> None:
    code = birthday(demo)
    one = visit(window, name="wrong")
    page = one.page
    one.open(f"{demo.url}/claim")
    page.get_by_label("Code").fill(code["code"])
    one.type_pin(other(code["pin"]))
    page.get_by_role("alert").wait_for()
    one.check("1-refused")
    assert page.get_by_label("Code").input_value() == code["code"], "nothing has to be typed twice"
    assert page.evaluate("document.activeElement.id") == "pin"
    assert page.evaluate("document.activeElement.matches('[aria-invalid=true][aria-describedby~=claim-error]')")
    one.type_pin(code["pin"])
    page.wait_for_url("**/claim/gift/**")


@pytest.mark.slow
def test_a_gift_opened_before_is_told_and_shown(demo: Any, visit: Visits) -> None:
    code = birthday(demo)
    first, second = visit(), visit(name="again")
    for one in (first, second):
        one.open(code["redemptionUrl"])
    first.type_pin(code["pin"])
    first.page.wait_for_url("**/claim/gift/**")
    second.type_pin(code["pin"])
    second.page.get_by_role("link", name="Show my gift").wait_for()
    second.check("1-told")
    second.page.get_by_role("link", name="Show my gift").click()
    second.page.wait_for_url("**/claim/gift/**")
    assert second.page.get_by_role("radio").count() >= 3


def test_a_note_that_is_refused_is_at_hand_to_correct(demo: Any, visit: Visits) -> None:
    code = demo.send("gift", "Coffee House e-gift", value=10, fromName="Acme")
    one = visit("phone", name="note")
    page = one.page
    one.open(code["redemptionUrl"])
    one.type_pin(code["pin"])
    page.wait_for_url("**/claim/gift/**")
    page.get_by_label("Your note").fill("See http://example.com")
    page.get_by_role("button", name="Send the note").click()
    page.get_by_text("Please leave out links and addresses.").wait_for()
    assert page.evaluate("document.activeElement.id") == "note"
    one.check("1-refused")
    page.get_by_label("Your note").fill("Thank you!")
    page.get_by_role("button", name="Send the note").click()
    page.get_by_role("heading", name="Your thank-you note").wait_for()


def test_a_gift_that_was_withdrawn_while_its_page_was_open_is_no_wrong_pin(demo: Any, visit: Visits) -> None:
    for path in ("", "/claim"):
        code = birthday(demo)
        one = visit("phone", name="withdrawn")
        page = one.page
        one.open(f"{demo.url}{path}" if path else code["redemptionUrl"])
        if path:
            page.get_by_label("Code").fill(code["code"])
        demo.call("POST", f"/orders/{code['reference']}/cancel", json={})
        one.type_pin(code["pin"])
        page.get_by_role("heading", name="This gift was withdrawn").wait_for()
        assert page.evaluate("document.activeElement.localName") == "h1", "a screen reader goes on there"
        assert page.title() == "This gift was withdrawn"
        assert not page.get_by_role("button").count(), "there is nothing to open"
        one.check("1-told")


@pytest.mark.parametrize("window", ["phone", pytest.param("desktop", marks=pytest.mark.slow)])
def test_everything_works_without_javascript(demo: Any, visit: Visits, window: str) -> None:
    code = birthday(demo)
    one = visit(window, java_script_enabled=False)
    page = one.page
    page.goto(code["redemptionUrl"])
    one.type_pin(other(code["pin"]))
    assert page.get_by_role("heading").inner_text() == "The gift was not opened"
    page.get_by_role("link", name="Try again").click()
    one.type_pin(code["pin"])
    page.wait_for_url("**/claim/gift/**")
    page.get_by_role("radio").first.check()
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Yes, this one").click()
    page.wait_for_url("**#open")
    assert page.locator("#number").inner_text().startswith("TEST-")
    assert page.get_by_role("button", name="Copy").count() == 0


@pytest.mark.slow
def test_everything_works_with_the_keyboard(demo: Any, visit: Visits) -> None:
    code = birthday(demo)
    one = visit("desktop")
    page = one.page
    page.goto(code["redemptionUrl"])
    page.keyboard.press("Tab")
    page.keyboard.type(code["pin"])
    page.keyboard.press("Enter")
    page.wait_for_url("**/claim/gift/**")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Yes, this one").wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**#open")
    assert page.locator("#number").inner_text().startswith("TEST-")


@pytest.mark.slow
def test_the_number_is_copied(demo: Any, visit: Visits) -> None:
    code = demo.send("gift", "Coffee House e-gift", value=10)
    one = visit("desktop", permissions=["clipboard-read", "clipboard-write"])
    one.page.goto(code["redemptionUrl"])
    one.type_pin(code["pin"])
    one.page.wait_for_url("**/claim/gift/**")
    one.page.get_by_role("button", name="Copy the number").click()
    one.page.get_by_role("button", name="Copied").wait_for()
    assert one.page.evaluate("navigator.clipboard.readText()") == one.page.locator("#number").inner_text()


def test_loading_a_page_opens_nothing_and_touching_it_does(demo: Any, visit: Visits) -> None:
    code = birthday(demo)
    path = f"/orders/{code['reference']}/deliveries"
    for window in ("phone", "desktop"):
        one = visit(window)
        one.page.goto(code["redemptionUrl"])
        one.page.mouse.wheel(0, 300)
        one.page.evaluate("document.body.dispatchEvent(new PointerEvent('pointerdown', {bubbles: true}))")
    [entry] = demo.call("GET", path)
    assert entry["lines"][0]["openedAt"] is None
    with one.page.expect_response("**/opened"):
        one.page.get_by_label("PIN").click()
    [entry] = demo.call("GET", path)
    assert entry["lines"][0]["openedAt"] is not None
    assert entry["lines"][0]["state"] == "issued"


@pytest.mark.long
def test_every_wrapping_is_readable(demo: Any, visit: Visits) -> None:
    one = visit("phone", name="wrapping")
    for wrapping in WRAPPINGS:
        code = demo.send("gift", "Coffee House e-gift", value=10, wrappingKey=wrapping, fromName="Everyone at Acme")
        one.open(code["redemptionUrl"])
        for scheme in ("light", "dark"):
            one.page.emulate_media(color_scheme=scheme)
            one.check(f"{wrapping}-{scheme}", again=scheme == "dark")
    assert one.said == []


@pytest.mark.slow
@pytest.mark.parametrize(("locale", "heading"), [("fr-FR", "Un cadeau pour vous"), ("de-DE", "Ein Geschenk für Sie")])
def test_the_other_languages_fit_the_page(demo: Any, visit: Visits, locale: str, heading: str) -> None:
    code = birthday(demo)
    one = visit("phone", locale=locale, name=locale)
    one.open(code["redemptionUrl"])
    assert one.page.get_by_role("heading").inner_text().startswith(heading)
    one.check("1-wrapped")
    one.type_pin(code["pin"])
    one.page.wait_for_url("**/claim/gift/**")
    one.check("2-choose")
    one.page.get_by_role("link", name="English").click()
    one.page.get_by_role("button", name="Continue").wait_for()
    one.page.goto(code["redemptionUrl"])
    assert "sent you a gift" in one.page.get_by_role("heading").inner_text(), "the switch is remembered"


@pytest.mark.slow
def test_the_pages_read_from_right_to_left_and_on_the_smallest_window(demo: Any, visit: Visits) -> None:
    code = birthday(demo)
    one = visit("phone", viewport={"width": 320, "height": 568}, name="rtl")
    for url in (f"{demo.url}/claim", code["redemptionUrl"]):
        one.open(url)
        one.page.evaluate("document.documentElement.dir = 'rtl'")
        one.check("small")
    one.type_pin(code["pin"])
    one.page.wait_for_url("**/claim/gift/**")
    one.page.evaluate("document.documentElement.dir = 'rtl'")
    one.check("choose")
    lines = """(one) => {
        const range = document.createRange();
        range.selectNodeContents(one.firstChild);
        return range.getClientRects().length;
    }"""
    name = one.page.locator(".choice-name").filter(has_text="Supermarket")
    assert name.evaluate(lines) == 1, "no word is broken beside a picture"


def test_the_demo_from_the_printed_curl_line_to_the_voucher(demo: Any, visit: Visits) -> None:
    subprocess.run(["bash", "-c", f"{demo.curls[0]} --fail --silent --show-error"], check=True, capture_output=True)
    one = visit("desktop", name="demo")
    page = one.page
    has_mail = re.compile("<strong>[^<]*gift", re.IGNORECASE)  # asked for without the browser: reloading takes longer
    wait_until(lambda: has_mail.search(demo.client().request("GET", "/mailbox").text))
    page.goto(f"{demo.url}/mailbox")
    mail = page.get_by_role("link").filter(has_text="gift").first
    one.picture("1-mailbox")
    mail.click()
    letter = page.frame_locator("iframe")
    pin = letter.locator("body").inner_text().split("PIN\n")[1][:6]
    one.picture("2-letter")
    with page.expect_popup() as opened:
        letter.get_by_role("link", name="Open your gift").first.click()
    gift = opened.value
    said: list[str] = []
    gift.on("console", lambda message: said.append(message.text))
    gift.wait_for_load_state()  # a script fills the PIN in
    assert gift.get_by_label("PIN").input_value() == pin, "one press opens it"
    gift.get_by_role("button", name="Open my gift").click()
    gift.wait_for_url("**/claim/gift/**")
    assert gift.locator("#number").inner_text().startswith("TEST-")
    assert one.said + said == []
