"""Writes docs/performance.md from the files in bench/results: `make performance-doc`.

Every number of the document comes from there. The prose about each benchmark is its module's docstring. On a machine with
nothing else to do, these measure everything anew:

    make bench BENCH_ARGS='--json bench/results/benchmarks.json'
    .venv/bin/python -m bench.profiling
    .venv/bin/python -m bench.experiments
    make performance-doc
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

from bench import experiments, profiling, results
from bench.benchmarks import NAMES
from bench.results import Results, Row, figure

RESULTS = Path(__file__).parent / "results" / "benchmarks.json"
DOCUMENT = Path(__file__).parent.parent / "docs" / "performance.md"

_TOP = """\
# Performance

How fast Largesse is, against what, and where its time goes. This page is generated (`make performance-doc`) from what
`make bench` measured; no number in it was typed. Every benchmark divides the product by a *reference* that does the same work in
another way, run in turn with it on the same machine: ratios travel better than orders a second do.

```sh
make bench                    # all, some 20 minutes; needs wrk
make bench-orders-hot         # one
make bench BENCH_ARGS=--quick # one short pair of each: does it run here?
```

Each starts in a fresh data directory, on the embedded PostgreSQL with the settings it always has: `fsync`, `full_page_writes` and
`synchronous_commit` are on, or the benchmark refuses to run. Afterwards `largesse verify` must find nothing wrong. The load
generator, the service and PostgreSQL share the machine's cores.
"""

_QUIET_PERCENT = 10
_BUSY = (
    "**The machine had other work to do when this was measured** (see below how busy it was): ratios are rough, and figures that are no ratios "
    "say little."
)

_PROFILE = """\
## Where an order's time goes

Of the serving process, sampled by py-spy under the load of orders-hot (`python -m bench.profiling`). A sample counts for the innermost
frame that lies in one of these places.
"""

_ORDER = """\
An order cost {serving_cpu_us} µs of the serving process and {postgres_cpu_us} µs of PostgreSQL's, at {rate} orders a second and
{orders_a_commit} orders a commit."""

_STATEMENTS = """\
Of PostgreSQL: what its executor says each statement took, per order. In a batch most of a statement's cost is shared; alone, an
order pays for all of it. Parsing and planning happen once a connection. COMMIT is not a statement with a plan and is missing: it is the
wait for the disk, once a batch.
"""

_EXPERIMENTS = """\
## What was tried

Each line is an installation that differs from the product in one thing, against one that does not, under the load of orders-hot and in
turn (`python -m bench.experiments`). Below 1: the product is faster as it is. The runs are few and short:
what differs by less than the span of its ratios, or by a tenth, is no difference.
"""

_WAYS = """\
Ways to write the lines of a batch, one statement on one connection, client and server together:
"""

_BY_HAND = """\
Found on the way, by the profiles and `EXPLAIN (ANALYZE, BUFFERS)`:

- **An index that fits too many queries.** The newest orders of a customer were indexed by customer, environment and id. Before the first ANALYZE
  the planner looked single references up in it, reading all orders of the customer, so that each order made the next one slower; and
  where most orders are of one customer it found another's few by walking the primary key down through them all. The index is of expressions
  now: the one list that is meant for it is planned by it, and nothing else. Two tests count the rows that are read.
- **Compressed pages in the log.** After a checkpoint the first change of a page writes it whole to the log. In a large database these are
  mostly pages of the index of codes' look-up numbers, which are hashes: pglz spent more time on them than the order itself takes, and made
  them no smaller. The embedded server compresses nothing now.
- **Lists asked for at once.** `GET /orders` was one query for each caller. Callers who wait at the same time are now answered by one query,
  and equal questions by one answer.
- **Lines by arrays of columns.** COPY inserts many rows of a page at once and takes a quarter less, as shown above. Lines went by it until
  row-level security came, which refuses it to whom it holds.
- **Segments of the log.** With 64 connections the slowest hundredth of orders took several times the middle one. Sampled wait events showed
  commits waiting for one that was making the log's next segment, zeros to the disk included. The embedded server's segments are the smallest
  there are now, and the waits as short as they can be.
- **Turns of the event loop.** A request needs some ten of them, so that beside a large order, which works in pieces, what counts is ten times the
  longest piece. Pieces of a tenth of a millisecond cost the large order nothing that shows, and took most of the wait from the small ones.
