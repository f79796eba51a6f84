"""The commands around people: invited, listed, given a role, removed, reset."""

import json
from typing import Any

import pytest
from tests.cli.conftest import Run, assert_refused, sql

from largesse.base.email import MAX_EMAIL

INVITE = ("users", "invite", "ada@acme.example", "--customer", "acme")


def test_somebody_is_invited_and_listed(run: Run, database: str, loaded: dict[str, Any]) -> None:
    made = json.loads(run(*INVITE, "--name", "Ada", "--role", "viewer", "--json").stdout)
    assert made.keys() == {"link"}
    assert made["link"].startswith("http://localhost:8000/app/link/")
    secret = made["link"].rpartition("/")[2]
    [kept] = sql(database, "SELECT * FROM sign_in_links")
    assert secret not in str(dict(kept)), "only its hash is kept"
    [listed] = json.loads(run("users", "list", "--json").stdout)
    assert {name: listed[name] for name in ("customer", "email", "name", "role", "has_signed_in")} == {
        "customer": "acme",
        "email": "ada@acme.example",
        "name": "Ada",
        "role": "viewer",
        "has_signed_in": False,
    }
    # Invited again, the link before holds no longer.
    assert "lets in once" in run(*INVITE, "--role", "finance").stdout
    assert sql(database, "SELECT count(*) FROM sign_in_links WHERE used_at IS NULL")[0][0] == 1
    assert json.loads(run("users", "list", "--customer", "acme", "--json").stdout)[0]["role"] == "finance"
    assert json.loads(run("users", "list", "--customer", "globex", "--json").stdout) == []


def test_the_longest_address_is_invited_given_a_role_and_removed(run: Run, loaded: dict[str, Any]) -> None:
    longest = f"{'a' * 64}@{'.'.join(['b' * 58] * 3)}.example.com"
    assert len(longest) == MAX_EMAIL - 1
    for arguments in (("invite",), ("set-role",), ("deactivate",)):
        role = ("finance",) if arguments == ("set-role",) else ()
        done = run("users", *arguments, longest, *role, "--customer", "acme")
        assert done.exit_code == 0, done.output
    assert run("staff", "invite", longest, "--role", "owner").exit_code == 0


def test_roles_are_given_and_places_taken(run: Run, loaded: dict[str, Any]) -> None:
    run(*INVITE, "--role", "admin")
    said = "make somebody else one first"
    assert_refused(run("users", "set-role", "ada@acme.example", "viewer", "--customer", "acme"), said)
    assert_refused(run("users", "deactivate", "ada@acme.example", "--customer", "acme"), said)
    assert_refused(run(*INVITE, "--role", "member"), said)
    run("users", "invite", "bob@acme.example", "--customer", "acme", "--role", "admin")
    assert run("users", "set-role", "ADA@acme.example", "viewer", "--customer", "acme").exit_code == 0
    assert run("users", "deactivate", "ada@acme.example", "--customer", "acme").exit_code == 0
    listed = json.loads(run("users", "list", "--json").stdout)
    assert [(one["email"], one["role"], one["is_active"]) for one in listed] == [
        ("bob@acme.example", "admin", True),
        ("ada@acme.example", "viewer", False),
    ]


def test_what_cannot_be_done_is_said_in_a_line(run: Run, loaded: dict[str, Any]) -> None:
    for arguments, said in (
        (("invite", "no address", "--customer", "acme"), "EMAIL is not an e-mail address"),
        (("invite", "a@acme.example", "--customer", "no"), "there is no customer 'no'"),
        (("invite", "a@acme.example", "--customer", "acme", "--role", "owner"), "--role"),
        (("invite", "a@acme.example", "--customer", "acme", "--name", "x" * 101), "--name"),
        (("invite", "a@acme.example"), "--customer"),
        (("set-role", "a@acme.example", "admin", "--customer", "acme"), "'acme' has no person"),
        (("deactivate", "a@acme.example", "--customer", "acme"), "'acme' has no person"),
        (("reset", "a@acme.example"), "Nobody signs in as a@acme.example yet. Invite them instead."),
    ):
        assert_refused(run("users", *arguments), said)


