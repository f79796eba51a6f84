"""A real Chromium against a real demo, started as a person starts it. With `PICTURES=1` pictures are kept in build/pictures.

Without Chromium on the machine these tests are skipped, except in CI, where they fail.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, CDPSession, Page, sync_playwright
from tests.web.api.conftest import on_database
from tests.web.console.conftest import Browser as Reader

from largesse.base.hosts import by_name

PICTURES = Path(__file__).parents[2] / "build" / "pictures"
EVERY_PAGE = bool(os.environ.get("EVERY_PAGE"))
KEEPS_PICTURES = EVERY_PAGE or bool(os.environ.get("PICTURES"))
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WINDOWS: dict[str, dict[str, Any]] = {
    "phone": {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True},
    "desktop": {"viewport": {"width": 1280, "height": 900}},
}
# The buttons and menus round a window are pages, too, in new versions: nobody sees them here, and they take a third of the time.
WINDOWS_OWN = "InitialWebUI,SidePanel,WebUIOmniboxAimPopup,WebUIOmniboxPopup,WebUIReloadButton,WebUIToolbar"
# Chromium goes by one list alone, so that what Playwright's own keeps from pages stands here again.
KEPT_FROM_PAGES = (
    "AvoidUnnecessaryBeforeUnloadCheckSync,DestroyProfileOnBrowserClose,HttpsFirstBalancedModeAutoEnable,"
    "HttpsUpgrades,OptimizationHints,PaintHolding,ThirdPartyStoragePartitioning"
)
START_S = 60
HISTORY_S = 400  # of three months, on a busy machine
MOST_BYTES = 80_000  # of a first visit, with everything the page loads
# Of what axe finds, what is wrong. What it would load once more, style sheets, it needs for none of its rules that hold here.
AXE_OPTIONS: dict[str, Any] = {"resultTypes": ["violations"], "preload": False}


@dataclass
class Client:
    """Asks the demo with a connection for each request, so that none is left open."""

    url: str

    def request(self, method: str, path: str, **extra: Any) -> httpx.Response:
        return httpx.request(method, self.url + path, timeout=30, **extra)


@dataclass
class Demo:
    """A running demo, and what it printed."""

    url: str
    welcome: str
    environment: dict[str, str]  # of commands beside it

    @property
    def key(self) -> str:
        return re.findall(r"API key\s+(\S+)", self.welcome)[0]

    @property
    def curls(self) -> list[str]:
        """The requests it printed, as they would be pasted."""
        return re.findall(r"^curl (?:.*\\\n)*.*$", self.welcome, re.MULTILINE)

    def call(self, method: str, path: str, **extra: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.key}"}
        answer = httpx.request(method, self.url + path, headers=headers, timeout=30, **extra)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def id_of(self, path: str, name: str) -> int:
        return int(next(item["id"] for item in self.call("GET", path) if item["name"] == name))

    def send(self, what: str, name: str, **members: Any) -> dict[str, Any]:
        """Sends one anonymous code of the demo's gift or collection with that name; gives the code, PIN and link."""
        path, member = {"gift": ("/products?limit=200", "productId"), "collection": ("/collections", "collectionId")}[
            what
        ]
        body = {
            member: self.id_of(path, name),
            "accountId": self.id_of("/funding-accounts", "Acme float"),
            "codeQuantity": 1,
        }
        sent = self.call("POST", f"/send/{what}", json=body | members)
        return {**sent["codes"][0], "reference": sent["reference"]}

    def sql(self, statement: str, *values: Any) -> None:
        """Does to its database what no page does, such as letting time pass."""
        command = [str(Path(sys.executable).with_name("largesse")), "database-url", "--role", "owner"]
        asked = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True)
        on_database(asked.stdout.strip(), lambda connection: connection.execute(statement, *values))

    def client(self) -> Client:
        return Client(self.url)

    def reader(self, state: dict[str, Any] | None = None) -> Reader:
        """Somebody who uses the web application without a browser: nobody yet, or who a browser's `storage_state` is of."""
        cookies = {one["name"]: one["value"] for one in (state or {"cookies": []})["cookies"]}
        return Reader(self, cookies=cookies)  # type: ignore[arg-type]

    def state(self, reader: Reader) -> dict[str, Any]:
        """What a browser would keep in that reader's place: a `storage_state`."""
        host = self.url.partition("//")[2].partition(":")[0]
        kept = [
            {"name": name, "value": value, "domain": host, "path": "/app", "expires": -1}
            | {"httpOnly": True, "secure": False, "sameSite": "Lax"}
            for name, value in reader.cookies.items()
        ]
        return {"cookies": kept, "origins": []}

    def invitation(self, admin: dict[str, Any], email: str, name: str) -> str:
        """The path of the link by which somebody whom the administrator invites comes in, as another one."""
        self.sql("UPDATE sessions SET proved_at = clock_now()")  # the run may be older than a proof is good for
        inviting = self.reader(admin)
        inviting.get("/app/people")
        made = inviting.post("/app/people", email=email, name=name, role="admin")
        return re.findall(r"/app/link/[\w-]+", made.text)[0]

    def joined(self, admin: dict[str, Any], email: str, name: str, password: str) -> dict[str, Any]:
        """What the browser of somebody keeps who has taken an invitation up: a `storage_state`."""
        theirs, link = self.reader(), self.invitation(admin, email, name)
        theirs.get(link)
        assert theirs.post(link, password=password).status_code == 303
        return self.state(theirs)


