"""The service of tests/api, for these tests too, and a recipient who posts what the pages' forms post."""

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from tests.chained import actor_on
from tests.web.api.conftest import PUBLIC_URL, own_service, problem, service, staging, start_service

from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.encryption.vault import Vault
from largesse.fulfilment.inventory import find_inventory_product, import_vouchers
from largesse.lines.codes import claim_link, open_code, parse_code

Codes = Callable[..., list[dict[str, str]]]
PATHS = ("gift", "coffee")

__all__ = ["own_service", "problem", "service", "staging", "start_service"]

# Each recipient has an address of their own: the service remembers those that guess.
HOSTS = (f"198.18.{number // 256}.{number % 256}" for number in itertools.count())


@dataclass
class Recipient:
    """A recipient's browser without a browser: posts forms, follows nothing, and keeps the cookie it was given."""

    service: Any
    host: str = field(default_factory=lambda: next(HOSTS))
    cookie: str = ""
    language: str = "en"

    def get(self, path: str) -> httpx.Response:
        return self._send("GET", path)

    def post(self, path: str, **form: str) -> httpx.Response:
        return self._send("POST", path, data=form)

    def _send(self, method: str, path: str, **extra: Any) -> httpx.Response:
        headers = {"X-Forwarded-For": self.host, "Accept-Language": self.language}
        if self.cookie:
            headers["Cookie"] = f"gift={self.cookie}"
        response = self.service.client().request(method, path, headers=headers, **extra)
        set_cookie = response.headers.get("set-cookie", "")
        if set_cookie.startswith("gift="):
            self.cookie = set_cookie.split(";")[0].removeprefix("gift=")
        self.service.client().cookies.clear()
        return response

    def claim(self, code: dict[str, str], pin: str | None = None) -> httpx.Response:
        return self.post(link(code), pin=pin or code["pin"])

    def gift(self, code: dict[str, str]) -> str:
        """Claims the gift and gives the path of its page."""
        response = self.claim(code)
        assert response.status_code == 303, response.text
        return response.headers["location"].removesuffix("#open")


def link(code: dict[str, str]) -> str:
    """The path of a code's claim link."""
    return urlsplit(code["redemptionUrl"]).path


def wrong(code: dict[str, str], by: int = 1) -> str:
    """A PIN that is not the code's."""
    return f"{(int(code['pin']) + by) % 1_000_000:06d}"


def form_of(page: httpx.Response) -> dict[str, str]:
    """The hidden fields of a page's form."""
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page.text))


@pytest.fixture
def recipient(service: Any) -> Recipient:
    return Recipient(service)


@pytest.fixture
def codes(service: Any) -> Codes:
    """`codes(what, name, count, **members)`: issues codes, with their PINs and links."""

    def issue(what: str, name: str, count: int = 1, **members: Any) -> list[dict[str, str]]:
        answer = service.send(what, name, codeQuantity=count, **members)
        assert answer.status_code == 200, answer.text
        return list(answer.json()["codes"])

    return issue


def sent_code(service: Any, reference: str, number: int = 1) -> dict[str, str]:
    """A code of an order with its PIN and link, as its recipient has them."""
    vault = Vault(service.settings.master_keys)
    [line] = service.of_order(reference, "sealed", "lines", f"AND number = {number}")
    code = open_code(vault, line["sealed"], reference, number)
    return {"code": code.code_text, "pin": code.pin_text, "redemptionUrl": claim_link(code, vault, PUBLIC_URL)}


@pytest.fixture
def move_clock(service: Any) -> Iterator[Callable[[timedelta], None]]:
    """Moves the clock the database goes by ahead, for this test."""

    def move(ahead: timedelta) -> None:
        service.sql("UPDATE clock SET ahead_by = ahead_by + $1", ahead)

    yield move
    service.sql("UPDATE clock SET ahead_by = '0'")


def lookup_of(service: Any, code: dict[str, str]) -> int:
    return Vault(service.settings.master_keys).codes.lookup(parse_code(code["code"]))


@pytest.fixture
def stock(service: Any, tmp_path: Path) -> Callable[..., Any]:
    """`stock("coffee", ["A", "B"], value="10")`: imports these numbers."""

    def run(product: str, numbers: list[str], value: str | None = None) -> Any:
        file = tmp_path / "stock.csv"
        file.write_text("number\n" + "\n".join(numbers) + "\n")

        async def work(database: Database, vault: Vault) -> Any:
            async with database.connection(OPERATOR) as connection:
                stocked = await find_inventory_product(connection, product)
            return await import_vouchers(await actor_on(database, vault), vault, stocked, file, value=value)

        return service.on_pool(work)

    return run


@pytest.fixture
def verified(service: Any) -> Callable[[], list[str]]:
    """What `largesse verify` finds."""
    return service.findings
