"""The amounts above which a send is confirmed first."""

from largesse.database.migrate import run_sql_beside

revision = "0048"
down_revision = "0047"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
