"""Chains: rows that bear a mark of their content and of the row before them, so that a row forged with the database alone is found.

`chain` makes and checks the marks. `keys` keeps what they are made with: random keys, sealed in the database under the master
key; `resealing` brings them under a new one. `largesse.funding` chains the entries of each account so, `largesse.audit` the events of each customer; `largesse verify` makes all
marks again. Why so: docs/decisions/0030-chains.md.
"""
