"""How often templates are used."""

from largesse.database.migrate import run_sql_beside

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
