"""Whether the ledger is chained, asked so that a cluster can answer."""

from largesse.database.migrate import run_sql_beside

revision = "0042"
down_revision = "0041"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
