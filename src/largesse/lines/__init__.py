"""Codes and PINs: drawing, writing, sealing and opening them."""

from largesse.lines.issuing import CODES_AT_ONCE, IssuedCode, SealedCode, SealedCodes, draw_codes, open_code
from largesse.lines.proof import is_sealed, prove_master_key
from largesse.lines.text import CodeError, format_code, parse_code

__all__ = [
    "CODES_AT_ONCE",
    "CodeError",
    "IssuedCode",
    "SealedCode",
    "SealedCodes",
    "draw_codes",
    "format_code",
    "is_sealed",
    "open_code",
    "parse_code",
    "prove_master_key",
]
