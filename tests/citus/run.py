"""Runs suites on a Citus cluster: `make test-citus CLUSTER=program` (tools/citus_cluster.py says what the program does)."""

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
    "tests/web/console",
    "tests/web/office",
    "tests/orders",
    "tests/lines",
    "tests/ledger",
    "tests/customers",
    "tests/webhooks",
    "tests/mail",
    "tests/jobs",
    "tests/test_housekeeping.py",
    "tests/fulfilment",
    "tests/approvals",
    "tests/automations",
    "tests/branding",
    "tests/budgets",
    "tests/drafts",
    "tests/lab",
    "tests/suppliers",
    "tests/campaigns",
    "tests/reports",
    "tests/verify",
    "tests/encryption",
    "tests/privacy",
    "tests/events",
    "tests/audit",
    "tests/db/test_policies.py",
    "tests/db/test_rights.py",
    "tests/worker/test_worker.py",
    "tests/cli/test_anchor.py",
    "tests/cli/test_lists.py",
    "tests/cli/test_accounts.py",
)
# With one part of each table, so that all customers are one shard group and statements find their node though they no longer say whose they are.
NEIGHBOURS = "tests/isolation"
# On a cluster of its own, and by itself: what is timed has nothing beside it, and what it tells is seen.
KILLED = "tests/citus/test_killed.py"


def main() -> None:
    """Ends with an exit code of pytest."""
    if not PROGRAM:
        sys.stdout.write("Skipped: no cluster. CLUSTER= names a program that starts one (docs/testing.md, Citus).\n")
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # who is told to stop stops the cluster, too
    with running() as cluster:
        coordinator, *nodes = [cluster.url_of(server, "postgres") for server in cluster.servers]
        addresses = {"LARGESSE_TEST_DATABASE_URL": coordinator, "LARGESSE_TEST_NODES": " ".join(nodes)}
        failed = _run(addresses, sys.argv[1:] or ["-n", "2", "--ignore", KILLED, *SUITES])
        if not sys.argv[1:]:
            failed = _run({**addresses, "LARGESSE_TEST_SHARDS": "1"}, ["-n", "2", NEIGHBOURS]) or failed
    if not sys.argv[1:]:
        failed = _run({"LARGESSE_TEST_NODES": "own"}, ["-s", KILLED]) or failed
    sys.exit(failed)


def _run(addresses: Mapping[str, str], arguments: Sequence[str]) -> int:
    """The exit code of pytest."""
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(command, env={**os.environ, **addresses}, check=False).returncode


if __name__ == "__main__":
    main()
