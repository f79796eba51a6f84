"""Passwords of the embedded server. Every login needs one. They are in one file of the data directory.

The file is written last, when the server has the passwords and asks for them. If it exists, everything is done. Otherwise everything is
done again: in a new cluster, in one of a release before there were passwords, or after the file was lost.
"""

import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from largesse.db.roles import Role

ADMIN = "largesse"  # the superuser, who makes roles and databases
_FILE = "postgres.passwords"

# The contents of pg_hba.conf. The server listens only on its socket.
ASKING = """# Made by Largesse. Nobody gets in without a password (postgres.passwords in the data directory).
local all all scram-sha-256
local replication all scram-sha-256
"""
TRUSTING = f"# Made by Largesse, for as long as passwords are being made.\nlocal all {ADMIN} trust\n"


def read_passwords(data_dir: Path) -> Mapping[str, str] | None:
    """Returns the passwords by role; None if they must be made."""
    try:
        passwords: dict[str, str] = json.loads((data_dir / _FILE).read_text("ascii"))
    except (FileNotFoundError, ValueError):
        return None
    return passwords if passwords.keys() >= {ADMIN, *Role} else None


def make_passwords() -> Mapping[str, str]:
    """Returns new passwords for the superuser and every role."""
    return {name: secrets.token_hex(32) for name in (ADMIN, *Role)}


def keep_passwords(data_dir: Path, passwords: Mapping[str, str]) -> None:
    """Writes the whole file to the disk, readable only by its owner."""
    unfinished = data_dir / f"{_FILE}.new"
    unfinished.unlink(missing_ok=True)
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(passwords, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(data_dir / _FILE)


def password_sql(passwords: Mapping[str, str]) -> str:
    """Returns the SQL that makes the roles and sets their passwords."""
    # Nobody can guess so many random bits. More iterations would only make each login slower.
    statements = ["SET scram_iterations = 1"]
    for name, password in passwords.items():
        statements.append(f"DO $$ BEGIN CREATE ROLE {name}; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
        statements.append(f"ALTER ROLE {name} LOGIN PASSWORD '{password}'")
    return ";\n".join(statements)
