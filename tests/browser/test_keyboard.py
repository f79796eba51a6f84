"""Each flow of the web application on a phone, by keyboard alone and with script off: no pointer, no address typed, no focus lost."""

import base64
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.browser.conftest import Visits
from tests.browser.keys import Keys

from largesse.customers.second_step import _totp

pytestmark = pytest.mark.slow

PASSWORD = "four plain words here"
SETTLED_S = 30


@pytest.fixture(scope="session")  # as `demo`: a worker may come back to this module, and nobody is invited twice
def kay(demo: Any, admin: dict[str, Any]) -> dict[str, Any]:
    """What the browser of an administrator keeps who has a password."""
    return dict(demo.joined(admin, "kay@acme.example", "Kay", PASSWORD))


@pytest.fixture
def keys(visit: Visits, demo: Any, kay: dict[str, Any]) -> Iterator[Keys]:
    """Kay at the first page. In the end the console has said nothing but what forms that were wrong are answered."""
    one = visit("phone", name="keyboard", java_script_enabled=False, storage_state=kay)
    one.page.goto(f"{demo.url}/app")
    yield Keys(one.page)
    assert [said for said in one.said if "status of 422" not in said] == []


def heading(keys: Keys, said: str) -> None:
    keys.page.get_by_role("heading", name=said, level=1).wait_for()


def notice(keys: Keys, said: str) -> None:
    keys.page.get_by_role("status").get_by_text(said).wait_for()


def begin_gift(keys: Keys) -> None:
    """From the first page to whom it is for."""
    keys.press("^Send a gift$")
    keys.press("^Coffee House")
    keys.choose("^Amount for each", "£10.00")
    keys.press("^Next: recipients")


def go_on_and_send(keys: Keys, reference: str, button: str) -> None:
    """From the message to what was sent."""
    keys.pick("^Confetti")
    keys.type("^From", "People team")
    keys.type("^Message", "Well done!")
    keys.press("^Next: when and who pays")
    if keys.page.get_by_text("Day and time").count():
        keys.pick("^Now")
    keys.pick("^Acme float")
    keys.type("^Your own reference", reference)
    keys.press("^Next: review")
    keys.press(button)
    keys.page.get_by_role("heading", name=re.compile("^(Sent|Sending|Codes created)$"), level=1).wait_for()


def find_order(keys: Keys, asked: str, shown: str) -> None:
    """The order, found by what is known of it; the worker lists it a moment after it was placed."""
    keys.menu("Orders")
    until = time.monotonic() + SETTLED_S
    while keys.page.get_by_role("link", name=shown).count() == 0:
        assert time.monotonic() < until, f"{shown} is not listed"
        keys.type("^Search", asked)
        keys.press("^Search$", "button")
    keys.press(f"^{shown}$")
    heading(keys, shown)


@pytest.mark.timeout(120)
def test_a_file_is_mended_and_sent_and_the_order_found_corrected_and_cancelled(keys: Keys) -> None:
    begin_gift(keys)
    rows = "email,name\nada@keys.example,Ada\ngrace.keys.example,Grace\nnobody,No\n"
    keys.hand_in("^CSV, Excel", "people.csv", rows)
    keys.press("^Read the file")
    keys.page.get_by_role("link", name="To fix 2").wait_for()
    keys.type("^E-mail address, 3", "grace@keys.example")
    keys.press("^Save changes")
    keys.press("^To fix 1")
    keys.press("^Remove 1 row to fix")
    keys.press("^Continue with 2")
    go_on_and_send(keys, "KEYS-1", r"^Send 2 gifts for £20\.00$")

    find_order(keys, "grace@keys.example", "Ada and 1 other")
    keys.open("Actions for Ada")
    keys.press("^Send the mail again$")
    notice(keys, "is sent again")
    keys.press(r"^Send again to \d")
    keys.press("^Send 1 mail again$")  # the other one was mailed again just now
    notice(keys, "1 mail leaves again.")
    keys.open("Actions for Ada")
    keys.press("^Correct the address")
    keys.type("^New address", "lovelace@keys.example")
    keys.press("^Correct and send")
    notice(keys, "the mail goes to lovelace@keys.example")
    keys.open("this order")
    keys.press("^Cancel the unclaimed gifts")
    keys.press(r"^Void 2 codes and return £20\.00 to Acme float$")
    notice(keys, "Codes cancelled: 2. Refunded: £20.00.")


