"""Orders: what may be asked for, placing it, and reading it back."""

from largesse.orders.cancelling import Cancellation, cancel_order
from largesse.orders.ids import FEW_IDS, LAST_ID, IdWatch, read_ids_left
from largesse.orders.kept import Receipt
from largesse.orders.listing import OrderLists
from largesse.orders.options import told_options
from largesse.orders.placer import MAX_ORDERS, Placer
from largesse.orders.quoting import Quote, Quoter
from largesse.orders.records import read_order
from largesse.orders.request import SendBody, SendCollection, SendGift, SendTemplate
from largesse.orders.requested import OrderRequest, read_request
from largesse.orders.sending import Sender

__all__ = [
    "FEW_IDS",
    "LAST_ID",
    "MAX_ORDERS",
    "Cancellation",
    "IdWatch",
    "OrderLists",
    "OrderRequest",
    "Placer",
    "Quote",
    "Quoter",
    "Receipt",
    "SendBody",
    "SendCollection",
    "SendGift",
    "SendTemplate",
    "Sender",
    "cancel_order",
    "read_ids_left",
    "read_order",
    "read_request",
    "told_options",
]
