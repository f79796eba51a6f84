"""The settings: environment variables outside, one frozen typed object inside. `docs/settings.md` describes each. A test compares the two."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import os
import re
from collections.abc import Mapping
from email.utils import getaddresses, parseaddr
from pathlib import Path
from urllib.parse import SplitResult, parse_qs, urlsplit

import msgspec

from largesse.base.database_address import DatabaseAddress
from largesse.base.email import to_dial
from largesse.base.errors import OperatorError

ENVIRONMENTS = ("production", "staging")
# The values of `?starttls=` in LARGESSE_SMTP_URL, and whether they require it. None: it is used if the server offers it.
STARTTLS: Mapping[str, bool | None] = {
    "required": True,
    "true": True,
    "yes": True,
    "1": True,
    "optional": None,
    "never": False,
    "false": False,
    "no": False,
    "0": False,
}
# `?connections=` in LARGESSE_SMTP_URL: how many connections a worker opens for the mail of orders.
MAIL_CONNECTIONS, MOST_MAIL_CONNECTIONS = 8, 20

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# Days for which deliveries and mail about an order are always stored.
SHORTEST_RETENTION_DAYS = 35

_MOST_LINES = 10
_LONGEST_LINE = 100
_MOST_SECRET_BYTES = 16_384
_IPV4_IN_IPV6 = ipaddress.IPv6Network("::ffff:0:0/96")
_NOT_IN_ADDRESSES = frozenset(' "<>\\^`{|}')
_SENDER = re.compile(r'[^\s"(),:;<>@\\]+@[^\s"(),;<>@\\]+')


class Settings(msgspec.Struct, frozen=True):
    """The settings of an installation. Its `repr` has no secrets."""

    database_url: str | None
    owner_database_url: str | None  # for `migrate` and other commands; None: they use `database_url`
    data_dir: Path
    environment: str
    public_url: str  # the address of this process's environment
    other_public_url: str  # the address of the other environment
    master_keys: tuple[bytes, ...]  # newest first, 32 bytes each; empty: one is generated in the data directory
    smtp_url: str | None
    mail_from: str
    office_networks: tuple[Network, ...]  # the networks that may use the back office; empty: all
    webhook_allowed_networks: tuple[Network, ...]
    webhook_timeout_s: float
    suppliers: tuple[Path, ...]  # the files that describe the suppliers
    rate_limit: int  # requests a minute for each key; 0: no limit
    request_log: int  # requests a second that a serving process writes into the request log
    max_connections: int | None  # client connections of a process; None: MAX_CONNECTIONS, or fewer if the system allows
    transfer_details: tuple[str, ...]  # lines that describe the bank account for top-ups
    default_expiry_days: int  # days after the claim until a gift expires, if the order sets none; 0: never
    retention_days: int  # days for which recipients are stored after their order has ended; 0: for ever
    docs_url: str | None  # the address of the documentation that `make docs` builds; None: pages have no links to it
    log_format: str  # json or console

    def __repr__(self) -> str:
        secret = {"database_url", "owner_database_url", "master_keys", "smtp_url"}
        shown = (f"{name}={getattr(self, name)!r}" for name in self.__struct_fields__ if name not in secret)
        return f"Settings({', '.join(shown)})"

    def public_url_of(self, environment: str) -> str:
        """Returns the address of an environment, with which its claim links begin."""
        return self.public_url if environment == self.environment else self.other_public_url


class SettingError(OperatorError):
    """A malformed variable. `said` is the message without the variable's `name`."""

    def __init__(self, name: str, said: str) -> None:
        super().__init__(f"{name} {said}")
        self.name = name
        self.said = said


def load_settings(environ: Mapping[str, str] = os.environ) -> Settings:
    """Reads the settings. Raises SettingError for the first malformed variable."""
    return _read(_Reader(environ))


def setting_names() -> frozenset[str]:
    """Returns the names of all variables that are read."""
    reader = _Reader({})
    _read(reader)
    return frozenset(reader.names)


def secret_names() -> frozenset[str]:
    """Returns the names of the variables that hold secrets. Each can be in a file instead, which NAME_FILE names."""
    reader = _Reader({})
    _read(reader)
    return frozenset(reader.secrets)


