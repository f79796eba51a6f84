"""What is known of API keys: who made them, what they replace, where they were last used."""

from largesse.database.migrate import run_sql_beside

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
