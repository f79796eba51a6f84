"""Fulfilment: voucher numbers and parcels, and the mail that tells of them."""

from largesse.fulfilment.handing import serve_all_waiting, serve_waiting, settle_product
from largesse.fulfilment.issuers import Issuer, StockIssuer, TestIssuer, Wanted
from largesse.fulfilment.keeping import expire_late, measure_stock
from largesse.fulfilment.notices import seal_email
from largesse.fulfilment.shipments import (
    Shipped,
    export_shipments,
    import_shipments,
    read_address,
    read_shipment,
    request_shipment,
)
from largesse.fulfilment.stock import Imported, StockLevel, find_stocked, import_vouchers, list_stock
from largesse.fulfilment.vouchers import Handed, Voucher, read_handed

__all__ = [
    "Handed",
    "Imported",
    "Issuer",
    "Shipped",
    "StockIssuer",
    "StockLevel",
    "TestIssuer",
    "Voucher",
    "Wanted",
    "expire_late",
    "export_shipments",
    "find_stocked",
    "import_shipments",
    "import_vouchers",
    "list_stock",
    "measure_stock",
    "read_address",
    "read_handed",
    "read_shipment",
    "request_shipment",
    "seal_email",
    "serve_all_waiting",
    "serve_waiting",
    "settle_product",
]
