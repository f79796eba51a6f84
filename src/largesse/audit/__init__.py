"""The audit log: who did what, from where, with which request.

`Acting` records an act in the transaction that does it. Entries are chained, so that `largesse verify` finds changes that were made directly in the database.
"""
