"""Fulfilment: what becomes of a claimed gift, by choice or at once: voucher numbers and parcels, and the mail that tells of them.

`gifts` is what a recipient can do with a claimed gift, each in one transaction; `choices` says which products may be chosen.
`vouchers` is the number that a recipient holds, and how it rests sealed. `stock` imports numbers, `issuers` say where a line's
comes from, `handing` hands them out, in turn when the stock had run out. `shipments` are the parcels; `table` reads the CSV files
of both. `notices` makes mail due; `keeping` is what a worker does from time to time. For operators: docs/fulfilment.md.
"""

from largesse.fulfilment.gifts import ClaimedGift, ClaimedGifts, NotPossible, Step
from largesse.fulfilment.handing import serve_all_waiting
from largesse.fulfilment.issuers import Issuer, StockIssuer, TestIssuer
from largesse.fulfilment.keeping import expire_late, measure_stock
from largesse.fulfilment.shipments import export_shipments, import_shipments
from largesse.fulfilment.stock import Imported, StockLevel, find_stocked, import_vouchers, list_stock
from largesse.fulfilment.vouchers import Voucher

__all__ = [
    "ClaimedGift",
    "ClaimedGifts",
    "Imported",
    "Issuer",
    "NotPossible",
    "Step",
    "StockIssuer",
    "StockLevel",
    "TestIssuer",
    "Voucher",
    "expire_late",
    "export_shipments",
    "find_stocked",
    "import_shipments",
    "import_vouchers",
    "list_stock",
    "measure_stock",
    "serve_all_waiting",
]
