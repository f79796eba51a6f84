"""Payments of invoiced customers are entries of their own kind."""

from largesse.database.migrate import run_sql_beside

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
