"""The commands: what they print, how they end, and that bad input costs one line."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import pytest
from msgspec.structs import replace
from tests.cli.conftest import MASTER_KEY, WORLD, Run, assert_refused, commands_in, sql

from largesse.cli import main
from largesse.db.migrate import Upgraded, head_revision, upgrade


def _commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in commands_in(group).items():
        yield (*path, name)
        if isinstance(command, click.Group):
            yield from _commands(command, (*path, name))


@pytest.mark.parametrize("command", list(_commands(main)), ids=" ".join)
def test_every_command_explains_itself(run: Run, command: Sequence[str]) -> None:
    for flag in ("--help", "-h"):
        result = run(*command, flag)
        assert result.exit_code == 0
        assert result.output.startswith(f"Usage: largesse {' '.join(command)} ")
    _, described = result.output.split("\n\n", 1)
    assert described.strip()[0].isupper()
    assert "world" not in described  # people know seed files


def test_the_commands_are_those_of_the_design(run: Run) -> None:
    names = {" ".join(command) for command in _commands(main)}
    assert names >= {"demo", "migrate", "load", "serve", "keys create", "keys list", "keys delete", "top-up", "verify"}


def test_the_version(run: Run) -> None:
    assert run("--version").output.startswith("largesse, version ")


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("--nonsense",),
        ("load",),
        ("serve", "--port", "0"),
        ("serve", "--processes", "0"),
        ("serve", "--environment", "test"),
        ("serve", "--host", ""),  # would be every address of the machine
        ("demo", "--host", " "),
        ("worker", "--metrics-host", "", "--metrics-port", "9100"),
        ("keys", "nonsense"),
        ("keys", "create", "--customer", "acme"),
        ("keys", "delete", "0"),
        ("campaigns", "end", "acme", "2147483648"),
        ("budgets", "end", "acme", "99999999999999999999"),
        ("top-up", "gbp"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_one_line_that_names_the_help(run: Run, arguments: Sequence[str]) -> None:
    assert_refused(run(*arguments), "--help`.")


@pytest.mark.parametrize(
    "arguments",
    [
        ("migrate",),
        ("load", "world.yaml"),
        ("serve",),
        ("demo",),
        ("verify",),
        ("keys", "list"),
        ("keys", "delete", "1"),
        ("top-up", "gbp", "1"),
        ("keys", "create", "--customer=acme", "--service-account=hr-bot", "--environment=production", "--name=n"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LARGESSE_ENVIRONMENT", "testing"),
        ("LARGESSE_DATABASE_URL", "mysql://secret@localhost"),
        ("LARGESSE_MASTER_KEY", "c2VjcmV0"),
        ("LARGESSE_RATE_LIMIT", "-1"),
        ("LARGESSE_LOG_FORMAT", "secret"),
    ],
)
def test_a_malformed_setting_stops_every_command(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: Sequence[str], name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    (tmp_path / "world.yaml").write_text(WORLD)
    result = run(*on_a_free_port(arguments))
    assert_refused(result, name)
    assert value not in result.stderr
    assert not (tmp_path / "largesse-data").exists()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("arguments", [("verify",), ("serve",)], ids=" ".join)
def test_an_external_database_wants_a_master_key(
    database: str, monkeypatch: pytest.MonkeyPatch, arguments: Sequence[str]
) -> None:
    monkeypatch.delenv("LARGESSE_MASTER_KEY")
    assert "LARGESSE_MASTER_KEY must be set" in _process(*arguments)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "arguments",
    [("serve",), ("serve", "--processes", "2"), ("worker",), ("verify",), ("shipments", "export")],
    ids=" ".join,
)
def test_another_master_key_than_the_databases_is_refused(
    database: str, run: Run, monkeypatch: pytest.MonkeyPatch, arguments: Sequence[str]
) -> None:
    assert run("shipments", "export").exit_code == 0  # the first to open the vault
    monkeypatch.setenv("LARGESSE_MASTER_KEY", "7b" * 32)
    assert "LARGESSE_MASTER_KEY is not the key" in _process(*arguments)
    monkeypatch.setenv("LARGESSE_MASTER_KEY", f"{'7b' * 32},{MASTER_KEY}")
    assert run("verify").exit_code == 0


@pytest.mark.long
@pytest.mark.embedded
def test_a_lost_key_of_an_embedded_database_is_not_replaced_by_another(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LARGESSE_DATA_DIR", str(tmp_path / "data"))
    assert run("migrate").exit_code == 0
    assert run("shipments", "export").exit_code == 0
    key = tmp_path / "data" / "master-key"
    kept = key.read_text()
    key.unlink()
    assert_refused(run("verify"), "LARGESSE_MASTER_KEY", "is missing", "bring the file back")
    assert not key.exists()
    key.write_text(kept)
    assert run("verify").exit_code == 0


@pytest.mark.parametrize(
    "arguments", [("migrate",), ("verify",), ("keys", "list"), ("top-up", "gbp", "1")], ids=" ".join
)
def test_a_database_that_cannot_be_reached_is_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: Sequence[str]
) -> None:
    monkeypatch.setenv("LARGESSE_DATABASE_URL", "postgresql://user:hidden-password@127.0.0.1:1,127.0.0.1:2/largesse")
    monkeypatch.setenv("LARGESSE_MASTER_KEY", MASTER_KEY)
    result = run(*arguments)
    assert_refused(result, "the database cannot be reached: ")
    assert "hidden-password" not in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("load", "world.yaml"),
        ("serve",),
        ("verify",),
        ("keys", "list"),
        ("keys", "delete", "1"),
        ("top-up", "gbp", "1"),
    ],
    ids=" ".join,
)
def test_without_the_schema_commands_say_what_to_run(
    run: Run, database: str, tmp_path: Path, arguments: Sequence[str]
) -> None:
    sql(database, "UPDATE alembic_version SET version_num = '0000'")
    (tmp_path / "world.yaml").write_text(WORLD)
    said = _process(*arguments) if arguments == ("serve",) else run(*arguments).stderr
    assert said == "Error: the database's schema is at revision 0000: run `largesse migrate` first\n"
    sql(database, "DROP TABLE alembic_version")
    said = _process(*arguments) if arguments == ("serve",) else run(*arguments).stderr
    assert said == "Error: the database's schema is empty: run `largesse migrate` first\n"


def test_a_database_whose_roles_have_no_rights_yet_says_what_to_run(run: Run, database: str) -> None:
    """Of an earlier release, on a server where another database has made the roles; or restored without its rights."""
    sql(database, "REVOKE ALL ON alembic_version FROM largesse_app, largesse_operator, largesse_read")
    said = "database's roles have no rights on its schema: run `largesse migrate` first"
    for command in ("verify", "customers list"):
        assert_refused(run(*command.split()), said)
    assert f"The {said}" in run("check").stdout
    assert run("migrate").exit_code == 0
    assert run("verify").exit_code == 0


def test_a_schema_of_the_future_is_refused(run: Run, database: str) -> None:
    sql(database, "UPDATE alembic_version SET version_num = '9999', runs_from = '9999'")
    assert_refused(run("verify"), "9999, newer than this release")
    assert_refused(run("migrate"), "9999, newer than this release")


def test_a_schema_of_the_next_release_is_run_on(run: Run, database: str) -> None:
    """One that its migrations only expanded: a process may end, and start again, while the next release is rolled out."""
    sql(database, f"UPDATE alembic_version SET version_num = '9999', runs_from = '{head_revision()}'")
    assert run("migrate").output == "The database's schema is at revision 9999.\n"
    assert run("keys", "list").exit_code == 0


def test_migrate_says_where_it_arrived_and_may_be_repeated(run: Run, database: str) -> None:
    sql(database, "DROP SCHEMA public CASCADE")
    sql(database, "CREATE SCHEMA public")
    first, second = run("migrate"), run("migrate")
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert first.stdout == second.stdout
    assert first.stdout.startswith("The database's schema is at revision 0")


@pytest.mark.slow
def test_migrate_does_what_it_can_and_asks_an_administrator_for_the_rest(
    run: Run, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ends in failure until the roles are made, and goes on from there; without limits everything works."""
    refused = ["GRANT largesse_owner TO somebody", "ALTER ROLE largesse_app CONNECTION LIMIT 70"]

    async def upgraded(url: str) -> Upgraded:
        return replace(await upgrade(url), refused=refused)

    monkeypatch.setattr("largesse.cli.service.upgrade", upgraded)
    monkeypatch.setenv("LARGESSE_MASTER_KEY", MASTER_KEY)
    first = run("migrate")
    assert first.exit_code == 1
    assert "1. Have an administrator" in first.stderr
    assert "2. Run `largesse migrate` again" in first.stderr
    assert first.stderr.endswith("".join(f"{statement};\n" for statement in refused))
    assert sql(database, "SELECT count(*) FROM master_keys")[0][0] == 1, "the rest is done"
    refused.pop(0)
    second = run("migrate")
    assert (second.exit_code, second.stderr.endswith(f"\n\n{refused[0]};\n")) == (0, True)


