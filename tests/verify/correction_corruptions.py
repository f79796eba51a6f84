"""What is broken on purpose about corrections, and which check must find it."""

from __future__ import annotations

from tests.verify.corruption import FLOAT
from tests.verify.corruption import corruption as _c


def _approved(transfer: str, by: int = 2) -> str:
    """A correction that says it was approved."""
    return f"""
        INSERT INTO corrections (customer_id, id, environment, account_id, kind, amount_minor, reason, state, proposed_by, proposed_at,
                                 expires_at, decided_by, decided_at, transfer_id)
        SELECT customer_id, 77, environment, id, 'credit', 5, 'none', 'approved', 1, now(), now(), {by}, now(), {transfer}
        FROM accounts WHERE id = {FLOAT}
    """


CORRECTION_CORRUPTIONS = (
    _c("corrections-are-whole", ("correction 77",), _approved("9999"), "corrections-are-by-two"),
    _c("corrections-are-by-two", ("77",), _approved("9999"), "corrections-are-whole"),
    # A credit that nobody proposed.
    _c(
        "corrections-are-whole",
        None,
        f"""UPDATE entries SET kind = 'correction'
            WHERE kind = 'top_up' AND movement_id = (
                SELECT min(movement_id) FROM entries WHERE kind = 'top_up' AND account_id = {FLOAT})""",
    ),
)
