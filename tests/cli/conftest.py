"""A command run in this process, on an installation with a small world."""

import asyncio
import json
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import asyncpg
import click
import pytest
from click.testing import CliRunner, Result
from tests.closing import closing
from tests.conftest import Template

from largesse.cli import main

MASTER_KEY = "7a" * 32
WORLD = """
customers:
  - key: acme
    name: Acme Ltd
    plan: pro
    funding: balance
    service_accounts: [{key: hr-bot, name: HR bot}]
    api_keys: [{key: acme-prod, service_account: hr-bot, environment: production}]
    funding_accounts:
      - {key: gbp, name: Acme float, master: true, currency: GBP, environment: production, balance: 100.00}
      - {key: shared, name: Acme shared, currency: GBP, environment: production}
      - {key: jpy, name: Acme yen, currency: JPY, environment: production}
    templates: [{key: welcome, name: Welcome, product: coffee, value: 10, country: GB}]
  - key: globex
    name: Globex
    plan: pro
    funding: balance
    service_accounts: [{key: rewards, name: Rewards}]
    funding_accounts: [{key: shared, name: Globex shared, currency: GBP, environment: production}]
products:
  - {key: coffee, name: Coffee, digital: true, currency: GBP, countries: [GB], denominations: [5, 10]}
collections:
  - {key: treats, name: Treats, country: GB, currency: GBP, value_points: [10], products: [coffee]}
"""

Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Run]:
    """Runs a command in this process, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    before = signal.getsignal(signal.SIGTERM)

    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(main, arguments, prog_name="largesse")

    yield invoke
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def installation(
    request: pytest.FixtureRequest, template: Template, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[tuple[str, str]]:
    """A migrated installation on an external database: its address, and what `load --json` printed if the test asks for `loaded`."""
    monkeypatch.setenv("LARGESSE_MASTER_KEY", MASTER_KEY)

    def load(url: str) -> str:
        monkeypatch.setenv("LARGESSE_DATABASE_URL", url)
        result = request.getfixturevalue("run")("load", "world.yaml", "--json")
        assert result.exit_code == 0, result.output
        return str(result.stdout)

    with ExitStack() as stack:
        if "loaded" in request.fixturenames:
            (tmp_path / "world.yaml").write_text(WORLD)
            url, printed = stack.enter_context(template.filled(f"# By the command.{WORLD}", load))
        else:
            url, printed = stack.enter_context(template.clone()), "{}"
        monkeypatch.setenv("LARGESSE_DATABASE_URL", url)
        yield url, printed


@pytest.fixture
def database(installation: tuple[str, str]) -> str:
    """The address of that installation's database, which is empty without `loaded`."""
    return installation[0]


@pytest.fixture
def loaded(installation: tuple[str, str], run: Run) -> Any:
    """That installation with the world in it; what `load --json` printed."""
    return json.loads(installation[1])


def commands_in(group: click.Group) -> dict[str, click.Command]:
    """The commands of a group by name, those too that are only loaded when they are asked for."""
    context = click.Context(group)
    found = {name: group.get_command(context, name) for name in group.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


def sql(url: str, statement: str, *values: Any) -> list[asyncpg.Record]:
    async def fetch() -> list[asyncpg.Record]:
        async with closing(asyncpg.connect(url)) as connection:
            return await connection.fetch(statement, *values)

    return asyncio.run(fetch())


def assert_refused(result: Result, *said: str) -> None:
    """One line on standard error, nothing on standard output, a failure, no traceback."""
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == (2 if result.stderr.endswith("--help`.\n") else 1)  # 2: a usage nobody meant
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1, result.stderr
    for part in said:
        assert part in result.stderr
