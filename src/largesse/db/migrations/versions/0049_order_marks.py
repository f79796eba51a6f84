"""Marks of orders that were changed since they were placed."""

from largesse.database.migrate import run_sql_beside

revision = "0049"
down_revision = "0048"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
