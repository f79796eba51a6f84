"""Confirmed addresses, and links that were mailed."""

from largesse.database.migrate import run_sql_beside

revision = "0045"
down_revision = "0044"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
