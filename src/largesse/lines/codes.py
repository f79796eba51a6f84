"""Codes: how they are written, drawn and encrypted, and how callers get them.

A code is 16 Crockford base32 characters and a check character, in groups of four. The check character is the sum of the characters, each
times its own power of a generator of GF(32). So any wrong character, and any two swapped characters, are always noticed. (The power 0
belongs to the check character.)
"""

import asyncio
import base64
import hmac
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from largesse.base.confidential import Confidential
from largesse.encryption.vault import Vault

CODE_BYTES = 10
_CHARACTERS = 16
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_STANDARD = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_TO_STANDARD = bytes.maketrans(_ALPHABET.encode(), _STANDARD.encode())
# Corrects typed codes: any letter case, blanks and hyphens anywhere, and letters that look like digits.
_TYPED = str.maketrans(
    {**{c.lower(): c for c in _ALPHABET}, **dict.fromkeys("oO", "0"), **dict.fromkeys("iIlL", "1"), "-": "", " ": ""}
)
_LONGEST_TYPED = 64


class CodeError(ValueError):
    """The text cannot be a code: a wrong length, a character outside the alphabet, or a wrong check character."""


def format_code(code: bytes) -> str:
    """Returns the text of a code of 10 bytes, check character last: `7QK2-M0TX-9ZVA-4RBE-A`."""
    number = int.from_bytes(code, "big")
    # Eight pairs of characters, ten bits each; written out, since a batch formats thousands of codes.
    a, b, c, d = number >> 70, number >> 60 & 1023, number >> 50 & 1023, number >> 40 & 1023
    e, f, g, h = number >> 30 & 1023, number >> 20 & 1023, number >> 10 & 1023, number & 1023
    of_a, of_b, of_c, of_d, of_e, of_f, of_g, of_h = _CHECKS
    check = of_a[a] ^ of_b[b] ^ of_c[c] ^ of_d[d] ^ of_e[e] ^ of_f[f] ^ of_g[g] ^ of_h[h]
    two = _TWO_CHARACTERS
    return f"{two[a]}{two[b]}-{two[c]}{two[d]}-{two[e]}{two[f]}-{two[g]}{two[h]}-{_ALPHABET[check]}"


def parse_code(text: str) -> bytes:
    """Returns the 10 bytes of a code as a person may type it. Raises CodeError."""
    if len(text) > _LONGEST_TYPED:
        raise CodeError("a code is 17 characters long")
    typed = text.translate(_TYPED)
    if len(typed) != _CHARACTERS + 1 or any(character not in _ALPHABET for character in typed):
        raise CodeError("a code is 17 letters and digits")
    code = base64.b32decode(typed[:_CHARACTERS].encode("ascii").translate(_TO_STANDARD))
    if format_code(code)[-1] != typed[_CHARACTERS]:
        raise CodeError("the check character is wrong")
    return code


def _times_generator(value: int) -> int:
    """Returns `value` times x in GF(32), modulo x^5 + x^2 + 1."""
    value <<= 1
    return value ^ 0b100101 if value & 0b100000 else value


def _tables() -> tuple[tuple[int, ...], ...]:
    """Returns the check of each value of a pair of characters, for each of the eight pairs. The check of a code is their XOR."""
    weights = [_times_generator(1)]
    for _ in range(_CHARACTERS - 1):
        weights.append(_times_generator(weights[-1]))

    def table(first: int, second: int) -> tuple[int, ...]:
        adds = [0]
        for weight in (second, first):
            of_bit = weight
            for _ in range(5):
                adds += [add ^ of_bit for add in adds]
                of_bit = _times_generator(of_bit)
        return tuple(adds)

    return tuple(table(*weights[at : at + 2]) for at in range(0, _CHARACTERS, 2))


_TWO_CHARACTERS = tuple(first + second for first in _ALPHABET for second in _ALPHABET)
_CHECKS = _tables()


# Codes that are encrypted, decrypted or written before other requests run, which takes 0.1 ms. A request waits for some ten such turns.
CODES_AT_ONCE = 25

# Codes that are drawn before other requests run, which takes a quarter of a millisecond.
_DRAWN_AT_ONCE = 500

_PIN_BYTES = 3
_PINS = 1_000_000
_DRAWN_BYTES = 4
# The largest multiple of the number of PINs in 4 bytes. Draws from it on are repeated, so that every PIN is equally likely.
_FAIR_BELOW = (1 << 8 * _DRAWN_BYTES) // _PINS * _PINS


