"""A customer is made and changed by commands, and orders and signs in like one of a seed file."""

import json
from typing import Any

import pytest
from tests.cli.conftest import Run, assert_refused, sql

CREATE = ("customers", "create")
TERMS = ("--plan", "pro", "--funding", "balance")


def test_a_customer_is_made_and_works(run: Run, database: str, loaded: dict[str, Any]) -> None:
    made = json.loads(run(*CREATE, "Initech Ltd", *TERMS, "--json").stdout)
    assert made == {"id": made["id"], "key": "initech-ltd", "name": "Initech Ltd", "plan": "pro", "funding": "balance"}
    assert "largesse users invite EMAIL --customer initech-ltd-2" in run(*CREATE, "Initech Ltd", *TERMS).stdout
    invited = run("users", "invite", "ida@initech.example", "--customer", "initech-ltd", "--role", "admin")
    assert "lets in once" in invited.stdout
    assert run("accounts", "create", "initech-ltd", "Float", "--currency", "GBP").exit_code == 0
    assert run("service-accounts", "create", "initech-ltd", "Till").exit_code == 0
    keys = ("--service-account", "till", "--environment", "production", "--name", "first")
    assert run("keys", "create", "--customer", "initech-ltd", *keys).exit_code == 0
    listed = {one["key"]: one for one in json.loads(run("customers", "list", "--json").stdout)}
    assert (listed["initech-ltd"]["service_accounts"], listed["initech-ltd"]["api_keys"]) == (1, 1)
    [act] = sql(database, "SELECT * FROM audit_events WHERE act = 'customer.created' ORDER BY id LIMIT 1")
    assert act["customer_id"] == made["id"]
    assert json.loads(act["after"])["key"] == "initech-ltd"
    assert run("verify").exit_code == 0


def test_a_customer_is_changed(run: Run, database: str, loaded: dict[str, Any]) -> None:
    assert run("customers", "set", "acme", "--plan", "enterprise").stdout == "acme is Acme Ltd, enterprise, balance.\n"
    run("customers", "set", "acme", "--plan", "enterprise")  # changes nothing, and is no act
    run("customers", "set", "acme", "--name", "Acme plc", "--funding", "invoiced")
    acts = sql(database, "SELECT before, after FROM audit_events WHERE act = 'customer.changed' ORDER BY id")
    assert [json.loads(act["after"]) for act in acts] == [
        {"name": "Acme Ltd", "plan": "enterprise", "funding": "balance"},
        {"name": "Acme plc", "plan": "enterprise", "funding": "invoiced"},
    ]
    assert json.loads(acts[0]["before"])["plan"] == "pro"


def test_money_of_a_customer_that_becomes_invoiced_is_warned_of(
    run: Run, database: str, loaded: dict[str, Any]
) -> None:
    changed = run("customers", "set", "acme", "--funding", "invoiced")
    assert (changed.exit_code, changed.stdout) == (0, "acme is Acme Ltd, pro, invoiced.\n")
    assert changed.stderr.startswith("Warning: the accounts of acme hold £100.00, which its orders do not use")
    assert changed.stderr.count("\n") == 1
    assert run("customers", "set", "acme", "--name", "Acme").stderr == ""
    assert run("customers", "set", "acme", "--funding", "balance").stderr == ""
    assert run("customers", "set", "globex", "--funding", "invoiced").stderr == ""


def test_what_cannot_be_made_or_changed(run: Run, database: str, loaded: dict[str, Any]) -> None:
    for arguments, said in (
        (("create", " ", *TERMS), "NAME must have 1 to 200 characters"),
        (("create", "\u200b ", *TERMS), "NAME must have 1 to 200 characters"),
        (("create", "x" * 201, *TERMS), "NAME must have 1 to 200 characters"),
        (("create", "X", *TERMS, "--key", "a/b"), "--key must not contain a slash"),
        (("create", "X", *TERMS, "--key", "k" * 101), "--key must have 1 to 100 characters"),
        (("create", "X", *TERMS, "--key", "acme"), "there is a customer 'acme' already"),
        (("create", "X", "--plan", "gold", "--funding", "balance"), "'--plan'"),
        (("create", "X", "--plan", "pro"), "Missing option '--funding'"),
        (("set", "acme"), "say what to change: --name, --plan or --funding"),
        (("set", "nobody", "--plan", "pro"), "there is no customer 'nobody'"),
        (("set", "acme", "--name", ""), "--name must have 1 to 200 characters"),
    ):
        before = run("customers", "list", "--json").stdout
        assert_refused(run("customers", *arguments), said)
        assert run("customers", "list", "--json").stdout == before


def test_the_longest_name_and_key_are_taken(run: Run, database: str, loaded: dict[str, Any]) -> None:
    made = json.loads(run(*CREATE, "n" * 200, *TERMS, "--key", "k" * 100, "--json").stdout)
    assert (len(made["name"]), len(made["key"])) == (200, 100)


PEOPLE = """
customers:
  - key: acme
    name: Acme Ltd
    plan: pro
    funding: balance
    users:
      - {email: ada@acme.example, name: Ada, role: admin}
      - {email: bob@acme.example, name: Bob, active: false}
      - {email: cem@acme.example, name: Cem}
"""


def test_new_people_of_a_seed_file_are_invited_once(
    run: Run, database: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "people.yaml").write_text(PEOPLE)
    monkeypatch.setenv("LARGESSE_SMTP_URL", "smtp://mail.example")
    assert "New people, 2, are invited by mail." in run("load", "people.yaml").stderr
    invited = (
        "SELECT u.email FROM people_mails m JOIN users u ON u.id = m.user_id WHERE m.kind = 'invitation' ORDER BY 1"
    )
    assert [row["email"] for row in sql(database, invited)] == ["ada@acme.example", "cem@acme.example"]
    assert "New people" not in run("load", "people.yaml").stderr
    assert len(sql(database, invited)) == 2
    [act] = sql(database, "SELECT after FROM audit_events WHERE act = 'world.loaded' ORDER BY id LIMIT 1")
    assert json.loads(act["after"])["invitations"] == 2


def test_without_a_mail_server_a_load_says_that_nobody_was_invited(run: Run, database: str, tmp_path: Any) -> None:
    (tmp_path / "people.yaml").write_text(PEOPLE)
    said = run("load", "people.yaml").stderr
    assert "New people, 2, are not invited, since no mail server is set: `largesse users invite` prints a link." in said
    assert sql(database, "SELECT 1 FROM people_mails") == []
