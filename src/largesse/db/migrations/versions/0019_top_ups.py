"""Top-ups that customers ask for."""

from largesse.database.migrate import run_sql_beside

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
