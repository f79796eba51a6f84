"""The commands of the documentation that back up and restore, run as they stand there on servers of their own.

`sudo` and `systemctl` are programs that do on a scratch server what they would do on a machine; paths lead into a scratch folder. As root
what `postgres` does runs as that user, who may not read the files of Largesse.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.worker.test_metrics import free_port

ROOT = Path(__file__).parents[1]
BACKUPS = (ROOT / "docs/backups.md").read_text()
INSTALL = (ROOT / "docs/install.md").read_text()
PATHS = ("/var/lib/postgresql", "/var/lib/largesse", "/etc/largesse.env", "/usr/local/bin")
WORLD = """
customers:
  - key: acme
    name: Acme Ltd
    plan: pro
    funding: balance
    service_accounts: [{key: bot, name: Bot}]
    funding_accounts: [{key: gbp, name: Float, currency: GBP, environment: production, balance: 100.00}]
products: [{key: coffee, name: Coffee, digital: true, currency: GBP, countries: [GB], denominations: [10]}]
"""
SUDO = """#!/bin/bash
# sudo -u USER COMMAND…, where no password is asked for and USER is who logs in at the database
user=$2; shift 2
export PGUSER=$user
if ((EUID)) || [[ $user = largesse ]]; then exec "$@"; fi
exec setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups "$@"
"""
SYSTEMCTL = """#!/bin/bash
# On Debian, `stop postgresql` returns while the server is still ending: here it never ends.
[[ $* = *" postgresql" && $1 != stop || $* = *" postgresql@15-main" ]] || exit 0
exec sudo -u postgres pg_ctl "$1" --silent --wait --mode=fast -D @data@ -l @data@.log -o "@options@"
"""


def programs() -> Path:
    """The folder of a PostgreSQL's programs; the test is skipped where there is none, but not in CI with one."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_basebackup"), key=lambda path: int(path.parts[4]))
    if not found:
        pytest.skip("no PostgreSQL is installed here: apt install postgresql")
    return found[-1].parent


def blocks(title: str) -> list[str]:
    """The shell commands below a heading."""
    found = re.search(rf"^## {title}\n(.*?)(?=^##|\Z)", BACKUPS, re.DOTALL | re.MULTILINE)
    assert found, title
    return re.findall(r"^```sh\n(.*?)^```", found[1], re.DOTALL | re.MULTILINE)


@dataclass
class Machine:
    """A folder that stands for a machine, with a PostgreSQL server in it."""

    folder: Path
    port: int

    @classmethod
    def install(cls, folder: Path) -> Machine:
        machine = cls(folder, free_port())
        folder.chmod(0o755)
        binaries = folder / "usr/local/bin"
        binaries.mkdir(parents=True)
        largesse = folder / "largesse"
        largesse.write_text(f'#!/bin/sh\nexec {sys.executable} -m largesse "$@"\n')
        (folder / "deploy").mkdir()
        command = (ROOT / "deploy/largesse").read_text()
        command = command.replace("/opt/largesse/.venv/bin/largesse", str(largesse))
        (folder / "deploy/largesse").write_text(machine.here(command))
        data = folder / "var/lib/postgresql/15/main"
        socket = f"-p {machine.port} -c listen_addresses= -c unix_socket_directories={folder}/run -c fsync=off"
        machine._program("sudo", SUDO)
        machine._program("systemctl", SYSTEMCTL.replace("@data@", str(data)).replace("@options@", socket))
        for path in (largesse, folder / "deploy/largesse"):
            path.chmod(0o755)
        (folder / "var/lib/largesse").mkdir(parents=True, mode=0o700)
        for name in ("run", "var/lib/postgresql"):
            (folder / name).mkdir(parents=True)
            if os.geteuid() == 0:
                shutil.chown(folder / name, "postgres")
        (folder / "etc").mkdir()
        (folder / "etc/largesse.env").write_text(
            f"LARGESSE_DATABASE_URL=postgresql:///largesse?host={folder}/run&port={machine.port}\n"
            f"LARGESSE_MASTER_KEY={'5e' * 32}\n"
        )
        machine.run(
            "sudo -u postgres initdb --no-sync --auth=trust --encoding=UTF8 --locale=C -D /var/lib/postgresql/15/main "
            ">/dev/null\nsystemctl start postgresql"
        )
        return machine

    def here(self, commands: str) -> str:
        """Commands with the paths of this machine."""
        for path in PATHS:
            commands = commands.replace(path, f"{self.folder}{path}")
        commands = commands.replace("/opt/largesse/deploy", f"{self.folder}/deploy")
        commands = commands.replace("/opt/largesse/.venv/bin/largesse", f"{self.folder}/largesse")
        commands = commands.replace("host=/var/run/postgresql", f"host={self.folder}/run&port={self.port}")
        if os.geteuid() != 0:
            commands = commands.replace("-o postgres -g postgres ", "")
        return commands

    def run(self, commands: str) -> str:
        """What commands print; each must end well."""
        path = f"{self.folder}/usr/local/bin:{programs()}:{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", self.here(commands)],
            env={**os.environ, "PATH": path, "PGHOST": f"{self.folder}/run", "PGPORT": str(self.port)},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def balance(self) -> float:
        (account,) = json.loads(self.run("largesse accounts list --json"))
        return float(account["balance"])

    def _program(self, name: str, text: str) -> None:
        path = self.folder / "usr/local/bin" / name
        path.write_text(text)
        path.chmod(0o755)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that all users can enter, unlike pytest's."""
    programs()
    try:
        pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip("there is no user postgres")
    made = Path(tempfile.mkdtemp(prefix="largesse-restore-"))
    made.chmod(0o755)
    yield made
    for machine in made.iterdir():
        subprocess.run(
            [machine / "usr/local/bin/systemctl", "stop", "postgresql@15-main"],
            env={**os.environ, "PATH": f"{machine}/usr/local/bin:{programs()}:{os.environ['PATH']}"},
            cwd="/",
            check=False,
            capture_output=True,
        )
    shutil.rmtree(made)


