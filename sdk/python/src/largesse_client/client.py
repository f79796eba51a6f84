"""The two clients: one blocks, one is awaited. They have the same operations, and do the same."""

from __future__ import annotations

import platform
import re
import ssl
from functools import cache
from types import TracebackType
from typing import Any, Self, TypedDict

import httpx

from largesse_client.arguments import refused
from largesse_client.asking import Asker, OnIgnored, RetryPolicy, log_ignored
from largesse_client.binding import Async, M, Resource, Sync, operation
from largesse_client.calls import Call, get
from largesse_client.driving import MAX_CALLS, AsyncDriver, Driver
from largesse_client.models import Health, Identity
from largesse_client.resources import (
    Collections,
    Contacts,
    Events,
    FundingAccounts,
    Orders,
    Products,
    Quoting,
    Sending,
    Templates,
    Users,
    Webhooks,
    Wrappings,
)
from largesse_client.version import __version__

_VISIBLE = re.compile(r"[\x21-\x7e]{1,512}")


class _Client(Resource[M]):
    """The operations of both clients."""

    def __init__(self, driver: Driver | AsyncDriver, base_url: str) -> None:
        super().__init__(driver)
        self._base_url = base_url
        self.send: Sending[M] = Sending(driver)
        self.quote: Quoting[M] = Quoting(driver)
        self.orders: Orders[M] = Orders(driver)
        self.products: Products[M] = Products(driver)
        self.collections: Collections[M] = Collections(driver)
        self.templates: Templates[M] = Templates(driver)
        self.wrappings: Wrappings[M] = Wrappings(driver)
        self.contacts: Contacts[M] = Contacts(driver)
        self.funding_accounts: FundingAccounts[M] = FundingAccounts(driver)
        self.webhooks: Webhooks[M] = Webhooks(driver)
        self.events: Events[M] = Events(driver)
        self.users: Users[M] = Users(driver)

    @operation
    def me(self) -> Call[Identity]:
        """Returns the identity that the key acts for."""
        return get("/me", Identity)

    @operation
    def health(self) -> Call[Health]:
        """Returns whether the service works."""
        return get("/health", Health, also=frozenset({503}))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._base_url!r})"


class Largesse(_Client[Sync]):
    """A client that blocks; safe to share between threads.

        with Largesse("https://gifts.example", api_key) as largesse:
            order = largesse.send.gift(1, value=10, code_quantity=3, account_id=1, external_reference="codes-1")

    `timeout_s` is the time limit of one attempt. If the head of its answer arrives in pieces, each piece may take that long. A request that may
    be repeated is sent at most `attempts` times, the last one at most `patience_s` after the first. `verify` and `proxy` are passed to httpx: the certificates
    to trust, and a proxy. `on_ignored` is called with names that the service does not know and ignored; by default, they are logged as a warning.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout_s: float = 30.0,
        attempts: int = 8,
        patience_s: float = 60.0,
        verify: Any = True,
        proxy: str | None = None,
        on_ignored: OnIgnored = log_ignored,
    ) -> None:
        options = _options(base_url, api_key, timeout_s)
        asker = Asker(options["base_url"], _retry_policy(attempts, patience_s), on_ignored=on_ignored)
        trusted = _trusted(verify)
        self._driver = Driver(lambda: httpx.Client(**options, verify=trusted, proxy=proxy), asker, timeout_s)
        super().__init__(self._driver, options["base_url"])

    def close(self) -> None:
        """Closes the client's connections."""
        self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncLargesse(_Client[Async]):
    """A client that is awaited.

        async with AsyncLargesse("https://gifts.example", api_key) as largesse:
            order = await largesse.send.gift(1, value=10, code_quantity=3, account_id=1, external_reference="codes-1")
            async for record in largesse.orders.list():
                print(record.reference)

    It has the options and operations of Largesse. `asyncio.timeout` limits a whole call. If it ends a send, the order may have been placed:
    send it again with the same `external_reference`.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout_s: float = 30.0,
        attempts: int = 8,
        patience_s: float = 60.0,
        verify: Any = True,
        proxy: str | None = None,
        on_ignored: OnIgnored = log_ignored,
    ) -> None:
        options = _options(base_url, api_key, timeout_s)
        asker = Asker(options["base_url"], _retry_policy(attempts, patience_s), on_ignored=on_ignored)
        trusted = _trusted(verify)
        self._driver = AsyncDriver(lambda: httpx.AsyncClient(**options, verify=trusted, proxy=proxy), asker, timeout_s)
        super().__init__(self._driver, options["base_url"])

    async def aclose(self) -> None:
        """Closes the client's connections."""
        await self._driver.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class _Options(TypedDict):
    """The options with which both httpx clients are created."""

    base_url: str
    headers: dict[str, str]
    timeout: httpx.Timeout
    limits: httpx.Limits
    follow_redirects: bool
    trust_env: bool


def _trusted(verify: Any) -> Any:
    """Returns what httpx verifies servers with."""
    return _usual_authorities() if verify is True else verify


@cache
def _usual_authorities() -> ssl.SSLContext:
    """Returns the authorities that httpx trusts. They are read only once, as that takes longer than a request."""
    return httpx.create_ssl_context()


def _options(base_url: str, api_key: object, timeout_s: float) -> _Options:
    if not isinstance(api_key, str) or not _VISIBLE.fullmatch(api_key):
        raise refused(
            "api_key", "must be an API key alone, without blanks or line breaks."
        )  # the error never shows the key
    if not 0 < timeout_s <= 3600:
        raise refused("timeout_s", f"must be above 0 and at most 3600, not {timeout_s}.")
    return {
        "base_url": _base(base_url),
        "headers": {
            "Authorization": f"Bearer {api_key}",
            "Accept": "application/json",
            "User-Agent": f"largesse-client/{__version__} python/{platform.python_version()} httpx/{httpx.__version__}",
        },
        "timeout": httpx.Timeout(timeout_s),
        "limits": httpx.Limits(max_connections=MAX_CALLS, max_keepalive_connections=20),
        "follow_redirects": False,
        "trust_env": True,
    }


def _base(base_url: str) -> str:
    """Returns the service's address. Raises InvalidArgument if it cannot be one."""
    try:
        url = httpx.URL(base_url)
    except (httpx.InvalidURL, TypeError) as error:
        raise refused("base_url", f"is not an address: {error}") from None
    if url.scheme not in {"http", "https"} or not url.host:
        # Does not show the value: if the arguments are swapped, it is the API key.
        raise refused("base_url", "must be http:// or https:// and a host, such as https://gifts.example.")
    if url.userinfo or url.query or url.fragment:
        raise refused("base_url", "must be only an address, without user, query or fragment.")
    return str(url).rstrip("/")


def _retry_policy(attempts: int, patience_s: float) -> RetryPolicy:
    if not 1 <= attempts <= 100:
        raise refused("attempts", f"must be from 1 to 100, not {attempts}.")
    if not 0 <= patience_s <= 86_400:
        raise refused("patience_s", f"must be from 0 to 86400, not {patience_s}.")
    return RetryPolicy(attempts, patience_s)
