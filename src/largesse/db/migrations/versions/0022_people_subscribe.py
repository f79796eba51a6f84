"""Webhook subscriptions that people make, and their failed deliveries found at once."""

from largesse.database.migrate import run_sql_beside

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