@pytest.mark.parametrize("command", ["serve", "demo"])
def test_a_port_in_use_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setenv("LARGESSE_DATA_DIR", str(tmp_path / "data"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = _process(command, "--port", str(port))
    assert said == f"Error: cannot listen on 127.0.0.1:{port}: Address already in use\n"
    assert not (tmp_path / "data").exists()


@pytest.mark.long
def test_demo_leaves_external_databases_alone(run: Run, database: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    assert "LARGESSE_DATABASE_URL is set" in _process("demo", "--port", str(port))
    assert sql(database, "SELECT count(*) FROM customers")[0][0] == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("customers: [", "world.yaml:2"),
        (
            "products:\n  - {key: a, name: A, digital: true, currency: GBP, countries: [GB], denominations: [1.001]}",
            "world.yaml:2: products[0].denominations[0]",
        ),
    ],
)
def test_a_bad_seed_file_is_refused_with_its_line(
    run: Run, database: str, tmp_path: Path, content: str, said: str
) -> None:
    (tmp_path / "world.yaml").write_text(content)
    assert_refused(run("load", "world.yaml"), said)
    assert sql(database, "SELECT count(*) FROM customers")[0][0] == 0


def test_a_seed_file_that_is_not_there(run: Run, database: str, tmp_path: Path) -> None:
    assert_refused(run("load", "nowhere.yaml"), "nowhere.yaml")
    assert_refused(run("load", str(tmp_path)), "is a directory")


def test_load_prints_ids_and_the_secrets_of_new_keys(run: Run, loaded: dict[str, Any]) -> None:
    ids = loaded["ids"]
    assert loaded.keys() == {"ids", "api_keys"}
    assert ids.keys() == {"products", "collections", "templates", "funding_accounts", "customers", "service_accounts"}
    assert ids["products"].keys() == {"coffee"}
    assert ids["funding_accounts"].keys() == {"gbp", "jpy", "acme/shared", "globex/shared"}
    assert all(isinstance(number, int) for kind in ids.values() for number in kind.values())
    assert loaded["api_keys"].keys() == {"acme-prod"}
    assert loaded["api_keys"]["acme-prod"].startswith("lgs_live_")
    again = json.loads(run("load", "world.yaml", "--json").stdout)
    assert again == {"ids": ids, "api_keys": {}}


def test_load_for_people_shows_a_new_secret_once(run: Run, database: str, tmp_path: Path) -> None:
    (tmp_path / "world.yaml").write_text(WORLD)
    first, second = run("load", "world.yaml"), run("load", "world.yaml")
    assert first.stdout.count("lgs_live_") == 1
    assert "lgs_" not in second.stdout
    assert first.exit_code == second.exit_code == 0


def test_load_tells_of_a_key_that_stays_deleted(run: Run, database: str, loaded: dict[str, Any]) -> None:
    [key] = json.loads(run("keys", "list", "--json").stdout)
    run("keys", "delete", str(key["id"]))
    for options in ((), ("--json",)):
        again = run("load", "world.yaml", *options)
        assert again.exit_code == 0
        assert "lgs_" not in again.stdout
        assert again.stderr.startswith(
            "Warning: world.yaml:8: customers[0].api_keys[0].key: the API key 'acme-prod' was"
        )
    assert again.stderr == f"Warning: {json.loads(again.stdout)['warnings'][0]}\n"
    assert run("keys", "list").stdout == "There are no API keys.\n"


def test_verify_says_that_all_is_well(run: Run, loaded: dict[str, Any]) -> None:
    people, programs = run("verify"), run("verify", "--json")
    assert (people.exit_code, programs.exit_code) == (0, 0)
    assert "checks hold over 0 orders, 0 lines, 2 entries." in people.stdout
    report = json.loads(programs.stdout)
    assert (report["ok"], report["findings"]) == (True, [])


def test_verify_lists_what_disagrees_and_fails(run: Run, database: str, loaded: dict[str, Any]) -> None:
    account = loaded["ids"]["funding_accounts"]["gbp"]
    sql(database, f"UPDATE accounts SET balance_minor = balance_minor + 1 WHERE id = {account}")
    people, programs = run("verify"), run("verify", "--json")
    assert (people.exit_code, programs.exit_code) == (1, 1)
    assert "balances-follow-entries: An account stands at" in people.stdout
    report = json.loads(programs.stdout)
    assert report["ok"] is False
    found = {finding["check"]: finding["ids"] for finding in report["findings"]}
    assert found["balances-follow-entries"] == [str(account)]


def test_what_mail_cannot_be_requeued_since_is_one_line(run: Run, database: str) -> None:
    for arguments, complaint in (
        (["yesterday"], "--since must be an instant such as 2026-11-20"),
        (["0001-01-01T00:00+14:00"], "--since must be an instant"),
        (["2999-01-01"], "--since must not lie in the future"),
        (["2020-01-01", "--reason", " "], "--reason must have 1 to 500 printable characters"),
        (["2020-01-01", "--reason", 501 * "x"], "--reason must have 1 to 500 printable characters"),
        ([], "Option '--since' requires an argument."),
    ):
        done = run("mail", "requeue", "--since", *arguments)
        said = done.output
        assert (done.exit_code, said) == (2 if complaint.startswith("Option") else 1, said)
        assert complaint in said
        assert said.count("\n") == 1, said


def on_a_free_port(arguments: Sequence[str]) -> Sequence[str]:
    """A demo may run beside the tests, on the usual port."""
    if arguments[0] not in {"serve", "demo"} or "--port" in arguments:
        return arguments
    with socket.create_server(("127.0.0.1", 0)) as free:
        return (*arguments, "--port", str(free.getsockname()[1]))


def _process(*arguments: str) -> str:
    """What a command said on standard error, run as a process of its own that must fail without a traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "largesse", *on_a_free_port(arguments)],
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == (2 if done.stderr.endswith("--help`.\n") else 1)
    assert done.stdout == ""
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr
