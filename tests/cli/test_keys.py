"""The commands around API keys: made, listed without their secrets, deleted."""

import json
from typing import Any

from tests.cli.conftest import Run, assert_refused

CREATE = ("keys", "create", "--customer", "acme", "--service-account", "hr-bot", "--environment", "staging")


def test_a_key_is_made_listed_without_its_secret_and_deleted(run: Run, database: str, loaded: dict[str, Any]) -> None:
    made = json.loads(run(*CREATE, "--name", "trial", "--json").stdout)
    assert made["secret"].startswith("lgs_test_")
    listed = json.loads(run("keys", "list", "--json").stdout)
    assert [(key["customer"], key["name"], key["environment"]) for key in listed] == [
        ("acme", "acme-prod", "production"),
        ("acme", "trial", "staging"),
    ]
    assert listed[1].keys() == {
        "id",
        "customer",
        "name",
        "service_account",
        "environment",
        "scopes",
        "networks",
        "created_at",
        "made_by",
        "replaces",
        "last_seen_at",
        "last_seen_address",
    }
    for shown in (run("keys", "list"), run("keys", "list", "--json")):
        assert made["secret"] not in shown.stdout
    assert "acme/trial  staging  as hr-bot  never seen" in run("keys", "list", "--customer", "acme").stdout
    assert run("keys", "list", "--customer", "globex").stdout == "There are no API keys.\n"
    deleted = run("keys", "delete", str(made["id"]))
    assert (deleted.exit_code, deleted.stdout) == (0, f"API key {made['id']} is deleted.\n")
    assert "trial" not in run("keys", "list").stdout
    assert_refused(run("keys", "delete", str(made["id"])), "there is no API key")
    with_deleted = json.loads(run("keys", "list", "--deleted", "--json").stdout)
    assert [(key["name"], key["deleted_at"] is None) for key in with_deleted] == [("acme-prod", True), ("trial", False)]
    assert " UTC" in run("keys", "list", "--deleted").stdout.partition("  deleted ")[2]


def test_a_new_key_is_shown_to_people_once(run: Run, loaded: dict[str, Any]) -> None:
    shown = run(*CREATE, "--name", "trial").stdout
    assert shown.count("lgs_test_") == 1
    assert "not shown again" in shown


def test_whoever_makes_a_key_of_a_service_account_that_is_switched_off_reads_it(
    run: Run, loaded: dict[str, Any]
) -> None:
    """On pages such an account is not offered. An operator may prepare its key."""
    for switch, said in (
        ("switch-off", "HR bot is switched off: until it is switched on, its keys get 403.\n"),
        ("switch-on", ""),
    ):
        assert run("service-accounts", switch, "acme/hr-bot").exit_code == 0
        made = run(*CREATE, "--name", switch, "--json")
        assert (made.exit_code, made.stderr) == (0, said)
        assert json.loads(made.stdout)["secret"]


def test_keys_that_cannot_be_made(run: Run, loaded: dict[str, Any]) -> None:
    assert_refused(
        run("keys", "create", "--customer=no", "--service-account=b", "--environment=staging", "--name=n"),
        "there is no customer 'no'",
    )
    assert_refused(
        run("keys", "create", "--customer=acme", "--service-account=b", "--environment=staging", "--name=n"),
        "has no service account 'b'",
    )
    assert_refused(run(*CREATE, "--name", "acme-prod"), "already has an API key 'acme-prod'")
    assert_refused(run(*CREATE, "--name", " "), "--name")
    assert_refused(run(*CREATE, "--name", "x" * 101), "--name")
    assert_refused(run(*CREATE, "--name", "a\nb"), "--name")


def test_a_key_is_narrowed_as_it_is_made_and_afterwards(run: Run, database: str, loaded: dict[str, Any]) -> None:
    narrow = ("--scope", "read", "--scope", "send", "--network", "192.0.2.0/24", "--network", "2001:db8::/32")
    made = json.loads(run(*CREATE, "--name", "narrow", *narrow, "--json").stdout)
    key = json.loads(run("keys", "list", "--json").stdout)[-1]
    assert (key["scopes"], key["networks"]) == (["read", "send"], ["192.0.2.0/24", "2001:db8::/32"])
    assert "for read, send  from 192.0.2.0/24, 2001:db8::/32" in run("keys", "list").stdout
    set_ = ("keys", "set", str(made["id"]))
    done = run(*set_, "--all-scopes")
    assert done.stdout == f"API key {made['id']} (narrow) is for everything, from 192.0.2.0/24, 2001:db8::/32.\n"
    assert run(*set_, "--scope", "codes", "--any-network").stdout.endswith("is for codes, from everywhere.\n")
    key = json.loads(run("keys", "list", "--json").stdout)[-1]
    assert (key["scopes"], key["networks"]) == (["codes"], None)


def test_how_a_key_cannot_be_narrowed(run: Run, database: str, loaded: dict[str, Any]) -> None:
    made = json.loads(run(*CREATE, "--name", "narrow", "--json").stdout)
    set_ = ("keys", "set", str(made["id"]))
    before = run("keys", "list", "--json").stdout
    assert_refused(run(*set_), "--scope, --all-scopes, --network or --any-network")
    assert_refused(run(*set_, "--all-scopes", "--scope", "read"), "--all-scopes")
    assert_refused(run(*set_, "--scope", "write"), "--scope", "read")
    assert_refused(run(*set_, "--network", "192.0.2.1/24"), "--network", "192.0.2.1/24")
    assert_refused(run(*set_, "--network", "here"), "--network")
    assert_refused(run(*set_, *["--network", "192.0.2.0/24"] * 101), "100 times at most")
    assert run(*set_, *["--network", "192.0.2.0/24"] * 100).exit_code == 0
    run(*set_, "--any-network")
    assert run("keys", "list", "--json").stdout == before
    assert_refused(run("keys", "set", "999", "--all-scopes"), "there is no API key 999")


def test_a_key_is_replaced_by_a_second_one(run: Run, database: str, loaded: dict[str, Any]) -> None:
    narrow = ("--scope", "read", "--network", "192.0.2.0/24")
    first = json.loads(run(*CREATE, "--name", "shop", *narrow, "--json").stdout)
    second = json.loads(run("keys", "replace", str(first["id"]), "--json").stdout)
    assert second["name"] == "shop 2"
    assert second["secret"].startswith("lgs_test_")
    *_, one, two = json.loads(run("keys", "list", "--json").stdout)
    same = ("customer", "service_account", "environment", "scopes", "networks", "made_by")
    assert [two[name] for name in same] == [one[name] for name in same]
    assert (one["replaces"], two["replaces"]) == (None, first["id"])
    assert f"never seen  replaces {first['id']}" in run("keys", "list").stdout
    assert_refused(run("keys", "replace", str(first["id"])), f"API key {second['id']} replaces it already")
    assert run("keys", "delete", str(first["id"])).exit_code == 0
    assert_refused(run("keys", "replace", str(first["id"])), "there is no API key")
    assert "shop 3" in run("keys", "replace", str(second["id"])).stdout


def test_a_number_that_a_key_is_called_by_is_part_of_its_name(run: Run, database: str, loaded: dict[str, Any]) -> None:
    made = json.loads(run(*CREATE, "--name", "Till 7", "--json").stdout)
    names = []
    for _ in range(3):
        made = json.loads(run("keys", "replace", str(made["id"]), "--json").stdout)
        names.append(made["name"])
    assert names == ["Till 7 2", "Till 7 3", "Till 7 4"]
