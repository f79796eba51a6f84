"""Fulfilment: what becomes of a claimed gift, by choice or at once: voucher numbers and parcels, and the mail that tells of them.

`gifts` is what a recipient can do with a claimed gift, each in one transaction; `choices` says which products may be chosen.
`vouchers` is the number that a recipient holds, and how it rests sealed. `inventory` imports numbers, `providers` say where a line's
comes from, `allocation` gives it one, in turn when the inventory had run out. `shipments` are the parcels; `table` reads the CSV files
of both. `notifications` makes mail due; `maintenance` is what a worker does from time to time; `resealing` brings what is sealed
under the newest master key, `erasing` takes out where parcels go. For operators: docs/fulfilment.md.
"""

from largesse.fulfilment.allocation import allocate_all_waiting
from largesse.fulfilment.gifts import ClaimedGift, ClaimedGifts, NotPossible, Step
from largesse.fulfilment.inventory import (
    Imported,
    InventoryLevel,
    find_inventory_product,
    import_vouchers,
    list_inventory,
)
from largesse.fulfilment.maintenance import CUSTOMERS_LATE, expire_late, measure_inventory
from largesse.fulfilment.providers import InventoryProvider, Provider, TestProvider
from largesse.fulfilment.shipments import export_shipments, import_shipments
from largesse.fulfilment.vouchers import Voucher

__all__ = [
    "CUSTOMERS_LATE",
    "ClaimedGift",
    "ClaimedGifts",
    "Imported",
    "InventoryLevel",
    "InventoryProvider",
    "NotPossible",
    "Provider",
    "Step",
    "TestProvider",
    "Voucher",
    "allocate_all_waiting",
    "expire_late",
    "export_shipments",
    "find_inventory_product",
    "import_shipments",
    "import_vouchers",
    "list_inventory",
    "measure_inventory",
]
