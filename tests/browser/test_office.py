"""A new employee on a first day in the back office of a demo, without docs: what each page calls things is all that leads on."""

import base64
import html
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.browser.conftest import Visits, let_in, started_demo
from tests.browser.test_every_page import Look, wrong_on
from tests.catalogue.images import png

from largesse.customers.second_step import _totp
from largesse.demo.plan import sendings
from largesse.web.office.routes import ROUTES

PASSWORD = "four words and a comma"
PAGES = [route.path for route in ROUTES if route.method == "GET" and not route.path.endswith(".csv")]
NOTHING = "/office/{rest:path}"
MOST_ALIKE = 6  # of one kind, to which links are followed
GIVEN = ("/office/deliveries/requeue",)  # a link leads there while mail is held
# Where somebody who is in, and has an app, cannot be; and files.
UNREACHED = {
    "/office/link/{secret}", "/office/second-step", "/office/sign-in", "/office/security/app",
}  # fmt: skip


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with started_demo(tmp_path_factory.mktemp("office"), has_history=True) as demo:
        yield demo


class Clerk:
    """Somebody in the back office, by what they read."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self._secret = b""

    def link(self, said: str) -> None:
        self.page.get_by_role("link", name=re.compile(said)).first.click()

    def press(self, said: str) -> None:
        """Presses a button, and confirms who it is where that is asked."""
        self.page.get_by_role("button", name=re.compile(said)).first.click()
        if self.page.get_by_role("heading", name="Confirm it's you").count():
            self.type("Code from your authenticator app", self.code())
            self.page.get_by_role("button", name="Continue").click()

    def type(self, label: str, text: str) -> None:
        self.page.get_by_label(label).first.fill(text)

    def read(self, said: str) -> None:
        """Waits until the page says so."""
        self.page.locator("main").get_by_text(re.compile(said)).first.wait_for()

    def go(self, said: str) -> None:
        """Opens a page by the menu."""
        self.page.locator("nav").get_by_role("link", name=said, exact=True).first.click()
        self.page.get_by_role("heading", level=1).wait_for()

    def code(self) -> str:
        return str(_totp(self._secret).generate(time.time()).decode())

    def set_up_app(self) -> None:
        self.link("^Set up")
        self._secret = base64.b32decode(self.page.locator("code.secret").inner_text().replace(" ", ""))
        self.type("Code shown in the app", self.code())
        self.press("^Switch on")
        self.link("^I have saved them")


def announced(reader: Any, account: str, amounts: range) -> list[str]:
    """The references of top-ups of a customer's account, which are paid by a transfer."""
    references = []
    for pounds in amounts:
        page = reader.get("/app/funding/top-ups/new").text
        number = re.findall(rf'<option value="(\d+)"[^>]*>[^<]*{account}', page)[0]
        asked = reader.post("/app/funding/top-ups", account=number, amount=f"{pounds}.00")
        assert asked.status_code == 303, asked.text
        references += re.findall(r"top-ups/([\w-]+)", asked.headers["location"])
    return references


def bank_file(references: list[str], folder: Path) -> Path:
    """A file of 40 transfers: 37 as they were announced from 100 pounds on, one of too little, and two that came twice."""
    rows = ["Date,Text,Amount,Currency"]
    rows += [f"2026-01-05,Transfer {reference},{100 + at}.00,GBP" for at, reference in enumerate(references)]
    rows[1] = rows[1].replace("100.00", "99.00")
    rows += rows[-2:]
    assert len(rows) == 41
    file = folder / "bank.csv"
    file.write_text("\n".join(rows))
    return file


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_new_employee_finds_the_way(visit: Visits, demo: Any, tmp_path: Path) -> None:
    window = visit("desktop", name="office", java_script_enabled=False)
    clerk = Clerk(window.page)
    comes_in(clerk, demo)
    publishes_a_product(clerk, tmp_path)
    link = opens_a_customer(clerk)
    other = signs_in_as_their_administrator(visit("phone", name="administrator", java_script_enabled=False).page, link)
    references = announced(demo.reader(let_in(demo)), "Acme float", range(100, 119))
    references += announced(demo.reader(other), "", range(119, 138))
    reads_the_banks_file(clerk, bank_file(references, tmp_path))
    sends_twenty_parcels(clerk)
    mends_a_bounced_mail(clerk)
    refunds_with_a_colleague(clerk, Clerk(visit("desktop", name="colleague", java_script_enabled=False).page))
    takes_in_a_request(clerk)
    looks_at_every_page(visit, demo, window.page.context.storage_state())


