"""`export`: the seed file of a database, with its pictures."""

import os
import shutil
from importlib import resources
from pathlib import Path

from tests.cli.conftest import Run, assert_refused, sql


def test_the_demo_is_exported_with_its_pictures(run: Run, database: str, tmp_path: Path) -> None:
    shutil.copytree(str(resources.files("largesse.seed").joinpath("pictures")), tmp_path / "pictures")
    shutil.copy(str(resources.files("largesse.seed").joinpath("demo.yaml")), tmp_path / "demo.yaml")
    assert run("load", "demo.yaml").exit_code == 0

    said = run("export", "--output", "out/../new.yaml")
    assert said.exit_code == 1
    assert "No such file or directory" in said.stderr
    (tmp_path / "out").mkdir()
    assert "pictures beside it" in run("export", "--output", "out/new.yaml").stderr

    assert run("load", "out/new.yaml").exit_code == 0
    again = run("export")
    assert again.stdout == (tmp_path / "out" / "new.yaml").read_text()
    assert "pictures are not written: use --output" in again.stderr
    acts = sql(database, "SELECT act FROM audit_events WHERE act = 'world.exported'")
    assert len(acts) == 2


def test_a_device_and_a_link_are_not_replaced(run: Run, database: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert_refused(run("export", "--output", "pipe"), "pipe is not a regular file")
    assert (tmp_path / "pipe").is_fifo()
    (tmp_path / "kept").mkdir()
    (tmp_path / "seed.yaml").symlink_to("kept/seed.yaml")
    assert run("export", "--output", "seed.yaml").exit_code == 0
    assert (tmp_path / "seed.yaml").is_symlink()
    assert (tmp_path / "kept" / "seed.yaml").read_text() == run("export").stdout
