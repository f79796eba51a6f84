"""What is there for running Largesse as services: unit files that systemd takes, and settings that Largesse takes."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.cli.conftest import commands_in
from tests.test_docs import METRICS

from largesse.base.settings import load_settings
from largesse.cli import main
from largesse.db.roles import Role
from largesse.installation import OFFICE_CONNECTIONS, SERVING_CONNECTIONS
from largesse.worker import DATABASE_CONNECTIONS

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").iterdir())
SERVICES = [unit for unit in UNITS if unit.suffix == ".service"]
ALERTS = DEPLOY / "prometheus" / "largesse.yml"
MOST_EXPOSED = 2.0  # of 10, by `systemd-analyze security`

services = pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.stem)


@pytest.fixture
def analyze(tmp_path: Path) -> Path:
    """The units in a folder, as if this checkout were in /opt/largesse."""
    if shutil.which("systemd-analyze") is None and not os.environ.get("CI"):
        pytest.skip("systemd-analyze is not installed here: apt install systemd")
    for unit in UNITS:
        (tmp_path / unit.name).write_text(unit.read_text().replace("/opt/largesse", str(ROOT)))
    return tmp_path


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_systemd_finds_nothing_wrong_with_the_units(analyze: Path) -> None:
    assert run("systemd-analyze", "verify", *sorted(analyze.iterdir())) == ""


def test_systemd_finds_what_is_wrong(analyze: Path) -> None:
    broken = analyze / SERVICES[0].name
    broken.write_text(broken.read_text().replace("Restart=always", "Restart=sometimes"))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(broken)], capture_output=True, text=True, timeout=60, check=False
    )
    assert "sometimes" in done.stderr


@services
def test_a_service_may_do_little(analyze: Path, unit: Path) -> None:
    said = run("systemd-analyze", "security", "--offline=true", "--no-pager", analyze / unit.name)
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", said)
    assert found, said
    assert float(found[1]) <= MOST_EXPOSED


@services
def test_a_service_runs_a_command_that_exists(unit: Path) -> None:
    (line,) = re.findall(r"^ExecStart=/opt/largesse/\.venv/bin/largesse (.+)$", unit.read_text(), re.MULTILINE)
    name, *arguments = line.replace("%i", "1").split()
    command = commands_in(main)[name]
    command.make_context(name, arguments)  # raises for an option that it does not have


@services
def test_a_service_with_metrics_sees_those_of_its_process(unit: Path) -> None:
    """Without /proc/stat the library gives none of them, and LargesseOpenFiles never fires."""
    assert not {"--metrics-port", "ProcSubset=pid"} <= set(unit.read_text().split())


@services
def test_metrics_leave_a_port_to_node_exporter(unit: Path) -> None:
    """An alert needs node_exporter, which listens on 9100. A service that finds its port taken does not start."""
    assert "9100" not in unit.read_text()


def test_uninstalling_ends_every_unit_and_drops_every_role() -> None:
    said = (ROOT / "docs/install.md").read_text().partition("## Uninstall")[2]
    (ended,) = re.findall(r"^systemctl disable --now (.+)$", said, re.MULTILINE)
    units = {unit.name for unit in UNITS if "@" not in unit.name} - {"largesse-verify.service"}  # its timer starts it
    assert {name if "." in name else f"{name}.service" for name in ended.split()} == units
    (roles,) = re.findall(r"^for role in (.+); do$", said, re.MULTILINE)
    assert set(roles.split()) == {"largesse", *Role}


def test_prometheus_takes_the_alerts() -> None:
    if shutil.which("promtool") is None and not os.environ.get("CI"):
        pytest.skip("promtool is not installed here: apt install prometheus")
    assert "SUCCESS" in run("promtool", "check", "rules", ALERTS)


def test_alerts_watch_metrics_that_exist() -> None:
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    known = {re.sub(r"_total$", "", name) for name in METRICS}
    for rule in rules:
        named = re.findall(r"largesse_\w+", rule["expr"])
        assert named or re.search(r"\b(up|process_\w+|node_systemd_unit_state)\{", rule["expr"]), rule
        assert {re.sub(r"_(total|bucket)$", "", name) for name in named} <= known, rule
        assert rule["labels"]["severity"] in {"page", "ticket"}
        shown = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        if by := re.search(r"\bby \(([^)]*)\)", rule["expr"]):  # else all labels are kept
            assert shown <= set(by[1].split(", ")), rule


def test_every_alert_leads_to_what_to_do() -> None:
    page = ROOT / "docs/alerts.md"
    sections = re.split(r"^## ", page.read_text(), flags=re.MULTILINE)[1:]
    for rule, told in zip(yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"], sections, strict=True):
        alert = rule["alert"]
        assert re.findall(r"^(\w+)\n|^- \*\*(.+?)\*\*: \S", told, re.MULTILINE) == [
            (alert, ""), ("", "Means"), ("", "Look at"), ("", "Do"),
        ]  # fmt: skip
        assert rule["annotations"]["runbook_url"] == f"file:///opt/largesse/docs/alerts.md#{alert.lower()}"


def test_the_sample_scrapes_what_the_units_serve() -> None:
    said = (ROOT / "docs/metrics.md").read_text()
    for unit in SERVICES:
        if found := re.search(r"--metrics-port (\d+)", unit.read_text().replace("%i", "1")):
            processes = re.search(r"--processes (\d+)", unit.read_text())
            for number in range(int(processes[1]) if processes else 1):
                assert f"127.0.0.1:{int(found[1]) + number}" in said


@services
def test_a_drain_is_waited_for(unit: Path) -> None:
    text = unit.read_text()
    if "Type=oneshot" not in text:
        (wait,) = re.findall(r"^TimeoutStopSec=(\d+)$", text, re.MULTILINE)
        assert int(wait) > 30  # what serving processes and workers take at most


def test_the_sample_settings_are_settings() -> None:
    """As systemd and the command read them: a line that is no comment sets a variable to all that follows."""
    lines = (DEPLOY / "largesse.env").read_text().splitlines()
    assignment = re.compile(r"#?(LARGESSE_[A-Z_]+)=([^\s\"'$]*)")
    environ = dict(found.groups() for line in lines if (found := assignment.fullmatch(line)))
    assert {"LARGESSE_MASTER_KEY", "LARGESSE_SMTP_URL", "LARGESSE_DATABASE_URL"} <= environ.keys()
    settings = load_settings(environ)
    assert settings.public_url.startswith("https://")
    assert settings.smtp_url is not None
    active = [line for line in lines if line and not line.startswith("#")]
    assert all(assignment.fullmatch(line) for line in active)


def test_the_command_reads_the_settings_as_systemd_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`deploy/largesse` without sudo, on an environment file with blanks and, in its last line without an end, a value that a shell would take apart."""
    script = (DEPLOY / "largesse").read_text()
    assert script.count("sudo -u largesse ") == 1
    (tmp_path / "env").write_text(
        "# a comment\n; another\n\n  # indented\n LARGESSE_MAIL_FROM=Gifts & more <gifts@example.com>\nLARGESSE_X=$HOME;`id`"
    )
    shell = (
        script.replace("sudo -u largesse ", "")
        .replace("/etc/largesse.env", str(tmp_path / "env"))
        .replace("/opt/largesse/.venv/bin/largesse", '"$PROGRAM"')
    )
    (tmp_path / "largesse").write_text(shell)
    monkeypatch.setenv("PROGRAM", "printenv")
    said = run("sh", tmp_path / "largesse", "LARGESSE_MAIL_FROM", "LARGESSE_X")
    assert said == "Gifts & more <gifts@example.com>\n$HOME;`id`\n"
    # A relative path is meant from where one is.
    (tmp_path / "here").mkdir()
    (tmp_path / "here/world.yaml").write_text("customers: []")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("PROGRAM", "cat")
    assert run("sh", tmp_path / "largesse", "world.yaml") == "customers: []"


