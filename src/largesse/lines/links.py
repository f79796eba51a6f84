"""Codes as they are given out: in clear, with the link that a recipient opens."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

import msgspec

from largesse.base.vault import Vault
from largesse.lines.issuing import CODES_AT_ONCE, IssuedCode


class GivenCode(msgspec.Struct, frozen=True, gc=False):
    """A code, its PIN and its claim link, in clear. Its repr shows none of them: it could end in a log."""

    code: str
    pin: str
    redemption_url: str

    def __repr__(self) -> str:
        return "GivenCode(…)"


async def give_codes(
    codes: Sequence[IssuedCode], vault: Vault, public_url: str, customer_id: int | None
) -> list[GivenCode]:
    """Codes as they are given out, in their order; other requests get their turn in between.

    `customer_id` is whose they are where the links are to say so, as they do where customers are spread over nodes: it is found there at once.
    """
    given: list[GivenCode] = []
    for start in range(0, len(codes), CODES_AT_ONCE):
        if start:
            await asyncio.sleep(0)
        part = codes[start : start + CODES_AT_ONCE]
        links = claim_links(part, vault, public_url, customer_id)
        given += [
            GivenCode(code.code_text, code.pin_text, link) for code, link in zip(part, links, strict=True)
        ]
    return given


def claim_link(code: IssuedCode, vault: Vault, public_url: str, customer_id: int | None = None) -> str:
    """The address a recipient opens; it carries a token, not the code, and `customer_id` as `give_codes` has it."""
    return claim_links([code], vault, public_url, customer_id)[0]


def claim_links(
    codes: Iterable[IssuedCode], vault: Vault, public_url: str, customer_id: int | None
) -> list[str]:
    """`claim_link` of each code."""
    tokens = vault.token_all((code.code for code in codes), customer_id)
    return [f"{public_url}/claim/{token}" for token in tokens]
