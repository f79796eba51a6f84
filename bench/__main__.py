"""`python -m bench [NAME ...] [--quick] [--json FILE]`; without names, all benchmarks."""

import argparse
import importlib
import sys
import time
import traceback
from pathlib import Path

from bench import load, machine, results
from bench.benchmarks import NAMES, UNMEASURED
from bench.installation import Failed, installation
from bench.results import Results
from bench.suite import Suite, at_most, say
from bench.world import one_account

PAIRS = 5
RUN_S = 5.0
_ALL = [*NAMES, *UNMEASURED]


def main() -> None:
    """Runs benchmarks, prints the table, and writes the JSON."""
    options = _options()
    load.require_wrk()
    suite = Suite(
        pairs=1 if options.quick else options.pairs,
        seconds=1.0 if options.quick else options.seconds,
        quick=options.quick,
    )
    found = Results(machine.describe_machine(), _postgres_settings(suite), suite.seconds)
    for name, value in (*found.machine.items(), *found.postgres.items()):
        say(f"{name:22} {value}")
    failed = _run(options.names or _ALL, suite, found)
    if suite.peaks_mib:
        found.rows.append(_memory(suite))
    found.notes["verify"] = suite.verified
    results.write(found, options.json)
    say(f"\n{results.table(found.rows)}\n\nThe same with every run: {options.json}")
    if failed:
        sys.exit(f"bench: failed: {', '.join(failed)}")


def _run(names: list[str], suite: Suite, found: Results) -> list[str]:
    """Adds the rows of each benchmark; gives the names of those that failed."""
    failed = []
    for name in names:
        module = importlib.import_module(f"bench.benchmarks.{name.replace('-', '_')}")
        say(f"\n{name}: {(module.__doc__ or '').splitlines()[0]}")
        began = time.monotonic()
        try:
            found.rows += module.run(suite)
        except Exception as error:  # noqa: BLE001 - the other benchmarks count all the same
            say(f"  failed: {error}" if isinstance(error, Failed) else traceback.format_exc())
            failed.append(name)
        found.took_s[name] = time.monotonic() - began
        say(f"  took {found.took_s[name]:.0f} s")
    return failed


def _postgres_settings(suite: Suite) -> dict[str, str]:
    import asyncio

    with installation(one_account(), suite.peaks_mib) as made:
        return asyncio.run(machine.postgres_settings(made.url))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*_ALL, []], metavar="NAME", help=", ".join(_ALL))
    parser.add_argument("--pairs", type=int, default=PAIRS, help="runs of product and reference (%(default)s)")
    parser.add_argument("--seconds", type=float, default=RUN_S, help="of one run (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="one pair of one second: does it all work?")
    parser.add_argument("--json", type=Path, default=Path("bench-results.json"), help="written (%(default)s)")
    return parser.parse_args()


def _memory(suite: Suite) -> results.Row:
    peak = results.Sample(max(suite.peaks_mib))
    pairs = [results.Pair(peak, peak)]
    return results.Row("memory", "MiB", "peak of a serving process in all of this", "", at_most(250), pairs)


if __name__ == "__main__":
    main()
