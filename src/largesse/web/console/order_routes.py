"""The part of the table of routes that is about orders, and what they add up to."""

from __future__ import annotations

from largesse.base.i18n.templates import text
from largesse.people.roles import Right
from largesse.web.console import order, orders, reports
from largesse.web.console.table import Entry, Group

_LIST, _ONE = "/app/orders", "/app/orders/{reference}"

ORDERS = (
    Entry("GET", _LIST, orders.show, Right.SEE_ORDERS, text("Orders"), Group.GIFTS),
    Entry("GET", f"{_LIST}.csv", orders.download, Right.MOVE_FUNDS, text("Orders")),
    Entry("GET", _ONE, order.show, Right.SEE_ORDERS, text("Order")),
    Entry("POST", f"{_ONE}/resend", order.send_again, Right.SEND),
    Entry("GET", f"{_ONE}/resend-unclaimed", order.ask_sending_again, Right.SEND, text("Send again to all")),
    Entry("POST", f"{_ONE}/resend-unclaimed", order.send_all_again, Right.SEND),
    Entry("POST", f"{_ONE}/correct", order.correct, Right.SEND, text("Order")),
    Entry("GET", f"{_ONE}/codes", order.ask_codes, Right.READ_CODES, text("Codes again")),
    Entry("POST", f"{_ONE}/codes", order.show_codes, Right.READ_CODES, text("Codes again"), step_up=True),
    Entry("GET", f"{_ONE}/cancel", order.ask_cancelling, Right.SEND, text("Cancel what is unclaimed")),
    Entry("POST", f"{_ONE}/cancel", order.cancel, Right.SEND),
)

REPORTS = (
    Entry("GET", "/app/reports", reports.show, Right.SEE_ORDERS, text("Reports"), Group.MONEY),
    Entry("GET", "/app/reports.csv", reports.download, Right.MOVE_FUNDS, text("Reports")),
)
