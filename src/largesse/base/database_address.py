"""Addresses of databases: the values of `LARGESSE_DATABASE_URL`.

An address may name several hosts; one of them takes writes (docs/scaling.md). As for PostgreSQL's own programs, each port follows
its host.
"""

from typing import Self
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from largesse.base.confidential import Confidential

_SCHEMES = ("postgresql://", "postgres://")
# The parameter that marks an address of PgBouncer: `postgresql://…/largesse?pgbouncer=true`.
_PGBOUNCER = ("pgbouncer", "true")
_SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_Query = list[tuple[str, str]]


class DatabaseAddress(Confidential, frozen=True):
    """The address of a database at each of its hosts, in the order they are tried, as the driver takes them."""

    hosts: tuple[str, ...]  # may hold a password
    is_pooled: bool  # True for an address of PgBouncer in transaction mode

    @classmethod
    def parse(cls, url: str) -> Self:
        """Reads an address. Raises ValueError with the required form. The error never repeats the address."""
        if not url.startswith(_SCHEMES):
            raise ValueError("must look like postgresql://user:password@host:5432/database")
        try:
            parts = urlsplit(url)
            query = parse_qsl(parts.query, keep_blank_values=True)
            kept = [parameter for parameter in query if parameter != _PGBOUNCER]
            hosts = _hosts_before_path(parts, kept) or _hosts_in_query(parts, kept)
        except _NumberAsHost:
            raise ValueError(
                "names a host that is only a number: give each host its own port, "
                "as in postgresql://user:password@first:5432,second:5432/database"
            ) from None
        except ValueError:
            raise ValueError("must look like postgresql://user:password@host:5432/database") from None
        if not {value for name, value in kept if name == "sslmode"} <= set(_SSL_MODES):
            raise ValueError(f"must have one of these in `sslmode=`: {', '.join(_SSL_MODES)}")
        return cls(tuple(hosts), is_pooled=kept != query)


def for_programs(url: str, role: str) -> str:
    """Returns an address for PostgreSQL's own programs, psql and pg_dump, whose session acts as `role`.

    Through PgBouncer, where a session cannot set a role, it acts as the login. Raises ValueError as `parse` does.
    """
    pooled = DatabaseAddress.parse(url).is_pooled
    parts = urlsplit(url)
    query = [one for one in parse_qsl(parts.query, keep_blank_values=True) if one != _PGBOUNCER]
    if not pooled and unquote(parts.username or "") != role:
        before = [value for name, value in query if name == "options"]
        query = [one for one in query if one[0] != "options"]
        query.append(("options", " ".join([*before, f"-crole={role}"])))
    return _join(parts, query)


def address_at(address: str, host: str, port: int) -> str:
    """Returns the address of the same database on another server, for the same login."""
    parts = urlsplit(address)
    user, at, _ = parts.netloc.rpartition("@")
    named = f"[{host}]" if ":" in host else host
    query = [one for one in parse_qsl(parts.query, keep_blank_values=True) if one[0] not in {"host", "port"}]
    return _join(parts, query, netloc=f"{user}{at}{named}:{port}")


class _NumberAsHost(ValueError):
    """A host is only a number, so it is probably a port."""


def _hosts_before_path(parts: SplitResult, query: _Query) -> list[str]:
    """Returns an address for each host between `//` and the path; an empty list if there is none."""
    user, at, hosts = parts.netloc.rpartition("@")
    if not hosts:
        return []
    if hosts.startswith(":"):
        _check_port(hosts[1:])
        return [_join(parts, query)]
    for host in hosts.split(","):
        named = urlsplit(f"//{host}")
        _check_host(named.hostname or "")
        if named.port == 0:
            raise ValueError("no port")
    return [_join(parts, query, netloc=f"{user}{at}{host}") for host in hosts.split(",")]


def _hosts_in_query(parts: SplitResult, query: _Query) -> list[str]:
    """Returns an address for each host in the parameter `host`, which may be a socket's path. Without one, returns the address itself."""
    named = dict(query)
    if not named.get("host"):
        return [_join(parts, query)]
    hosts = named["host"].split(",")
    ports = named.get("port", "5432").split(",")
    for host in hosts:
        _check_host(host)
    for port in ports:
        _check_port(port)
    if len(ports) == 1:
        ports *= len(hosts)
    others = [(name, value) for name, value in query if name not in {"host", "port"}]
    return [_join(parts, [*others, ("host", host), ("port", port)]) for host, port in zip(hosts, ports, strict=True)]


def _check_host(host: str) -> None:
    if not host:
        raise ValueError("no host")
    if host.isdigit():
        raise _NumberAsHost


def _check_port(port: str) -> None:
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError("no port")


def _join(parts: SplitResult, query: _Query, netloc: str | None = None) -> str:
    # `geturl` would drop the `//` before a path without a host.
    address = f"{parts.scheme}://{parts.netloc if netloc is None else netloc}{parts.path}"
    # Spaces become %20: PostgreSQL's own programs do not read a plus sign as a space.
    return f"{address}?{urlencode(query, quote_via=quote)}" if query else address
