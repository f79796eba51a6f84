"""References of transfers: what people and banks make of them is known again, and what is mistyped is not."""

import string
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from largesse.ledger import top_ups

KNOWN = "RF18539007547034"


def test_new_ones_differ_and_hold() -> None:
    made = [top_ups.new_transfer_reference() for _ in range(1_000)]
    assert len(set(made)) == 1_000
    for one in made:
        assert len(one) == 16
        assert 2 <= int(one[2:4]) <= 98
        assert top_ups.parse_transfer_reference(one) == one


@pytest.mark.parametrize(
    "typed",
    [
        "RF18 5390 0754 7034",
        "rf18-5390-0754-7034",
        "  RF18539007547034 ",
        "R F 18.5390/0754:7034",
        "RF18 539O 0754 7O34",
        "RFl8 5390 0754 7034",
    ],
)
def test_it_is_known_however_it_is_typed(typed: str) -> None:
    assert top_ups.parse_transfer_reference(typed) == KNOWN
    assert top_ups.transfer_references_in(f"Payment {typed} from Acme") == [KNOWN]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("", "RF and 14 digits"),
        ("RF", "RF and 14 digits"),
        ("18 5390 0754 7034", "RF and 14 digits"),
        ("RF18 5390 0754 703", "RF and 14 digits"),
        ("RF18 5390 0754 70345", "RF and 14 digits"),
        ("RF18 5390 0754 703X", "RF and 14 digits"),
        ("RF18 5390 0754 7034" + " " * 60, "RF and 14 digits"),
        ("RF18 5390 0754 7043", "check digits"),
        ("RF00 5390 0754 7034", "check digits"),
    ],
)
def test_what_is_none_is_refused(typed: str, said: str) -> None:
    with pytest.raises(top_ups.TransferReferenceError, match=said):
        top_ups.parse_transfer_reference(typed)


@given(st.integers(0, 10**12 - 1))
def test_one_wrong_digit_and_two_swapped_ones_are_always_noticed(number: int) -> None:
    reference = f"RF{98 - int(f'{number:012}271500') % 97:02}{number:012}"
    assert top_ups.parse_transfer_reference(reference) == reference
    for at in range(2, 16):
        for digit in string.digits.replace(reference[at], ""):
            assert top_ups.transfer_references_in(reference[:at] + digit + reference[at + 1 :]) == []
    for one, other in combinations(range(2, 16), 2):
        if reference[one] != reference[other]:
            swapped = list(reference)
            swapped[one], swapped[other] = swapped[other], swapped[one]
            assert top_ups.transfer_references_in("".join(swapped)) == []


@pytest.mark.parametrize(
    ("typed", "plain"),
    [
        ("RF18 5390 0754 7043", "RF18539007547043"),  # two digits swapped
        ("RF18 5390 0754 7035", "RF18539007547035"),
        ("rf18-5390-0754-703", "RF1853900754703"),
        ("RF18 5390 0754 70334", "RF185390075470334"),
    ],
)
def test_a_mistyped_one_is_found_and_leads_to_what_was_meant(typed: str, plain: str) -> None:
    assert top_ups.mistyped_references_in(f"Payment {typed} from Acme") == [plain]
    assert KNOWN in top_ups.meant_references(plain)


@pytest.mark.parametrize(
    "text", [KNOWN, "Perf 2026-11-20 100000", "RF18 5390", "RF" + 18 * "1", "CRF18 5390 0754 7035"]
)
def test_what_is_right_or_no_reference_at_all_is_not_mistyped(text: str) -> None:
    assert top_ups.mistyped_references_in(text) == []
    assert top_ups.meant_references(KNOWN) == set()


def test_a_text_may_name_several_and_others() -> None:
    other = top_ups.new_transfer_reference()
    text = f"/ROC/{top_ups.spelled_reference(KNOWN)}//RFB/{other} RF00 0000 0000 0000 {KNOWN} REF 18"
    assert top_ups.transfer_references_in(text) == [KNOWN, other]
    assert top_ups.transfer_references_in("Transfer 18539007547034, RF, thank you") == []
