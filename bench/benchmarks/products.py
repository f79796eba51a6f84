"""`GET /products?limit=100` of a catalogue of 10,000 products.

*How.* `wrk` with 64 connections. The reference is the same server answering with as many fixed bytes, without a key, a query
or any code of the product (`/fixed/SIZE` in bench/server.py). The second row divides the reference's 99th percentile by the
product's.

*What it means.* A listing is joined from JSON that was encoded once for each version of the catalogue. What remains is the
key look-up, which nothing caches, so that a deletion takes effect at once.
"""

from bench.reads import against_fixed_bytes
from bench.results import Pair, Row, Sample
from bench.suite import Suite, at_least
from bench.world import large_catalogue

PRODUCTS = 10_000


def run(suite: Suite) -> list[Row]:
    with suite.installation("products", large_catalogue(PRODUCTS)) as made, made.serve_with() as server:
        pairs = against_fixed_bytes(suite, made, server, "/products?limit=100")
    p99 = [Pair(_by_p99(pair.reference), _by_p99(pair.product)) for pair in pairs]
    return [
        Row(
            "products",
            "answers/s",
            "GET /products?limit=100 of 10,000",
            "the same server, fixed bytes of that size, no key",
            at_least(0.85),
            pairs,
        ),
        Row("products, p99", "ms", "p99 of the fixed bytes", "p99 of GET /products?limit=100", at_least(0.5), p99),
    ]


def _by_p99(sample: Sample) -> Sample:
    return Sample(sample.seen["p99_ms"], {})
