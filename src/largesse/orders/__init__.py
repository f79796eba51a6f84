"""Orders: what may be asked for, placing it, and reading it back.

What is asked: `request` and its rules, with `recipients`, `texts`, `wrappings` and the `options` that may be left out; `findings` is
all that is wrong with it. `quoting` says what it would cost, and a caller keeps that as one of the `quotes`. `sending` leads to an
`order` that is handed to the `placer`, which places many in one transaction: `reading` reads and locks what they are decided on,
`rules` decides, `spending` holds service accounts to their
limits, `writing` writes, `writing_at_home` where customers are spread over nodes, both what `rows` makes of an order. `aside` is where orders wait whose accounts are locked elsewhere; `settling` finds out what
became of a COMMIT whose answer was lost.

Afterwards: an order is `kept` as a row, with what was `requested`; `record` is what is told of it, `records` reads one back,
`listing` lists a customer's, up to the `horizon`. `finding` says who may act on one, `cancelling` voids and refunds, `acts` keeps
who did what, `erasing` takes an address out of texts, `marks` is what of an order the ledger's marks cover. `reference` and `ids` are its two keys; `overview` is the operator's list, `metrics` are counted. Why so:
docs/decisions/0004-natural-batching.md and 0012-lock-queue.md.
"""

from largesse.orders.acts import OrderAct, list_acts
from largesse.orders.cancelling import Cancellation, cancel_order
from largesse.orders.finding import find_order, references_of
from largesse.orders.findings import Findings
from largesse.orders.ids import FEW_IDS, LAST_ID, IdWatch, read_ids_left
from largesse.orders.kept import Receipt
from largesse.orders.listing import OrderLists
from largesse.orders.options import MAX_FROM_NAME, MAX_MESSAGE, OPTIONS, PERSONAL, Options, options_of
from largesse.orders.order import Gift, Order
from largesse.orders.placer import MAX_ORDERS, Placer
from largesse.orders.quoting import Quote, Quoter
from largesse.orders.recipients import (
    MAX_CODES,
    MAX_NAME,
    MAX_QUANTITY,
    OrderRecipient,
    check_recipient,
)
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
    read_send,
)
from largesse.orders.requested import OrderRequest, read_request
from largesse.orders.sending import Intake

__all__ = [
    "DEFAULT_COUNTRY",
    "FEW_IDS",
    "LAST_ID",
    "MAX_CODES",
    "MAX_FROM_NAME",
    "MAX_MESSAGE",
    "MAX_NAME",
    "MAX_ORDERS",
    "MAX_QUANTITY",
    "MAX_QUOTE",
    "MAX_REFERENCE",
    "OPTIONS",
    "PERSONAL",
    "Asked",
    "Cancellation",
    "Choice",
    "CollectionChoice",
    "Findings",
    "Gift",
    "IdWatch",
    "Intake",
    "Options",
    "Order",
    "OrderAct",
    "OrderLists",
    "OrderRecipient",
    "OrderRequest",
    "Placer",
    "ProductChoice",
    "Quote",
    "Quoter",
    "Receipt",
    "TemplateChoice",
    "cancel_order",
    "check_recipient",
    "find_order",
    "list_acts",
    "options_of",
    "read_ids_left",
    "read_order",
    "read_request",
    "read_send",
    "references_of",
]
