"""A new command of the top level is one file of its name."""

from pathlib import Path

import click
import pytest

import largesse.cli
from largesse.cli import main


def test_a_file_of_its_name_is_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gift_cards.py").write_text("import click\n\n\n@click.command()\ndef gift_cards() -> None:\n    ...\n")
    monkeypatch.setattr(largesse.cli, "__path__", [*largesse.cli.__path__, str(tmp_path)])
    commands = type(main)("largesse")

    assert "gift-cards" in commands.list_commands(click.Context(commands))
    assert isinstance(commands.get_command(click.Context(commands), "gift-cards"), click.Command)


@pytest.mark.parametrize("name", ["running", "tables", "service", "fulfilment", "key-rotation", "nothing"])
def test_other_files_are_none(name: str) -> None:
    assert main.get_command(click.Context(main), name) is None  # type: ignore[attr-defined]
