"""A year of 300 contacts by the test clock, while the processes that plan and place are killed again and again: each gift once, within the cap."""

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from tests.automations.conftest import add_contact, move_to, perform, placed, rule, runs
from tests.web.api.conftest import Service, ServiceFactory

from largesse.automations.service import create_automation, skip_day

YEAR = 2048
MONTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 28)
CONTACTS = 300
CAP = 24  # gifts in a month: fewer than there are in most
PATIENCE_S = 120.0


class Processes:
    """A serving process and a worker, killed at random moments and started again."""

    def __init__(self, service: Service, folder: Path) -> None:
        self._environ = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "LARGESSE_DATABASE_URL": service.database_url,
            "LARGESSE_MASTER_KEY": service.settings.master_keys[0].hex(),
            "LARGESSE_ENVIRONMENT": "staging",
        }
        self._folder = folder
        self._chance = random.Random(YEAR)
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self.kills = 0

    def start(self, command: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = str(probe.getsockname()[1])
        arguments = ["--port", port] if command == "serve" else []
        with (self._folder / f"{command}.log").open("ab") as log:
            self._running[command] = subprocess.Popen(
                [sys.executable, "-m", "largesse", command, *arguments],
                env=self._environ,
                cwd=self._folder,
                stdout=log,
                stderr=log,
            )

    def disturb(self) -> None:
        """Lets them work for a moment, and kills one."""
        time.sleep(self._chance.uniform(0.4, 2.5))
        command = self._chance.choice(("serve", "serve", "worker"))
        self.stop(command)
        self.kills += 1
        self.start(command)

    def stop(self, command: str) -> None:
        process = self._running.pop(command)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def end(self) -> None:
        for command in list(self._running):
            self.stop(command)


def birthdays() -> dict[str, int]:
    """Days of birth, one of them 29 February, by name."""
    chance = random.Random(1)
    days = {f"P{number}": chance.randint(1, 12) * 100 + chance.randint(1, 28) for number in range(CONTACTS - 1)}
    return {**days, "Leap": 229}


def decided(skipped: str) -> dict[tuple[str, date], str]:
    """How each gift of the year through 28 December ends: the first of a month get theirs, and one that a person skips counts for nothing."""
    days = [(date(YEAR, day // 100, day % 100), name) for name, day in birthdays().items()]
    used: Counter[int] = Counter()
    states = {}
    for day, name in sorted(days, key=lambda one: one[0]):  # contacts of a day in the order in which they were added
        is_sent = name != skipped and used[day.month] < CAP
        used[day.month] += is_sent
        states[name, day] = "placed" if is_sent else "skipped"
    return {key: state for key, state in states.items() if key[1] <= date(YEAR, 12, 28)}


@pytest.mark.long
@pytest.mark.timeout(900)
def test_kills_change_nothing(service: Service, start_service: ServiceFactory, tmp_path: Path) -> None:
    staging = start_service(like=service, environment="staging")
    move_to(service, f"{YEAR - 1}-12-31 12:00Z")
    added = {name: add_contact(service, name, "staging", birthday=birthday) for name, birthday in birthdays().items()}
    add_contact(service, "Left", "staging", birthday=615, left_at=datetime(YEAR - 1, 1, 1, tzinfo=UTC))
    own = rule(service, account_id=service.ids["funding_accounts"]["test-gbp"], cap=CAP)
    automation = perform(service, create_automation, own, environment="staging")
    day = date(YEAR, *divmod(birthdays()["P7"], 100))
    perform(service, skip_day, automation, added["P7"], day, skipped=True, environment="staging")
    processes = Processes(service, tmp_path)
    processes.start("serve")
    processes.start("worker")
    try:
        for days in MONTHS:
            staging.client("hr-test").post("/test/clock", json={"advanceSeconds": days * 86_400}).raise_for_status()
            ends_s = time.monotonic() + PATIENCE_S
            while due(service):
                assert time.monotonic() < ends_s, "something stays undone"
                processes.disturb()
                # What a killed process had taken is looked at again.
                service.sql("UPDATE clock SET ahead_by = ahead_by + interval '2 minutes'")
    finally:
        processes.end()
    expected = decided(skipped="P7")
    assert {(name, day): state for name, day, state in runs(service) if day <= date(YEAR, 12, 28)} == expected
    orders = [reference for _, reference in placed(service, YEAR)]
    assert Counter(orders).most_common(1)[0][1] == 1
    assert len(orders) >= Counter(expected.values())["placed"]
    assert processes.kills >= len(MONTHS)
    service.sql("DELETE FROM automations")
    assert service.findings() == []
    print(len(orders), "gifts,", processes.kills, "kills")  # noqa: T201 - for the report


def due(service: Service) -> int:
    """Gifts that are due and not decided."""
    return int(
        service.sql(
            "SELECT count(*) FROM automation_runs WHERE state IN ('waiting', 'placing') AND due_at <= clock_now()"
        )[0][0]
    )
