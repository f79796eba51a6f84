"""Callers read the names of members as they spell them, and everything else as it was written."""

from __future__ import annotations

import pytest

from largesse.web.kit.problems import spell_detail, spell_pointer


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("`account_id` is required.", "`accountId` is required."),
        (
            "Exactly one of `recipients` and `code_quantity` must be given.",
            "Exactly one of `recipients` and `codeQuantity` must be given.",
        ),
        ("`line_items[1].name` must not contain a tab.", "`lineItems[1].name` must not contain a tab."),
        ("`productId` must be an integer.", "`productId` must be an integer."),
        ("The service account 'hr_bot' is not active.", "The service account 'hr_bot' is not active."),
        ("`event` must be one of: line.claimed_late.", "`event` must be one of: line.claimed_late."),
        ("`a_b c_d`", "`a_b c_d`"),
    ],
)
def test_names_in_backticks_are_spelled(written: str, told: str) -> None:
    assert spell_detail(written) == told


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("#/recipients/1/email", "#/recipients/1/email"),
        ("#/external_reference", "#/externalReference"),
        ("#/line_items/2/first_name", "#/lineItems/2/firstName"),
    ],
)
def test_pointers_are_spelled(written: str, told: str) -> None:
    assert spell_pointer(written) == told
