"""Marks of what accounts are, and triggers that keep it."""

from largesse.database.migrate import run_sql_beside

revision = "0046"
down_revision = "0045"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
