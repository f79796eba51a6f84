"""The tasks of contacts: contacts who left are deleted after 400 days, and key rotation encrypts postal addresses again."""

from largesse.contacts.service import address_context
from largesse.encryption.columns import sealed_column
from largesse.jobs.registry import Old, RoomTasks

CONTACT_ADDRESSES = sealed_column(
    "contacts",
    "sealed_address",
    {"customer_id": "int", "id": "int"},
    lambda vault: vault.addresses,
    lambda row: address_context(row["customer_id"], row["id"]),
)

TASKS = RoomTasks(retention=(Old("contacts", "left_at", days=400),))
