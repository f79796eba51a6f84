"""The marks and the head of a chain.

The mark (`mac`) of a row is a keyed hash of its content and of the chain's head before it, and is stored in the row. The head is a keyed hash
of the last mark, and is stored apart from the rows. Both need a key that is not in the database. So a row that was added, changed or moved
has a mark that does not match. After a deleted row the next mark does not match, and after deleted last rows the head does not match.

A wrong mark breaks the chain only at its row: the next head follows from the mark, so a check continues after it.
"""

from collections.abc import Mapping
from hmac import compare_digest
from typing import Any

import msgspec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from largesse.db.fragments import Fragment, compose, identifier

_BYTES = 16  # half of an HMAC-SHA256, which RFC 2104 permits
START = bytes(_BYTES)  # the head of a chain that has no rows yet
_encode = msgspec.json.Encoder(decimal_format="string").encode


class _Keys:
    """The keys of one purpose under one key: one for marks and one for heads."""

    def __init__(self, number: int, key: bytes, purpose: str) -> None:
        self.number = number.to_bytes()
        # Copying one for each message takes 0.6 µs. `hmac.digest` takes 1.5 µs.
        self.mark = _hmac(key, f"{purpose}/mark").copy
        self.head = _hmac(key, f"{purpose}/head").copy


class Chain:
    """The chains of one purpose, under numbered keys. The newest key makes marks. Each key checks its own marks."""

    def __init__(self, purpose: str, keys: Mapping[int, bytes], early: int = 0) -> None:
        """Takes the keys by number, from 1 to 255. Numbers up to `early` mark rows as earlier releases did. Without keys, no mark matches."""
        self._keys = {number: _Keys(number, key, purpose) for number, key in keys.items()}
        self._newest = max(keys, default=0)
        self._early = early
        # All digests use one key, so that they stay the same when a newer key is added.
        first = keys.get(early + 1)
        self._digest = None if first is None else _hmac(first, f"{purpose}/digest").copy

    @property
    def is_early(self) -> bool:
        """Returns whether new marks have the format of earlier releases."""
        return self._newest <= self._early

    @property
    def has_early(self) -> bool:
        """Returns whether there are keys of earlier releases."""
        return self._early > 0

    @property
    def has_keys(self) -> bool:
        """Returns whether marks can be made."""
        return self._newest > 0

    def marks_early(self, mac: bytes) -> bool:
        """Returns whether an earlier release made this mark."""
        return mac[0] <= self._early

    def add(self, head: bytes, row: bytes, number: int = 0) -> tuple[bytes, bytes]:
        """Returns the mark of a row that is added after `head`, and the new head.

        Uses the key with that number, if one is given, instead of the newest. Raises KeyError if there is none.
        """
        keys = self._keys[number or self._newest]
        made = keys.mark()
        made.update(head + row)
        mac = keys.number + made.finalize()[:_BYTES]
        made = keys.head()
        made.update(mac)
        return mac, made.finalize()[:_BYTES]

    def mark(self, row: bytes) -> bytes:
        """Returns the mark of a row that is not in a chain."""
        return self.add(START, row)[0]

    def is_mark(self, row: bytes, mac: bytes) -> bool:
        """Returns whether `mac` is the mark that `mark` returns for this row, under any key."""
        return self.fits(START, row, mac)

    def digest(self, row: bytes) -> bytes:
        """Returns a keyed hash of a row, which never changes in an installation; empty without keys."""
        if self._digest is None:
            return b""
        made = self._digest()
        made.update(row)
        return made.finalize()[:_BYTES]

    def fits(self, head: bytes, row: bytes, mac: bytes) -> bool:
        """Returns whether `mac` is the mark of a row with this content after `head`."""
        keys = self._keys.get(mac[0]) if mac else None
        if keys is None:
            return False
        made = keys.mark()
        made.update(head + row)
        return compare_digest(mac, mac[:1] + made.finalize()[:_BYTES])

    def head_after(self, mac: bytes) -> bytes:
        """Returns the head of a chain whose last row has the mark `mac`; empty, which matches nothing, for an invalid mark."""
        keys = self._keys.get(mac[0]) if mac else None
        if keys is None:
            return b""
        made = keys.head()
        made.update(mac)
        return made.finalize()[:_BYTES]


def content(*columns: Any) -> bytes:
    """Returns the content of a row as bytes, with its columns separated."""
    return _encode(columns)


def micros(instant: str) -> Fragment:
    """Returns SQL for a time in whole microseconds since 1970, as in the content of rows."""
    return compose("(extract(epoch FROM {instant}) * 1000000)::bigint", instant=identifier(instant))


def _hmac(key: bytes, use: str) -> HMAC:
    return HMAC(HKDF(SHA256(), length=32, salt=None, info=f"largesse/{use}".encode()).derive(key), SHA256())