def test_connections_are_counted_as_they_are_opened() -> None:
    said = (ROOT / "docs/deploy.md").read_text().replace("\n", " ")
    serving = SERVING_CONNECTIONS + OFFICE_CONNECTIONS
    assert f"opens at most {serving} connections, of which {OFFICE_CONNECTIONS} are for the" in said
    assert (
        f"a worker {DATABASE_CONNECTIONS} (a serving process with `--with-worker` {serving + DATABASE_CONNECTIONS})"
        in said
    )


def test_what_keeps_an_address_open_is_stopped_with_its_service() -> None:
    """A socket that is left alone starts its service again at the next connection."""
    sockets = {unit.stem for unit in UNITS if unit.suffix == ".socket"}
    said = "".join((ROOT / f"docs/{page}.md").read_text() for page in ("install", "deploy", "backups"))
    for line in re.findall(r"systemctl stop ([^`\n]+)", said):
        units = set(line.split())
        assert {f"{name}.socket" for name in sockets & units} <= units, line
    for name in sockets:
        service = (DEPLOY / "systemd" / f"{name}.service").read_text()
        assert "Type=notify\n" in service  # a restart is over when the next process answers
        assert f"Requires={name}.socket\n" in service
        assert re.search(rf"^After=.*\b{name}\.socket$", service, re.MULTILINE)