class DrawnCode(Confidential, frozen=True, gc=False):
    """A code and its PIN in clear. Its repr shows neither, as it could end in a log."""

    code: bytes
    pin: int

    @property
    def code_text(self) -> str:
        """The code as people read it: 17 characters, the check character last, in groups of four."""
        return format_code(self.code)

    @property
    def pin_text(self) -> str:
        """The PIN's six digits."""
        return f"{self.pin:06d}"


class SealedCode(msgspec.Struct, frozen=True, gc=False):
    """The stored form of a code: the number it is found by, and code and PIN encrypted."""

    lookup: int
    sealed: bytes


def draw_codes(count: int) -> list[DrawnCode]:
    """Returns `count` new codes of 80 random bits with PINs of six digits, all from the system's generator."""
    width = CODE_BYTES + _DRAWN_BYTES
    random = os.urandom(count * width)
    return [
        DrawnCode(random[at : at + CODE_BYTES], _pin(random[at + CODE_BYTES : at + width]))
        for at in range(0, count * width, width)
    ]


async def draw_many(count: int) -> list[DrawnCode]:
    """Returns the same as `draw_codes`. Other requests run in between."""
    drawn = draw_codes(min(count, _DRAWN_AT_ONCE))
    while len(drawn) < count:
        await asyncio.sleep(0)
        drawn += draw_codes(min(count - len(drawn), _DRAWN_AT_ONCE))
    return drawn


class SealedCodes:
    """The codes of an order, the first for line 1 or `first`. Each iteration encrypts them anew."""

    def __init__(self, vault: Vault, codes: Sequence[DrawnCode], reference: str, *, first: int = 1) -> None:
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


def open_code(vault: Vault, sealed: bytes, reference: str, number: int) -> DrawnCode:
    """Decrypts the code of the line `number` of the order `reference`. Raises DecryptionFailed."""
    secret = vault.codes.open(sealed, _context(reference, number))
    return DrawnCode(secret[:CODE_BYTES], int.from_bytes(secret[CODE_BYTES:], "big"))


def _pin(drawn: bytes) -> int:
    number = int.from_bytes(drawn, "big")
    while number >= _FAIR_BELOW:
        number = int.from_bytes(os.urandom(_DRAWN_BYTES), "big")
    return number % _PINS


def _context(reference: str, number: int) -> bytes:
    return f"line/{reference}/{number}".encode("ascii")


class IssuedCode(Confidential, frozen=True, gc=False, rename="camel"):
    """An issued code in clear, with its PIN and its claim link. Its repr shows none of them, as it could end in a log."""

    code: Annotated[str, Meta(description="Entered by the recipient", examples=["0000-0000-0000-0000-0"])]
    pin: Annotated[str, Meta(description="Six digits", examples=["000000"])]
    redemption_url: Annotated[str, Meta(description="Shareable claim link")]


async def give_codes(
    codes: Sequence[DrawnCode], vault: Vault, public_url: str, customer_id: int | None
) -> list[IssuedCode]:
    """Returns codes in clear with their links, in their order. Other requests run in between.

    `customer_id` is their customer if the links are to name it: with distributed customers, the code is then found on the right node at once.
    """
    given: list[IssuedCode] = []
    for start in range(0, len(codes), CODES_AT_ONCE):
        if start:
            await asyncio.sleep(0)
        part = codes[start : start + CODES_AT_ONCE]
        links = claim_links(part, vault, public_url, customer_id)
        given += [IssuedCode(code.code_text, code.pin_text, link) for code, link in zip(part, links, strict=True)]
    return given


def claim_link(code: DrawnCode, vault: Vault, public_url: str, customer_id: int | None = None) -> str:
    """Returns the address a recipient opens. It carries a token, not the code, and `customer_id` as in `give_codes`."""
    return claim_links([code], vault, public_url, customer_id)[0]


def claim_links(codes: Iterable[DrawnCode], vault: Vault, public_url: str, customer_id: int | None) -> list[str]:
    """Returns the `claim_link` of each code."""
    tokens = vault.token_all((code.code for code in codes), customer_id)
    return [f"{public_url}/claim/{token}" for token in tokens]


def asked_code(vault: Vault, customer_id: int, ask_id: int) -> str:
    """Returns the six digits that are mailed for a code request. They are derived from its id with the newest master key, and not stored."""
    lookup = vault.asks.lookup(b"campaign-code/%d/%d" % (customer_id, ask_id))
    return f"{(lookup & 0xFFFF_FFFF_FFFF_FFFF) % _PINS:06d}"


def is_asked_code(vault: Vault, customer_id: int, ask_id: int, typed: str) -> bool:
    """Returns whether `typed` are the digits of `asked_code`. Compares in constant time."""
    return hmac.compare_digest(asked_code(vault, customer_id, ask_id).encode(), typed.encode())
