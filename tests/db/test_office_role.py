"""What the login of the back office reaches in the database: what its table says, and nothing else."""

import asyncpg
import pytest
from tests.closing import closing
from tests.db.test_rights import acting

from largesse.db.office_rights import HIDDEN_OF_OFFICE, NOT_OF_OFFICE, OF_STAFF, SHOWN_TO_OFFICE
from largesse.db.policies import TABLES as HELD_APART
from largesse.db.pool import Database
from largesse.db.rights import FUNCTIONS, SHOWN, TABLES
from largesse.db.roles import Role
from largesse.db.scope import OFFICE

_WORDS = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE")


async def test_it_may_do_with_each_table_what_the_declaration_says(module_database_url: str) -> None:
    async with acting(module_database_url, Role.OFFICE) as connection:
        for table, writes in TABLES.items():
            said = {privilege.partition("(")[0] for privilege in writes.of(Role.OFFICE)}
            if table not in NOT_OF_OFFICE:
                said.add("SELECT")
            granted = set()
            for word in _WORDS:
                column = "has_any_column_privilege" if word in {"SELECT", "INSERT", "UPDATE"} else "has_table_privilege"
                if await connection.fetchval(f"SELECT {column}(current_user, $1, $2)", table, word):
                    granted.add(word)
            assert granted == said, table


async def test_what_people_of_customers_sign_in_with_is_not_its_business(module_database_url: str) -> None:
    async with acting(module_database_url, Role.OFFICE) as connection:
        for table in NOT_OF_OFFICE:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(f"SELECT FROM {table}")
        for table in ("sessions", "people", "sign_in_links", "users", "api_keys"):
            assert "DELETE" not in TABLES[table].office
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(f"DELETE FROM {table}")
        assert TABLES["sessions"].office == ""
        # To take a second step away, and with it the password, which a reset does.
        assert TABLES["people"].office == "UPDATE(password), UPDATE(totp)"


async def test_no_code_pin_voucher_number_or_secret_is_read(module_database_url: str) -> None:
    async with acting(module_database_url, Role.OFFICE) as connection:
        hidden = [*HIDDEN_OF_OFFICE.items(), ("people", ("password", "totp")), ("staff", ("password", "totp"))]
        for table, columns in hidden:
            for column in columns:
                for statement in (f"SELECT {column} FROM {table}", f"SELECT FROM {table} WHERE {column} IS NOT NULL"):
                    with pytest.raises(asyncpg.InsufficientPrivilegeError):
                        await connection.execute(statement)
        for table in (*HIDDEN_OF_OFFICE, "people", "staff"):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(f"SELECT * FROM {table}")
            shown = SHOWN_TO_OFFICE.get(table) or SHOWN[table]
            await connection.fetch(f"SELECT {', '.join(shown)} FROM {table}")


@pytest.mark.parametrize("role", [Role.APP, Role.READ])
async def test_nobody_else_reads_what_staff_sign_in_with(module_database_url: str, role: Role) -> None:
    async with acting(module_database_url, role) as connection:
        for table in OF_STAFF:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(f"SELECT FROM {table}")
        for function in ("staff_password_of", "staff_totp_of"):
            assert FUNCTIONS[function] == (Role.OFFICE,)
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(f"SELECT {function}(''::bytea, 1)")


async def test_it_sees_the_rows_of_all_customers_of_tables_that_it_reads(module_database_url: str) -> None:
    async with acting(module_database_url, Role.OFFICE) as connection:
        policies = await connection.fetch(
            "SELECT tablename, qual FROM pg_policies WHERE roles @> ARRAY['largesse_office'::name]"
        )
    assert {row["tablename"] for row in policies} == set(HELD_APART) - NOT_OF_OFFICE
    assert {row["qual"] for row in policies} == {"true"}


async def test_without_the_master_key_it_makes_no_session_and_no_owner(module_database_url: str) -> None:
    """An injection, or the password of its login, is not enough."""
    async with closing(Database.connect(module_database_url, role=Role.OFFICE)) as database:
        for statement in (
            "INSERT INTO staff (email, email_key, name, role) VALUES ('x', 'x', 'x', 'owner')",
            "INSERT INTO staff_sessions (hash, staff_id, browser, awaits_second_step, ends_at)"  # noqa: ISC004
            " VALUES (sha256('x'), 1, '', false, now() + interval '1 day')",
            "INSERT INTO staff_links (hash, kind, staff_id, ends_at) VALUES (sha256('x'), 'sign_in', 1, 'infinity')",
            "INSERT INTO staff_recovery_codes (staff_id, hash) VALUES (1, sha256('x'))",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError, match="takes the key of the credentials"):
                await database.execute(OFFICE, statement)
        assert await database.fetchval(OFFICE, "SELECT staff_password_of('wrong', 1)") is None
