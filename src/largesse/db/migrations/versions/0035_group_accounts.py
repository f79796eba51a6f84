"""Accounts that people make and close, and transfers between them."""

from largesse.database.migrate import run_sql_beside

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
