from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from largesse.encryption.vault import DecryptionFailed, Vault
from largesse.lines.codes import _FAIR_BELOW, CODES_AT_ONCE, SealedCodes, _pin, draw_codes, open_code

VAULT = Vault((bytes(range(32)),))


def test_every_pin_is_as_likely_as_every_other() -> None:
    """What is drawn is kept below a multiple of the number of PINs, and there is no greater one in four bytes."""
    assert _FAIR_BELOW % 1_000_000 == 0
    assert 2**32 - 1_000_000 < _FAIR_BELOW <= 2**32


@given(st.integers(0, 2**32 - 1))
def test_a_pin_has_six_digits_and_is_drawn_again_where_it_would_be_unfair(number: int) -> None:
    pin = _pin(number.to_bytes(4, "big"))
    assert 0 <= pin < 1_000_000
    if number < _FAIR_BELOW:
        assert pin == number % 1_000_000


def test_codes_differ_and_pins_are_spread() -> None:
    drawn = draw_codes(5000)
    assert len({code.code for code in drawn}) == 5000
    assert len({code.pin for code in drawn}) > 4900
    first_digits = Counter(code.pin_text[0] for code in drawn)
    assert set(first_digits) == set("0123456789")
    assert max(first_digits.values()) < 650  # 500 expected, some 21 standard deviation
    assert all(len(code.pin_text) == 6 for code in drawn)


def test_a_sealed_code_opens_for_its_line_alone() -> None:
    codes = draw_codes(7)
    code, sealed = codes[-1], list(SealedCodes(VAULT, codes, "REFERENCE"))[-1]
    assert open_code(VAULT, sealed.sealed, "REFERENCE", 7) == code
    assert sealed.lookup == VAULT.codes.lookup(code.code)
    for reference, number in (("REFERENCE", 8), ("OTHER", 7), ("REFERENCE/7", 7)):
        with pytest.raises(DecryptionFailed):
            open_code(VAULT, sealed.sealed, reference, number)


@pytest.mark.parametrize("count", [1, CODES_AT_ONCE - 1, CODES_AT_ONCE, CODES_AT_ONCE + 1, 2 * CODES_AT_ONCE + 1])
def test_every_code_is_sealed_for_its_own_line(count: int) -> None:
    codes = draw_codes(count)
    sealed = list(SealedCodes(VAULT, codes, "REFERENCE"))
    opened = [open_code(VAULT, one.sealed, "REFERENCE", number) for number, one in enumerate(sealed, 1)]
    assert opened == codes
    assert len({one.sealed[4:16] for one in sealed}) == count  # no nonce twice


def test_codes_sealed_again_are_sealed_anew() -> None:
    codes = SealedCodes(VAULT, draw_codes(3), "REFERENCE")
    assert not {one.sealed for one in codes} & {one.sealed for one in codes}
    assert [one.lookup for one in codes] == [one.lookup for one in codes]


def test_nothing_of_a_code_shows_in_what_is_stored_or_logged() -> None:
    (code,) = draw_codes(1)
    (sealed,) = SealedCodes(VAULT, [code], "REFERENCE")
    assert code.code not in sealed.sealed
    assert code.pin_text not in repr(code)
    assert repr(code.code) not in repr(code)
