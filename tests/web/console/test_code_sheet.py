"""The sheet of codes: each has a QR code, up to so many."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from largesse.branding.model import NO_BRAND
from largesse.lines.codes import IssuedCode
from largesse.web.console.order_acts import MOST_QR_CODES, code_sheet
from largesse.web.kit.pages import qr_code


def slips(count: int) -> Sequence[tuple[IssuedCode, str]]:
    """What the sheet of so many codes shows."""
    shown: dict[str, Any] = {}
    context: Any = SimpleNamespace(page=lambda _, **values: shown.update(values))
    codes = [IssuedCode(f"0000-{number}", "123456", f"https://gifts.example/claim/{number}") for number in range(count)]
    asyncio.run(code_sheet(context, codes, NO_BRAND))
    return list(shown["slips"])


@pytest.mark.parametrize(("count", "has_qr"), [(1, True), (MOST_QR_CODES, True), (MOST_QR_CODES + 1, False)])
def test_a_sheet_has_a_qr_code_for_each_up_to_its_limit(count: int, has_qr: bool) -> None:
    found = slips(count)
    assert len(found) == count
    assert all(bool(qr) is has_qr for _, qr in found)
    assert len({qr for _, qr in found}) == (count if has_qr else 1)


def test_a_qr_code_is_a_drawing_without_style() -> None:
    assert "style=" not in qr_code("https://gifts.example")
    assert qr_code("https://gifts.example", mask=3) == qr_code("https://gifts.example", mask=3)
