"""Writes docs/performance.md from the files in bench/results: `make performance-doc`.

Every number of the document comes from there. The prose about each benchmark is its module's docstring. On a machine with
nothing else to do, these measure everything anew:

    make bench BENCH_ARGS='--json bench/results/benchmarks.json'
    .venv/bin/python -m bench.profiling
    .venv/bin/python -m bench.experiments
    make performance-doc
"""

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

How fast Largesse is, compared with what, and where its time goes. `make performance-doc` generates this page from the results
of `make bench`; no number in it was typed. Every benchmark divides the product by a *reference* that does the same work in
another way, run in turn with it on the same machine. Ratios carry over to other machines better than orders a second do.

```sh
make bench                    # all, some 50 minutes; needs wrk
make bench-orders-hot         # one
make bench BENCH_ARGS=--quick # one short pair of each: does it run here?
```

Each benchmark starts in a fresh data directory, on the embedded PostgreSQL with its usual settings. It refuses to run unless
`fsync`, `full_page_writes` and `synchronous_commit` are on. Afterwards `largesse verify` must find nothing wrong. The load
generator, the service and PostgreSQL share the machine's cores.
"""

_QUIET_PERCENT = 10
_BUSY = (
    "**The machine had other work to do during this measurement** (see below how busy it was). Ratios are rough, and figures that are "
    "not ratios mean little."
)

_PROFILE = """\
## Where an order's time goes

py-spy samples the serving process under the load of orders-hot (`python -m bench.profiling`). A sample counts for the innermost
frame that lies in one of these places.
"""

_ORDER = """\
An order cost {serving_cpu_us} µs of the serving process and {postgres_cpu_us} µs of PostgreSQL's, at {rate} orders a second and
{orders_a_commit} orders a commit."""

_STATEMENTS = """\
For PostgreSQL: the time of each statement per order, as its executor reports it. The orders of a batch share most of a statement's
cost; a single order pays all of it. Parsing and planning happen once a connection. COMMIT has no plan, so it is not in this
table: it is the wait for the disk, once a batch.
"""

_EXPERIMENTS = """\
## Experiments

Each line compares the product with an installation that differs in one thing, in turn, under the load of orders-hot
(`python -m bench.experiments`). Below 1: the product is faster as it is. The runs are few and short: ignore a difference smaller than
the range of its ratios, or than a tenth.
"""

_WAYS = """\
Ways to write the lines of a batch, one statement on one connection, client and server together:
"""

_BY_HAND = """\
## Improvements

Profiles and `EXPLAIN (ANALYZE, BUFFERS)` led to these:

- **An index that fits too many queries.** The index for a customer's newest orders was on customer, environment and id. Before the
  first ANALYZE, the planner used it to look up single references and read all orders of the customer, so that each order made the
  next one slower. Where most orders belong to one customer, it found another customer's few by reading the whole primary key
  backwards. The index is now on expressions, so only the list it is meant for uses it. Two tests count the rows that are read.
- **WAL compression.** After a checkpoint, the first change of a page writes the whole page to the WAL. In a large database these are
  mostly pages of the index of code look-up numbers, which are hashes. Compressing them with pglz took longer than the order itself
  and made them no smaller. The embedded server no longer compresses the WAL.
- **Shared list queries.** Each caller of `GET /orders` used to run its own query. One query now answers all callers who wait at the
  same time, and one answer serves identical requests.
- **COPY and row-level security.** COPY inserts many rows of a page at once and takes a quarter less time, as shown above. Lines were
  written that way until row-level security came: PostgreSQL refuses COPY to the roles it applies to.
- **WAL segments.** With 64 connections, the slowest hundredth of orders took several times the median. Sampled wait events showed
  commits waiting for one that created the next WAL segment and wrote its zeros to disk. The embedded server now uses the smallest
  segments there are, and the waits are as short as possible.