def comes_in(clerk: Clerk, demo: Any) -> None:
    [link] = re.findall(r"^  (http\S+/office/link/\S+)$", demo.welcome, re.MULTILINE)
    clerk.page.goto(link)
    clerk.press("^Sign in")
    clerk.set_up_app()
    clerk.go("Overview")


def publishes_a_product(clerk: Clerk, folder: Path) -> None:
    clerk.go("Catalogue")
    clerk.link("^New")
    clerk.press("^Continue")
    clerk.type("Name", "Tea for two")
    clerk.type("Countries", "GB")
    clerk.type("Amounts", "5, 10")
    clerk.page.get_by_label("On sale").check()
    clerk.press("^Save as a draft")
    (folder / "tea.png").write_bytes(png(200, 200))
    clerk.page.get_by_label("PNG, JPEG or WebP").set_input_files(folder / "tea.png")
    clerk.press("^Save the picture")
    clerk.press("^Publish now")
    clerk.read("^On sale")
    assert clerk.page.locator("main img").count() == 1
    clerk.read("£10")


def opens_a_customer(clerk: Clerk) -> str:
    """The link of their first administrator."""
    clerk.go("Customers")
    clerk.link("^Open a customer")
    clerk.type("Name", "Umbrella plc")
    clerk.type("E-mail address of the first administrator", "ida@umbrella.example")
    clerk.press("^Open the customer")
    address: str = clerk.page.locator("main .secret, main .code").first.inner_text()
    return address


def signs_in_as_their_administrator(page: Any, link: str) -> Any:
    """What their browser keeps then."""
    page.goto(link)
    page.get_by_label("Password").first.fill(PASSWORD)
    page.get_by_role("button", name="Accept the invitation").click()
    page.get_by_role("heading", name="Home").wait_for()
    return page.context.storage_state()


def reads_the_banks_file(clerk: Clerk, file: Path) -> None:
    clerk.go("Money")
    clerk.link("^Bank files")
    clerk.page.get_by_label("The bank's file, CSV or CAMT").set_input_files(file)
    clerk.press("^Read the file")
    clerk.press("^Credit 37 top-ups")
    clerk.read("37")
    for _ in range(3):
        clerk.press("^Dismiss")
    assert clerk.page.get_by_role("button", name="Dismiss").count() == 0


def sends_twenty_parcels(clerk: Clerk) -> None:
    clerk.go("Parcels")
    assert clerk.page.locator("main table tbody tr").count() >= 20
    clerk.press("^Print packing slips")
    clerk.read("^Parcel ")
    clerk.page.locator("main").get_by_role("link", name="Enter tracking numbers").click()
    clerk.type("Carrier", "Royal Mail")
    for at in range(20):
        clerk.page.get_by_label("Tracking number of parcel").nth(at).fill(f"RM00000{at:04}GB")
    clerk.press("^Record as sent")
    clerk.read("20 parcels")


def mends_a_bounced_mail(clerk: Clerk) -> None:
    typed, right = next(
        (guest.typed, guest.email)
        for one in reversed(sendings())
        for guest in one.guests
        if guest.is_mistyped and guest.mended_after is None
    )
    clerk.go("Find a gift")
    clerk.type("What you look for", typed)
    clerk.press("^Find")
    clerk.page.locator("main table a").first.click()
    clerk.read("does not exist")
    clerk.type("Correct e-mail address", right)
    clerk.page.get_by_label("Reason").first.fill("The customer rang and spelled it out.")
    clerk.press("^Correct it")
    clerk.read(re.escape(right.partition("@")[2]))


