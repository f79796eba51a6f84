"""What a customer has set for orders of its API keys that say nothing themselves."""

from __future__ import annotations

import msgspec

from largesse.customers.authenticator import Caller
from largesse.orders.follow_ups import read_defaults
from largesse.orders.request import OrderSpec


def with_default(caller: Caller, spec: OrderSpec) -> OrderSpec:
    """Returns `spec` of an API key with what its customer has set for such orders, where it says nothing."""
    if caller.follow_up is None or caller.principal.user_id is not None:
        return spec
    defaults = read_defaults(caller.follow_up)
    if not defaults.of_api:
        return spec
    days = spec.reminder_days
    if days is None and spec.recipients:
        days = defaults.reminder_days
    claim_by = spec.claim_by or defaults.claim_by(spec.scheduled_for or caller.now)
    return msgspec.structs.replace(spec, claim_by=claim_by, reminder_days=days)
