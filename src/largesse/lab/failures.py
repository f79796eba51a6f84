"""Accounts and gifts that fail on purpose: in staging, an id of an account or a gift that no account or gift has is answered as its end says."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from largesse.base.errors import InsufficientBalance, OrderLimit, Problem, TooManyRequests, Unavailable
from largesse.orders.request import SendCollection, SendGift, SendRequest, SendTemplate

FAILING_FROM = 2_147_480_000  # ids are drawn from 1
_ON_PURPOSE = "This id of the test lab fails on purpose; nothing was placed."
FAILURES: Mapping[int, Callable[[], Problem]] = {
    402: lambda: InsufficientBalance(_ON_PURPOSE),
    403: lambda: OrderLimit(_ON_PURPOSE),
    429: lambda: TooManyRequests(_ON_PURPOSE, retry_after_s=1.0),
    503: lambda: Unavailable(_ON_PURPOSE, retry_after_s=1.0),
}


def failure_of(request: SendRequest) -> Problem | None:
    """Returns what an order is refused with on purpose; None for an order that names no id that fails."""
    ids = [request.account_id]
    if isinstance(request, SendGift):
        ids.append(request.product_id)
    elif isinstance(request, SendCollection):
        ids.append(request.collection_id)
    elif isinstance(request, SendTemplate):
        ids.append(request.template_id)
    found = next(
        (FAILURES[one - FAILING_FROM] for one in ids if one is not None and one - FAILING_FROM in FAILURES), None
    )
    return found and found()
