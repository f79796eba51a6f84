"""Takes the pictures of the README from a demo of its own, and writes them as WebP to docs/pictures.

    python -m tools.take_pictures

Chromium paints the pages and compresses the pictures. Run it again when the pages look different.
"""

import base64
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Browser, Page, sync_playwright

FOLDER = Path(__file__).parents[1] / "docs/pictures"
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
DESKTOP = {"viewport": {"width": 1280, "height": 900}}
START_S = 180  # it makes three months of orders first
QUALITY = 0.8
COMPRESS = """async ([png, quality]) => {
    const bytes = Uint8Array.from(atob(png), (one) => one.charCodeAt(0));
    const image = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
    const canvas = new OffscreenCanvas(image.width, image.height);
    canvas.getContext('2d').drawImage(image, 0, 0);
    const blob = await canvas.convertToBlob({ type: 'image/webp', quality });
    let text = '';
    for (const one of new Uint8Array(await blob.arrayBuffer())) text += String.fromCharCode(one);
    return btoa(text);
}"""


@contextmanager
def demo() -> Iterator[str]:
    """Runs `largesse demo` on a data directory of its own, and yields what it prints."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "output"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LARGESSE_")}
        with output.open("w") as file:
            process = subprocess.Popen(
                [str(Path(sys.executable).with_name("largesse")), "demo", "--port", str(port)],
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment | {"LARGESSE_DATA_DIR": f"{folder}/data"},
            )
        try:
            for _ in range(START_S * 10):
                if "Ctrl-C" in output.read_text() or process.poll() is not None:
                    break
                time.sleep(0.1)
            else:
                raise TimeoutError(output.read_text())
            yield output.read_text()
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)


def send(api: httpx.Client) -> dict[str, Any]:
    """Orders a gift whose recipient chooses, and returns its code."""
    [collection] = (one["id"] for one in api.get("/collections").json() if one["name"] == "Everyday treats")
    chosen = {"collectionId": collection, "value": 25, "accountId": 1, "codeQuantity": 1}
    words = {"wrappingKey": "birthday", "fromName": "Your team", "message": "Happy birthday!\nPick something nice."}
    sent = api.post("/send/collection", json=chosen | words)
    sent.raise_for_status()
    code: dict[str, Any] = sent.json()["codes"][0]
    return code


def take(page: Page, name: str) -> None:
    """Writes what the window shows now, once nothing moves any more."""
    page.wait_for_load_state("networkidle")
    page.evaluate("Promise.all(document.getAnimations().map((one) => one.finished.catch(() => {})))")
    png = base64.b64encode(page.screenshot()).decode()
    blank = page.context.browser.new_page()  # type: ignore[union-attr] - the pages' own policy forbids blobs
    webp = base64.b64decode(blank.evaluate(COMPRESS, [png, QUALITY]))
    blank.close()
    (FOLDER / f"{name}.webp").write_bytes(webp)
    print(f"{name}.webp: {len(webp):,} bytes")


def window(browser: Browser, **options: Any) -> Page:
    return browser.new_context(locale="en-GB", reduced_motion="reduce", **options).new_page()


def claim(page: Page, code: dict[str, Any]) -> None:
    """Opens a gift, as its recipient does, and takes the pictures on the way."""
    page.goto(code["redemptionUrl"])
    take(page, "wrapped")
    page.get_by_label("PIN").fill(code["pin"])
    page.locator("form button").click()
    page.wait_for_url("**/claim/gift/**")
    take(page, "choose")
    page.get_by_role("radio").first.check()
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Yes, this one").click()
    page.wait_for_url("**#open")
    page.evaluate("scrollTo(0, 0)")
    take(page, "voucher")


def main() -> None:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    with demo() as printed, sync_playwright() as playwright:
        url = re.findall(r"^  API +(http\S+)$", printed, re.MULTILINE)[0]  # the next one is of test mode
        key = re.findall(r"^  API key +(\S+)$", printed, re.MULTILINE)[0]
        [link] = re.findall(r"^  (http\S+/app/link/\S+)$", printed, re.MULTILINE)
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=30) as api:
            code = send(api)
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=program, args=sandbox)
        claim(window(browser, **PHONE), code)
        home = window(browser, **DESKTOP)
        home.goto(link)
        home.locator("main form button").first.click()
        home.wait_for_url("**/app")
        home.wait_for_timeout(3_000)  # until the worker lists the orders
        home.reload()
        take(home, "home")
        browser.close()


if __name__ == "__main__":
    main()
