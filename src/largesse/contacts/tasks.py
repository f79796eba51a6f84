"""What contacts register: people who left go after 400 days, and postal addresses are encrypted again under the newest key."""

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