@pytest.mark.timeout(120)
def test_a_batch_of_codes_is_made_kept_as_a_template_and_read_again(keys: Keys) -> None:
    begin_gift(keys)
    keys.type("^How many codes", "none")
    keys.press("^Create codes")
    assert keys.focused["said"] == "How many codes", "the first thing that is wrong has the focus"
    keys.retype("2")
    keys.enter()
    go_on_and_send(keys, "KEYS-2", r"^Send 2 gifts for £20\.00$")
    keys.open("^Save as a template")
    keys.type("^Name", "Kept by keyboard")
    keys.press("^Save as a template$", "submit")
    notice(keys, "Saved as the template Kept by keyboard.")
    keys.press("^A sheet to print")
    assert keys.page.locator(".slips li").count() == 2
    find_order(keys, "KEYS-2", "KEYS-2")
    keys.open("this order")
    keys.press("^Show the codes again")
    keys.press("^Show the codes")
    assert keys.page.locator(".slips li").count() == 2


@pytest.mark.timeout(120)
def test_money_is_moved_asked_for_and_accounted_for(keys: Keys) -> None:
    keys.menu("Funding")
    keys.press("^New account")
    keys.type("^Name", "Keys only")
    keys.choose("^Currency", "GBP")
    keys.press("^Create the account")
    notice(keys, "Keys only was created.")
    keys.press("^Transfer money")
    keys.choose("^From account", "Acme float")
    keys.choose("^To account", "Keys only")
    keys.type("^Amount", "12.50")
    keys.press("^Review the transfer")
    keys.press("^Transfer the money")
    notice(keys, "£12.50")
    keys.press("^Statement Keys only")
    heading(keys, "Keys only")
    keys.press("^Verify")
    keys.menu("Funding")
    keys.press("^Statement Keys only")
    keys.press("^Print")
    keys.press("^Statement$")
    keys.menu("Funding")
    keys.press("^Change Keys only")
    keys.type("^Send a mail when", "5")
    keys.tick("^Kay")
    keys.press("^Save$")
    notice(keys, "Saved.")
    keys.menu("Funding")
    keys.press("^Top up$")
    keys.choose("^Account", "Keys only")
    keys.type("^Amount", "250")
    keys.press("^Request the top-up")
    heading(keys, "£250.00 for Keys only")
    keys.press("^Cancel this top-up")
    notice(keys, "The top-up was cancelled.")


def test_reports_are_of_any_days_and_test_mode_has_its_own(keys: Keys, demo: Any) -> None:
    demo.send("gift", "Coffee House e-gift", value=10)
    keys.open("^Menu")
    keys.press("^Try it in test mode")
    keys.page.get_by_text("Test mode: nothing is sent or charged.").wait_for()
    keys.open("^Menu")
    keys.press("^Leave test mode")
    keys.menu("Reports")
    keys.press("^Custom period")
    keys.date("^From .UTC", "02022026")
    keys.date("^To", "01012026")
    keys.press("^Show$")
    assert keys.focused["said"].startswith("To"), "what is wrong has the focus"
    keys.page.keyboard.type("12122026")
    keys.press("^Show$")
    keys.press("^Source$")
    assert "since=2026-02-02&until=2026-12-12" in keys.page.url, keys.page.url
    until = time.monotonic() + SETTLED_S
    while keys.page.locator("main tbody tr").count() == 0:
        assert time.monotonic() < until, (
            "the order is not in the report"
        )  # the worker counts it a moment after it was placed
        keys.press("^Show$")


