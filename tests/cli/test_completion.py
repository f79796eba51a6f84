"""Completion of commands by the Tab key, as docs/commands.md sets it up."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("typed", "completed"),
    [("top", ["top-up", "top-ups"]), ("keys cr", ["create"]), ("serve --pr", ["--processes"]), ("keys nonsense", [])],
)
def test_bash_completes_commands(typed: str, completed: list[str]) -> None:
    """In a real bash, with the line of docs/commands.md in its start file."""
    (line,) = re.findall(r"`([^`]+)` to `~/.bashrc`", (ROOT / "docs/commands.md").read_text())
    words = f"largesse {typed}".split()
    typing = f'{line}\nCOMP_WORDS=({" ".join(words)}) COMP_CWORD={len(words) - 1}\n_largesse_completion largesse\necho "${{COMPREPLY[@]}}"'
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"}
    done = subprocess.run(["bash", "--norc", "-c", typing], env=environ, capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.stderr) == (completed, "")


@pytest.mark.parametrize(("shell", "word"), [("zsh", "1"), ("fish", "top")])
def test_other_shells_complete_commands(shell: str, word: str) -> None:
    """By what their start files run, as neither shell need be on this machine."""
    assert f"_LARGESSE_COMPLETE={shell}_source largesse" in (ROOT / "docs/commands.md").read_text()
    environ = {"_LARGESSE_COMPLETE": f"{shell}_complete", "COMP_WORDS": "largesse top", "COMP_CWORD": word}
    largesse = Path(sys.executable).with_name("largesse")
    done = subprocess.run([largesse], env={**os.environ, **environ}, capture_output=True, text=True, check=True)
    assert re.findall(r"top-ups?", done.stdout)[:2] == ["top-up", "top-ups"]
