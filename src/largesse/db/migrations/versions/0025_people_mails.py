"""Mail to people who sign in."""

from largesse.database.migrate import run_sql_beside

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
