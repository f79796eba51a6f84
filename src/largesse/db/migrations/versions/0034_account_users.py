"""Which people may use which funding accounts."""

from largesse.database.migrate import run_sql_beside

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
