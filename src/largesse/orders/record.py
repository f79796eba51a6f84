"""The order record: what GET /orders and the order.created event tell of an order, from its columns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from largesse.base.money import to_number
from largesse.events.order_created import ORDER_CREATED, OrderRecord

# Members of a record that are columns of another name.
_COLUMN_OF = {
    "value": "value_minor",
    "source_type": "source",
    "gift_selection_type": "gift_selection",
    "gift_product_id": "product_id",
    "gifts_collection_id": "collection_id",
    "line_count": "code_count",
    "created_by": "service_account_id",
}
_, _, *_told, _ = OrderRecord.__struct_fields__  # but the id, the event and the time
# The columns of an order that its record tells, in the order of the record.
TOLD_COLUMNS = tuple(_COLUMN_OF.get(member, member) for member in _told)


def order_record(order_id: int, told: Sequence[Any], created_at: datetime) -> OrderRecord:
    """The order record of what an order has in `TOLD_COLUMNS`."""
    reference, customer_id, value_minor, currency, *rest = told
    value = to_number(value_minor, currency)
    members = [order_id, ORDER_CREATED.name, reference, customer_id, value, currency, *rest, created_at]
    return OrderRecord(*members)
