from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from largesse.customers.authenticator import _base62, new_secret, secret_hash, well_formed


@pytest.mark.parametrize(("environment", "prefix"), [("production", "lgs_live_"), ("staging", "lgs_test_")])
def test_a_secret_has_its_prefix_and_one_length(environment: str, prefix: str) -> None:
    secret = new_secret(environment)

    assert secret.startswith(prefix)
    assert len(secret) == len(prefix) + 43 + 6
    assert well_formed(secret)


def test_an_unknown_environment_has_no_secrets() -> None:
    with pytest.raises(KeyError):
        new_secret("sandbox")


def test_secrets_differ() -> None:
    assert len({new_secret("production") for _ in range(1000)}) == 1000


def test_every_bit_of_256_fits_the_width() -> None:
    highest = _base62(2**256 - 1, 43)

    assert int_of(highest) == 2**256 - 1
    assert _base62(0, 43) == "0" * 43


def int_of(digits: str) -> int:
    number = 0
    for digit in digits:
        number = number * 62 + "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".index(digit)
    return number


@given(st.integers(min_value=9, max_value=57), st.sampled_from("0aZ"))
def test_one_wrong_character_is_seen(position: int, character: str) -> None:
    secret = new_secret("production")
    wrong = secret[:position] + character + secret[position + 1 :]

    assert well_formed(wrong) == (wrong == secret)


def test_the_checksum_covers_the_environment() -> None:
    assert not well_formed(new_secret("production").replace("lgs_live_", "lgs_test_"))


@pytest.mark.parametrize(
    "text", ["", "lgs_live_", "Bearer", "lgs_prod_" + "0" * 49, "lgs_live_" + "0" * 48, "lgs_live_" + "é" * 49]
)
def test_other_text_is_not_well_formed(text: str) -> None:
    assert not well_formed(text)


def test_a_line_end_after_the_secret_is_seen() -> None:
    assert not well_formed(new_secret("staging") + "\n")


def test_the_hash_is_sha256() -> None:
    secret = new_secret("staging")

    assert secret_hash(secret) == hashlib.sha256(secret.encode()).digest()
    assert len(secret_hash(secret)) == 32
