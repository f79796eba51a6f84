"""Registers the texts of thank-you notes for key rotation. `privacy` deletes notes together with their recipient."""

from largesse.encryption.columns import sealed_column
from largesse.lines.states import LineKey
from largesse.notes.service import note_context

NOTES = sealed_column(
    "thank_you_notes",
    "sealed",
    {"customer_id": "int", "id": "bigint"},
    lambda vault: vault.notes,
    lambda row: note_context(LineKey(row["customer_id"], row["order_id"], row["number"])),
    more=("order_id", "number"),
)
