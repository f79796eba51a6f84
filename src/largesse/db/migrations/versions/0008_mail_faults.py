"""Whose fault a refused message is, and sending again what bounced."""

from largesse.database.migrate import run_sql_beside

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
