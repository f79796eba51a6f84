"""Lists that have nothing to show: they say so, and an unknown customer is refused."""

import click
import pytest
from tests.cli.conftest import Run, assert_refused, commands_in

from largesse.cli import main


def _lists() -> dict[str, click.Command]:
    """The commands that list something, by what is typed."""
    groups = {name: group for name, group in commands_in(main).items() if isinstance(group, click.Group)}
    found = {f"{name} {verb}": one for name, group in groups.items() for verb, one in commands_in(group).items()}
    found |= {name: one for name, one in commands_in(main).items() if name in {"audit", "requests"}}
    ends = (" list", " rules", " orders", " costs")
    return {typed: one for typed, one in found.items() if typed.endswith(ends) or typed in {"audit", "requests"}}


LISTS = _lists()
OF_A_CUSTOMER = sorted(typed for typed, one in LISTS.items() if any(param.name == "customer" for param in one.params))


@pytest.mark.parametrize("typed", sorted(LISTS))
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
