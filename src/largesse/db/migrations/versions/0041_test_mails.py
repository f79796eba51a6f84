"""Test mails, which somebody who sends has sent to themselves."""

from largesse.database.migrate import run_sql_beside

revision = "0041"
down_revision = "0040"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
