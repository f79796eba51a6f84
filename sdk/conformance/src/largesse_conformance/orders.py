"""The orders that many checks look at, each placed once in a run."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from largesse_conformance.context import Context, Order

FROM_NAME = "Conformance"
MESSAGE = "A test of the service.\nNothing to do."
SOURCE = "Conformance  Suite #1!"
SOURCE_TOKEN = "conformance-suite-1"  # noqa: S105 - a token for reports
BATCH_CODES = 2
MAILED_CODES = 4


def batch(context: Context) -> Order:
    """Two anonymous codes of the cheapest product, with all options of an order."""
    return context.once("order batch", lambda: _batch(context))


def _batch(context: Context) -> Order:
    return context.place(
        context.gift(),
        codeQuantity=BATCH_CODES,
        externalReference=context.new_reference(),
        source=SOURCE,
        fromName=FROM_NAME,
        message=MESSAGE,
        wrappingKey="default",
        sendAt="2001-01-01T00:00:00Z",
        createdBy=0,
        serviceAccountId=0,
        customerId=0,
    )


def mailed(context: Context) -> Order:
    """Four codes to two addresses, one of them spelled twice."""
    return context.once("order mailed", lambda: _mailed(context))


def _mailed(context: Context) -> Order:
    first, second = context.settings.address("a"), context.settings.address("b")
    recipients = [
        {"email": first, "name": "First", "quantity": 2},
        {"email": second},
        {"email": first.upper(), "quantity": 1},
    ]
    return context.place(context.gift(), recipients=recipients)


def scheduled(context: Context) -> Order:
    """One code to one address, 30 days from now."""
    return context.once("order scheduled", lambda: _scheduled(context))


def _scheduled(context: Context) -> Order:
    at = (datetime.now(UTC) + timedelta(days=30)).replace(microsecond=0)
    recipients = [{"email": context.settings.address("later")}]
    return context.place(context.gift(), recipients=recipients, sendAt=f"{at:%Y-%m-%dT%H:%M:%S}Z")


def collection(context: Context) -> Order:
    """One code of a collection."""
    return context.once("order collection", lambda: context.place(context.collection("points")))


def template(context: Context) -> Order:
    """One code of a template, with all of its presets."""
    return context.once("order template", lambda: context.place(context.template()))


SHARED: dict[str, tuple[Callable[[Context], Order], int]] = {
    "batch": (batch, BATCH_CODES),
    "mailed": (mailed, MAILED_CODES),
    "scheduled": (scheduled, 1),
    "collection": (collection, 1),
    "template": (template, 1),
}
