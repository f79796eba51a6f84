"""`GET /me`: who a key belongs to.

*How.* As products.

*What it means.* Nothing but what every request pays: HTTP, the look-up of the key, a small answer.
"""

from __future__ import annotations

from bench.reads import against_fixed_bytes
from bench.results import Row
from bench.suite import Suite, at_least, row
from bench.world import one_account


def run(suite: Suite) -> list[Row]:
    with suite.installation("me", one_account()) as made, made.serve_with() as server:
        pairs = against_fixed_bytes(suite, made, server, "/me")
    return [
        row(
            "me",
            "answers/s",
            "GET /me",
            "the same server, fixed bytes of that size, no key",
            at_least(0.4),
            pairs,
        )
    ]
