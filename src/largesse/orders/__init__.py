"""Orders: read and checked, priced, placed in batches, looked up and cancelled.

`service` turns a request into an order and hands it to the `placer`, which places many in one transaction: `reading` reads and locks what
the decision needs, `rules` decides, `store` writes. docs/decisions/0004-natural-batching.md says why.
"""