@pytest.mark.timeout(120)
def test_a_webhook_is_added_tried_and_removed_and_all_of_it_is_in_the_audit_log(keys: Keys) -> None:
    keys.menu("Webhooks")
    keys.type("^Address", "http://hooks.example/gifts")
    keys.press("^Add$")
    assert keys.focused["said"] == "Address"
    keys.retype("https://hooks.example/gifts")
    keys.enter()
    heading(keys, "The address was added")
    keys.press("^Send a sample")
    keys.press("^Send a sample")
    notice(keys, "The sample is being sent.")
    keys.press("^Deliver again")
    notice(keys, "Deliveries to retry")
    keys.press("^Redeliver failed deliveries")
    notice(keys, "Deliveries to retry")
    keys.press("^Remove$")
    keys.press("^Remove$")
    notice(keys, "The webhook was removed.")

    keys.menu("Audit log")
    keys.type("^Person or program", "kay@acme.example")
    keys.choose("^Kind", "Webhooks")
    keys.press("^Show$")
    rows = keys.page.locator(".log p").all_inner_texts()
    assert "removed the webhook" in rows[0]
    assert all("webhook" in row or "delivered" in row for row in rows)


@pytest.mark.timeout(120)
def test_somebody_is_invited_gets_another_role_and_is_removed(keys: Keys) -> None:
    keys.menu("People")
    keys.type("^E-mail address", "tab@acme.example")
    keys.type("^Name", "Tab")
    keys.choose("^Role$", "Viewer")
    keys.press("^Invite$")
    heading(keys, "tab@acme.example is invited")
    keys.press("^Back to people")
    keys.open("^Actions for Tab$")
    keys.press("^Change the role to Member$")
    notice(keys, "The role of Tab is now Member.")
    keys.press("^Tab$")
    keys.press("^Save$")
    notice(keys, "The accounts that Tab can use have changed")
    keys.menu("People")
    keys.open("^Actions for Tab$")
    keys.press("^Remove Tab$")
    keys.press("^Remove$")
    notice(keys, "Tab was removed, and is signed out everywhere.")


@pytest.mark.timeout(120)
def test_a_program_gets_its_account_its_limits_and_a_narrowed_key(keys: Keys) -> None:
    keys.menu("Service accounts")
    keys.type("^Name", "Tills")
    keys.press("^Create a service account")
    notice(keys, "Tills was created.")
    keys.choose("^Currency", "GBP")
    keys.type("^Largest order", "100")
    keys.press("^Save$")
    notice(keys, "The limits of Tills were changed")
    keys.press("^Switch off")
    notice(keys, "Tills is switched off")
    keys.press("^Switch on")
    notice(keys, "Tills is switched on")
    keys.menu("API keys")
    keys.press("^Create a key$", "a")
    keys.type("^Name", "Front till")
    keys.choose("^Service account", "Tills")
    keys.tick("Webhooks")
    keys.type("^Allowed networks", "192.0.2.0/24")
    keys.press("^Create a key$", "button")
    heading(keys, "The key Front till was created")
    keys.press("^See the key")
    keys.type("^Allowed networks", "198.51.100.7")
    keys.press("^Save$")
    notice(keys, "The key Front till was changed")
    keys.press("^Create the second key")
    heading(keys, "The key Front till 2 was created")
    keys.press("^See the key")
    keys.press("^Delete Front till$")
    keys.press("^Delete$")
    notice(keys, "The key Front till was deleted.")


def own_menu(keys: Keys, name: str, said: str) -> None:
    """What stands under somebody's own name."""
    keys.open("^Menu")
    keys.open(f"{name}")
    keys.press(f"^{said}$")


