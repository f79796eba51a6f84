"""What is broken on purpose about supplier orders and their costs, and which check must find it."""

from __future__ import annotations

from tests.verify.corruption import DIGITAL
from tests.verify.corruption import corruption as _c

_ID = "00000000-0000-0000-0000-000000000001"


def _order(state: str, attempt: int = 1, value: str = "value_minor", id_: str = _ID, number: int = 1) -> str:
    """A supplier order of a line that was never claimed, or that stock has served."""
    return f"""
        INSERT INTO supplier_orders (customer_id, order_id, number, supplier, attempt, supplier_order_id, product_id, value_minor, state,
                                     created_at, ended_at, due_at)
        SELECT customer_id, id, {number}, 'cards', {attempt}, '{id_}', product_id, {value}, '{state}', now(), now(), 'infinity'
        FROM orders WHERE id = {DIGITAL}
    """


SUPPLIER_CORRUPTIONS = (
    _c("supplier-orders-fit", (_ID,), _order("refused")),
    _c("supplier-orders-fit", (_ID,), _order("refused", value="value_minor + 1")),
    _c("supplier-attempts-follow", (_ID,), _order("refused", attempt=2), "supplier-orders-fit"),
    _c("supplier-costs-add-up", None, _order("kept"), "supplier-orders-fit"),
    _c(
        "supplier-costs-add-up",
        None,
        """INSERT INTO supplier_costs (supplier, product_id, currency, day, bought, kept, value_minor, cost_minor)
           VALUES ('cards', 1, 'GBP', '2026-01-01', 1, 0, 1000, 900)""",
    ),
)
