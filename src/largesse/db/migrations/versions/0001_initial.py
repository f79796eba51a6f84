"""The schema of the first release."""

from largesse.database.migrate import run_sql_beside

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