def refunds_with_a_colleague(clerk: Clerk, colleague: Clerk) -> None:
    clerk.go("Find a gift")
    clerk.page.get_by_label("Find by").select_option(label="Order reference")
    clerk.type("What you look for", "Hampers")
    clerk.press("^Find")
    reference = clerk.page.locator("main tbody a").first.inner_text()
    clerk.go("Staff")
    clerk.type("E-mail address", "fay@largesse.example")
    clerk.page.get_by_label("Role").select_option(label="Finance staff")
    clerk.press("^Invite")
    colleague.page.goto(clerk.page.locator("main .secret, main .code").first.inner_text())
    colleague.type("New password", PASSWORD)
    colleague.press("^Save and sign in")
    colleague.set_up_app()
    clerk.go("Money")
    clerk.link("^Accounts")
    clerk.type("Search accounts", "Acme float")
    clerk.press("^Search")
    clerk.page.locator("main").get_by_role("link", name="Acme float", exact=True).click()
    clerk.link("^Propose a correction")
    clerk.page.get_by_label("Kind").select_option(label="Refund: the price of an order is paid back")
    clerk.type("Amount", "5.00")
    clerk.page.get_by_label("Order").fill(reference)
    clerk.page.get_by_label("Reason").fill("The shop was shut.")
    clerk.press("^Propose")
    clerk.read("^You proposed this")
    colleague.go("Money")
    colleague.link("^Corrections")
    colleague.page.locator("main table a").first.click()
    colleague.press("^Approve and post")
    colleague.read("^Posted|^Approved")


def takes_in_a_request(clerk: Clerk) -> None:
    clerk.go("Privacy")
    clerk.page.get_by_label("What they ask for").select_option("erase")
    clerk.type("E-mail address", sendings()[0].guests[0].email)
    clerk.press("^Record the request")
    clerk.read("^Finish the request")


def every_page(reader: Any) -> list[str]:
    """The address of each kind of page that links lead to, and none that nothing leads to."""
    reader.get("/office/customers/1/see-as")
    begun = reader.post("/office/customers/1/see-as", reason="To see what they see.", environment="production")
    reader.get("/office/find")
    reader.page = reader.post("/office/find", by="reference", sought="Hampers")
    waiting = ["/office", "/office/prove?next=%2Foffice", begun.headers["location"], "/office/nothing-there"]
    waiting += [*GIVEN, *pages_of(reader)]
    found: dict[str, str] = {}
    met: Counter[str] = Counter()
    for path in waiting:
        route = next((one for one in PAGES if matches(one, path)), None)
        if route is None or met[route] >= MOST_ALIKE:
            continue
        met[route] += 1
        page = reader.get(path)
        if page.status_code == (404 if route == NOTHING else 200):
            found.setdefault(route, path)
            waiting += [one for one in pages_of(reader) if one not in waiting]
    missing = set(PAGES) - set(found)
    assert missing == UNREACHED, missing
    return list(found.values())


def pages_of(reader: Any) -> list[str]:
    links = (html.unescape(one) for one in reader.links if one.startswith("/office") and "/assets/" not in one)
    return list(dict.fromkeys(links))


def matches(route: str, path: str) -> bool:
    pattern = re.sub(r"\\{\w+:int\\}", r"\\d+", re.escape(route)).replace(r"\{rest:path\}", ".*")
    return bool(re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", pattern), urlsplit(path).path))


def looks_at_every_page(visit: Visits, demo: Any, state: dict[str, Any]) -> None:
    one = visit("desktop", name="every-page", storage_state=state)
    site = demo.url.replace("127.0.0.1", "localhost")
    wrong = wrong_on(one, Look(one.page), site, every_page(demo.reader(state)))
    assert not wrong, "\n".join(wrong)
