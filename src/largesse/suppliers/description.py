"""Reads and checks the descriptions of suppliers, the files that LARGESSE_SUPPLIERS names, and opens the suppliers."""

import ipaddress
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

import msgspec
import yaml

from largesse.base.errors import OperatorError
from largesse.catalogue.model import STOCK
from largesse.suppliers.http import HttpSupplier
from largesse.suppliers.model import NAME, NAME_RULE, RetryPolicy, Setup, Supplier
from largesse.webhooks.targets import Network
from largesse.webhooks.transport import HttpTransport

_MOST_BYTES = 262_144  # the most bytes of a description file
_MOST_SECRET_BYTES = 16_384
MOST_SUPPLIERS = 50
GROUP = "largesse.suppliers"  # the group of entry points

_Seconds = Annotated[float, msgspec.Meta(ge=0.05, le=7 * 86_400.0)]


class Secret(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The place of a secret: an environment variable, or a file."""

    env: str | None = None
    file: str | None = None


class Description(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The description of a supplier in its file. `options` depend on its kind."""

    name: str
    kind: str = "http"
    at_once: Annotated[int, msgspec.Meta(ge=1, le=64)] = 4  # the most calls of one worker at the same time
    # The time limit of a call, including the look-up of the host name.
    timeout_s: Annotated[float, msgspec.Meta(ge=0.05, le=60.0)] = 15.0
    poll_s: _Seconds = 15.0
    unknown_after_s: _Seconds = 60.0
    give_up_after_s: _Seconds = 86_400.0
    pace: Annotated[float, msgspec.Meta(ge=0.001, le=1.0)] = 1.0  # multiplies all pauses, for trying out a supplier
    attempts: Annotated[int, msgspec.Meta(ge=1, le=10)] = 3
    allowed_networks: tuple[str, ...] = ()
    secrets: dict[str, Secret] = {}
    options: dict[str, Any] = {}

    @property
    def policy(self) -> RetryPolicy:
        """The time limits for the supplier."""
        return RetryPolicy(self.poll_s, self.unknown_after_s, self.give_up_after_s, self.attempts, pace=self.pace)

    @property
    def networks(self) -> tuple[Network, ...]:
        """The allowed networks in addition to public addresses. Raises ValueError."""
        return tuple(ipaddress.ip_network(network) for network in self.allowed_networks)


class OpenSupplier(msgspec.Struct, frozen=True):
    """A supplier that can be called, with its description."""

    description: Description
    policy: RetryPolicy
    supplier: Supplier
    transport: HttpTransport

    async def close(self) -> None:
        """Closes its connections. Call it when no call is under way."""
        await self.transport.close()


def read_descriptions(paths: Sequence[Path]) -> list[Description]:
    """Reads the files. Raises OperatorError with the setting, file and field for the first mistake."""
    if len(paths) > MOST_SUPPLIERS:
        raise OperatorError(f"LARGESSE_SUPPLIERS must name at most {MOST_SUPPLIERS} files")
    try:
        descriptions = [_read(path) for path in paths]
    except OperatorError as error:
        raise OperatorError(f"LARGESSE_SUPPLIERS: {error}") from None
    names = [description.name for description in descriptions]
    for name in names:
        if names.count(name) > 1:
            raise OperatorError(f"LARGESSE_SUPPLIERS names two suppliers {name!r}")
    return descriptions


def _read(path: Path) -> Description:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise OperatorError(f"{path.name} cannot be read: {error.strerror or error}") from None
    if len(content) > _MOST_BYTES:
        raise OperatorError(f"{path.name} must have at most {_MOST_BYTES // 1024} KiB")
    try:
        description = msgspec.convert(yaml.safe_load(content), Description)
        _ = description.networks
    except yaml.YAMLError as error:
        raise OperatorError(f"{path.name} is not YAML: {' '.join(str(error).split())[:200]}") from None
    except RecursionError:
        raise OperatorError(f"{path.name} is nested too deeply") from None
    except (msgspec.ValidationError, ValueError) as error:
        raise OperatorError(f"{path.name}: {error}") from None
    if not NAME.fullmatch(description.name) or description.name == STOCK:
        raise OperatorError(f"{path.name}: name {NAME_RULE}, and must not be `{STOCK}`")
    return description


def open_supplier(
    description: Description,
    look_up: Callable[[str, int], Awaitable[Sequence[Any]]],
    environ: Mapping[str, str] = os.environ,
) -> OpenSupplier:
    """Opens a supplier. Call it inside a running loop. Raises OperatorError for a missing secret, an unknown kind and wrong options."""
    transport = HttpTransport(description.networks, description.timeout_s, look_up, most_bytes=_MOST_ANSWER_BYTES)
    secrets = {name: _secret(description.name, name, secret, environ) for name, secret in description.secrets.items()}
    setup = Setup(description.name, description.options, secrets, transport)
    try:
        supplier = _kind(description)(setup)
    except (msgspec.ValidationError, ValueError) as error:
        raise OperatorError(f"supplier {description.name}: options: {error}") from None
    return OpenSupplier(description, description.policy, supplier, transport)


_MOST_ANSWER_BYTES = 1_048_576


def _kind(description: Description) -> Callable[[Setup], Supplier]:
    if description.kind == "http":
        return HttpSupplier
    for entry in entry_points(group=GROUP, name=description.kind):
        kind: Callable[[Setup], Supplier] = entry.load()
        return kind
    raise OperatorError(
        f"supplier {description.name}: there is no kind {description.kind!r}: it is `http`, or an entry point of the group {GROUP}"
    )


def _secret(supplier: str, name: str, secret: Secret, environ: Mapping[str, str]) -> str:
    """Returns a secret. Errors contain only its place."""
    if (secret.env is None) == (secret.file is None):
        raise OperatorError(f"supplier {supplier}: secrets.{name} must have either `env` or `file`")
    if secret.env is not None:
        value = environ.get(secret.env, "").strip()
        where = f"the variable {secret.env}"
    else:
        where = f"the file {Path(secret.file or '').name}"
        try:
            with Path(secret.file or "").open("rb") as file:
                value = file.read(_MOST_SECRET_BYTES).decode().strip()
        except (OSError, UnicodeDecodeError):
            value = ""
    if not value or not value.isprintable():
        raise OperatorError(f"supplier {supplier}: secrets.{name} is missing: {where} has no secret in one line")
    return value
