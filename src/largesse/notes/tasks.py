"""What thank-you notes register: their text is encrypted again under the newest key. They go with their recipient (`privacy`)."""

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
