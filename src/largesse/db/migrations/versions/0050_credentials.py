"""Guards what people sign in with: roles that serve and deliver change it with a key of the master key alone."""

from largesse.database.migrate import run_sql_beside

revision = "0050"
down_revision = "0049"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
