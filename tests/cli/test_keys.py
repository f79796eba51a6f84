"""The commands around API keys: made, listed without their secrets, deleted."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.conftest import Run, assert_refused

CREATE = ("keys", "create", "--customer", "acme", "--service-account", "hr-bot", "--environment", "staging")


def test_a_key_is_made_listed_without_its_secret_and_deleted(
    run: Run, database: str, loaded: dict[str, Any]
) -> None:
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
        "created_at",
        "last_seen_at",
    }
    for shown in (run("keys", "list"), run("keys", "list", "--json")):
        assert made["secret"] not in shown.stdout
    assert "acme/trial  staging  as hr-bot  never seen" in run("keys", "list", "--customer", "acme").stdout
    assert run("keys", "list", "--customer", "globex").stdout == ""
    deleted = run("keys", "delete", str(made["id"]))
    assert (deleted.exit_code, deleted.stdout) == (0, f"API key {made['id']} is deleted.\n")
    assert "trial" not in run("keys", "list").stdout
    assert_refused(run("keys", "delete", str(made["id"])), "there is no API key")
    with_deleted = json.loads(run("keys", "list", "--deleted", "--json").stdout)
    assert [(key["name"], key["deleted_at"] is None) for key in with_deleted] == [
        ("acme-prod", True),
        ("trial", False),
    ]
    assert " UTC" in run("keys", "list", "--deleted").stdout.partition("  deleted ")[2]


def test_a_new_key_is_shown_to_people_once(run: Run, loaded: dict[str, Any]) -> None:
    shown = run(*CREATE, "--name", "trial").stdout
    assert shown.count("lgs_test_") == 1
    assert "not shown again" in shown


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
