"""Orders: what may be asked for, placing it, and reading it back."""

from largesse.orders.cancelling import Cancellation, cancel_order
from largesse.orders.listing import OrderLists
from largesse.orders.placer import MAX_ORDERS, Placer
from largesse.orders.records import read_order
from largesse.orders.request import SendBody, SendCollection, SendGift, SendTemplate
from largesse.orders.sending import Sender
from largesse.orders.shapes import OrderRecord, SendResponse

__all__ = [
    "MAX_ORDERS",
    "Cancellation",
    "OrderLists",
    "OrderRecord",
    "Placer",
    "SendBody",
    "SendCollection",
    "SendGift",
    "SendResponse",
    "SendTemplate",
    "Sender",
    "cancel_order",
    "read_order",
]
