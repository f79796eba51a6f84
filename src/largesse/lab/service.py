"""Operations of the test lab.

Gifts in staging can be claimed without code and PIN: by the API, and automatically for some addresses of recipients. In staging, some ids of
accounts and gifts fail on purpose: 2,147,480,000 plus a status, such as 402, is refused with that status.
"""

import secrets
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from largesse.base import errors
from largesse.customers.actor import Actor
from largesse.customers.roles import Right
from largesse.db.pool import Connection, commit_as_one
from largesse.db.statements import read_now
from largesse.encryption.vault import Vault
from largesse.events.kinds import EVENTS, Sampled
from largesse.events.store import record_event
from largesse.fulfilment.gifts import read_choices, read_product
from largesse.fulfilment.vouchers import TestProvider, settle_product
from largesse.jobs.notifier import notify
from largesse.lines.states import LineKey, Progress, State, expiry, record_claim
from largesse.lines.store import Line, read_line, read_progress
from largesse.orders.lookup import find_own_order
from largesse.orders.request import SendRequest
from largesse.webhooks.service import DeliveryThrottle


class TriggeredEvent(msgspec.Struct, frozen=True):
    """An event that was made to happen, with its payload."""

    event: str
    data: Any


async def trigger_event(actor: Actor, throttle: DeliveryThrottle, event: str) -> TriggeredEvent:
    """Records a sample as an event: subscribers and readers of the stream get it as they do a real one.

    Raises InvalidRequest for an unknown event, and TooManyRequests.
    """
    if event not in EVENTS:
        raise errors.InvalidRequest(f"`event` must be one of: {', '.join(EVENTS)}.")
    kind, principal = EVENTS[event], actor.principal
    throttle.count_test_event(actor.customer_id)
    async with actor.transaction(Right.SETTINGS) as transaction:
        connection = transaction.connection
        at = await read_now(connection)
        payload = kind.sample(Sampled(principal.customer_id, principal.service_account_id, at))
        if isinstance(payload.id, str):  # the id in `order.created` is a number, and stays 0
            payload = msgspec.structs.replace(payload, id=f"evt_{secrets.token_hex(12)}")
        await record_event(
            connection,
            kind,
            payload,
            order_id=None,
            customer_id=principal.customer_id,
            environment=principal.environment,
            at=at,
        )
    return TriggeredEvent(event, payload)


FAILING_FROM = 2_147_480_000  # no real id is so high: they begin at 1
_ON_PURPOSE = "This id of the test lab fails on purpose; nothing was placed."
FAILURES: Mapping[int, Callable[[], errors.Problem]] = {
    402: lambda: errors.InsufficientBalance(_ON_PURPOSE),
    403: lambda: errors.OrderLimit(_ON_PURPOSE),
    429: lambda: errors.TooManyRequests(_ON_PURPOSE, retry_after_s=1.0),
    503: lambda: errors.Unavailable(_ON_PURPOSE, retry_after_s=1.0),
}


def failure_of(request: SendRequest) -> errors.Problem | None:
    """Returns the error that an order gets on purpose; None if it names none of the ids that fail."""
    ids = (getattr(request, name, None) for name in ("account_id", "product_id", "collection_id", "template_id"))
    return next((FAILURES[one - FAILING_FROM]() for one in ids if one and one - FAILING_FROM in FAILURES), None)


STAGING = "staging"
_CHOOSES_NO_OTHER = "`product_id` must be left out: the order is of one product."
_NO_CHOICE = "`product_id` names no gift that this recipient can choose."


async def claim_gift(
    actor: Actor, vault: Vault, reference: str, number: int, *, product_id: int | None, default_expiry_days: int
) -> Progress:
    """Claims a gift of an order of the actor's customer in staging as its recipient would; returns its progress.

    Raises NotFound, OtherServiceAccount, InvalidRequest for a product that cannot be chosen, and StateConflict for a gift that cannot be
    claimed now.
    """
    assert actor.environment == STAGING, "production has no test lab"
    async with actor.transaction(Right.SEND) as transaction:
        connection = transaction.connection
        await commit_as_one(connection)
        order = await find_own_order(connection, actor.principal, reference)
        key = LineKey(actor.customer_id, order["id"], number)
        line = await read_line(connection, key, STAGING, lock=True)
        if line is None:
            raise errors.NotFound("The order has no such line.")
        await _require_claimable(connection, line)
        if product_id is not None:
            await _require_choice(connection, line, product_id)
        await take_gift(connection, vault, line, line.product_id or product_id, default_expiry_days)
        await notify(connection)
        return await read_progress(connection, key)


async def take_first(connection: Connection, vault: Vault, key: LineKey, default_expiry_days: int) -> None:
    """Claims a gift in staging if it can be claimed, and chooses the first gift of a collection. Call it inside a transaction."""
    line = await read_line(connection, key, STAGING, lock=True)
    if line is None or (await read_progress(connection, key)).state is not State.ISSUED:
        return
    choices = [] if line.product_id else await read_choices(connection, line)
    chosen = line.product_id or next((product.id for product in choices), None)
    await take_gift(connection, vault, line, chosen, default_expiry_days)


async def take_gift(
    connection: Connection, vault: Vault, line: Line, product_id: int | None, default_expiry_days: int
) -> None:
    """Claims a locked line, and settles its product if one is given."""
    now = await read_now(connection)
    await record_claim(connection, line.key, now, expiry(now, line.expiry_after_days, default_expiry_days), None)
    if product_id is not None:
        product = await read_product(connection, product_id)
        await settle_product(connection, TestProvider(vault), line, product, now)


async def _require_claimable(connection: Connection, line: Line) -> None:
    progress = await read_progress(connection, line.key)
    if progress.state is State.CANCELLED:
        raise errors.StateConflict("The gift was cancelled.")
    if progress.state is not State.ISSUED:
        raise errors.StateConflict("The gift was claimed before.")
    if not line.is_sent(await read_now(connection)):
        raise errors.StateConflict("The order has not left yet: advance the clock to its `scheduledFor`.")


async def _require_choice(connection: Connection, line: Line, product_id: int) -> None:
    if line.product_id is not None:
        raise errors.InvalidRequest(_CHOOSES_NO_OTHER)
    if product_id not in {product.id for product in await read_choices(connection, line)}:
        raise errors.InvalidRequest(_NO_CHOICE)
