"""Webhook deliveries, mail to recipients, and the clock they go by."""

from largesse.database.migrate import run_sql_beside

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
