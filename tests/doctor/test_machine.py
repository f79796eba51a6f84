"""The data directory, and the limit of open files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from largesse.base.settings import Settings, load_settings
from largesse.doctor.checks import Level
from largesse.doctor.machine import check_data_dir, check_open_files

EXTERNAL = {"LARGESSE_DATABASE_URL": "postgresql://ada@127.0.0.1/largesse"}
LIMITED = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (256, int(sys.argv[1])))
from largesse.doctor.machine import check_open_files
from largesse.base.settings import load_settings
[found] = check_open_files(load_settings({}))
print(json.dumps([found.level, found.setting, found.text]))
"""


def embedded(folder: Path) -> Settings:
    return load_settings({"LARGESSE_DATA_DIR": str(folder)})


@pytest.mark.parametrize(
    ("mode", "level"), [(0o700, Level.OK), (0o755, Level.OK), (0o775, Level.WARNING), (0o707, Level.WARNING)]
)
def test_nobody_else_may_change_the_data_directory(tmp_path: Path, mode: int, level: Level) -> None:
    tmp_path.chmod(mode)
    [found] = check_data_dir(embedded(tmp_path))
    assert (found.level, found.setting) == (level, "LARGESSE_DATA_DIR")


def test_a_data_directory_that_is_missing_or_none(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert [f.level for f in check_data_dir(embedded(tmp_path / "new"))] == [Level.OK]
    assert [f.level for f in check_data_dir(embedded(file))] == [Level.ERROR]
    assert check_data_dir(load_settings({**EXTERNAL, "LARGESSE_DATA_DIR": str(file)})) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_data_directory_of_somebody_else(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert [f.level for f in check_data_dir(embedded(tmp_path))] == [Level.ERROR]


@pytest.mark.long
@pytest.mark.parametrize(("hard", "level"), [("512", "warning"), ("6147", "warning"), ("6148", "ok")])
def test_the_limit_of_open_files_is_enough_for_the_busiest(hard: str, level: str) -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED, hard], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found[:2] == [level, "RLIMIT_NOFILE"]
    assert ("LimitNOFILE" in found[2]) == (level == "warning")


def test_a_limit_of_connections_counts(tmp_path: Path) -> None:
    [found] = check_open_files(load_settings({"LARGESSE_MAX_CONNECTIONS": "10"}))
    assert "2,158 files" in found.text
