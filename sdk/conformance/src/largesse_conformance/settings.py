"""The settings of a run. Keys come from environment variables, as other users of the machine could read them on a command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from urllib.parse import urlsplit

# The name of a caller in the checks, the variable with its key, and whose key it is.
KEYS = {
    "main": ("CONFORMANCE_KEY", "a key of the customer to test"),
    "colleague": ("CONFORMANCE_COLLEAGUE_KEY", "a key of another service account of the same customer"),
    "other": ("CONFORMANCE_OTHER_KEY", "a key of another customer"),
    "invoiced": ("CONFORMANCE_INVOICED_KEY", "a key of a customer whose orders are invoiced"),
    "no_plan": ("CONFORMANCE_NO_PLAN_KEY", "a key of a customer whose plan does not include the API"),
    "inactive": ("CONFORMANCE_INACTIVE_KEY", "a key of a service account that is switched off"),
    "deleted": ("CONFORMANCE_DELETED_KEY", "a key that was deleted"),
    "elsewhere": ("CONFORMANCE_OTHER_ENVIRONMENT_KEY", "a key of the other environment"),
}
ACCOUNT = "CONFORMANCE_ACCOUNT"
RECIPIENT = "CONFORMANCE_RECIPIENT"


class UsageError(Exception):
    """A setting is missing or cannot be used. The text names it."""


@dataclass(frozen=True)
class Settings:
    """The address to test, the keys, the account to charge, and the limits of a run."""

    url: str
    keys: Mapping[str, str] = field(repr=False)
    account: int | None = None
    country: str = "GB"
    recipient: str = "conformance@example.com"
    receiver: str = "127.0.0.1:0"
    receiver_url: str | None = None
    max_requests: int = 2000
    max_cost: Decimal = Decimal(250)
    time_limit_s: float = 600.0
    is_production_allowed: bool = False

    def address(self, tag: str) -> str:
        """Returns an address for a recipient: the configured one, with a tag before its `@`."""
        local, _, domain = self.recipient.partition("@")
        return f"{local}+{tag}@{domain}"


def read_environment(environ: Mapping[str, str]) -> dict[str, object]:
    """Returns the settings that environment variables hold. Raises UsageError."""
    keys = {name: environ[variable] for name, (variable, _) in KEYS.items() if environ.get(variable)}
    if "main" not in keys:
        raise UsageError(f"Set {KEYS['main'][0]} to {KEYS['main'][1]}.")
    found: dict[str, object] = {"keys": keys}
    if account := environ.get(ACCOUNT):
        if not account.isdecimal():
            raise UsageError(f"{ACCOUNT} must be the id of a funding account, such as 1.")
        found["account"] = int(account)
    if recipient := environ.get(RECIPIENT):
        if recipient.count("@") != 1:
            raise UsageError(f"{RECIPIENT} must be an email address.")
        found["recipient"] = recipient
    return found


def check_url(url: str) -> str:
    """Returns the address without a slash at its end. Raises UsageError."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None:
        raise UsageError("URL must begin with http:// or https:// and contain no user name.")
    return url.rstrip("/")
