"""What an operator sees of customers, accounts, orders and money: tables, JSON and CSV of a service in use. Empty lists say so."""

import base64
import csv
import io
import json
import signal
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from tests.cli.conftest import Run, assert_refused, commands_in
from tests.web.api.conftest import MASTER_KEY, RICH_WORLD, Service, service, start_service

from largesse.cli import main
from largesse.cli.tables import show

__all__ = ["service", "start_service"]

WORLD = RICH_WORLD
LISTS = [
    ("customers", "list"),
    ("accounts", "list"),
    ("orders", "list"),
    ("receivables", "list"),
    ("statement", "team"),
    ("unclaimed", "list"),
]


@pytest.fixture
def run(service: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Run]:
    """Runs a command on the service's installation."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LARGESSE_DATABASE_URL", service.database_url)
    monkeypatch.setenv("LARGESSE_MASTER_KEY", base64.b64encode(MASTER_KEY).decode())
    before = signal.getsignal(signal.SIGTERM)
    yield lambda *arguments: CliRunner().invoke(main, arguments, prog_name="largesse")
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="module")
def placed(service: Service) -> list[str]:
    """The references of a few orders, oldest first."""
    sends = [
        service.send(
            "gift", "coffee", account="team", value=10, codeQuantity=2, externalReference="=cmd|' /C calc'!A0"
        ),
        service.send(
            "collection",
            "treats",
            value=25,
            source="portal",
            claimBy=(datetime.now(UTC) + timedelta(days=30)).isoformat(),
        ),
        service.send("gift", "coffee", key="initech", account=None, value=25, codeQuantity=3),
        service.send("gift", "coffee", account="team", value=5, recipients=[{"email": "sam@example.com"}]),
    ]
    return [send.json()["reference"] for send in sends]


def as_json(run: Run, *arguments: str) -> list[dict[str, Any]]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("command", LISTS, ids=" ".join)
def test_every_form_tells_the_same(run: Run, placed: list[str], command: Sequence[str]) -> None:
    listed = as_json(run, *command)
    assert listed
    read = list(csv.DictReader(io.StringIO(run(*command, "--csv").stdout)))
    assert [list(row) for row in read] == [list(row) for row in listed]
    table = run(*command).stdout
    for row, cells in zip(listed, read, strict=True):
        for name, value in row.items():
            cell = cells[name]
            if isinstance(value, bool):
                assert cell == ("true" if value else "false")
            elif isinstance(value, int | float):
                assert float(cell) == value
            elif isinstance(value, str):
                assert cell.removeprefix("'") == value
                assert (value[:10] if name in {"at", "claim_by", "created_at"} else value) in table


def test_customers_with_their_accounts_and_keys(run: Run, service: Service) -> None:
    (acme,) = (row for row in as_json(run, "customers", "list") if row["key"] == "acme")
    created = acme.pop("created_at")
    assert created.endswith("+00:00")
    assert acme == {
        "id": service.ids["customers"]["acme"],
        "key": "acme",
        "name": "Acme Ltd",
        "plan": "enterprise",
        "funding": "balance",
        "service_accounts": 3,
        "api_keys": 4,
    }


def test_accounts_with_their_balances(run: Run, service: Service, placed: list[str]) -> None:
    accounts = as_json(run, "accounts", "list", "--customer", "acme")
    assert {row["customer"] for row in accounts} == {"acme"}
    (team,) = (row for row in accounts if row["key"] == "team")
    assert team["balance"] == service.balance("team") == 25.0
    assert (team["open_to_all"], team["service_accounts"]) == (False, ["hr-bot"])
    assert_refused(run("accounts", "list", "--customer", "nobody"), "there is no customer 'nobody'")


def test_the_newest_orders_come_first_and_in_pages(run: Run, placed: list[str]) -> None:
    orders = as_json(run, "orders", "list")
    assert [row["reference"] for row in orders] == placed[::-1]
    assert (orders[0]["total"], orders[0]["account"], orders[0]["delivery_mode"]) == (5.0, "team", "send")
    assert (orders[1]["total"], orders[1]["account"], orders[1]["customer"]) == (75.0, None, "initech")
    assert "sam@example.com" not in json.dumps(orders)
    first = as_json(run, "orders", "list", "--limit", "3")
    rest = as_json(run, "orders", "list", "--limit", "3", "--before", str(first[-1]["id"]))
    assert first + rest == orders
    acme = as_json(run, "orders", "list", "--customer", "acme")
    assert [row["reference"] for row in acme] == [placed[3], placed[1], placed[0]]
    assert as_json(run, "orders", "list", "--customer", "acme", "--before", str(acme[1]["id"])) == [acme[2]]


def test_a_statement_adds_up(run: Run, placed: list[str]) -> None:
    entries = as_json(run, "statement", "acme/team")
    assert [(row["kind"], row["amount"], row["balance"]) for row in entries] == [
        ("top_up", 50.0, 50.0),
        ("order", -20.0, 30.0),
        ("order", -5.0, 25.0),
    ]
    assert [row["order_reference"] for row in entries] == [None, placed[0], placed[3]]
    shown = run("statement", "team").stdout.splitlines()
    assert shown[0] == "People team (acme/team), all entries"
    assert (shown[1], shown[-1]) == ("Opening balance £0.00", "Closing balance £25.00")
    assert as_json(run, "statement", "team", "--month", "2001-01") == []
    empty = run("statement", "team", "--month", "2001-01").stdout.splitlines()
    assert empty[1:] == ["Opening balance £0.00", "No entries.", "Closing balance £0.00"]
    later = run("statement", "team", "--month", "2199-12").stdout.splitlines()
    assert later[1:] == ["Opening balance £25.00", "No entries.", "Closing balance £25.00"]


@pytest.mark.parametrize("month", ["2026", "2026-13", "2026-00", "november", "9999-12", "2026-1-1", "0001-01"])
def test_a_month_that_is_none(run: Run, service: Service, month: str) -> None:
    assert_refused(run("statement", "team", "--month", month), "--month must look like 2026-11")


def test_what_is_owed_is_paid_once(run: Run, service: Service, placed: list[str]) -> None:
    def owed() -> list[tuple[float, float, float]]:
        listed = as_json(run, "receivables", "list", "--customer", "initech")
        return [(row["ordered"], row["settled"], row["owed"]) for row in listed]

    assert owed() == [(75.0, 0.0, 75.0)]
    pay = ("receivables", "settle", "initech", "--currency", "gbp", "--reference", "bank-7")
    for _ in range(2):
        result = run(*pay, "30.50")
        assert (result.exit_code, result.stdout) == (0, "initech now owes £44.50.\n"), result.output
    assert owed() == [(75.0, 30.5, 44.5)]
    assert_refused(run(*pay, "31"), "'bank-7' already credited £30.50")
    other = (*pay[:-1], "bank-8")
    assert_refused(run(*other, "44.51"), "at most what is owed, £44.50")
    assert_refused(run(*other, "0"), "is not above zero")
    assert_refused(run(*other, "-1"), "is not above zero")
    assert_refused(run(*other, "1.001"), "AMOUNT: “1.001” can mean")
    assert_refused(run("receivables", "settle", "acme", "1", "--currency", "CHF", "--reference", "x"), "never invoiced")
    assert_refused(run("receivables", "settle", "no", "1", "--currency", "GBP", "--reference", "x"), "no customer 'no'")
    assert_refused(run("receivables", "settle", "initech", "1", "--currency", "ZZZ", "--reference", "x"), "ZZZ")
    assert run(*other, "44.50").stdout == "initech now owes £0.00.\n"
    assert run("verify").exit_code == 0


def test_orders_to_be_claimed_are_listed_by_their_date_and_no_others(run: Run, service: Service) -> None:
    def by(days: int) -> str:
        return (datetime.now(UTC) + timedelta(days=days)).isoformat()

    recipients = [{"email": "sam@example.com"}]
    reminded = service.send("gift", "coffee", value=5, recipients=recipients, claimBy=by(40), reminderDays=[1]).json()[
        "reference"
    ]
    sooner = service.send("gift", "coffee", value=5, claimBy=by(20)).json()["reference"]
    service.send("gift", "coffee", value=5, recipients=recipients, reminderDays=[2])

    listed = [row for row in as_json(run, "unclaimed", "list") if row["claim_by"] is None or row["claim_by"] < by(50)]

    mine = [row["reference"] for row in listed if row["reference"] in {reminded, sooner}]
    assert mine == [sooner, reminded]
    assert all(row["claim_by"] for row in listed)


def test_cells_with_several_values_are_no_formulas(capsys: pytest.CaptureFixture[str]) -> None:
    show("csv", ("people",), [{"people": ["=sum(a1)@acme.example", "ada@acme.example"]}], empty="")
    assert capsys.readouterr().out == "people\n'=sum(a1)@acme.example ada@acme.example\n"


def _lists() -> dict[str, click.Command]:
    """The commands that list something, by what is typed."""
    groups = {name: group for name, group in commands_in(main).items() if isinstance(group, click.Group)}
    found = {f"{name} {verb}": one for name, group in groups.items() for verb, one in commands_in(group).items()}
    found |= {name: one for name, one in commands_in(main).items() if name in {"audit", "requests"}}
    ends = (" list", " rules", " orders", " costs")
    return {typed: one for typed, one in found.items() if typed.endswith(ends) or typed in {"audit", "requests"}}


COMMANDS = _lists()
OF_A_CUSTOMER = sorted(
    typed for typed, one in COMMANDS.items() if any(param.name == "customer" for param in one.params)
)


@pytest.mark.parametrize("typed", sorted(COMMANDS))
def test_an_empty_list_says_what_there_is_none_of(run: Run, database: str, typed: str) -> None:
    arguments = typed.split()
    if typed in OF_A_CUSTOMER and typed != "audit":
        assert run("customers", "create", "Nil", "--plan", "pro", "--funding", "balance").exit_code == 0
        named = "--customer" in run(*arguments, "--help").stdout
        arguments += ["--customer", "nil"] if named else ["nil"]
    listed = run(*arguments)
    assert listed.exit_code == 0, listed.output
    assert listed.stdout.count("\n") == 1, listed.stdout
    assert "There are none." not in listed.stdout


def test_what_is_listed_without_a_customer_is_empty_too(run: Run, database: str) -> None:
    assert run("keys", "list").stdout == "There are no API keys.\n"
    assert run("top-ups", "list", "--all").stdout == "There are no top-ups.\n"


@pytest.mark.parametrize("typed", OF_A_CUSTOMER)
def test_a_list_of_an_unknown_customer_is_refused(run: Run, database: str, typed: str) -> None:
    named = "--customer" in run(*typed.split(), "--help").stdout
    for key in ("nobody", ""):  # "": a variable of a script that is not set
        arguments = ["--customer", key] if named else [key]
        assert_refused(run(*typed.split(), *arguments), f"there is no customer '{key}'")
