"""Checks of the settings. A service logs one line for each doubt about them when it starts.

`serve` loads this module before its first answer, so checks that only `largesse check` makes are in other modules.
"""

import ipaddress
import os
from collections.abc import Iterable, Iterator, Mapping
from email.utils import parseaddr
from urllib.parse import urlsplit

import structlog

from largesse.base.settings import SettingError, Settings, load_settings, secret_names, setting_names
from largesse.doctor.checks import CheckResult, error, warning
from largesse.mail.server import MailServer

_PREFIX = "LARGESSE_"
# Variables that are not settings: of `serve` for its processes, of the tests, of `largesse-mcp`, and of samples in the docs.
_OTHERS = (
    *(f"LARGESSE_SERVE_{name}" for name in ("HOST", "WITH_WORKER", "METRICS_HOST", "METRICS_PORTS")),
    "LARGESSE_TEST_",
    "LARGESSE_MCP_",
    "LARGESSE_API_KEY",
)
_ALIKE = 0.6  # names at least this similar may be a typing error


def read_settings(environ: Mapping[str, str]) -> tuple[Settings, list[CheckResult]]:
    """Returns the settings, with defaults for malformed ones, and the malformed ones."""
    left = dict(environ)
    findings: list[CheckResult] = []
    while True:
        try:
            return load_settings(left), findings
        except SettingError as malformed:
            findings.append(error(malformed.name, f"It {malformed.said}."))
            for name in (malformed.name, f"{malformed.name}_FILE"):
                left.pop(name, None)


def unknown_settings(environ: Mapping[str, str]) -> list[CheckResult]:
    """Returns the variables that look like settings but are unknown."""
    names = setting_names() | {f"{name}_FILE" for name in secret_names()}
    given = sorted(name for name, value in environ.items() if name.upper().startswith(_PREFIX) and value.strip())
    return [
        warning(name, f"There is no such setting.{_meant(name, names)}")
        for name in given
        if name not in names and not name.startswith(_OTHERS)
    ]


def doubtful_settings(settings: Settings) -> list[CheckResult]:
    """Returns valid settings that are probably mistakes in production. Staging may run on a developer's machine."""
    return [
        *_about_public_url(settings.public_url_of("production")),
        *_about_mail_from(settings.mail_from),
        *doubtful_mail_server(settings.smtp_url),
        *_about_webhooks(settings),
    ]


def _about_public_url(url: str) -> Iterator[CheckResult]:
    name = "LARGESSE_PUBLIC_URL"
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_local(host):
        yield warning(
            name, f"{host} is this machine alone: links in mail lead recipients nowhere. Set the address they reach."
        )
    elif is_private(host):
        yield warning(name, f"{host} is reached from its own network alone: recipients elsewhere find nothing there.")
    if parts.scheme == "http" and not is_local(host):
        yield warning(
            name, "http:// lets keys, codes and PINs travel in clear. Put TLS before the service and say https://."
        )


def _about_mail_from(mail_from: str) -> Iterator[CheckResult]:
    domain = parseaddr(mail_from)[1].rpartition("@")[2]
    if is_local(domain.strip("[]")) or "." not in domain:
        yield warning(
            "LARGESSE_MAIL_FROM",
            f"{domain} is not a domain that mail comes from: servers refuse it. Set an address of a domain of yours.",
        )


def doubtful_mail_server(url: str | None) -> Iterator[CheckResult]:
    """Yields what is doubtful about LARGESSE_SMTP_URL."""
    name = "LARGESSE_SMTP_URL"
    if url is None:
        yield warning(name, "No mail server is set: production's mail is held until one is.")
        return
    server = MailServer.from_url(url)
    if server.tls or server.starttls or is_local(server.host):
        return
    what = "The password, codes and PINs" if server.password else "Codes and PINs"
    may = "may travel" if server.starttls is None else "travel"
    yield warning(name, f"{what} {may} in clear to {server.host}. Say ?starttls=required, or smtps://.")


def _about_webhooks(settings: Settings) -> Iterator[CheckResult]:
    if settings.webhook_allowed_networks:
        yield warning(
            "LARGESSE_WEBHOOK_ALLOWED_NETWORKS",
            "Customers may have requests sent to these networks, private ones too: for development and tests alone.",
        )


def doubtful_proxies(environ: Mapping[str, str]) -> Iterator[CheckResult]:
    """Yields what is doubtful about FORWARDED_ALLOW_IPS, which names the proxies whose `X-Forwarded-For` the server believes."""
    name = "FORWARDED_ALLOW_IPS"
    text = environ.get(name, "127.0.0.1")
    if not text.strip():
        yield warning(
            name, "It is empty, so no proxy is trusted: name yours, or leave it out for those of this machine."
        )
    if text == "*":
        said = "* believes everybody: callers choose the address that networks and limits go by. Name your proxy alone."
        yield warning(name, said)
        return
    for one in filter(None, map(str.strip, text.split(","))):
        try:
            ipaddress.ip_network(one)
        except ValueError:
            yield warning(name, f"{one!r} is no address and no network, so it trusts no proxy.")


def is_local(host: str) -> bool:
    """Returns whether a host is the machine itself, by name or address."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith((".localhost", ".localdomain")):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def is_private(host: str) -> bool:
    """Returns whether a host is private. Looks only at its name or address."""
    name = host.rstrip(".").lower()
    try:
        return not ipaddress.ip_address(name).is_global
    except ValueError:
        return "." not in name or name.endswith((".local", ".internal", ".lan", ".home.arpa"))


def _meant(name: str, names: frozenset[str]) -> str:
    from difflib import get_close_matches

    endings = [known.removeprefix(_PREFIX) for known in names]
    close = get_close_matches(name.upper().removeprefix(_PREFIX), endings, n=1, cutoff=_ALIKE)
    return f" Did you mean {_PREFIX}{close[0]}?" if close else ""


_log = structlog.get_logger(__name__)


def warn_of_unknown_settings() -> None:
    """Logs variables that look like settings but are unknown, before the service fails because of a misspelt one."""
    _warn_of(unknown_settings(os.environ))


def warn_of_doubtful_settings(settings: Settings, *, delivers: bool) -> None:
    """Logs doubtful settings in production. Staging may run on a developer's machine.

    A process that `delivers` handles mail of production too, even if it serves staging.
    """
    if settings.environment == "production":
        _warn_of([*doubtful_settings(settings), *doubtful_proxies(os.environ)])
    elif delivers:
        _warn_of(doubtful_mail_server(settings.smtp_url))


def _warn_of(findings: Iterable[CheckResult]) -> None:
    for finding in findings:
        _log.warning("setting_doubtful", setting=finding.setting, doubt=finding.text)
