"""Deliveries that wait, found by whose they are."""

from largesse.database.migrate import run_sql_beside

revision = "0043"
down_revision = "0042"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
