"""How a code is written: 16 Crockford base32 characters and a check character, in groups of four.

The check character is the sum of the characters, each times its own power of a generator of GF(32), so that one
wrong character or two swapped ones, wherever they stand, are always noticed. (The power 0 is the check's own.)
"""

from __future__ import annotations

import base64

CODE_BYTES = 10
_CHARACTERS = 16
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_STANDARD = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_TO_STANDARD = bytes.maketrans(_ALPHABET.encode(), _STANDARD.encode())
# What people type: any case, blanks and hyphens anywhere, and letters that look like digits.
_TYPED = str.maketrans(
    {
        **{c.lower(): c for c in _ALPHABET},
        **dict.fromkeys("oO", "0"),
        **dict.fromkeys("iIlL", "1"),
        "-": "",
        " ": "",
    }
)
_LONGEST_TYPED = 64


class CodeError(ValueError):
    """A text that cannot be a code: a wrong length, a character outside the alphabet, or a wrong check."""


def format_code(code: bytes) -> str:
    """The text of a code of 10 bytes, check character last: `7QK2-M0TX-9ZVA-4RBE-A`."""
    number = int.from_bytes(code, "big")
    # Eight pairs of characters, ten bits each; written out, since a batch formats thousands of codes.
    a, b, c, d = number >> 70, number >> 60 & 1023, number >> 50 & 1023, number >> 40 & 1023
    e, f, g, h = number >> 30 & 1023, number >> 20 & 1023, number >> 10 & 1023, number & 1023
    of_a, of_b, of_c, of_d, of_e, of_f, of_g, of_h = _CHECKS
    check = of_a[a] ^ of_b[b] ^ of_c[c] ^ of_d[d] ^ of_e[e] ^ of_f[f] ^ of_g[g] ^ of_h[h]
    two = _TWO_CHARACTERS
    return f"{two[a]}{two[b]}-{two[c]}{two[d]}-{two[e]}{two[f]}-{two[g]}{two[h]}-{_ALPHABET[check]}"


def parse_code(text: str) -> bytes:
    """The 10 bytes of a code as a person may type it. Raises CodeError."""
    if len(text) > _LONGEST_TYPED:
        raise CodeError("a code is 17 characters long")
    typed = text.translate(_TYPED)
    if len(typed) != _CHARACTERS + 1 or any(character not in _ALPHABET for character in typed):
        raise CodeError("a code is 17 letters and digits")
    code = base64.b32decode(typed[:_CHARACTERS].encode("ascii").translate(_TO_STANDARD))
    if format_code(code)[-1] != typed[_CHARACTERS]:
        raise CodeError("the check character does not fit")
    return code


def _times_generator(value: int) -> int:
    """`value` times x in GF(32), modulo x^5 + x^2 + 1."""
    value <<= 1
    return value ^ 0b100101 if value & 0b100000 else value


def _tables() -> tuple[tuple[int, ...], ...]:
    """For each pair of characters and each of its values, what it adds to the check: the check is linear in the bits."""
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
