"""`account.low`: a funding account has fallen below the amount that was set for it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from largesse.events.kinds import EventType, Int64, Sampled

_NAME = "account.low"


class AccountLow(msgspec.Struct, kw_only=True, rename="camel"):
    """A funding account with a low balance."""

    id: Annotated[
        str, Meta(description="Stable per event; a deduplication key", examples=["evt_9f86d081884c7d659a2feaa0"])
    ]
    event: Annotated[str, Meta(description="The name of the event", examples=[_NAME])] = _NAME
    customer_id: Annotated[Int64, Meta(description="Whose account it is")]
    account_id: Annotated[int, Meta(description="The account, as in `GET /funding-accounts`")]
    account_name: Annotated[str, Meta(description="Its name")]
    currency: Annotated[str, Meta(description="ISO currency code", examples=["GBP"])]
    balance: Annotated[float, Meta(description="What it held then")]
    below: Annotated[float, Meta(description="The amount that was set for it")]
    occurred_at: Annotated[datetime, Meta(tz=True, description="When it was noticed, some seconds after it fell")]


def _sample(sampled: Sampled) -> AccountLow:
    return AccountLow(
        id="evt_000000000000000000000000",
        customer_id=sampled.customer_id,
        account_id=1,
        account_name="Acme float",
        currency="GBP",
        balance=40.0,
        below=50.0,
        occurred_at=sampled.at,
    )


ACCOUNT_LOW = EventType(
    _NAME,
    "A funding account is low",
    "Once each time an account falls below the amount that people set for it. `id` tells duplicates apart.",
    AccountLow,
    _sample,
)