@contextmanager
def started_demo(folder: Path, *, has_history: bool = False, **environment: str) -> Iterator[Demo]:
    """Runs `largesse demo` on a data directory of its own, without orders unless it `has_history`."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    own = {name: value for name, value in os.environ.items() if not name.startswith("LARGESSE_")}
    environment = own | environment
    environment["LARGESSE_DATA_DIR"] = str(folder / "data")
    output = folder / "output"
    without = [] if has_history else ["--no-history"]
    with output.open("w") as file:
        process = subprocess.Popen(
            [str(Path(sys.executable).with_name("largesse")), "demo", *without, "--port", str(port)],
            stdout=file,
            stderr=subprocess.STDOUT,
            env=environment,
        )
    try:
        started = time.monotonic()
        while "Ctrl-C" not in output.read_text():
            assert process.poll() is None, output.read_text()
            assert time.monotonic() - started < (HISTORY_S if has_history else START_S), output.read_text()
            time.sleep(0.05)
        yield Demo(f"http://127.0.0.1:{port}", output.read_text(), environment)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


def let_in(demo: Demo) -> dict[str, Any]:
    """What a browser keeps that the printed link let in to the web application, which it does once: a `storage_state`."""
    [link] = re.findall(r"^  http\S+?(/app/link/\S+)$", demo.welcome, re.MULTILINE)
    reader = demo.reader()
    reader.get(link)
    assert reader.post(link).status_code == 303
    return demo.state(reader)


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with started_demo(tmp_path_factory.mktemp("demo")) as demo:
        yield demo


@pytest.fixture(scope="session")
def admin(demo: Demo) -> dict[str, Any]:
    """The browser of the demo's administrator: a `storage_state`."""
    return let_in(demo)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The machine's Chromium. It ends with its module: Playwright keeps an event loop running, in which no other could."""
    program = next((found for name in PROGRAMS if (found := shutil.which(name))), None)
    if program is None:
        if os.environ.get("CI") == "true":
            pytest.fail("no Chromium on this machine: `apt install chromium`")
        pytest.skip("no Chromium on this machine: `apt install chromium` to run the browser tests")
    with sync_playwright() as playwright:
        # Its own sandbox needs rights that a container's root does not give.
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        arguments = [*sandbox, f"--disable-features={WINDOWS_OWN},{KEPT_FROM_PAGES}"]
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        yield browser
        browser.close()


@dataclass
class Visit:
    """One person's browser window: remembers what the console said and how much each page loaded."""

    page: Page
    name: str
    said: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    loaded: dict[str, int] = field(default_factory=dict)

    def picture(self, name: str) -> None:
        """Keeps a picture of the page as it is now, where they are kept, once everything that moves has come to rest."""
        self.rest()
        if not KEEPS_PICTURES:
            return
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=PICTURES / f"{self.name}-{name}.png", full_page=True, timeout=60_000)

    def rest(self) -> None:
        self.page.evaluate("Promise.all(document.getAnimations().map((one) => one.finished.catch(() => {})))")

    def check(self, name: str, *, again: bool = False) -> None:
        """A picture; axe finds nothing, of a page in another scheme `again` in its colours; nothing is cut off at the side; the page is light."""
        self.picture(name)
        found = Axe().run(self.page, options=AXE_OPTIONS | ({"runOnly": ["color-contrast"]} if again else {}))
        assert found.violations_count == 0, found.generate_report()
        width, window = self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert width <= window, f"{name} is {width} wide in a window of {window}"
        assert sum(self.loaded.values()) < MOST_BYTES, self.loaded

    def open(self, url: str) -> None:
        self.page.goto(url)

    def type_pin(self, pin: str) -> None:
        self.page.get_by_label("PIN").fill(pin)
        self.page.locator("form button").click()


Visits = Callable[..., Visit]


@pytest.fixture
def visit(browser: Browser, demo: Demo) -> Iterator[Visits]:
    """`visit("phone", "dark")`: a fresh window; further options as Playwright's `new_context`."""
    contexts: list[BrowserContext] = []
    visits: list[Visit] = []

    def start(window: str = "phone", scheme: str = "light", **options: Any) -> Visit:
        name = "-".join(part for part in (window, scheme, options.pop("name", "")) if part)
        context = browser.new_context(
            color_scheme=scheme, **({"locale": "en-GB", "reduced_motion": "reduce"} | WINDOWS[window] | options)
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        one = Visit(page, name)
        visits.append(one)
        page.on("console", lambda message: one.said.append(message.text))
        page.on("pageerror", lambda error: one.said.append(str(error)))

        def weigh(response: Any) -> None:
            if not response.url.startswith((demo.url, by_name(demo.url), "data:")):
                one.elsewhere.append(response.url)
            elif response.status < 300:
                if response.request.is_navigation_request() and response.frame == page.main_frame:
                    one.loaded.clear()
                one.loaded[response.url] = int(response.headers.get("content-length", 0))

        page.on("response", weigh)
        return one

    yield start
    for context in contexts:
        context.close()
    for one in visits:
        assert one.elsewhere == [], "nothing is loaded from elsewhere"


def add_authenticator(page: Page) -> tuple[CDPSession, str]:
    """Gives a page Chromium's own authenticator of passkeys. Returns the session that commands it, and its id."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("WebAuthn.enable")
    made = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True}
    options = {**made, "isUserVerified": True, "automaticPresenceSimulation": True}
    return devtools, devtools.send("WebAuthn.addVirtualAuthenticator", {"options": options})["authenticatorId"]
