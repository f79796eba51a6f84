"""Runs suites on a Citus cluster: `make test-citus CLUSTER=program` (tools/citus_cluster.py says what the program does)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence

from tools.citus_cluster import PROGRAM, running

SUITES = (
    "tests/citus",
    "tests/web/api",
    "tests/web/claim",
    "tests/isolation",
    "tests/orders",
    "tests/delivery",
    "tests/verify",
    "tests/events",
    "tests/fulfilment/test_inventory.py::test_late_gifts_expire_and_those_that_wait_for_us_do_not",
    "tests/sealing/test_resealing.py::test_whoever_is_killed_goes_on_where_it_was",
    "tests/sealing/test_resealing.py::test_what_no_key_opens_is_told_and_left",
    "tests/sealing/test_resealing.py::test_what_is_locked_waits_for_another_round",
    "tests/sealing/test_resealing.py::test_what_is_left_of_a_key_outlives_the_next_one_too",
    "tests/worker/test_worker.py",
)
# On a cluster of its own, and by itself: what is timed has nothing beside it, and what it tells is seen.
KILLED = "tests/citus/test_killed.py"


def main() -> None:
    """Ends with an exit code of pytest."""
    if not PROGRAM:
        sys.stdout.write(
            "Skipped: no cluster. CLUSTER= names a program that starts one (docs/testing.md, Citus).\n"
        )
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # who is told to stop stops the cluster, too
    with running() as cluster:
        coordinator, *nodes = [cluster.url_of(server, "postgres") for server in cluster.servers]
        addresses = {"LARGESSE_TEST_DATABASE_URL": coordinator, "LARGESSE_TEST_NODES": " ".join(nodes)}
        failed = _run(addresses, sys.argv[1:] or ["-n", "2", "--ignore", KILLED, *SUITES])
    if not sys.argv[1:]:
        failed = _run({"LARGESSE_TEST_NODES": "own"}, ["-s", KILLED]) or failed
    sys.exit(failed)


def _run(addresses: Mapping[str, str], arguments: Sequence[str]) -> int:
    """The exit code of pytest."""
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(command, env={**os.environ, **addresses}, check=False).returncode


if __name__ == "__main__":
    main()
