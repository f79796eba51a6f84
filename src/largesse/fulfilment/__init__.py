"""Fulfilment: what becomes of a claimed gift, by choice or at once: voucher numbers and parcels, and the mail that tells of them.

`gifts` is what a recipient can do with a claimed gift, each in one transaction; `choices` says which products may be chosen.
`vouchers` is the number that a recipient holds, and how it rests sealed. `inventory` imports numbers, `providers` say where a line's
comes from, `allocation` gives it one, in turn when the inventory had run out. `shipments` are the parcels; `table` reads the CSV files
of both. `notifications` makes mail due; `maintenance` is what a worker does from time to time; `resealing` brings what is sealed
under the newest master key, `erasing` takes out where parcels go. For operators: docs/fulfilment.md.
"""