- **Event loop turns.** A request needs about ten turns of the event loop. A large order works in pieces, so a request beside it waits
  for ten times the longest piece. Pieces of a tenth of a millisecond cost the large order nothing visible and removed most of the
  wait of small orders.
- **Large orders in parallel.** The codes of a large order were encrypted, then written, then put into the answer. All three now
  run at the same time, because the database does the writing.
- **Plans.** For each batch, PostgreSQL planned its reads anew, because it expected a better plan for that number of orders.
  The transaction now tells it not to.
- **HMAC.** For every code, the standard library's HMAC object took twice as long as the two SHA-256 it consists of.
- **Text of a code.** Writing 80 bits as 17 characters took as long as encrypting them. It now writes pairs of characters.
- **Connections for mail.** With four connections to the mail server, the worker was idle for a third of the time. Eight share more of the
  writes that each waits for: a quarter more mails a second.
"""

# Why a goal that is not met is not met, by row. Kept even while it is met: machines differ.
WHY: dict[str, str] = {
    "orders-hot, batched": "orders of a batch share the cost of their transaction: its round trips, locks and WAL flush. They cannot share "
    "their own work: the HTTP exchange, reading, encrypting and answering an order, and its rows. This work alone takes more than a tenth of the "
    "time of an order in its own transaction here, where a disk flush takes a fraction of a millisecond. A slower disk makes the "
    "ratio larger. Anything that makes a single order faster, as order-alone requires, makes it smaller.",
    "order-alone": "an order takes two round trips: BEGIN with the locks and what it is decided on, and all its rows with COMMIT. The reference has two simpler ones. "
    "A database function that locks, decides and writes would save one more, but the rules would then be SQL.",
    "order-alone, with a budget": "the order also reads what is left of its budget, in the round trip of the locks, and writes what it counts.",
    "batch-5000": "COPY of the same rows omits the main work of a batch: drawing, hashing and encrypting every code, and its claim token. This "
    "cryptography runs on one core and takes twice as long as the COPY, which runs at the same time.",
    "products": "the reference is the least that this HTTP server can do, without the application. The product adds the key look-up "
    "(one query, shared by requests that wait at the same time), the query string, the listing and the headers.",
    "products, p99": "as products: a request that arrives just after a look-up has begun waits for the next one.",
    "orders-list": "as products, plus a second query.",
    "me": "as products.",
    "growth": "right after a checkpoint, the first change of an index page writes the whole page to the WAL. The filled installation has "
    "many such pages, a fresh one has none. The ratio rises from run to run, as fewer such pages are left.",
    "processes": "one process and PostgreSQL keep both cores busy, and a second process has no third core to use. Orders whose "
    "accounts are locked by another process's batch are placed in the next batch.",
    "processes, divided": "as processes, and fewer orders share each batch and each turn of the event loop. The same happens in one process "
    "with half of the connections.",
    "processes, processor time": "as processes, divided. The next row divides by one process with half of the connections.",
    "processes, each loaded": "two serving processes, the load generator and PostgreSQL take turns on two cores. Pairs differ by a quarter.",
    "customers, edits": "two edits a second cost orders a few hundredths. Runs of a few seconds differ by more.",
    "customers, first order": "it looks up the key and makes the ledger accounts of the customer, in a round trip each. Later orders have two round "
    "trips in all.",
    "deliveries": "each delivery is leased, signed, judged, logged and recorded with its answer. This takes the worker 70 to 90 µs and "
    "PostgreSQL 50 to 60, and both share two cores with the receiver. The worker also brings the reports of the same orders up to date.",
    "mails": "each connection waits until the outcome of its last mail is on the disk. So a crash repeats at most one mail for each.",
    "neighbour": "a quiet order waits for no batch of the noisy customer. But both cores have more work than they can do: the load generator, the one "
    "serving process, and the server processes that write small and large orders. Each round trip of a request and "
    "each of its event loop turns waits for a core. A second serving process needs a third core.",
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
