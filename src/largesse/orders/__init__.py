"""Orders: what may be asked for, placing it, and reading it back."""

from largesse.orders.cancelling import Cancellation, cancel_order
from largesse.orders.findings import Findings
from largesse.orders.ids import FEW_IDS, LAST_ID, IdWatch, read_ids_left
from largesse.orders.kept import Receipt
from largesse.orders.listing import OrderLists
from largesse.orders.options import Options, options_of, told_options
from largesse.orders.placer import MAX_ORDERS, Placer
from largesse.orders.quoting import Quote, Quoter
from largesse.orders.recipients import MAX_CODES, MAX_QUANTITY
from largesse.orders.records import read_order
from largesse.orders.request import (
    DEFAULT_COUNTRY,
    MAX_QUOTE,
    MAX_REFERENCE,
    Asked,
    Choice,
    CollectionChoice,
    ProductChoice,
    TemplateChoice,
)
from largesse.orders.requested import OrderRequest, read_request
from largesse.orders.sending import Sender

__all__ = [
    "DEFAULT_COUNTRY",
    "FEW_IDS",
    "LAST_ID",
    "MAX_CODES",
    "MAX_ORDERS",
    "MAX_QUANTITY",
    "MAX_QUOTE",
    "MAX_REFERENCE",
    "Asked",
    "Cancellation",
    "Choice",
    "CollectionChoice",
    "Findings",
    "IdWatch",
    "Options",
    "OrderLists",
    "OrderRequest",
    "Placer",
    "ProductChoice",
    "Quote",
    "Quoter",
    "Receipt",
    "Sender",
    "TemplateChoice",
    "cancel_order",
    "options_of",
    "read_ids_left",
    "read_order",
    "read_request",
    "told_options",
]
