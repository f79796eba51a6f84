"""Small mistakes at the command line: each is told in one line that says what to do, and exits with a failure."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cli.conftest import Run, assert_refused


def test_a_campaign_that_is_not_there(run: Run, database: str, loaded: dict[str, Any]) -> None:
    for form in ((), ("--json",)):
        assert_refused(run("campaigns", "show", "acme", "7", *form), "there is no campaign 7 in production")


def test_a_change_of_a_budget_that_changes_nothing(run: Run, database: str, loaded: dict[str, Any]) -> None:
    run("budgets", "create", "acme", "All", "--currency", "GBP", "--role", "member", "--limit", "9")
    assert_refused(run("budgets", "change", "acme", "1"), "say what is to change: --name, --limit or --per-gift")


def test_a_reference_of_a_top_up_that_is_none(run: Run, database: str, loaded: dict[str, Any]) -> None:
    assert_refused(run("top-ups", "confirm", "x"), "REFERENCE: a reference is RF and 14 digits")


def test_days_of_reminders_may_have_blanks_between(run: Run, database: str, loaded: dict[str, Any]) -> None:
    done = run("unclaimed", "set", "acme", "--remind-after", "3, 10")
    assert "reminders after 3, 10 days" in done.output
    assert_refused(run("unclaimed", "set", "acme", "--claim-by-days", "9" * 5_000), "--claim-by-days must be a whole")


@pytest.mark.parametrize("command", [("suppliers", "list"), ("worker",)], ids=" ".join)
def test_a_file_of_suppliers_that_is_not_there_names_the_setting(
    run: Run, database: str, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("LARGESSE_SUPPLIERS", "none.yaml")
    assert_refused(run(*command), "LARGESSE_SUPPLIERS: none.yaml cannot be read: No such file")
