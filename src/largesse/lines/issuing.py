"""Drawing codes and PINs, and sealing them for storage."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import msgspec

from largesse.base.vault import Vault
from largesse.lines.text import CODE_BYTES, format_code

# Codes sealed, opened or written in one go, a tenth of a millisecond: between goes other requests get their turn, which each
# needs some ten times.
CODES_AT_ONCE = 25

_PIN_BYTES = 3
_PINS = 1_000_000
_DRAWN_BYTES = 4
# The largest multiple of the number of PINs that 4 bytes hold: draws from it up are thrown away, so that every
# PIN is equally likely.
_FAIR_BELOW = (1 << 8 * _DRAWN_BYTES) // _PINS * _PINS


class IssuedCode(msgspec.Struct, frozen=True, gc=False):
    """A code and its PIN in clear. Its repr shows neither: it could end in a log."""

    code: bytes
    pin: int

    def __repr__(self) -> str:
        return "IssuedCode(…)"

    @property
    def code_text(self) -> str:
        """The code as people read it: 17 characters, a check last, in groups of four."""
        return format_code(self.code)

    @property
    def pin_text(self) -> str:
        """The PIN's six digits."""
        return f"{self.pin:06d}"


class SealedCode(msgspec.Struct, frozen=True, gc=False):
    """What is stored of a code: the number it is found by, and code and PIN sealed."""

    lookup: int
    sealed: bytes


def draw_codes(count: int) -> list[IssuedCode]:
    """`count` new codes of 80 random bits with PINs of six digits, all from the system's generator."""
    width = CODE_BYTES + _DRAWN_BYTES
    random = os.urandom(count * width)
    return [
        IssuedCode(random[at : at + CODE_BYTES], _pin(random[at + CODE_BYTES : at + width]))
        for at in range(0, count * width, width)
    ]


class SealedCodes:
    """The codes of an order, the first for line 1 or `first`, sealed as they are asked for: each time anew."""

    def __init__(self, vault: Vault, codes: Sequence[IssuedCode], reference: str, *, first: int = 1) -> None:
        self._vault = vault
        self._codes = codes
        self._reference = reference
        self._first = first

    def __iter__(self) -> Iterator[SealedCode]:
        for start in range(0, len(self._codes), CODES_AT_ONCE):
            codes = self._codes[start : start + CODES_AT_ONCE]
            secrets = [
                (code.code + code.pin.to_bytes(_PIN_BYTES, "big"), _context(self._reference, number))
                for number, code in enumerate(codes, start + self._first)
            ]
            lookups = self._vault.codes.lookup_all([code.code for code in codes])
            yield from map(SealedCode, lookups, self._vault.codes.seal_all(secrets))


def open_code(vault: Vault, sealed: bytes, reference: str, number: int) -> IssuedCode:
    """What was sealed for the line `number` of the order `reference`. Raises SealBroken."""
    secret = vault.codes.open(sealed, _context(reference, number))
    return IssuedCode(secret[:CODE_BYTES], int.from_bytes(secret[CODE_BYTES:], "big"))


def _pin(drawn: bytes) -> int:
    number = int.from_bytes(drawn, "big")
    while number >= _FAIR_BELOW:
        number = int.from_bytes(os.urandom(_DRAWN_BYTES), "big")
    return number % _PINS


def _context(reference: str, number: int) -> bytes:
    return f"line/{reference}/{number}".encode("ascii")
