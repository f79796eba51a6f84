"""The commands that list service accounts and limit what they may order."""

import json
from typing import Any

from tests.cli.conftest import Run, assert_refused, sql

LIMIT = ("service-accounts", "limit", "acme/hr-bot", "--currency")


def limits(run: Run) -> list[tuple[Any, ...]]:
    listed = json.loads(run("service-accounts", "list", "--customer", "acme", "--json").stdout)
    return [(one["key"], one["currency"], one["largest_order"], one["daily"]) for one in listed]


def named(run: Run, name: str) -> list[dict[str, Any]]:
    return [one for one in json.loads(run("service-accounts", "list", "--json").stdout) if one["name"] == name]


def test_limits_are_set_listed_and_taken_away(run: Run, database: str, loaded: dict[str, Any]) -> None:
    assert limits(run) == [("hr-bot", None, None, None)]
    done = run(*LIMIT, "gbp", "--largest-order", "100", "--daily", "250.50")
    assert done.stdout == "acme/hr-bot may order £100.00 at once and £250.50 a day.\n"
    run(*LIMIT, "JPY", "--daily", "10000")
    assert limits(run) == [("hr-bot", "GBP", 100.0, 250.5), ("hr-bot", "JPY", None, 10000)]
    done = run(*LIMIT, "GBP", "--largest-order", "none")
    assert done.stdout == "acme/hr-bot may order any amount of GBP at once and £250.50 a day.\n"
    run(*LIMIT, "GBP", "--daily", "none")
    assert limits(run) == [("hr-bot", "JPY", None, 10000)]
    run(*LIMIT, "JPY", "--daily", "none")
    assert limits(run) == [("hr-bot", None, None, None)]


def test_what_is_refused(run: Run, database: str, loaded: dict[str, Any]) -> None:
    for arguments, said in (
        (("acme/hr-bot", "--currency", "GBP"), "--largest-order or --daily"),
        (("acme", "--currency", "GBP", "--daily", "1"), "CUSTOMER/KEY"),
        (("acme/crm", "--currency", "GBP", "--daily", "1"), "no service account 'crm'"),
        (("nobody/hr-bot", "--currency", "GBP", "--daily", "1"), "no service account 'hr-bot'"),
        (("acme/hr-bot", "--currency", "XXX", "--daily", "1"), "no currency 'XXX'"),
        (("acme/hr-bot", "--currency", "GBP", "--daily", "1.005"), "--daily"),
        (("acme/hr-bot", "--currency", "JPY", "--daily", "0.5"), "--daily"),
        (("acme/hr-bot", "--currency", "GBP", "--daily", "0"), "--daily: “0” is not above zero"),
        (("acme/hr-bot", "--currency", "GBP", "--largest-order", "much"), "--largest-order: “much” is not an amount"),
    ):
        assert_refused(run("service-accounts", "limit", *arguments), said)
        assert limits(run) == [("hr-bot", None, None, None)]


def test_one_is_made_switched_off_and_on(run: Run, database: str, loaded: dict[str, Any]) -> None:
    done = run("service-accounts", "create", "acme", " Front till ")
    [listed] = named(run, "Front till")
    assert (listed["customer"], listed["active"]) == ("acme", True)
    assert done.stdout == f"Front till is acme/{listed['key']} (id {listed['id']}).\n"
    key = ("--customer", "acme", "--service-account", listed["key"], "--environment", "production")
    assert run("keys", "create", *key, "--name", "till").exit_code == 0
    called = f"acme/{listed['key']}"
    for _ in range(2):  # said twice is done once
        assert run("service-accounts", "switch-off", called).stdout == "Front till is switched off.\n"
    assert [one["active"] for one in named(run, "Front till")] == [False]
    assert run("service-accounts", "switch-on", called).stdout == "Front till is switched on.\n"
    acts = sql(
        database,
        "SELECT act, split_part(actor_name, ' (', 1), after::json ->> 'active' AS active FROM audit_events WHERE subject = $1 ORDER BY id",
        f"service account {listed['id']}",
    )
    assert [tuple(act) for act in acts] == [
        ("service_account.created", "largesse service-accounts create", None),
        ("service_account.switched", "largesse service-accounts switch-off", "false"),
        ("service_account.switched", "largesse service-accounts switch-on", "true"),
    ]


def test_what_cannot_be_made_or_switched(run: Run, database: str, loaded: dict[str, Any]) -> None:
    for arguments, said in (
        (("create", "nobody", "Till"), "no customer 'nobody'"),
        (("create", "acme", " "), "NAME must have 1 to 100 characters"),
        (("create", "acme", "Till\x07"), "NAME must not contain"),
        (("create", "acme", "HR BOT"), "Another service account has this name."),
        (("switch-off", "hr-bot"), "CUSTOMER/KEY"),
        (("switch-on", "acme/crm"), "no service account 'crm'"),
    ):
        before = run("service-accounts", "list", "--json").stdout
        assert_refused(run("service-accounts", *arguments), said)
        assert run("service-accounts", "list", "--json").stdout == before
