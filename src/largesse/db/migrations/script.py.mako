"""${message}"""

from largesse.db.migrate import run_sql_beside

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
