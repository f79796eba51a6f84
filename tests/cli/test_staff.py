"""The commands around the people of the back office: invited, listed, given a role, deactivated, reset."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.cli.conftest import Run, assert_refused, sql

INVITE = ("staff", "invite", "ada@largesse.example")


def listed(run: Run) -> list[tuple[str, str, bool]]:
    found = json.loads(run("staff", "list", "--json").stdout)
    return [(one["email"], one["role"], one["is_active"]) for one in found]


def test_somebody_is_invited_and_listed(run: Run, database: str, loaded: dict[str, Any]) -> None:
    assert "There is nobody" in run("staff", "list").stdout
    made = json.loads(run(*INVITE, "--name", "Ada", "--role", "owner", "--json").stdout)
    assert made.keys() == {"link"}
    assert made["link"].startswith("http://localhost:8000/office/link/")
    [kept] = sql(database, "SELECT * FROM staff_links")
    assert made["link"].rpartition("/")[2] not in str(dict(kept)), "only its hash is kept"
    assert listed(run) == [("ada@largesse.example", "owner", True)]
    # Nobody's role changes by an invitation. After a reset the link before holds no longer.
    assert_refused(run(*INVITE, "--role", "support"), "is invited already, with the role owner")
    assert listed(run) == [("ada@largesse.example", "owner", True)]
    assert "lets in once" in run("staff", "reset", "ada@largesse.example").stdout
    assert sql(database, "SELECT count(*) FROM staff_links WHERE used_at IS NULL")[0][0] == 1


def test_roles_are_given_and_places_taken_but_the_last_owners(run: Run, database: str, loaded: dict[str, Any]) -> None:
    run(*INVITE, "--role", "owner")
    said = "make somebody else one first"
    assert_refused(run("staff", "set-role", "ada@largesse.example", "support"), said)
    assert_refused(run("staff", "deactivate", "ada@largesse.example"), said)
    run("staff", "invite", "bob@largesse.example", "--role", "owner")
    assert run("staff", "set-role", "ADA@largesse.example", "support").exit_code == 0
    assert run("staff", "deactivate", "ada@largesse.example").exit_code == 0
    assert_refused(run("staff", "reset", "ada@largesse.example"), "no member of staff has that address")
    assert "/office/link/" in json.loads(run("staff", "reset", "bob@largesse.example", "--json").stdout)["link"]
    assert listed(run) == [("bob@largesse.example", "owner", True), ("ada@largesse.example", "support", False)]
    acts = sql(database, "SELECT act FROM audit_events WHERE act LIKE 'staff.%' ORDER BY id")
    assert [row["act"] for row in acts] == [
        "staff.invited",
        "staff.invited",
        "staff.role_changed",
        "staff.deactivated",
        "staff.reset",
    ]
    verified = run("verify")
    assert verified.exit_code == 0, verified.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("invite", "no address", "--role", "owner"), "EMAIL is not an e-mail address"),
        (("invite", "a@largesse.example"), "--role"),
        (("invite", "a@largesse.example", "--role", "admin"), "--role"),
        (("invite", "a@largesse.example", "--role", "owner", "--name", "x" * 101), "--name"),
        (("set-role", "a@largesse.example", "owner"), "no member of staff has that address"),
        (("deactivate", "a@largesse.example"), "no member of staff has that address"),
        (("reset", "a@largesse.example"), "no member of staff has that address"),
    ],
)
def test_what_is_wrong_is_said(run: Run, loaded: dict[str, Any], arguments: tuple[str, ...], said: str) -> None:
    assert_refused(run("staff", *arguments), said)
