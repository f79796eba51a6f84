"""The proof of the master key."""

from largesse.database.migrate import run_sql_beside

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
