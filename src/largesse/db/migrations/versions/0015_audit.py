"""The audit log, and the keys of chains."""

from largesse.database.migrate import run_sql_beside

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
