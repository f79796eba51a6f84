"""What is sealed in the database, and under which master keys.

`master_keys` keeps the keys that something may be sealed under: a process without one of them does not start, as it would take
orders, seal their codes under a key of its own, and open none of the others. `retiring` says when a key can go. `tables` is how the rows of a table are sealed anew under the
newest key; each room that seals something says so of its own tables, and `largesse.resealing` goes through them all.
"""