- **A large order at once.** Its codes were sealed, then written, then made into the answer. The three go on at the same time now, since
  the writing is the database's work.
- **Plans.** PostgreSQL planned the reading of what a batch is decided on anew each time, since it believed that a plan for just so many orders
  would be better. The transaction says otherwise.
- **HMAC.** The standard library's object took twice as long as the two SHA-256 it stands for, for every code.
- **A code's text.** Writing 80 bits as 17 characters took as long as sealing them; it goes by pairs of characters now.
"""

# Why a goal that is not met is not met, by row. Kept even while it is met: machines differ.
WHY: dict[str, str] = {
    "orders-hot, batched": "orders of a batch share their transaction: its round trips, its locks, the flush of the log. They cannot share their own "
    "work: the HTTP exchange, reading, sealing and answering one, and its rows. That alone is more than a tenth of what an order in a transaction "
    "of its own takes here, where the disk flushes in a fraction of a millisecond; the slower the disk, the larger the ratio. And whatever "
    "makes an order alone faster, as order-alone asks, makes this ratio smaller.",
    "order-alone": "an order takes five round trips: the key, BEGIN, the locks and what it is decided on, all its rows, COMMIT. The reference has two. "
    "A function in the database that locks, decides and writes would save two more, and the rules would be SQL.",
    "batch-5000": "COPY of the same rows leaves out what a batch is about: drawing, hashing and sealing every code, and its claim token. That is "
    "cryptography on one core, and twice as long as the COPY itself, which goes on meanwhile.",
    "products": "the reference is the least this HTTP server can do, without any of the application. What the product adds to it are the look-up of "
    "the key (a query, shared by those who wait at the same time), the query string, the listing and the headers.",
    "products, p99": "as products: who arrives just after a look-up has begun waits for the next.",
    "orders-list": "as products, and a second query.",
    "me": "as products.",
    "growth": "right after a checkpoint, each change of an index page that has not been changed since writes it whole to the log; the filled "
    "installation has many such pages, and a fresh one has none. The ratio rises from run to run, as the pages are used up.",
    "processes": "one process and PostgreSQL keep both cores busy, and there is no third one for a second process to use. Orders that meet another "
    "process's batch at their customer's accounts are placed by the next one.",
    "processes, divided": "as processes, and each of two placers makes half as large batches of its half of the load.",
    "neighbour": "a quiet order waits for no batch of the noisy customer, but both cores have more to do than they can: the load generator, the one "
    "serving process, and the server's processes that write small and large orders. Each of a request's five round trips, and each of its "
    "turns in the serving process, waits for a core that somebody else has. A second serving process needs a third core.",
}


def render(found: Results) -> str:
    """The whole document."""
    parts = [_TOP, _results(found), _benchmarks(found)]
    if profiling.PATH.exists():
        parts.append(_profile(profiling.read()))
    if experiments.PATH.exists():
        parts.append(_experiments(experiments.read()))
    parts.append(_BY_HAND)
    return "\n".join(part.rstrip() + "\n" for part in parts)


def main() -> None:
    DOCUMENT.write_text(render(results.read(RESULTS)), encoding="utf-8")
    sys.stdout.write(f"{DOCUMENT} is written.\n")


def _results(found: Results) -> str:
    minutes = sum(found.took_s.values()) / 60
    pairs = max(len(row.pairs) for row in found.rows)
    lines = [
        "## Results",
        "",
        f"The median of {pairs} pairs of runs of {found.seconds_a_run:g} s each. All took {minutes:.0f} minutes.",
        "",
        results.table(found.rows),
        "",
    ]
    if int(found.machine["busy before"].split("%")[0]) > _QUIET_PERCENT:
        lines += [_BUSY, ""]
    missed = [row for row in found.rows if row.met is False]
    if missed:
        lines += ["Goals that are not met:", ""]
        lines += [f"- **{row.name}**: {WHY.get(row.name, 'not explained yet.')}" for row in missed]
        lines.append("")
    lines += ["Measured on", "", *_described(found.machine), "", "with PostgreSQL's", ""]
    lines += _described({f"`{name}`": value for name, value in found.postgres.items()})
    return "\n".join(lines)


def _benchmarks(found: Results) -> str:
    lines = ["## The benchmarks", ""]
    for name in NAMES:
        module = importlib.import_module(f"bench.benchmarks.{name.replace('-', '_')}")
        rows = [row for row in found.rows if row.name.split(",")[0] == name]
        lines += [f"### {name}", "", inspect.cleandoc(module.__doc__ or ""), "", *_seen(rows)]
    return "\n".join(lines)


_SEEN = {
    "p50_ms": ("p50", "ms"),
    "p99_ms": ("p99", "ms"),
    "serving_cpu_us": ("CPU, serving", "µs"),
    "postgres_cpu_us": ("CPU, PostgreSQL", "µs"),
    "orders_a_commit": ("orders a commit", ""),
    "wal_bytes": ("log", "bytes an order"),
    "commit_p50_ms": ("commit, p50", "ms"),
    "health_p50_ms": ("GET /health, p50", "ms"),
    "batches": ("batches of 5,000 meanwhile", ""),
    "max_ms": ("longest", "ms"),
    "answer_bytes": ("answer", "bytes"),
}


def _seen(rows: Sequence[Row]) -> Iterable[str]:
    """What else was seen, medians, per answer."""
    sides = [(row, side) for row in rows for side in ("product", "reference") if getattr(row, side)]
    names = [name for name in _SEEN if any(name in row.seen(side) for row, side in sides)]
    if not names:
        return
    yield f"| | {' | '.join(_SEEN[name][0] for name in names)} |"
    yield f"|---|{'--:|' * len(names)}"
    told = set()
    for row, side in sides:
        what = getattr(row, side)
        seen = row.seen(side)
        if what in told or not seen:
            continue
        told.add(what)
        yield f"| {what} | {' | '.join(_cell(name, seen) for name in names)} |"
    yield ""


def _cell(name: str, seen: dict[str, float]) -> str:
    return f"{figure(seen[name])} {_SEEN[name][1]}".strip() if name in seen else ""


def _profile(profile: profiling.Profile) -> str:
    order = profile.order
    lines = [
        _PROFILE,
        _ORDER.format(**{name: figure(value) for name, value in order.items()}),
        "",
        "| share | µs an order | of the serving process |",
        "|--:|--:|---|",
    ]
    lines += [
        f"| {share:.0%} | {figure(share * order['serving_cpu_us'])} | {area} |"
        for area, share in profile.serving.items()
        if share >= 0.005
    ]
    lines += ["", _STATEMENTS]
    lines += ["| in a batch | alone | statement |", "|--:|--:|---|"]
    alone = {statement.text: statement for statement in profile.statements_alone}
    for statement in profile.statements:
        other = alone.get(statement.text)
        us_alone = f"{figure(other.us_an_order)} µs" if other else ""
        lines.append(f"| {figure(statement.us_an_order)} µs | {us_alone} | `{statement.text} …` |")
    return "\n".join(lines)


def _experiments(found: experiments.Experiments) -> str:
    lines = [
        _EXPERIMENTS,
        "| instead | ratio | (min to max) | CPU an order, serving + PostgreSQL | the product has, because |",
    ]
    lines.append("|---|--:|---|--:|---|")
    for row in found.rows:
        ratios = row.ratios
        there, here = (_cpu(row, side) for side in ("product", "reference"))
        lines.append(
            f"| {row.name} | {figure(median(ratios))} | {figure(min(ratios))} to {figure(max(ratios))} "
            f"| {there} instead of {here} | {found.kept[row.name]} |"
        )
    counts = sorted({way.rows for way in found.ways})
    lines += ["", _WAYS, f"| | {' | '.join(f'{count:,} rows' for count in counts)} |"]
    lines.append(f"|---|{'--:|' * len(counts)}")
    for name in dict.fromkeys(way.name for way in found.ways):
        times = {way.rows: way.us for way in found.ways if way.name == name}
        lines.append(f"| {name} | {' | '.join(f'{figure(times[count])} µs' for count in counts)} |")
    return "\n".join(lines)


def _cpu(row: Row, side: str) -> str:
    seen = row.seen(side)
    return f"{figure(seen['serving_cpu_us'])} + {figure(seen['postgres_cpu_us'])} µs"


def _described(described: dict[str, str]) -> list[str]:
    return [f"- {name}: {value}" for name, value in described.items()]


if __name__ == "__main__":
    main()
