"""The host names to which a service answers if it is only for the user of this machine.

Any web page can give its own name the address 127.0.0.1 and then read the answers of a local service (DNS rebinding). The
browser still sends that name in the Host header, so requests with other names are refused.
"""

import ipaddress
import re
from collections.abc import Collection, Iterable, Sequence
from urllib.parse import urlsplit

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:@/?#\[\]\\]+)(?::\d*)?")

LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
NOT_OURS = (
    "This is for the user of the machine it runs on, and answers to that machine's names alone: localhost, "
    "the host of LARGESSE_PUBLIC_URL, and the address it listens on."
)


def by_name(url: str) -> str:
    """Returns an address with `localhost` instead of 127.0.0.1: browsers keep cookies and passkeys of the two apart."""
    return url.replace("//127.0.0.1:", "//localhost:", 1)


def own_hosts(*, listens_on: str = "", urls: Iterable[str] = ()) -> frozenset[str]:
    """Returns this machine's local names, the hosts of `urls`, and the host it listens on, unless that is a wildcard."""
    named = {_normal(host) for host in (listens_on, *(urlsplit(url).hostname or "" for url in urls))}
    return LOCAL_HOSTS | (named - {"", "0.0.0.0", "::"})  # noqa: S104 - to leave them out


def is_own_host(hosts: Collection[str], given: Sequence[str], connected_to: str = "") -> bool:
    """Returns whether there is exactly one Host header in `given`, and it names one of `hosts`, on any port.

    `connected_to`, the address of our end of the connection, is accepted too: DNS rebinding cannot make a browser send it.
    """
    host = _host_of(given[0]) if len(given) == 1 else ""
    return bool(host) and (host in hosts or host == _normal(connected_to))


def _host_of(header: str) -> str:
    """Returns the host of a Host header, without its port. Empty if the header is malformed."""
    found = _HOST.fullmatch(header.strip())
    return _normal(found[1]) if found else ""


def _normal(host: str) -> str:
    """Returns a host in its normal form: names in lower case, addresses shortened."""
    try:
        address = ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return host.lower().removesuffix(".")
    return str(getattr(address, "ipv4_mapped", None) or address)
