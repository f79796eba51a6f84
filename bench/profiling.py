"""Where an order's time goes: `python -m bench.profiling`, which writes bench/results/profile.json.

The serving process is sampled by py-spy under the load of orders-hot; a sample belongs to the innermost frame that is in
one of the AREAS. PostgreSQL tells by its executor statistics what each statement took; that log costs something
itself, so it is a run of its own.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

from bench import load
from bench.installation import Failed, Installation, Server, installation
from bench.suite import WARM_UP_S, say, watched
from bench.world import one_account

PATH = Path(__file__).parent / "results" / "profile.json"
SECONDS = 5
_SAMPLES_A_SECOND = 250

# By where the code lies, innermost frame first.
AREAS = {
    "asyncpg/": "the database driver",
    "largesse/db/": "the pool",
    "largesse/encryption/vault.py": "codes: drawing, encrypting, hashing",
    "largesse/lines/": "codes: drawing, encrypting, hashing",
    "largesse/orders/order.py": "the event's JSON",
    "largesse/web/kit/asgi.py": "the answer's JSON",
    "largesse/orders/": "reading, deciding and writing orders",
    "largesse/ledger/": "reading, deciding and writing orders",
    "largesse/catalogue/": "reading, deciding and writing orders",
    "largesse/base/batching.py": "batching",
    "largesse/customers/": "keys",
    "largesse/connections/": "the HTTP server",
    "largesse/": "the application: paths, headers, bodies",
    "uvicorn/": "the HTTP server",
    "asyncio/": "the event loop and its system calls",
}
_EXECUTOR_LOG = {
    "log_executor_stats": "on",
    "log_error_verbosity": "default",
    "log_min_error_statement": "log",
    "log_min_messages": "log",
}


class Statement(msgspec.Struct):
    """What one statement of the order path takes in PostgreSQL's executor."""

    text: str  # its first words
    calls_an_order: float
    us_a_call: float
    us_an_order: float


class Profile(msgspec.Struct):
    """What was found."""

    machine: dict[str, str]
    serving: dict[str, float]  # shares by area, which add up to 1
    order: dict[str, float]  # what one costs in all, unsampled
    statements: list[Statement]
    statements_alone: list[Statement]


def main() -> None:
    from bench.machine import describe_machine

    load.require_wrk()
    if shutil.which(_py_spy()) is None:
        sys.exit("bench: py-spy is not installed: `make install-dev` brings it")
    with installation(one_account(), []) as made, made.serve() as server:
        _orders(made, server, WARM_UP_S, connections=64)
        sample = watched(made, server, lambda: _orders(made, server, SECONDS, connections=64))
        serving = _sample(made, server)
    profile = Profile(
        machine=describe_machine(),
        serving=serving,
        order={"rate": sample.value, **sample.seen},
        statements=_statements(connections=64),
        statements_alone=_statements(connections=1),
    )
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_bytes(msgspec.json.format(msgspec.json.encode(profile), indent=1) + b"\n")
    for area, share in profile.serving.items():
        say(f"{share:6.1%} {area}")
    for statement in (*profile.statements, *profile.statements_alone):
        say(f"{statement.us_an_order:8.1f} µs an order, {statement.us_a_call:8.0f} a call: {statement.text}")


def read() -> Profile:
    """The profile last written."""
    return msgspec.json.decode(PATH.read_bytes(), type=Profile)


def _orders(made: Installation, server: Server, seconds: float, *, connections: int) -> load.Load:
    return load.orders(made, server, load.buyers(made), connections=connections, seconds=seconds)


def _sample(made: Installation, server: Server) -> dict[str, float]:
    """Shares of the serving process's time by area."""
    with tempfile.TemporaryDirectory() as folder:
        stacks = Path(folder, "stacks")
        command = [_py_spy(), "record", "--pid", str(server.pid), "--duration", str(SECONDS)]
        command += ["--rate", str(_SAMPLES_A_SECOND), "--format", "raw", "--full-filenames", "--output", str(stacks)]
        spy = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        _orders(made, server, SECONDS + 1, connections=64)
        _, said = spy.communicate(timeout=60)
        if spy.returncode != 0:
            raise Failed(f"py-spy: {said.decode()[-500:]}")
        counts = Counter[str]()
        for line in stacks.read_text().splitlines():
            stack, _, count = line.rpartition(" ")
            counts[_area(stack.split(";"))] += int(count)
    total = counts.total()
    return {area: count / total for area, count in counts.most_common()}


def _area(stack: list[str]) -> str:
    for frame in reversed(stack):
        for place, area in AREAS.items():
            if place in frame:
                return area
    return AREAS["asyncio/"]


def _statements(*, connections: int) -> list[Statement]:
    """What the statements of an order take, the dearest first."""
    with installation(one_account(), [], postgres_settings=_EXECUTOR_LOG) as made:
        with made.serve() as server:
            _orders(made, server, WARM_UP_S, connections=64)
            log = made.data_dir / "postgres.log"
            begins = log.stat().st_size
            found = _orders(made, server, SECONDS, connections=connections)
        entries = log.read_bytes()[begins:].decode(errors="replace")
    calls: Counter[str] = Counter()
    elapsed_us: Counter[str] = Counter()
    for text, us in _executions(entries):
        calls[text] += 1
        elapsed_us[text] += us
    return [
        Statement(text, calls[text] / found.requests, us / calls[text], us / found.requests)
        for text, us in elapsed_us.most_common(8)
        if us / found.requests >= 1
    ]


def _executions(log: str) -> Iterable[tuple[str, int]]:
    """Each statement with the microseconds its execution took."""
    us = None
    for entry in re.split(r"\n(?=\d{4}-\d\d-\d\d )", log):
        if "EXECUTOR STATISTICS" in entry:
            us = None
        elif (took := re.search(r"([\d.]+) s elapsed", entry)) and us is None:
            us = round(float(took.group(1)) * 1e6)
        elif "STATEMENT:" in entry and us is not None:
            yield _first_words(entry.split("STATEMENT:", 1)[1]), us
            us = None


def _first_words(statement: str) -> str:
    return " ".join(statement.split())[:90]


def _py_spy() -> str:
    return str(Path(sys.executable).with_name("py-spy"))


if __name__ == "__main__":
    main()
