"""The queues of subscriptions under their own name."""

from largesse.database.migrate import run_sql_beside

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