def _read(read: _Reader) -> Settings:
    database_url = read.database_url("LARGESSE_DATABASE_URL")
    owner_database_url = read.database_url("LARGESSE_OWNER_DATABASE_URL")
    if owner_database_url and not database_url:
        raise SettingError("LARGESSE_OWNER_DATABASE_URL", "needs LARGESSE_DATABASE_URL to be set too")
    data_dir = read.path("LARGESSE_DATA_DIR", read.text("LARGESSE_DATA_DIR", "./largesse-data"))
    environment = read.choice("LARGESSE_ENVIRONMENT", ENVIRONMENTS, "production")
    public_url = read.public_url("LARGESSE_PUBLIC_URL", "http://127.0.0.1:8000")
    staging_public_url = read.public_url("LARGESSE_STAGING_PUBLIC_URL", public_url)
    is_staging = environment == "staging"
    return Settings(
        database_url=database_url,
        owner_database_url=owner_database_url,
        data_dir=data_dir,
        environment=environment,
        public_url=staging_public_url if is_staging else public_url,
        other_public_url=public_url if is_staging else staging_public_url,
        master_keys=read.master_keys("LARGESSE_MASTER_KEY"),
        smtp_url=read.smtp_url("LARGESSE_SMTP_URL"),
        mail_from=read.mailbox("LARGESSE_MAIL_FROM", "Largesse <gifts@localhost>"),
        office_networks=read.networks("LARGESSE_OFFICE_NETWORKS"),
        webhook_allowed_networks=read.networks("LARGESSE_WEBHOOK_ALLOWED_NETWORKS"),
        webhook_timeout_s=read.number("LARGESSE_WEBHOOK_TIMEOUT", 15.0, lowest=0.1, highest=300.0),
        suppliers=read.paths("LARGESSE_SUPPLIERS"),
        rate_limit=read.count("LARGESSE_RATE_LIMIT", 0, highest=1_000_000),
        request_log=read.count("LARGESSE_REQUEST_LOG", 100, highest=10_000),
        max_connections=read.count("LARGESSE_MAX_CONNECTIONS", 0, highest=1_000_000) or None,
        default_expiry_days=read.count("LARGESSE_DEFAULT_EXPIRY_DAYS", 365, highest=36_500),
        transfer_details=read.lines("LARGESSE_TRANSFER_DETAILS"),
        retention_days=read.days("LARGESSE_RETENTION_DAYS", lowest=SHORTEST_RETENTION_DAYS, highest=36_500),
        docs_url=read.public_url("LARGESSE_DOCUMENTATION_URL", "") or None,
        log_format=read.choice("LARGESSE_LOG_FORMAT", ("json", "console"), "json"),
    )


