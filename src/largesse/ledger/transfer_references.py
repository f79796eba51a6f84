"""The reference of a bank transfer: a structured creditor reference (ISO 11649), which banks check before a transfer leaves.

`RF`, two check digits (ISO 7064, MOD 97-10) and twelve random digits, in groups of four: `RF18 5390 0754 7034`. Without letters the
check finds every wrong digit, and any two digits that are swapped, also if they are not adjacent. It has 16 characters; banks leave at least 18 for
a reference.
"""

import re
import secrets
from string import digits

_DIGITS = 12
_LENGTH = len("RF00") + _DIGITS
_LONGEST_TYPED = 64
_RF = "2715"  # the letters as MOD 97-10 counts them
_BETWEEN = r"[\s\-./:]*"  # what people and banks may write between the characters
_SOMEWHERE = re.compile(rf"R{_BETWEEN}F" + rf"{_BETWEEN}([0-9OIL])" * (_LENGTH - 2), re.IGNORECASE)
# A reference with a wrong digit, or with one too many or too few. Letters or digits directly before it make it part of something else.
_NEARLY = re.compile(
    rf"(?<![A-Z0-9])R{_BETWEEN}F((?:{_BETWEEN}[0-9OIL]){{{_LENGTH - 3},{_LENGTH - 1}}})(?![A-Z0-9])", re.IGNORECASE
)
_LOOKS_LIKE = str.maketrans("OIL", "011")


class TransferReferenceError(ValueError):
    """The text is not a transfer reference: its length, a character, or the check digits are wrong."""


def new_transfer_reference() -> str:
    """Returns a new reference, as it is stored: without blanks."""
    number = f"{secrets.randbelow(10**_DIGITS):0{_DIGITS}}"
    return f"RF{98 - int(f'{number}{_RF}00') % 97:02}{number}"


def spelled_reference(reference: str) -> str:
    """Returns a reference in groups of four, as people read and type it."""
    return " ".join(reference[at : at + 4] for at in range(0, len(reference), 4))


def parse_transfer_reference(text: str) -> str:
    """Returns the reference that a person typed, in any case, with blanks or hyphens anywhere. Raises TransferReferenceError."""
    found = _SOMEWHERE.fullmatch(text.strip()) if len(text) <= _LONGEST_TYPED else None
    if found is None:
        raise TransferReferenceError("a reference is RF and 14 digits")
    reference = _joined(found)
    if not _checks(reference):
        raise TransferReferenceError("its check digits are wrong: something is mistyped")
    return reference


def transfer_references_in(text: str) -> list[str]:
    """Returns each reference in a bank's text about a transfer once, without mistyped ones."""
    found = dict.fromkeys(_joined(match) for match in _SOMEWHERE.finditer(text))
    return [reference for reference in found if _checks(reference)]


def mistyped_references_in(text: str) -> list[str]:
    """Returns each text that was meant as a reference, with a wrong, missing or additional digit, once."""
    found = dict.fromkeys(_plain(match[1]) for match in _NEARLY.finditer(text))
    return [one for one in found if not _is_reference(one)]


def meant_references(mistyped: str) -> set[str]:
    """Returns the references that differ from a mistyped one in one digit, or in the order of two adjacent digits; none for a right one."""
    typed = mistyped.removeprefix("RF")
    if _is_reference(mistyped):
        return set()
    parts = [(typed[:at], typed[at:]) for at in range(len(typed) + 1)]
    edited = {f"{a}{b[1:]}" for a, b in parts if b}
    edited |= {f"{a}{b[1]}{b[0]}{b[2:]}" for a, b in parts if len(b) > 1}
    edited |= {f"{a}{digit}{b[1:]}" for a, b in parts if b for digit in digits}
    edited |= {f"{a}{digit}{b}" for a, b in parts for digit in digits}
    return {reference for one in edited if _is_reference(reference := f"RF{one}")}


def _is_reference(text: str) -> bool:
    return len(text) == _LENGTH and _checks(text)


def _plain(typed: str) -> str:
    return "RF" + re.sub(_BETWEEN, "", typed).upper().translate(_LOOKS_LIKE)


def _joined(match: re.Match[str]) -> str:
    return _plain("".join(match.groups()))


def _checks(reference: str) -> bool:
    return int(f"{reference[4:]}{_RF}{reference[2:4]}") % 97 == 1
