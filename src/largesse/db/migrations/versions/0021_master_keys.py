"""Every master key that something may be sealed under."""

from largesse.database.migrate import run_sql_beside

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
