"""What reads have in common: the product's answer against fixed bytes from the same server."""

from bench import load
from bench.installation import Installation, Server
from bench.results import Pair, Sample
from bench.suite import WARM_UP_S, Suite, watched

CONNECTIONS = 64


def against_fixed_bytes(suite: Suite, made: Installation, server: Server, path: str) -> list[Pair]:
    """Pairs of GETs of `path` with the first buyer's key, and of as many fixed bytes without one."""
    key = load.buyers(made)[0].key
    fixed = f"/fixed/{len(server.get(path, key))}"
    _get(made, server, path, key, WARM_UP_S)
    _get(made, server, fixed, None, WARM_UP_S)
    return suite.in_turn(
        lambda: _get(made, server, path, key, suite.seconds), lambda: _get(made, server, fixed, None, suite.seconds)
    )


def _get(made: Installation, server: Server, path: str, key: str | None, seconds: float) -> Sample:
    return watched(made, server, lambda: load.gets(made, server, path, key, connections=CONNECTIONS, seconds=seconds))
