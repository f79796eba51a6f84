"""From `largesse serve` to its first answer, on an existing, warm database.

*How.* The time from starting the process to the first 200 of `GET /health`, polled every 5 ms. The reference is
`python -c "import litestar"`, the import of a web framework of the usual size, with the same Python.

*What it means.* How long callers wait during a deployment or a restart.
"""

import importlib.util
import subprocess
import sys
import time

from bench.installation import Failed, Installation
from bench.results import Row, Sample
from bench.suite import Suite, at_most
from bench.world import one_account


def run(suite: Suite) -> list[Row]:
    if importlib.util.find_spec("litestar") is None:
        raise Failed("litestar is not installed: `make install-dev` brings it")
    with suite.installation("start", one_account()) as made:
        serve(made)
        _import()
        pairs = suite.in_turn(lambda: serve(made), _import)
    return [Row("start", "s", "largesse serve to its first answer", 'python -c "import litestar"', at_most(6), pairs)]


def serve(made: Installation) -> Sample:
    """The seconds until a process serves."""
    began = time.perf_counter()
    with made.serve():
        return Sample(time.perf_counter() - began)


def _import() -> Sample:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import litestar"], check=True)
    return Sample(time.perf_counter() - began)
