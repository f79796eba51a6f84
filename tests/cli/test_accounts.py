"""The commands that make, name, close and open funding accounts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.cli.conftest import Run, assert_refused, sql


def test_an_account_is_made_renamed_closed_and_opened(run: Run, database: str, loaded: dict[str, Any]) -> None:
    made = run("accounts", "create", "acme", "People team", "--currency", "gbp")
    assert made.stdout.startswith("People team is acme/people-team (id ")
    assert run("accounts", "rename", "acme/people-team", " Team ").stdout == "acme/people-team is called Team now.\n"
    assert run("accounts", "close", "acme/people-team").stdout == "Team is closed.\n"
    assert_refused(run("top-up", "acme/people-team", "1"), "the account is closed: open it again first")
    listed = json.loads(run("accounts", "list", "--customer", "acme", "--json").stdout)
    assert [one["is_closed"] for one in listed if one["key"] == "people-team"] == [True]
    assert run("accounts", "open", "acme/people-team").stdout == "Team is open.\n"
    assert run("top-up", "acme/people-team", "1").stdout == "Team now holds £1.00.\n"
    assert_refused(run("accounts", "close", "acme/people-team"), "holds £1.00")
    acts = sql(database, "SELECT act FROM audit_events WHERE act LIKE 'account.%' ORDER BY id")
    assert [row[0] for row in acts] == [
        "account.created",
        "account.renamed",
        "account.closed",
        "account.opened",
        "account.topped_up",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create", "nobody", "X", "--currency", "GBP"), "there is no customer 'nobody'"),
        (("create", "acme", "X", "--currency", "XXX"), "no currency 'XXX'"),
        (("create", "acme", " ", "--currency", "GBP"), "NAME must have 1 to 100 characters"),
        (("create", "acme", "x" * 101, "--currency", "GBP"), "NAME must have 1 to 100 characters"),
        (("create", "acme", "a\u202eb", "--currency", "GBP"), "NAME must not contain bidirectional"),
        (("create", "acme", "Acme float", "--currency", "GBP"), "Another account has this name."),
        (("close", "acme/nobody"), "there is no funding account"),
    ],
)
def test_what_is_refused(
    run: Run, database: str, loaded: dict[str, Any], arguments: tuple[str, ...], said: str
) -> None:
    before = sql(database, "SELECT count(*) FROM accounts")
    assert_refused(run("accounts", *arguments), said)
    assert sql(database, "SELECT count(*) FROM accounts") == before