def test_who_has_their_second_step_forgotten_is_told_by_mail(
    run: Run, database: str, loaded: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(*INVITE)
    person = "INSERT INTO people (email, email_key, totp, password) VALUES ($1, $1, 'sealed', 'hash')"
    sql(database, person, "ada@acme.example")
    told = "SELECT kind, change FROM people_mails WHERE person_id IS NOT NULL"
    assert run("users", "reset", "ada@acme.example", "--second-step").exit_code == 0
    assert sql(database, told) == [], "without a mail server"
    assert sql(database, "SELECT password <> 'hash' FROM people")[0][0], "alone it would be enough to get in"
    monkeypatch.setenv("LARGESSE_SMTP_URL", "smtp://127.0.0.1:1")
    for _ in range(2):
        assert run("users", "reset", "ada@acme.example", "--second-step").exit_code == 0
    assert sql(database, told) == [], "there was none to forget"
    sql(database, "UPDATE people SET totp = 'sealed'")
    assert run("users", "reset", "ada@acme.example").exit_code == 0
    assert sql(database, told) == [], "it is kept"
    assert run("users", "reset", "ada@acme.example", "--second-step").exit_code == 0
    assert [tuple(row) for row in sql(database, told)] == [("second_step", "forgotten")]


def test_a_reset_ends_the_sessions_of_a_person_at_once(run: Run, database: str, loaded: dict[str, Any]) -> None:
    """Whoever is signed in as somebody whose account is given back must not wait for the new password."""
    sql(database, "INSERT INTO people (email, email_key) VALUES ($1, $1)", "gone@acme.example")
    begin = "INSERT INTO sessions (hash, person_id, environment, browser, ends_at) SELECT $1, id, 'production', '', now() + interval '1 day' FROM people WHERE email = $2"
    sql(database, begin, bytes(32), "gone@acme.example")
    assert run("users", "reset", "gone@acme.example").exit_code == 0
    ended = "SELECT s.ended_at IS NOT NULL FROM sessions s JOIN people p ON p.id = s.person_id WHERE p.email = $1"
    assert sql(database, ended, "gone@acme.example") == [(True,)]


def test_an_invitation_without_a_role_leaves_the_one_there_is(run: Run, database: str, loaded: dict[str, Any]) -> None:
    def role_of(email: str) -> str:
        listed = json.loads(run("users", "list", "--json").stdout)
        return str(next(one["role"] for one in listed if one["email"] == email))

    invite = ("users", "invite", "new@acme.example", "--customer", "acme")
    assert run(*invite).exit_code == 0
    assert role_of("new@acme.example") == "member", "somebody new"
    assert run(*invite, "--role", "finance").exit_code == 0
    assert run(*invite).exit_code == 0
    assert role_of("new@acme.example") == "finance", "invited before"
    assert run("users", "deactivate", "new@acme.example", "--customer", "acme").exit_code == 0
    assert run(*invite).exit_code == 0
    assert role_of("new@acme.example") == "finance", "who belonged to it once"
    acts = sql(database, "SELECT after::text FROM audit_events WHERE act = 'person.invited' ORDER BY id")
    assert [act[0] for act in acts] == ['{"role":"member"}', *['{"role":"finance"}'] * 3]


STAFF_INVITE = ("staff", "invite", "ada@largesse.example")


def staff_listed(run: Run) -> list[tuple[str, str, bool]]:
    found = json.loads(run("staff", "list", "--json").stdout)
    return [(one["email"], one["role"], one["is_active"]) for one in found]


def test_a_member_of_staff_is_invited_and_listed(run: Run, database: str, loaded: dict[str, Any]) -> None:
    assert "There is nobody" in run("staff", "list").stdout
    made = json.loads(run(*STAFF_INVITE, "--name", "Ada", "--role", "owner", "--json").stdout)
    assert made.keys() == {"link"}
    assert made["link"].startswith("http://localhost:8000/office/link/")
    [kept] = sql(database, "SELECT * FROM staff_links")
    assert made["link"].rpartition("/")[2] not in str(dict(kept)), "only its hash is kept"
    assert staff_listed(run) == [("ada@largesse.example", "owner", True)]
    # Nobody's role changes by an invitation. After a reset the link before holds no longer.
    assert_refused(run(*STAFF_INVITE, "--role", "support"), "is invited already, with the role owner")
    assert staff_listed(run) == [("ada@largesse.example", "owner", True)]
    assert "lets in once" in run("staff", "reset", "ada@largesse.example").stdout
    assert sql(database, "SELECT count(*) FROM staff_links WHERE used_at IS NULL")[0][0] == 1


def test_roles_of_staff_are_given_and_places_taken_but_the_last_owners(
    run: Run, database: str, loaded: dict[str, Any]
) -> None:
    run(*STAFF_INVITE, "--role", "owner")
    said = "make somebody else one first"
    assert_refused(run("staff", "set-role", "ada@largesse.example", "support"), said)
    assert_refused(run("staff", "deactivate", "ada@largesse.example"), said)
    run("staff", "invite", "bob@largesse.example", "--role", "owner")
    assert run("staff", "set-role", "ADA@largesse.example", "support").exit_code == 0
    assert run("staff", "deactivate", "ada@largesse.example").exit_code == 0
    assert_refused(run("staff", "reset", "ada@largesse.example"), "no member of staff has that address")
    assert "/office/link/" in json.loads(run("staff", "reset", "bob@largesse.example", "--json").stdout)["link"]
    assert staff_listed(run) == [("bob@largesse.example", "owner", True), ("ada@largesse.example", "support", False)]
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


def test_what_is_wrong_about_staff_is_said(run: Run, loaded: dict[str, Any]) -> None:
    for arguments, said in (
        (("invite", "no address", "--role", "owner"), "EMAIL is not an e-mail address"),
        (("invite", "a@largesse.example"), "--role"),
        (("invite", "a@largesse.example", "--role", "admin"), "--role"),
        (("invite", "a@largesse.example", "--role", "owner", "--name", "x" * 101), "--name"),
        (("set-role", "a@largesse.example", "owner"), "no member of staff has that address"),
        (("deactivate", "a@largesse.example"), "no member of staff has that address"),
        (("reset", "a@largesse.example"), "no member of staff has that address"),
    ):
        assert_refused(run("staff", *arguments), said)
