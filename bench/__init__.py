"""The benchmarks: `make bench`, or `make bench-NAME` for one. docs/performance.md says what came of them.

Each starts what it needs in a fresh data directory, warms up, measures the product and its reference in turn, audits
what was written with `largesse verify`, and takes everything away again.
"""