class _Reader:
    """Reads one variable at a time. No error repeats a value, as it could be a secret."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.names: list[str] = []
        self.secrets: list[str] = []

    def text(self, name: str, default: str) -> str:
        self.names.append(name)
        return self._environ.get(name, "").strip() or default

    def secret(self, name: str) -> str:
        """Returns the text of a variable, or of the file that NAME_FILE names."""
        self.secrets.append(name)
        text, path = self.text(name, ""), self._environ.get(f"{name}_FILE", "").strip()
        if not path:
            return text
        if text:
            raise SettingError(name, f"must not be set together with {name}_FILE")
        try:
            with Path(path).open("rb") as file:
                text = file.read(_MOST_SECRET_BYTES + 1).decode("utf-8-sig").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
            raise SettingError(name, f"cannot be read from the file of {name}_FILE: {reason}") from None
        if not text or len(text) > _MOST_SECRET_BYTES:
            raise SettingError(name, f"must have 1 to {_MOST_SECRET_BYTES:,} characters in the file of {name}_FILE")
        return text

    def lines(self, name: str) -> tuple[str, ...]:
        lines = [" ".join(line.split()) for line in re.split(r"[|\n]", self.text(name, ""))]
        if len(lines) > _MOST_LINES or any(len(line) > _LONGEST_LINE or not line.isprintable() for line in lines):
            raise SettingError(
                name, f"must be at most {_MOST_LINES} lines of at most {_LONGEST_LINE} characters, with | between"
            )
        return tuple(line for line in lines if line)

    def choice(self, name: str, choices: tuple[str, ...], default: str) -> str:
        value = self.text(name, default)
        if value not in choices:
            raise SettingError(name, f"must be one of: {', '.join(choices)}")
        return value

    def number(self, name: str, default: float, *, lowest: float, highest: float) -> float:
        try:
            value = float(self.text(name, str(default)))
        except ValueError:
            value = lowest - 1
        if not lowest <= value <= highest:
            raise SettingError(name, f"must be a number between {lowest:g} and {highest:g}")
        return value

    def count(self, name: str, default: int, *, highest: int) -> int:
        count = _whole(self.text(name, str(default)))
        if count is None or count > highest:
            raise SettingError(name, f"must be a whole number between 0 and {highest:,}")
        return count

    def days(self, name: str, *, lowest: int, highest: int) -> int:
        """Returns a number of days, or 0, which is the default."""
        days = _whole(self.text(name, "0"))
        if days is None or (days and not lowest <= days <= highest):
            raise SettingError(name, f"must be a whole number of days between {lowest} and {highest:,}, or 0")
        return days

    def database_url(self, name: str) -> str | None:
        value = self.secret(name)
        if not value:
            return None
        try:
            DatabaseAddress.parse(value)
        except ValueError as error:
            raise SettingError(name, str(error)) from None
        return value

    def public_url(self, name: str, default: str) -> str:
        value = self.text(name, default).rstrip("/")
        parts = _split(value)
        if not value and not default:
            return ""
        if parts is None or parts.scheme not in {"http", "https"} or not {"?", "#"}.isdisjoint(value):
            raise SettingError(name, "must be an address such as https://gifts.example.com")
        if parts.username is not None or not value.isprintable() or _NOT_IN_ADDRESSES.intersection(value):
            raise SettingError(name, "must be an address without a login, blanks or quotes")
        if not value.isascii():  # browsers write the host differently, and headers must be ASCII
            raise SettingError(name, "must be in ASCII: write xn--bcher-kva.example for bücher.example")
        return value

    def smtp_url(self, name: str) -> str | None:
        value = self.secret(name)
        parts = _split(value)
        after_host = f"{parts.path}?{parts.query}#{parts.fragment}" if parts else ""
        # An @ after the host: a `/`, `?` or `#` of the password ended it, so what follows may be a secret.
        if value and (parts is None or parts.scheme not in {"smtp", "smtps"} or "@" in after_host or parts.fragment):
            raise SettingError(name, "must look like smtp://user:password@host:587?starttls=required")
        asked = parse_qs(parts.query, keep_blank_values=True) if parts else {}
        if unknown := sorted(asked.keys() - {"starttls", "connections"}):
            raise SettingError(
                name,
                f"must not have {unknown[0][:40]!r}: only `starttls=` and `connections=` may follow the question mark",
            )
        starttls = asked.get("starttls", [])
        if not {one.lower() for one in starttls} <= STARTTLS.keys() or len(starttls) > 1:
            raise SettingError(name, "must have one of these in `?starttls=`: required, optional, never")
        connections = asked.get("connections", ["1"])
        if len(connections) > 1 or connections[0] not in map(str, range(1, MOST_MAIL_CONNECTIONS + 1)):
            raise SettingError(name, f"must have a whole number from 1 to {MOST_MAIL_CONNECTIONS} in `connections=`")
        return value or None

    def mailbox(self, name: str, default: str) -> str:
        value = self.text(name, default)
        address = parseaddr(value)[1]
        # parseaddr drops blanks in a domain, and `email` refuses all kinds of line breaks.
        is_one = len(getaddresses([value])) == 1 and address in value and len(value.splitlines()) == 1
        malformed = SettingError(name, "must look like Gifts <gifts@example.com>")
        if not is_one or not _SENDER.fullmatch(address) or any(ord(character) < 32 for character in value):
            raise malformed
        try:
            return value.replace(address, to_dial(address))
        except ValueError:
            raise malformed from None

    def networks(self, name: str) -> tuple[Network, ...]:
        text = self.text(name, "")
        values = [part.strip() for part in text.split(",")]
        malformed = SettingError(
            name, "must be a list of networks, each with its first address, such as 127.0.0.0/8,10.0.0.0/8"
        )
        try:
            networks = tuple(parse_network(value) for value in values if value)
        except ValueError:
            raise malformed from None
        if text and not networks:  # only commas, from unset variables in a template, would allow every network
            raise malformed
        return networks

    def path(self, name: str, value: str) -> Path:
        try:
            return Path(value).expanduser().absolute()
        except RuntimeError:
            raise SettingError(name, "begins with ~, but that user has no home folder") from None
        except FileNotFoundError:
            raise OperatorError("the current folder was removed: change to another one") from None

    def paths(self, name: str) -> tuple[Path, ...]:
        values = [part.strip() for part in self.text(name, "").split(",")]
        return tuple(self.path(name, value) for value in values if value)

    def master_keys(self, name: str) -> tuple[bytes, ...]:
        return decode_master_keys(self.secret(name), name)


def parse_network(typed: str) -> Network:
    """Returns the network of a CIDR or of one address. Returns IPv4 if it is written as IPv6. Raises ValueError with an explanation."""
    network = ipaddress.ip_network(typed.strip())
    if isinstance(network, ipaddress.IPv6Network) and network.subnet_of(_IPV4_IN_IPV6):
        return ipaddress.IPv4Network((network.network_address.packed[-4:], network.prefixlen - _IPV4_IN_IPV6.prefixlen))
    return network


def _whole(text: str) -> int | None:
    """Returns the number that ASCII digits write. None for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _split(url: str) -> SplitResult | None:
    """Returns the parts of an address that has a host and, if any, a valid port. None for any other text."""
    try:
        parts = urlsplit(url)
        proper = parts.hostname and parts.port != 0
    except ValueError:
        return None
    return parts if proper else None


def decode_master_keys(text: str, name: str) -> tuple[bytes, ...]:
    """Returns the 32 bytes of each master key in base64 or hexadecimal, with commas or line breaks between. Raises SettingError, with `name`."""
    return tuple(_master_key(key, name) for key in re.split(r"[\s,'\"]+", text) if key)


def _master_key(text: str, name: str) -> bytes:
    try:
        key = (
            bytes.fromhex(text)
            if len(text) == 64
            else base64.b64decode(text.replace("-", "+").replace("_", "/").rstrip("=") + "=", validate=True)
        )
    except (ValueError, binascii.Error):
        key = b""
    if len(key) != 32:
        raise SettingError(name, "must hold keys of 32 bytes in base64, as `openssl rand -base64 32` prints")
    return key
