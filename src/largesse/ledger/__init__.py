"""Funding accounts and the double-entry ledger: balances, entries, transfers, top-ups, statements and invoiced amounts.

`posting` is the only module that writes entries. docs/decisions/0005-ledger.md says why.
"""