def set_up_app(keys: Keys) -> list[str]:
    """Has an app's codes asked for from now on, after one that is wrong; the recovery codes that are shown."""
    keys.press("^Set up the app$")
    secret = base64.b32decode(keys.page.locator("code.secret").inner_text().replace(" ", ""))
    keys.type("^Code shown in the app", "000000")
    keys.enter()
    assert keys.focused["said"] == "Code shown in the app"
    keys.retype(_totp(secret).generate(time.time()).decode())
    keys.enter()
    heading(keys, "Your recovery codes")
    codes = keys.page.locator(".codes code").all_inner_texts()
    keys.press("^I have saved them")
    return codes


@pytest.mark.timeout(120)
def test_somebody_is_invited_leaves_and_comes_back_by_a_second_step(
    visit: Visits, demo: Any, admin: dict[str, Any]
) -> None:
    email = "stepper@acme.example"
    one = visit("phone", name="second-step", java_script_enabled=False)
    keys, page = Keys(one.page), one.page
    page.goto(demo.url + demo.invitation(admin, email, "Stepper"))
    page.keyboard.press("Tab")
    assert keys.focused["said"] == "Skip to the content", "first, past what all pages have"
    page.keyboard.press("Enter")
    keys.type("^Password", PASSWORD)
    keys.press("^Accept the invitation")
    heading(keys, "Home")
    own_menu(keys, "Stepper", "Security")
    keys.choose("^Language", "English")
    keys.press("^Save$")
    notice(keys, "Saved.")
    set_up_app(keys)
    keys.press("^New recovery codes")
    recovery = page.locator(".codes code").first.inner_text()
    keys.press("^I have saved them")
    keys.type("^New password", f"{PASSWORD} too")
    keys.press("^Change$")
    notice(keys, "Your password was changed")

    own_menu(keys, "Stepper", "Sign out")
    keys.type("^E-mail address", email)
    keys.type("^Password", f"{PASSWORD} too")
    keys.press("^Sign in$")
    heading(keys, "One more step")
    keys.type("^Code from your authenticator app", recovery)
    keys.press("^Sign in$")
    heading(keys, "Home")
    own_menu(keys, "Stepper", "Security")
    keys.press("^Switch off$")
    notice(keys, "You now sign in with your password alone.")
    assert [said for said in one.said if "status of 422" not in said] == []


@pytest.mark.timeout(120)
def test_sessions_are_ended_and_a_second_step_is_asked_of_everybody(
    visit: Visits, demo: Any, admin: dict[str, Any]
) -> None:
    email = "keeper@acme.example"
    state = demo.joined(admin, email, "Keeper", PASSWORD)
    others = [demo.reader() for _ in range(3)]
    for other in others:
        other.get("/app/sign-in")
        assert other.post("/app/sign-in", email=email, password=PASSWORD).status_code == 303
    one = visit("phone", name="sessions", java_script_enabled=False, storage_state=state)
    keys = Keys(one.page)
    one.page.goto(f"{demo.url}/app")
    own_menu(keys, "Keeper", "Security")
    keys.press("^Sign out$")
    notice(keys, "The session was signed out.")
    assert sorted(other.get("/app").status_code for other in others) == [200, 200, 303], "one of them"
    keys.press("^Sign out everywhere else")
    notice(keys, "All other sessions are signed out.")
    assert {other.get("/app").status_code for other in others} == {303}

    [recovery, *_] = set_up_app(keys)
    demo.sql(
        "UPDATE sessions SET proved_at = now() - interval '1 day'"
        " WHERE person_id = (SELECT id FROM people WHERE email = $1)",
        email,
    )
    keys.press("^Require it for everybody")
    heading(keys, "Confirm it's you")
    keys.type("^Code from your authenticator app", "000000")
    keys.enter()
    assert keys.focused["said"] == "Code from your authenticator app", "what was wrong has the focus"
    keys.retype(recovery)
    keys.enter()
    notice(keys, "Saved.")
    keys.press("^Make it optional")
    notice(keys, "Saved.")
    assert [said for said in one.said if "status of 422" not in said] == []
