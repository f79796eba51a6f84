"""Runs suites on a Citus cluster: `make test-citus CLUSTER=program` (tools/citus_cluster.py says what the program does)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from tools.citus_cluster import PROGRAM, running

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


def main() -> None:
    """Ends with the exit code of pytest."""
    if not PROGRAM:
        sys.stdout.write(
            "Skipped: no cluster. CLUSTER= names a program that starts one (docs/testing.md, Citus).\n"
        )
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # who is told to stop stops the cluster, too
    with running() as cluster:
        coordinator, *nodes = [cluster.url_of(server, "postgres") for server in cluster.servers]
        addresses = {"LARGESSE_TEST_DATABASE_URL": coordinator, "LARGESSE_TEST_NODES": " ".join(nodes)}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *(sys.argv[1:] or SUITES)],
            env={**os.environ, **addresses},
            check=False,
        )
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
