"""The last anchor of each account."""

from largesse.database.migrate import run_sql_beside

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
