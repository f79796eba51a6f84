"""The data of a request in the log: no body, no query, and no part of the path that names a person or opens a gift."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from largesse.base.text import cleaned
from largesse.customers.authenticator import KEY_IN_TEXT

METHODS = ("GET", "POST", "PATCH", "PUT", "DELETE", "HEAD")
STATUS_CLASSES = (2, 4, 5)
DAYS = 30
MOST_PATH = 300
_HIDDEN = "***"
# A code has 17 characters, with or without dashes. The token of a claim link has 40 or 48. An address has an @.
_CODE_LENGTH = 17
_TOKEN_LENGTHS = (40, 48)
_SECRETS_BEGIN = "whsec_"  # the start of signing secrets of webhooks


class LoggedRequest(msgspec.Struct, frozen=True):
    """A request of the log. `path` was sent, and `route` is its template. `problem` is the end of the problem type's address."""

    customer: str
    environment: str
    id: int
    at: datetime
    method: str
    path: str
    route: str
    status: int
    problem: str | None
    duration_ms: float
    request_id: str
    key_id: int
    key: str | None  # the name of the API key
    service_account: str | None
    address: str | None


class RequestFilter(msgspec.Struct, frozen=True):
    """A filter of requests. Members that are None match any request. `status_class` is the first digit of the status."""

    status_class: int | None = None
    method: str | None = None
    key_id: int | None = None
    request_id: str | None = None
    route: str | None = None
    path: str | None = None

    @property
    def values(self) -> Sequence[int | str | None]:
        """Returns the values of all members, in their order."""
        return msgspec.structs.astuple(self)


def loggable_path(path: str) -> str:
    """Returns a path as the log holds it: at most 300 characters, with stars for a part that may be a code, a secret or an address.

    Removes control characters, with which a caller could change the terminal of an operator who reads the log.
    """
    parts = [_HIDDEN if _is_private(part) else part for part in cleaned(path, "").split("/")]
    return "/".join(parts)[:MOST_PATH]


def _is_private(part: str) -> bool:
    letters = "".join(character for character in part if character.isalnum())
    is_secret = KEY_IN_TEXT.search(part) is not None or part.startswith(_SECRETS_BEGIN)
    return len(letters) == _CODE_LENGTH or len(part) in _TOKEN_LENGTHS or "@" in part or is_secret
