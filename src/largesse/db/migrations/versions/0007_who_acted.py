"""Which key placed an order, read its codes, cancelled it or had it mailed again, and from which address."""

from largesse.database.migrate import run_sql_beside

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
