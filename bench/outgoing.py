"""What the benchmarks of deliveries and mails share: orders waiting, somebody to receive, and a worker to time."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from bench import load, processes
from bench.installation import Failed, Installation, free_port, stop
from bench.results import Sample

_CONNECTIONS = 64
_LIMIT_S = 300.0


def place_orders(made: Installation, seconds: float) -> int:
    """Places orders for as long, with nobody delivering them; returns how many there are now."""
    with made.serve() as server:
        load.orders(made, server, load.buyers(made), connections=_CONNECTIONS, seconds=seconds)
    count: int = made.sql("SELECT count(*) FROM orders")[0][0]
    return count


@contextmanager
def served(module: str) -> Iterator[int]:
    """The port of a server of ours in a process of its own, once it listens."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", module, str(port)])
    try:
        deadline = time.monotonic() + _LIMIT_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise Failed(f"{module} does not listen") from None
                time.sleep(0.01)
        yield port
    finally:
        process.kill()
        process.wait()


def run_worker(made: Installation, settings: Mapping[str, str], table: str, first: str) -> Sample:
    """Rows of `table` that one worker finishes a second, from its first to its last; with CPU a row.

    `first` is the SQL of when the first was begun. What the worker needs to start is not counted.
    """
    began = made.sql("SELECT clock_timestamp()")[0][0]
    postgres_s = processes.cpu_s(made.postgres_pid)
    log = made.folder / "worker.log"
    with log.open("wb") as output:
        worker = subprocess.Popen(
            [sys.executable, "-m", "largesse", "worker"],
            env={**made.environment, **settings},
            stdout=output,
            stderr=output,
        )
    try:
        _wait_until_done(made, worker, table)
        worker_s = processes.cpu_s(worker.pid)
    finally:
        stop(worker)
    postgres_s = processes.cpu_s(made.postgres_pid) - postgres_s
    [row] = made.sql(
        f"""
        SELECT count(*) AS rows, extract(epoch FROM max(finished_at) - ({first}))::float8 AS took_s
        FROM {table} WHERE finished_at > $1
        """,
        began,
    )
    seen = {"worker_cpu_us": worker_s / row["rows"] * 1e6, "postgres_cpu_us": postgres_s / row["rows"] * 1e6}
    return Sample(row["rows"] / row["took_s"], seen)


def _wait_until_done(made: Installation, worker: subprocess.Popen[bytes], table: str) -> None:
    deadline = time.monotonic() + _LIMIT_S
    waiting = f"""
        SELECT EXISTS (SELECT FROM {table} WHERE state = 'pending')
            OR EXISTS (SELECT FROM events WHERE fanned_out_at IS NULL)
            OR EXISTS (SELECT FROM mail_jobs WHERE fanned_out_at IS NULL)
    """
    while made.sql(waiting)[0][0]:
        if worker.poll() is not None or time.monotonic() > deadline:
            raise Failed("the worker did not finish")
        time.sleep(0.2)
