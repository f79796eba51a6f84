"""The reference of a bank transfer: a structured creditor reference (ISO 11649), which banks check before a transfer leaves.

`RF`, two check digits (ISO 7064, MOD 97-10) and twelve random digits, in groups of four: `RF18 5390 0754 7034`. With digits alone the
check notices every wrong digit, and every two that are swapped, wherever they stand. It has 16 characters; what banks
leave for a reference is 18 at the least.
"""

from __future__ import annotations

import re
import secrets

_DIGITS = 12
_LENGTH = len("RF00") + _DIGITS
_LONGEST_TYPED = 64
_RF = "2715"  # the letters as MOD 97-10 counts them
_BETWEEN = r"[\s\-./:]*"  # what people and banks put between the characters
_SOMEWHERE = re.compile(rf"R{_BETWEEN}F" + rf"{_BETWEEN}([0-9OIL])" * (_LENGTH - 2), re.IGNORECASE)
_LOOKS_LIKE = str.maketrans("OIL", "011")


class TransferReferenceError(ValueError):
    """A text that is no reference of a transfer: a wrong length, a character that is no digit, or a wrong check."""


def new_transfer_reference() -> str:
    """A new reference, as it is kept: without blanks."""
    number = f"{secrets.randbelow(10**_DIGITS):0{_DIGITS}}"
    return f"RF{98 - int(f'{number}{_RF}00') % 97:02}{number}"


def spelled_reference(reference: str) -> str:
    """A reference in groups of four, as people read and type it."""
    return " ".join(reference[at : at + 4] for at in range(0, len(reference), 4))


def parse_transfer_reference(text: str) -> str:
    """The reference that a person has typed, in any case, with blanks or hyphens anywhere. Raises TransferReferenceError."""
    found = _SOMEWHERE.fullmatch(text.strip()) if len(text) <= _LONGEST_TYPED else None
    if found is None:
        raise TransferReferenceError("a reference is RF and 14 digits")
    reference = _joined(found)
    if not _checks(reference):
        raise TransferReferenceError("its check digits do not fit: something is mistyped")
    return reference


def transfer_references_in(text: str) -> list[str]:
    """Every reference in what a bank tells of a transfer, each once, mistyped ones left out."""
    found = dict.fromkeys(_joined(match) for match in _SOMEWHERE.finditer(text))
    return [reference for reference in found if _checks(reference)]


def _joined(match: re.Match[str]) -> str:
    return "RF" + "".join(match.groups()).upper().translate(_LOOKS_LIKE)


def _checks(reference: str) -> bool:
    return int(f"{reference[4:]}{_RF}{reference[2:4]}") % 97 == 1
