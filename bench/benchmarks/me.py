"""`GET /me`: the owner of a key.

*How.* As products.

*What it means.* The cost that every request has: HTTP, the key look-up, a small answer.
"""

from bench.reads import against_fixed_bytes
from bench.results import Row
from bench.suite import Suite, at_least
from bench.world import one_account


def run(suite: Suite) -> list[Row]:
    with suite.installation("me", one_account()) as made, made.serve_with() as server:
        pairs = against_fixed_bytes(suite, made, server, "/me")
    return [
        Row("me", "answers/s", "GET /me", "the same server, fixed bytes of that size, no key", at_least(0.85), pairs)
    ]
