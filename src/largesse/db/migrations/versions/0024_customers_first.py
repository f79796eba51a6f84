"""Every row that an order fills names its customer, first in its keys."""

from largesse.database.migrate import run_sql_beside

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
