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
    "tests/web/api/test_send.py",
    "tests/web/api/test_send_paying.py",
    "tests/web/api/test_webhooks.py",
    "tests/web/api/test_who_acted.py",
    "tests/web/claim/test_claiming.py",
    "tests/events",
    "tests/delivery/webhooks/test_queues.py",
    "tests/delivery/mail/test_sending.py::test_each_recipient_gets_one_message_with_all_their_codes",
    "tests/delivery/mail/test_sending.py::test_three_days_are_enough",
    "tests/fulfilment/test_inventory.py::test_late_gifts_expire_and_those_that_wait_for_us_do_not",
    "tests/sealing/test_resealing.py::test_whoever_is_killed_goes_on_where_it_was",
    "tests/sealing/test_resealing.py::test_what_no_key_opens_is_told_and_left",
    "tests/sealing/test_resealing.py::test_what_is_locked_waits_for_another_round",
    "tests/sealing/test_resealing.py::test_what_is_left_of_a_key_outlives_the_next_one_too",
    "tests/verify/test_audit.py::test_a_healthy_database_passes_every_check",
    "tests/verify/test_audit.py::test_an_empty_database_passes",
    "tests/verify/test_audit.py::test_codes_sealed_under_a_lost_master_key_are_found",
    "tests/verify/test_audit.py::test_the_audit_sees_one_snapshot_and_holds_nobody_up",
    "tests/worker/test_worker.py",
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
