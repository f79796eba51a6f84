"""`largesse demo`, as somebody meets it: started, tried with what it prints, ended, started again."""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from largesse.demo.office import AUTOMATIC, CAMPAIGNS
from largesse.demo.plan import INVOICED, sendings

pytestmark = pytest.mark.embedded

Answer = tuple[int, bytes]


@contextmanager
def demo(
    folder: Path,
    ending: signal.Signals,
    host: str = "127.0.0.1",
    program: Sequence[str] = (sys.executable, "-m", "largesse"),
    options: Sequence[str] = ("--no-history",),
    **environ: str,
) -> Iterator[str]:
    """The text it welcomes with, while it serves; then it must end well."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    log = folder / "demo.log"  # a pipe that nobody reads could fill and hold it up
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [*program, "demo", *options, "--host", host, "--port", str(port)],
            cwd=folder,
            env={**os.environ, **environ},
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    try:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "Ctrl-C" in line:
                break
        assert "Ctrl-C" in "".join(lines), log.read_text()
        yield "".join(lines)
        process.send_signal(ending)
        process.communicate(timeout=60)
        assert process.returncode == 0
        assert log.read_text() == ""
    finally:
        process.kill()
        process.communicate()


def ask(url: str, headers: dict[str, str], body: str | None = None) -> Answer:
    request = urllib.request.Request(url, body and body.encode(), headers)  # noqa: S310 - our own
    try:
        with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310 - our own
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def paste(command: str) -> dict[str, Any]:
    """The answer to one of the curl lines, which must be 200."""
    words = shlex.split(command.replace("\\\n", ""))  # as a shell joins lines
    assert words[0] == "curl"
    values = list(zip(words[2::2], words[3::2], strict=True))
    headers = dict(value.split(": ", 1) for option, value in values if option == "-H")
    (body,) = (value for option, value in values if option == "-d")
    status, answer = ask(words[1], headers, body)
    assert status == 200, answer
    return json.loads(answer)


def key_in(welcome: str, prefix: str = "lgs_live_") -> dict[str, str]:
    (key,) = set(re.findall(rf"{prefix}\w+", welcome))
    return {"Authorization": f"Bearer {key}"}


@pytest.mark.timeout(240)  # four starts
def test_what_it_prints_works_and_a_second_start_goes_on(tmp_path: Path) -> None:
    """At last it takes its own installation for another's, tried out in the same folder.

    It would change that one's customers, stop its clock and catch its mail.
    """

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "largesse", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)

    assert run("migrate").returncode == 0  # an empty one is welcome
    with demo(tmp_path, signal.SIGINT) as welcome:
        commands = re.findall(r"^curl .*?\n(?=\n)", welcome, re.DOTALL | re.MULTILINE)
        sent, batch = (paste(command) for command in commands)
        assert (sent["deliveryMode"], sent["recipientCount"], sent["totalCost"]) == ("send", 2, 20.0)
        assert (batch["deliveryMode"], len(batch["codes"])) == ("manual", 3)
        addresses = re.findall(r"^  \w+ +(http\S+)$", welcome, re.MULTILINE)
        assert len(addresses) >= 3
        for address in [*addresses, batch["codes"][0]["redemptionUrl"]]:
            assert ask(address, {})[0] == 200, address
        api, first_key = addresses[0], key_in(welcome)
        assert ask(f"{api}/demo/webhook", {}, "{}")[0] == 204
        in_test_mode(welcome)
        assert ask(f"{api}/me", first_key)[0] == 200
        assert b'href="/mailbox"' in ask(api, {})[1]
    key_file = tmp_path / "largesse-data" / "demo-key-production"
    assert key_file.stat().st_mode & 0o777 == 0o600
    with demo(tmp_path, signal.SIGTERM) as welcome:
        api, _ = re.findall(r"^  API +(\S+)$", welcome, re.MULTILINE)
        assert key_in(welcome) == first_key
        status, orders = ask(f"{api}/orders", key_in(welcome))
        assert status == 200
        assert {order["reference"] for order in json.loads(orders)} == {sent["reference"], batch["reference"]}
    key_file.unlink()
    with demo(tmp_path, signal.SIGTERM, host="127.0.0.2") as welcome:
        api, _ = re.findall(r"^  API +(http://127\.0\.0\.2:\d+)$", welcome, re.MULTILINE)
        assert ask(f"{api}/me", first_key)[0] == 401
        assert ask(f"{api}/me", key_in(welcome))[0] == 200
    for mark in (tmp_path / "largesse-data").glob("demo*"):
        mark.unlink()
    before = run("audit", "--json").stdout
    assert "customer" in before
    refused = run("demo", "--port", "1")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == (
        f"Error: {tmp_path / 'largesse-data'} holds customers that are not the demo's: name another folder with LARGESSE_DATA_DIR\n"
    )
    assert run("audit", "--json").stdout == before


def in_test_mode(welcome: str) -> None:
    """The second API and key, which send gifts that are worth nothing; their links and mail are there, too."""
    live, test = re.findall(r"^  API +(\S+)$", welcome, re.MULTILINE)
    key = key_in(welcome, "lgs_test_")
    assert ask(f"{live}/me", key)[0] == 401
    status, me = ask(f"{test}/me", key)
    assert (status, json.loads(me)["environment"]) == (200, "staging")
    accounts = json.loads(ask(f"{test}/funding-accounts", key)[1])
    account = next(one["id"] for one in accounts if one["currency"] == "GBP")
    body = json.dumps({"productId": 1, "value": 10, "accountId": account, "codeQuantity": 1})
    status, sent = ask(f"{test}/send/gift", key | {"Content-Type": "application/json"}, body)
    assert status == 200
    link = json.loads(sent)["codes"][0]["redemptionUrl"]
    assert link.startswith(test)
    assert ask(link, {})[0] == 200


@pytest.mark.timeout(240)  # more than half a minute on a machine that has nothing else to do
@pytest.mark.slow
def test_its_history_is_what_the_service_would_have_made(tmp_path: Path) -> None:
    with demo(tmp_path, signal.SIGTERM, options=()) as welcome:
        api, _ = re.findall(r"^  API +(\S+)$", welcome, re.MULTILINE)
        assert "Making three months of orders" in welcome
        status, answer = ask(f"{api}/orders", key_in(welcome))
        orders = json.loads(answer)
        assert (status, len(orders)) == (200, 10)
        verified = subprocess.run(
            [sys.executable, "-m", "largesse", "verify"], check=False, cwd=tmp_path, capture_output=True, text=True
        )
        assert verified.returncode == 0, verified.stdout + verified.stderr
        assert f"{len(sendings()) + AUTOMATIC + CAMPAIGNS + len([INVOICED])} orders" in verified.stdout
    with demo(tmp_path, signal.SIGTERM, options=()) as welcome:
        assert "Making three months" not in welcome
        (again, _) = re.findall(r"^  API +(\S+)$", welcome, re.MULTILINE)
        assert len(json.loads(ask(f"{again}/orders", key_in(welcome))[1])) == 10
        assert "the history" not in welcome
    (tmp_path / "largesse-data" / "demo-history-unfinished").touch()
    with demo(tmp_path, signal.SIGTERM, options=()) as welcome:
        assert "The last start ended before the history was made." in welcome


@pytest.mark.long
def test_a_staging_demo_has_a_staging_key_and_account(tmp_path: Path) -> None:
    with demo(tmp_path, signal.SIGTERM, LARGESSE_ENVIRONMENT="staging") as welcome:
        assert "lgs_live_" not in welcome
        assert (
            ask(re.findall(r"^  API +(\S+)$", welcome, re.MULTILINE)[0] + "/me", key_in(welcome, "lgs_test_"))[0] == 200
        )
        for command in re.findall(r"^curl .*?\n(?=\n)", welcome, re.DOTALL | re.MULTILINE):
            paste(command)
