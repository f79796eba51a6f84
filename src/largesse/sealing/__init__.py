"""What is sealed in the database, and under which master keys.

`master_keys` keeps the keys that something may be sealed under: a process without one of them does not start, as it would take
orders, seal their codes under a key of its own, and open none of the others. `retiring` says when a key can go. `tables` is how the rows of a table are sealed anew under the
newest key; each room that seals something says so of its own tables, and `largesse.resealing` goes through them all.
"""

from largesse.sealing.master_keys import (
    KeyRecord,
    is_sealed,
    list_master_keys,
    note_sealing,
    prove_master_key,
    tell_sealing_for_ever,
)
from largesse.sealing.retiring import IDLE, retire, sealing_elsewhere
from largesse.sealing.tables import Key, SealedTable, Step

__all__ = [
    "IDLE",
    "Key",
    "KeyRecord",
    "SealedTable",
    "Step",
    "is_sealed",
    "list_master_keys",
    "note_sealing",
    "prove_master_key",
    "retire",
    "sealing_elsewhere",
    "tell_sealing_for_ever",
]
