"""The service of tests/web/api, for these tests too, and somebody who uses the web application without a browser."""

import html
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from tests.web.api.conftest import Service, own_service, service, staging, start_service

from largesse.automations import placing
from largesse.customers.sign_in_links import new_link

__all__ = ["own_service", "service", "staging", "start_service"]

# Each comes from a network of their own: tries are counted by it.
HOSTS = (f"198.19.{number // 256}.{number % 256}" for number in itertools.count())


def acme_with(**people: str) -> str:
    """A world of one customer, whose people have those names and roles, and addresses like ada@acme.example."""
    users = [f"{{email: {name}@acme.example, name: {name.title()}, role: {role}}}" for name, role in people.items()]
    return f"""
customers:
  - {{key: acme, name: Acme Ltd, plan: pro, funding: balance, users: [{", ".join(users)}]}}
"""


@dataclass
class Browser:
    """Gets pages and posts their forms, follows nothing, and keeps the cookies it is given."""

    service: Service
    host: str = field(default_factory=lambda: next(HOSTS))
    cookies: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=lambda: {"Accept-Language": "en"})
    page: httpx.Response = field(init=False)

    def get(self, path: str) -> httpx.Response:
        self.page = self._send("GET", path)
        return self.page

    def read(self, path: str) -> str:
        """Gets a page; returns what it says, without its tags."""
        self.get(path)
        return self.text

    def sees(self, path: str, *said: str) -> None:
        """Gets a page and checks that it says each of these."""
        self.get(path)
        self.says(*said)

    def says(self, *said: str) -> None:
        """Checks that the page that was got last says each of these."""
        text = self.text
        for one in said:
            assert one in text

    def post(self, path: str, *, token: str | None = None, **fields: str | Sequence[str]) -> httpx.Response:
        """Posts a form with the token of the page that was got last, unless another is given."""
        return self._send("POST", path, data={"token": self.token if token is None else token, **fields})

    def submit(self, page: str, path: str = "", /, **fields: Any) -> httpx.Response:
        """Gets a page and posts its form, to another path if one is given."""
        self.get(page)
        return self.post(path or page, **fields)

    def upload(
        self, path: str, data: bytes, *, file_name: str = "people.csv", field: str = "file", **fields: str
    ) -> httpx.Response:
        """Posts a form with a file, with the token of the page that was got last."""
        files = {field: (file_name, data, "application/octet-stream")}
        return self._send("POST", path, data={"token": self.token, **fields}, files=files)

    @property
    def token(self) -> str:
        found = re.findall(r'name="token" value="([^"]+)"', self.page.text)
        assert found, f"a page without a form: {self.page.status_code} {self.page.headers} {self.text}"
        return str(found[0])

    @property
    def text(self) -> str:
        """What the page says, without its tags."""
        return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", self.page.text.replace("<wbr>", ""))).split())

    @property
    def links(self) -> list[str]:
        return re.findall(r'(?:href|<iframe class="phone" src)="([^"]+)"', self.page.text)

    def _send(self, method: str, path: str, **extra: Any) -> httpx.Response:
        headers = {"X-Forwarded-For": self.host, **self.headers}
        if self.cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        response = self.service.client().request(method, path, headers=headers, **extra)
        for cookie in response.headers.get_list("set-cookie"):
            name, _, value = cookie.split(";")[0].partition("=")
            if "Max-Age=0" in cookie:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value
        return response


def link_for(
    service: Service, email: str, kind: str = "sign_in", *, customer: str | None = None, is_mailed: bool = False
) -> str:
    """The path of a fresh link for the user of that address, at that customer where there are several."""

    async def make(connection: Any) -> str:
        user_id = await connection.fetchval(
            "SELECT id FROM users WHERE email = $1 AND ($2::int IS NULL OR customer_id = $2)",
            email,
            customer and service.ids["customers"][customer],
        )
        return await new_link(connection, kind, user_id=user_id, is_mailed=is_mailed)

    return f"/app/link/{service.ask(make)}"


def signed_in(service: Service, email: str) -> Browser:
    """The browser of the user of that address, let in by a link."""
    browser, link = Browser(service), link_for(service, email)
    browser.get(link)
    assert browser.post(link).headers["location"] == "/app"
    return browser


SignIn = Callable[[str], Browser]


def user_id(service: Service, email: str) -> int:
    """The id of the first user of that address."""
    return service.sql("SELECT id FROM users WHERE email = $1 ORDER BY id", email)[0]["id"]


@pytest.fixture(scope="module", autouse=True)
def placing_stands_still() -> Iterator[None]:
    """A service looks for due gifts of automations as it starts and no more: every 15 seconds would be in the middle of a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placing, "_EVERY_S", 3600.0)
        yield


@pytest.fixture
def browser(service: Service) -> Browser:
    return Browser(service)


@pytest.fixture
def sign_in(service: Service) -> SignIn:
    """`sign_in("ada@acme.example")`: her browser, signed in."""
    return lambda email: signed_in(service, email)


@pytest.fixture
def ada(service: Service) -> Browser:
    """The browser of an administrator."""
    return signed_in(service, "ada@acme.example")


@pytest.fixture
def cem(service: Service) -> Browser:
    """The browser of a member."""
    return signed_in(service, "cem@acme.example")


@pytest.fixture
def gil(service: Service) -> Browser:
    """The browser of another customer's administrator."""
    return signed_in(service, "gil@globex.example")
