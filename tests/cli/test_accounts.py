"""The commands that make, name, close and open funding accounts, and say who may use them."""

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


def test_what_is_refused(run: Run, database: str, loaded: dict[str, Any]) -> None:
    for arguments, said in (
        (("create", "nobody", "X", "--currency", "GBP"), "there is no customer 'nobody'"),
        (("create", "acme", "X", "--currency", "XXX"), "no currency 'XXX'"),
        (("create", "acme", " ", "--currency", "GBP"), "NAME must have 1 to 100 characters"),
        (("create", "acme", "x" * 101, "--currency", "GBP"), "NAME must have 1 to 100 characters"),
        (("create", "acme", "a\u202eb", "--currency", "GBP"), "NAME must not contain bidirectional"),
        (("create", "acme", "Acme float", "--currency", "GBP"), "Another account has this name."),
        (("close", "acme/nobody"), "there is no funding account"),
    ):
        before = sql(database, "SELECT count(*) FROM accounts")
        assert_refused(run("accounts", *arguments), said)
        assert sql(database, "SELECT count(*) FROM accounts") == before


@pytest.fixture
def closed(run: Run, database: str, loaded: dict[str, Any]) -> int:
    """An account of acme's that is open to nobody, and a member."""
    assert run("users", "invite", "cem@acme.example", "--customer", "acme").exit_code == 0
    sql(database, "UPDATE accounts SET open_to_all = false WHERE key = 'shared'")
    return int(sql(database, "SELECT id FROM accounts WHERE name = 'Acme shared'")[0]["id"])


def test_accounts_are_assigned_and_taken_away(run: Run, database: str, closed: int) -> None:
    for _ in range(2):  # of which the second changes nothing
        said = run("accounts", "assign", "acme/shared", "--service-account", "hr-bot").stdout
        assert said == "hr-bot may use Acme shared.\n"
        assert run("accounts", "assign", str(closed), "--user", "CEM@acme.example").exit_code == 0
    listed = json.loads(run("accounts", "list", "--customer", "acme", "--json").stdout)
    assert [one["service_accounts"] for one in listed if one["key"] == "shared"] == [["hr-bot"]]
    assert [row["account_id"] for row in sql(database, "SELECT account_id FROM account_users")] == [closed]
    for _ in range(2):
        assert run("accounts", "unassign", "acme/shared", "--service-account", "hr-bot").exit_code == 0
    said = run("accounts", "unassign", "acme/shared", "--user", "cem@acme.example").stdout
    assert said == "cem@acme.example may not use Acme shared.\n"
    assert (
        sql(database, "SELECT account_id FROM account_users UNION ALL SELECT account_id FROM account_service_accounts")
        == []
    )
    acts = sql(database, "SELECT subject, before, after FROM audit_events WHERE act = 'account.assigned' ORDER BY id")
    none, shared = '{"accounts":[]}', '{"accounts":["Acme shared"]}'
    account = "service account 1"
    assert [tuple(act) for act in acts] == [
        (account, none, shared),
        ("cem@acme.example", none, shared),
        (account, shared, none),
        ("cem@acme.example", shared, none),
    ]


@pytest.mark.slow
def test_who_belongs_to_the_customer_no_longer_has_none(run: Run, database: str, closed: int) -> None:
    assert run("accounts", "assign", "acme/shared", "--user", "cem@acme.example").exit_code == 0
    listed = json.loads(run("accounts", "list", "--customer", "acme", "--json").stdout)
    assert [one["people"] for one in listed if one["key"] == "shared"] == [["cem@acme.example"]]
    assert run("users", "deactivate", "cem@acme.example", "--customer", "acme").exit_code == 0
    assert sql(database, "SELECT FROM account_users") == []


def test_a_closed_account_is_assigned_to_nobody(run: Run, database: str, closed: int) -> None:
    sql(database, "UPDATE accounts SET closed_at = clock_now() WHERE key = 'shared'")
    assert_refused(run("accounts", "assign", "acme/shared", "--service-account", "hr-bot"), "The account is closed")


def test_what_cannot_be_assigned(run: Run, database: str, closed: int) -> None:
    for arguments, said in (
        (("acme/shared",), "--service-account or --user"),
        (("acme/shared", "--user", "cem@acme.example", "--service-account", "hr-bot"), "--service-account or --user"),
        (("acme/shared", "--user", "nobody@acme.example"), "'acme' has no person"),
        (("acme/shared", "--service-account", "rewards"), "no service account 'rewards'"),
        (("globex/shared", "--user", "cem@acme.example"), "'globex' has no person"),
        (("acme/gbp", "--service-account", "hr-bot"), "Acme float is open to everybody"),
        (("acme/no", "--service-account", "hr-bot"), "no funding account"),
    ):
        assert_refused(run("accounts", "assign", *arguments), said)
        assert (
            sql(
                database,
                "SELECT account_id FROM account_users UNION ALL SELECT account_id FROM account_service_accounts",
            )
            == []
        )
