"""All checks, in the order in which they run, and the cost of a selection."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

# Each module declares its checks when it is imported. Checks that cost nothing come first.
from largesse_conformance.checks import accounts as _accounts
from largesse_conformance.checks import authentication as _authentication
from largesse_conformance.checks import bodies as _bodies
from largesse_conformance.checks import collections as _collections
from largesse_conformance.checks import delivery as _delivery
from largesse_conformance.checks import errors as _errors
from largesse_conformance.checks import idempotency as _idempotency
from largesse_conformance.checks import identity as _identity
from largesse_conformance.checks import isolation as _isolation
from largesse_conformance.checks import orders as _orders
from largesse_conformance.checks import products as _products
from largesse_conformance.checks import quotes as _quotes
from largesse_conformance.checks import sending as _sending
from largesse_conformance.checks import templates as _templates
from largesse_conformance.checks import webhooks as _webhooks
from largesse_conformance.context import Context
from largesse_conformance.deliveries import CODES
from largesse_conformance.orders import SHARED
from largesse_conformance.outcome import Skipped
from largesse_conformance.suite import CHECKS, Check

_ORDER = (
    _authentication,
    _identity,
    _products,
    _collections,
    _templates,
    _accounts,
    _bodies,
    _sending,
    _idempotency,
    _quotes,
    _orders,
    _isolation,
    _errors,
    _webhooks,
    _delivery,
)
_AREAS = [module.__name__.rpartition(".")[2] for module in _ORDER]
_CODES = {name: codes for name, (_, codes) in SHARED.items()} | {"delivery": CODES}


def all_checks() -> list[Check]:
    """Returns every check, area by area."""
    return sorted(CHECKS, key=lambda check: _AREAS.index(check.name.partition(".")[0]))


def codes_of(checks: Sequence[Check]) -> int:
    """Returns how many codes a selection orders at most."""
    shared = {name for check in checks for name in check.uses}
    return sum(check.codes for check in checks) + sum(_CODES[name] for name in shared)


def cost_of(checks: Sequence[Check], context: Context) -> Decimal:
    """Returns what a selection costs at most. Raises Skipped if nothing can be ordered."""
    own = sum(check.codes for check in checks)
    total = own * context.gift().value
    for name in {name for check in checks for name in check.uses}:
        total += _CODES[name] * _value(name, context)
    return total


def _value(name: str, context: Context) -> Decimal:
    """Returns the value of one code of a shared order; 0 if that order cannot be placed."""
    try:
        if name == "collection":
            return context.collection("points").value
        return context.template().value if name == "template" else context.gift().value
    except Skipped:
        return Decimal(0)
