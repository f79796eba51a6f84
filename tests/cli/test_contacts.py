"""The commands about contacts and automations."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run, assert_refused, sql


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "people.csv: It is empty."),
        (b"\0" * (4 * 1024 * 1024 + 1), "people.csv: The file has more than 4,194,304 bytes."),
        (b"name\nLin\n", "people.csv: no column has e-mail addresses"),
        (None, "File 'people.csv' does not exist."),
    ],
    ids=["empty", "huge", "without addresses", "missing"],
)
def test_a_file_without_contacts_is_named(
    run: Run, loaded: dict[str, Any], tmp_path: Path, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / "people.csv").write_bytes(content)
    assert_refused(run("contacts", "import", "people.csv", "--customer", "acme"), said)


def test_of_a_file_that_is_too_large_no_more_is_read(run: Run, loaded: dict[str, Any], tmp_path: Path) -> None:
    with (tmp_path / "people.csv").open("wb") as file:
        file.truncate(2**40)  # more than the memory; it takes no space
    said = "people.csv: The file has more than 4,194,304 bytes."
    assert_refused(run("contacts", "import", "people.csv", "--customer", "acme"), said)


def test_the_order_in_dates_can_be_said(run: Run, database: str, loaded: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("email,birthday\na@example.com,12/10/1985\n")
    said = run("contacts", "import", "people.csv", "--customer", "acme").stdout
    assert "birthday: 12/10/1985 is read with the day first." in said
    said = run("contacts", "import", "people.csv", "--customer", "acme", "--dates", "month").stdout
    assert said == "Created: 0. Changed: 1.\n"
    assert sql(database, "SELECT birthday FROM contacts") == [(1210,)]


AUTOMATION = """
    INSERT INTO automations (customer_id, environment, name, user_id, occasion, template_id, zone, leap_day, weekend, asks_approval,
                             planned_through, plan_at)
    SELECT u.customer_id, 'production', 'Birthdays', u.id, 'birthday', 1, 'UTC', 'before', 'keep', false, '2030-01-01', now()
    FROM users u JOIN customers c ON c.id = u.customer_id WHERE c.key = 'acme'
"""


def test_automations_are_listed_paused_and_resumed(run: Run, database: str, loaded: dict[str, Any]) -> None:
    assert json.loads(run("automations", "list", "acme", "--json").stdout) == []
    assert run("users", "invite", "cem@acme.example", "--customer", "acme").exit_code == 0
    sql(database, AUTOMATION)
    [listed] = json.loads(run("automations", "list", "acme", "--json").stdout)
    assert (listed["name"], listed["state"], listed["occasion"]) == ("Birthdays", "running", "birthday")
    for command, said, state in (("pause", "Paused.\n", "paused"), ("resume", "It sends again.\n", "running")):
        assert run("automations", command, "acme", str(listed["id"])).stdout == said
        assert json.loads(run("automations", "list", "acme", "--json").stdout)[0]["state"] == state
    assert json.loads(run("automations", "list", "acme", "--environment", "staging", "--json").stdout) == []
    assert_refused(run("automations", "pause", "acme", "99"), "no such automation")
    assert_refused(run("automations", "list", "nobody"), "no customer 'nobody'")


def test_a_list_as_csv_comes_back_as_it_was(run: Run, loaded: dict[str, Any], tmp_path: Path) -> None:
    heading = "id,email,name,language,country,birthday,start_date,external_id,groups,is_active\n"
    row = 'c@example.com,Ada (12),fr,GB,10-12,2024-03-01,E7,"""Sales, UK""",false'
    (tmp_path / "people.csv").write_text(f"{heading}9,{row}\n")
    assert "Not read: id." in run("contacts", "import", "people.csv", "--customer", "acme").stdout
    listed = run("contacts", "list", "--customer", "acme", "--csv").stdout.splitlines()
    assert [line.partition(",")[2] for line in listed if "c@example.com" in line] == [row]
