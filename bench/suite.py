"""How a benchmark is run: sides in turn, several pairs, one fresh installation each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bench import processes
from bench.installation import REFERENCE, Installation, Server, installation
from bench.load import Load
from bench.results import Goal, Pair, Sample

Side = Callable[[], Sample]
WARM_UP_S = 2.0


@dataclass
class Suite:
    """What all benchmarks of a run share."""

    pairs: int
    seconds: float
    quick: bool = False
    peaks_mib: list[float] = field(default_factory=list)
    verified: dict[str, str] = field(default_factory=dict)
    postgres: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def installation(self, name: str, world: str) -> Iterator[Installation]:
        """A fresh installation; when the block ends well, `largesse verify` must agree with what it left."""
        with installation(world, self.peaks_mib) as made:
            yield made
            self.verify(name, made)

    def verify(self, name: str, made: Installation) -> None:
        """Audits an installation now. Raises Failed."""
        began = time.monotonic()
        self.verified[name] = made.verify()
        say(f"  verify: {self.verified[name]} ({time.monotonic() - began:.0f} s)")

    def in_turn(self, product: Side, reference: Side) -> list[Pair]:
        """Pairs of runs, the product first in one and the reference first in the next."""
        pairs = []
        for number in range(self.pairs):
            if number % 2:
                second = reference()
                pairs.append(Pair(product(), second))
            else:
                pairs.append(Pair(product(), reference()))
            pair = pairs[-1]
            say(f"  {pair.product.value:,.1f} ÷ {pair.reference.value:,.1f} = {pair.ratio:.3f}")
        return pairs


def say(text: str) -> None:
    """Progress, for whoever waits."""
    print(text, flush=True)


def at_least(bound: float) -> Goal:
    return Goal(bound, at_least=True)


def at_most(bound: float) -> Goal:
    return Goal(bound, at_least=False)


def watched(
    made: Installation, server: Server | None, run: Callable[[], Load | float], *, database: str = REFERENCE
) -> Sample:
    """A run as a sample whose value is the rate, with the CPU each answer cost and what else is worth knowing.

    Where orders were placed, also how many a commit holds (those of one transaction have one instant) and how much
    log they wrote. Background work of PostgreSQL during the run counts, as it does for the reference, which has a `database` of its own.
    """
    url = made.url if server is not None else made.url_of(database)
    before = _Meter.read(made, server, url)
    began = time.monotonic()
    load = run()
    took_s = time.monotonic() - began
    after = _Meter.read(made, server, url)
    rate = load.rate if isinstance(load, Load) else load
    answers = load.requests if isinstance(load, Load) else rate * took_s
    seen = {"postgres_cpu_us": (after.postgres_cpu_s - before.postgres_cpu_s) / answers * 1e6}
    if isinstance(load, Load):
        seen |= {"p50_ms": load.p50_us / 1e3, "p99_ms": load.p99_us / 1e3}
    if server is not None:
        seen["serving_cpu_us"] = (after.serving_cpu_s - before.serving_cpu_s) / answers * 1e6
    orders, commits = made.sql(_PLACED, before.last_id, url=url)[0]
    if orders:
        seen["wal_bytes"] = (after.wal_bytes - before.wal_bytes) / orders
        seen["orders_a_commit"] = orders / commits
    return Sample(rate, seen)


# The instant of an order is that of its transaction.
_PLACED = "SELECT count(*), count(DISTINCT created_at) FROM orders WHERE id > $1"


@dataclass(frozen=True, slots=True)
class _Meter:
    postgres_cpu_s: float
    serving_cpu_s: float
    wal_bytes: int
    last_id: int

    @classmethod
    def read(cls, made: Installation, server: Server | None, url: str) -> _Meter:
        query = "SELECT (pg_current_wal_lsn() - '0/0')::bigint, (SELECT coalesce(max(id), 0) FROM orders)"
        wal_bytes, last_id = made.sql(query, url=url)[0]
        serving_s = processes.cpu_s(server.pid) if server is not None else 0.0
        return cls(processes.cpu_s(made.postgres_pid), serving_s, wal_bytes, last_id)
