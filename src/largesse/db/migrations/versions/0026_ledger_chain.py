"""Marks of the ledger's entries."""

from largesse.database.migrate import run_sql_beside

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
