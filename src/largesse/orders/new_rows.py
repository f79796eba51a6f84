"""What is written of a placed order beside its own row, whatever writes it: its lines, and the body of its event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain, repeat
from operator import attrgetter

import msgspec

from largesse.lines.store import LineColumns
from largesse.orders.order import Order
from largesse.orders.row import RESPONSE_COLUMNS, OrderRow, order_record

_encode = msgspec.json.Encoder().encode


def by_reference(orders: Sequence[Order]) -> list[tuple[int, Order]]:
    """Orders by the caller's reference, each with its place, from 1: two batches that share references then wait for each other in one direction only."""
    return sorted(enumerate(orders, 1), key=_reference_of)


def _reference_of(place_and_order: tuple[int, Order]) -> tuple[int, str, str]:
    kept = place_and_order[1].kept
    return kept.customer_id, kept.environment, kept.external_reference or ""


def event_after_id(order: OrderRow, at: datetime) -> str:
    """The order record in JSON but for the id that it begins with: EVENT_BEFORE_ID, the id and this are the body of its event."""
    record = _encode(order_record(0, _told(order), at)).decode()
    assert record.startswith(_NO_ID), "an order record begins with its id"
    return record[len(_NO_ID) :]


_told = attrgetter(*RESPONSE_COLUMNS)
EVENT_BEFORE_ID = '{"id":'
_NO_ID = f"{EVENT_BEFORE_ID}0"


def lines_of(orders: Iterable[tuple[int, Order]]) -> Iterator[LineColumns]:
    """The lines of orders under the ids given, or what stands for them, in the order of their columns; to take one seals its code."""
    for order_id, order in orders:
        for number, ((email, name), code) in enumerate(zip(addressees(order), order.sealed, strict=True), 1):
            yield order.kept.customer_id, order_id, number, email, name, code.lookup, code.sealed


def addressees(order: Order) -> Iterable[tuple[str | None, str | None]]:
    """Returns the address and name of each line of an order, in the order of its codes: as they are asked for, for they may be 5,000."""
    if not order.recipients:
        return repeat((None, None), order.code_count)
    addressees, quantities = map(_addressee, order.recipients), map(_quantity, order.recipients)
    return chain.from_iterable(map(repeat, addressees, quantities))


_addressee = attrgetter("email", "name")
_quantity = attrgetter("quantity")
