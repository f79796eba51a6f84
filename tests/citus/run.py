"""Runs suites on a Citus cluster: `make test-citus CLUSTER=program`.

The program is not part of this project. `program start FOLDER --nodes 2` starts servers and prints JSON with `url`, the
coordinator's address, and `servers`, of which each has a `port`, the coordinator first; `program stop FOLDER` stops them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

SUITES = (
    "tests/citus",
    "tests/web/api/test_orders.py",
    "tests/web/api/test_webhooks.py",
    "tests/web/api/test_who_acted.py",
    "tests/web/claim/test_claiming.py",
    "tests/events",
    "tests/delivery/webhooks/test_queues.py",
    "tests/delivery/mail/test_sending.py::test_each_recipient_gets_one_message_with_all_their_codes",
    "tests/delivery/mail/test_sending.py::test_three_days_are_enough",
    "tests/fulfilment/test_inventory.py::test_late_gifts_expire_and_those_that_wait_for_us_do_not",
    "tests/worker/test_worker.py::test_events_and_mails_of_orders_go_out_at_once",
)
_START_LIMIT_S = 120


def main() -> None:
    """Ends with the exit code of pytest."""
    program = os.environ.get("LARGESSE_TEST_CLUSTER", "")
    if not program:
        sys.stdout.write(
            "Skipped: no cluster. CLUSTER= names a program that starts one (docs/testing.md, Citus).\n"
        )
        return
    folder = Path(tempfile.mkdtemp(prefix="largesse-citus-"))
    folder.chmod(0o755)
    try:
        started = subprocess.run(
            [program, "start", str(folder), "--nodes", "2"],
            capture_output=True,
            text=True,
            check=True,
            timeout=_START_LIMIT_S,
        )
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *(sys.argv[1:] or SUITES)],
            env={**os.environ, **_addresses(json.loads(started.stdout))},
            check=False,
        )
    finally:
        subprocess.run([program, "stop", str(folder)], check=False, timeout=_START_LIMIT_S)
        shutil.rmtree(folder)
    sys.exit(done.returncode)


def _addresses(cluster: dict[str, object]) -> dict[str, str]:
    """Where the tests find the servers: each by the address of its maintenance database."""
    url = urlsplit(str(cluster["url"]))._replace(path="/postgres")
    servers: list[dict[str, int]] = cluster["servers"]  # type: ignore[assignment]
    user = f"{url.username}@" if url.username else ""
    coordinator, *nodes = [
        url._replace(netloc=f"{user}{url.hostname}:{server['port']}").geturl() for server in servers
    ]
    return {"LARGESSE_TEST_DATABASE_URL": coordinator, "LARGESSE_TEST_NODES": " ".join(nodes)}


if __name__ == "__main__":
    main()