def install(folder: Path, name: str) -> Machine:
    (folder / name).mkdir()
    return Machine.install(folder / name)


def filled(folder: Path) -> Machine:
    """A machine with a service that has money."""
    machine = install(folder, "old")
    fresh, *_ = blocks("Restore a backup")  # what makes the command and the login
    machine.run(fresh)
    machine.run(re.findall(r"^   (sudo -u postgres createdb .+)$", INSTALL, re.MULTILINE)[0])
    machine.run("largesse migrate --roles-sql | sudo -u postgres psql --quiet -1 largesse\nlargesse migrate")
    (machine.folder / "world.yaml").write_text(WORLD)
    machine.run("largesse load world.yaml")
    machine.run("seq -f N%g 1001 > numbers.csv; largesse stock import coffee numbers.csv --value 10")
    return machine


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_backup_is_restored_on_the_same_machine_and_on_a_fresh_one(folder: Path) -> None:
    old = filled(folder)
    (backup,) = blocks("Back up the database")
    fresh, stop, restore = blocks("Restore a backup")
    (afterwards,) = blocks("After a restore")
    old.run(backup)
    old.run("largesse top-up gbp 50")
    assert old.balance() == 150
    (tried,) = blocks("Test a backup")
    assert re.search(r"^All \d+ checks hold over .* 2 entries\.$", old.run(tried), re.MULTILINE)
    assert old.balance() == 150
    old.run(stop + restore)
    assert old.balance() == 100
    new = install(folder, "new")
    dump = "var/lib/largesse/largesse.dump"
    shutil.copy(old.folder / dump, new.folder / dump)
    (new.folder / dump).chmod(0o600)
    new.run(fresh + restore)
    assert new.balance() == 100
    new.run(afterwards)
    last_ids = "SELECT least(min(last_value), count(*) * 1000000) FROM pg_sequences WHERE schemaname = 'public'"
    assert '"free": 1,' in new.run(
        "largesse stock list --json"
    )  # the first 1,000 may have been given out since the backup
    assert int(new.run(f'sudo -u postgres psql -Atc "{last_ids}" largesse')) > 1_000_000
    assert json.loads(new.run("largesse verify --json"))["findings"] == []


@pytest.mark.long
@pytest.mark.timeout(300)
def test_any_moment_is_brought_back(folder: Path) -> None:
    machine = filled(folder)
    archive, base, recover = blocks("Point-in-time recovery")
    machine.run(archive)
    machine.run(base)
    machine.run("largesse top-up gbp 50")
    now = "sudo -u postgres psql -Atc 'SELECT clock_timestamp()' postgres"
    moment = machine.run(now).strip()
    time.sleep(0.01)
    machine.run("largesse top-up gbp 7")
    assert machine.balance() == 157
    sample = "2026-11-23 08:00:00+00"
    assert sample in recover
    machine.run(recover.replace(sample, moment))
    machine.run(*blocks("After a restore"))
    assert machine.balance() == 150
    assert json.loads(machine.run("largesse verify --json"))["findings"] == []
    machine.run("largesse top-up gbp 1")
    assert machine.balance() == 151
    left = "SELECT count(*) FROM pg_file_settings WHERE name ~ 'recovery_target|restore_command'"
    assert machine.run(f'sudo -u postgres psql -Atc "{left}"') == "0\n"
