"""The command top-up: which account, which amount, and a reference once."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cli.conftest import Run, assert_refused, sql


@pytest.mark.parametrize("name", ["gbp", "acme/gbp", "ID"])
def test_a_top_up_finds_its_account(run: Run, loaded: dict[str, Any], name: str) -> None:
    account = str(loaded["ids"]["funding_accounts"]["gbp"]) if name == "ID" else name
    result = run("top-up", account, "12.50")
    assert (result.exit_code, result.stdout) == (0, "Acme float now holds £112.50.\n")


def test_a_reference_tops_up_once(run: Run, database: str, loaded: dict[str, Any]) -> None:
    for _ in range(2):
        result = run("top-up", "gbp", "12.50", "--reference", "bank-1")
        assert (result.exit_code, result.stdout) == (0, "Acme float now holds £112.50.\n")
    assert_refused(run("top-up", "gbp", "13", "--reference", "bank-1"), "'bank-1' already credited £12.50")
    # Another account's references are its own.
    assert run("top-up", "acme/shared", "1", "--reference", "bank-1").exit_code == 0
    assert sql(database, "SELECT count(*) FROM entries WHERE reference = 'bank-1'")[0][0] == 2


def test_a_currency_without_decimals(run: Run, loaded: dict[str, Any]) -> None:
    assert run("top-up", "jpy", "500").stdout == "Acme yen now holds ¥500.\n"
    assert_refused(run("top-up", "jpy", "0.5"), "AMOUNT")


@pytest.mark.parametrize(
    ("account", "amount", "said"),
    [
        ("nobody", "1", "there is no funding account 'nobody'"),
        ("acme/nobody", "1", "there is no funding account"),
        ("999999999999999999999", "1", "there is no funding account"),
        ("shared", "1", "could be any of acme/shared"),
        ("gbp", "-5", "is not above zero"),
        ("gbp", "0", "is not above zero"),
        ("gbp", "1.001", "AMOUNT"),
        ("gbp", "ten", "AMOUNT: “ten” is not an amount"),
        ("gbp", "NaN", "AMOUNT"),
        ("gbp", "Infinity", "AMOUNT"),
        ("gbp", "1e30", "AMOUNT"),
        ("gbp", "1e999999999", "AMOUNT"),
        ("gbp", "1e-999999999", "AMOUNT"),
        ("gbp", "1.0000000000000000000000000000000000000001", "is not an amount"),
        ("gbp", "92233720368547758", "AMOUNT"),
    ],
)
def test_a_top_up_that_cannot_be(
    run: Run, database: str, loaded: dict[str, Any], account: str, amount: str, said: str
) -> None:
    assert_refused(run("top-up", account, amount), said)
    assert sql(database, "SELECT count(*) FROM entries")[0][0] == 2


@pytest.mark.parametrize("reference", ["", " ", "x" * 129])
def test_a_reference_of_a_top_up_has_1_to_128_characters(run: Run, loaded: dict[str, Any], reference: str) -> None:
    assert_refused(run("top-up", "gbp", "1", "--reference", reference), "--reference")
