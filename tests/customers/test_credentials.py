"""SQL alone changes nothing that people sign in with: who can run any statement as the serving process needs a key of the master key, too."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import asyncpg
import pytest
from tests.background import run
from tests.closing import closing
from tests.distributed import IS_DISTRIBUTED, KEEPS_WAITING

from largesse.customers.members import add_user, bind_user, set_user_role
from largesse.customers.second_step import forget_second_step, new_recovery_codes
from largesse.customers.sessions import begin_session, end_session, find_session, note_proof, set_notice
from largesse.customers.sign_in_links import find_link, new_link, use_link
from largesse.customers.sign_in_store import add_person, holds_password, set_password
from largesse.db.pool import Connection, Database, connect_once
from largesse.db.roles import Role
from largesse.db.scope import LOOKUP, OPERATOR, WORKER, for_customer
from largesse.encryption.master_keys import note_sealing, prove_master_key, retire
from largesse.encryption.vault import Vault

VAULT = Vault((bytes(range(32)),))
OTHER = Vault((bytes(32),))
SCOPE = "set_config('largesse.customers', '{1}', true), set_config('largesse.environments', '{production}', true)"
HASH = "decode(repeat('ab', 32), 'hex')"

# What somebody with the database's password tries, on rows of the fixture; each is refused.
ON_COPIES = [  # on a cluster, tables on every node
    "INSERT INTO people (email, email_key, password) VALUES ('evil@acme.example', 'evil@acme.example', 'known')",
    "UPDATE people SET password = 'known'",
    "UPDATE people SET password = NULL",
    "UPDATE people SET email = 'evil@acme.example'",
    "UPDATE people SET totp = 'x', language = 'fr'",
    "UPDATE people SET totp_step = 0 - 1",
    "UPDATE people SET confirmed_at = clock_now()",
    "INSERT INTO people (email, email_key) VALUES ('a@acme.example', 'a@acme.example') ON CONFLICT (email_key) DO UPDATE SET password = 'known'",
    "INSERT INTO users (customer_id, email, name, role) VALUES (1, 'evil@acme.example', 'Evil', 'admin')",
    "UPDATE users SET role = 'admin'",
    "UPDATE users SET is_active = false",
    "UPDATE users SET person_id = NULL",
    "UPDATE users SET email = 'evil@acme.example'",
]
ATTACKS = [
    f"INSERT INTO sessions (hash, person_id, environment, browser, ends_at) SELECT {HASH}, id, 'production', '', 'infinity' FROM people",
    f"UPDATE sessions SET hash = {HASH}",
    f"UPDATE sessions SET hash = {HASH}, notice = 'x'",
    "UPDATE sessions SET person_id = person_id + 1",
    "UPDATE sessions SET user_id = NULL",
    "UPDATE sessions SET ends_at = 'infinity'",
    "UPDATE sessions SET seen_at = 'infinity'",
    "UPDATE sessions SET proved_at = clock_now()",
    "UPDATE sessions SET awaits_second_step = NOT awaits_second_step",
    "UPDATE sessions SET device = hash",
    "UPDATE sessions SET ended_at = NULL WHERE ended_at IS NOT NULL",
    "INSERT INTO sessions OVERRIDING SYSTEM VALUE SELECT * FROM sessions ON CONFLICT (hash) DO UPDATE SET ends_at = excluded.ends_at",
    f"INSERT INTO sign_in_links (hash, kind, person_id, ends_at) SELECT {HASH}, 'reset', id, 'infinity' FROM people",
    f"UPDATE sign_in_links SET hash = {HASH}",
    "UPDATE sign_in_links SET ends_at = 'infinity'",
    "UPDATE sign_in_links SET is_mailed = true",
    "UPDATE sign_in_links SET used_at = NULL WHERE used_at IS NOT NULL",
    "INSERT INTO passkeys (person_id, credential_id, credential, name, sign_count) SELECT id, 'x', 'x', 'x', 0 FROM people",
    "UPDATE passkeys SET credential = 'x'",
    "DELETE FROM passkeys",
    f"INSERT INTO recovery_codes (person_id, hash) SELECT id, {HASH} FROM people",
    f"UPDATE recovery_codes SET hash = {HASH} WHERE hash = (SELECT hash FROM recovery_codes LIMIT 1)",
    "DELETE FROM recovery_codes",
    *([] if IS_DISTRIBUTED else ON_COPIES),
]


@pytest.fixture(scope="module")
def filled(module_database_url: str) -> str:
    """A database with a person of every credential; a session and a link of theirs have ended."""
    run(fill(module_database_url))
    return module_database_url


async def fill(url: str) -> None:
    async with connect_once(url, OPERATOR) as connection, connection.transaction():
        await connection.execute(
            "INSERT INTO customers (id, key, name, plan, funding) OVERRIDING SYSTEM VALUE VALUES (1, 'acme', 'Acme', 'pro', 'balance')"
        )
        user_id = await add_user(connection, 1, "a@acme.example", "A", "member")
        person_id = await add_person(connection, "a@acme.example")
        await set_password(connection, person_id, "kept")
        await bind_user(connection, user_id, person_id)
        for _ in range(2):
            await begin_session(connection, person_id, user_id, "production", address=None, browser="Test")
            await new_link(connection, "reset", person_id=person_id)
        await end_session(connection, await connection.fetchval("SELECT min(id) FROM sessions"))
        await new_recovery_codes(connection, person_id)
        await connection.execute(
            "INSERT INTO passkeys (person_id, credential_id, credential, name, sign_count) VALUES ($1, 'k', 'k', 'k', 0)",
            person_id,
        )
    async with connect_once(url, OPERATOR) as connection:
        await prove_master_key(connection, VAULT, keep=True)


@pytest.fixture
async def app(filled: str) -> AsyncIterator[Database]:
    """The pool of a serving process that has not shown a key."""
    database = await Database.connect(filled, role=Role.APP)
    yield database
    await database.close()


def within_one(attack: str) -> str:
    """The attack as a part of a statement that shows a wrong key, and says a scope, by itself."""
    return (
        f"WITH shown AS MATERIALIZED (SELECT {SCOPE}, open_credentials('wrong')), done AS ({attack} RETURNING 1)"
        " SELECT (SELECT count(*) FROM done) FROM shown"
    )


@pytest.mark.parametrize("attack", ATTACKS)
async def test_sql_alone_changes_no_credentials(app: Database, attack: str) -> None:
    for statement in (attack, within_one(attack)):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await app.execute(for_customer(1, "production"), statement)


@pytest.mark.parametrize("attack", ATTACKS)
async def test_a_wrong_key_changes_none_either(app: Database, attack: str) -> None:
    async with app.session(for_customer(1, "production")) as connection:
        for key in (OTHER.credentials_key, VAULT.credentials_hashes[0], b"", None):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):  # noqa: PT012 - one transaction
                async with connection.transaction():
                    await connection.fetchval("SELECT open_credentials($1)", key)
                    await connection.execute(attack)


@pytest.mark.parametrize("attack", ATTACKS)
async def test_a_key_opens_its_transaction_alone(app: Database, attack: str) -> None:
    async with app.session(for_customer(1, "production")) as connection:
        transaction = connection.transaction()
        await transaction.start()
        await connection.fetchval("SELECT open_credentials($1)", VAULT.credentials_key)
        async with app.session(for_customer(1, "production")) as other, other.transaction():
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await other.execute(attack)
        await transaction.commit()
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with connection.transaction():
                await connection.execute(attack)
    assert await app.fetchval(LOOKUP, "SELECT count(*) FROM credential_openings") == 0


async def test_what_guards_them_cannot_be_written(app: Database) -> None:
    for statement in (
        "INSERT INTO credential_openings VALUES (pg_current_xact_id())",
        "UPDATE master_keys SET credentials_hash = sha256('x')",
        "ALTER TABLE sessions DISABLE TRIGGER guarded",
        "SET session_replication_role = replica",
        "TRUNCATE sessions",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await app.execute(LOOKUP, statement)
    # A table of one's own of the same name is not the one that is asked.
    async with app.session(LOOKUP) as connection:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with connection.transaction():
                await connection.execute(
                    "CREATE TEMP TABLE credential_openings ON COMMIT DROP AS SELECT pg_current_xact_id() AS xid;"
                    "SET LOCAL search_path = pg_temp, public; UPDATE public.sessions SET ends_at = 'infinity'"
                )


async def test_what_is_kept_is_told_for_the_key_alone(filled: str, app: Database) -> None:
    async with connect_once(filled, OPERATOR) as connection:
        person_id = await connection.fetchval(
            "UPDATE people SET totp = 'sealed' WHERE email = 'a@acme.example' RETURNING id"
        )
    told = "SELECT password_of($1, $2), totp_of($1, $2)"
    async with app.connection(LOOKUP) as connection:
        for key in (OTHER.credentials_key, VAULT.credentials_hashes[0], b"", None):
            assert await connection.fetchrow(told, key, person_id) == (None, None)
        assert await connection.fetchrow(told, VAULT.credentials_key, person_id) == ("kept", b"sealed")
        assert await connection.fetchrow(told, VAULT.credentials_key, 0) == (None, None)
    for role in (Role.WORKER, Role.READ):
        async with closing(Database.connect(filled, role=role)) as other:
            for function in ("password_of", "totp_of"):
                with pytest.raises(asyncpg.InsufficientPrivilegeError):
                    await other.fetchval(WORKER, f"SELECT {function}($1, $2)", VAULT.credentials_key, person_id)


async def test_a_password_that_is_replaced_meanwhile_no_longer_holds(filled: str, app: Database) -> None:
    app.credentials_key = VAULT.credentials_key
    async with app.transaction(LOOKUP) as connection:
        person_id = await add_person(connection, "e@acme.example")
        await set_password(connection, person_id, "before")
    async with app.session(LOOKUP) as signs_in, connect_once(filled, OPERATOR) as watches:
        async with signs_in.transaction():
            assert await holds_password(signs_in, person_id, "before")
            assert not await holds_password(signs_in, person_id, "other")
            assert not await holds_password(signs_in, person_id, None)
        async with app.transaction(LOOKUP) as changes:
            await set_password(changes, person_id, "after")
            pid = await changes.fetchval("SELECT pg_backend_pid()")
            waiting = asyncio.create_task(holds_in_one(signs_in, person_id))
            while not await watches.fetchval(KEEPS_WAITING, pid):
                assert not waiting.done()
                await asyncio.sleep(0.01)
        assert not await waiting


async def holds_in_one(connection: Connection, person_id: int) -> bool:
    """Whether the password of before still holds, asked in a transaction of its own."""
    async with connection.transaction():
        return await holds_password(connection, person_id, "before")


async def test_the_worker_makes_no_link_without_the_key(filled: str) -> None:
    async with closing(Database.connect(filled, role=Role.WORKER)) as worker:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with worker.transaction(WORKER) as connection:
                await new_link(connection, "reset", person_id=1, ends_others=False)
        worker.credentials_key = VAULT.credentials_key
        async with worker.transaction(WORKER) as connection:
            await new_link(connection, "reset", person_id=1, ends_others=False)


async def test_what_ends_or_shows_takes_no_key(app: Database) -> None:
    async with app.transaction(LOOKUP) as connection:
        session_id = await connection.fetchval("SELECT max(id) FROM sessions")
        await set_notice(connection, session_id, "said")
        await connection.execute("UPDATE people SET language = 'de', zone = 'UTC'")
        await connection.execute("UPDATE sign_in_links SET used_at = clock_now() WHERE used_at IS NULL")
        await end_session(connection, session_id)


async def test_who_has_the_key_changes_them(app: Database) -> None:
    app.credentials_key = VAULT.credentials_key
    async with app.transaction(for_customer(1, "production")) as connection:
        person_id = await add_person(connection, "b@acme.example")
        await set_password(connection, person_id, "kept")
        user_id = await add_user(connection, 1, "b@acme.example", "B", "member")
        await bind_user(connection, user_id, person_id)
        await set_user_role(connection, 1, user_id, "viewer")
        secret = await begin_session(connection, person_id, user_id, "production", address=None, browser="Test")
        link = await new_link(connection, "reset", person_id=person_id)
        await use_link(connection, await find_link(connection, link))
        await new_recovery_codes(connection, person_id)
        await forget_second_step(connection, person_id)
    session = await find_session(app, secret)
    assert session is not None
    assert session.person is not None
    assert session.person.role == "viewer"
    async with app.connection(LOOKUP) as connection:
        with pytest.raises(RuntimeError, match="inside a transaction"):
            await note_proof(connection, session.id)


async def test_a_part_that_is_undone_takes_its_opening_along(app: Database) -> None:
    app.credentials_key = VAULT.credentials_key
    async with app.transaction(LOOKUP) as connection:
        with pytest.raises(ValueError, match="undone"):  # noqa: PT012 - it is to be undone
            async with connection.transaction():
                await add_person(connection, "c@acme.example")
                raise ValueError("undone")
        await add_person(connection, "d@acme.example")


async def opens(app: Database, vault: Vault) -> bool:
    """Whether the key of the newest master key of a vault lets credentials be changed."""
    async with app.transaction(LOOKUP) as connection:
        await connection.fetchval("SELECT open_credentials($1)", vault.credentials_key)
        return bool(await connection.fetchval("SELECT count(*) FROM credential_openings"))


async def test_keys_change_with_master_keys(database_url: str) -> None:
    new, both = Vault((bytes(32),)), Vault((bytes(32), bytes(range(32))))
    async with closing(Database.connect(database_url, role=Role.APP)) as app:
        async with connect_once(database_url, OPERATOR, role=Role.OPERATOR) as connection:
            await prove_master_key(connection, VAULT, keep=True)
            assert (await opens(app, VAULT), await opens(app, new)) == (True, False)
            await prove_master_key(connection, both, keep=True)
            assert (await opens(app, VAULT), await opens(app, new)) == (True, True)
            await retire(connection, both, timedelta(0))
            assert (await opens(app, VAULT), await opens(app, new)) == (False, True)
            # As the release before has left it: the process adds what is missing, or asks for `migrate`.
            await connection.execute("UPDATE master_keys SET credentials_hash = NULL")
            assert not await note_sealing(connection, both)
            await prove_master_key(connection, both, keep=True)
            assert await note_sealing(connection, both)
        assert await opens(app, new)


async def test_a_login_that_has_the_rights_of_the_role_is_refused_as_well(filled: str) -> None:
    """Behind PgBouncer, or with SQL of one's own, whoever logs in acts as themselves."""
    async with closing(asyncpg.connect(filled)) as connection:
        await connection.execute(
            "BEGIN; SET LOCAL citus.enable_create_role_propagation = off; "  # on one server, it means nothing
            f"CREATE ROLE credentials_serves LOGIN IN ROLE {Role.APP}; SET LOCAL SESSION AUTHORIZATION credentials_serves"
        )
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="credentials_serves has not shown"):
            await connection.execute("UPDATE sessions SET ends_at = 'infinity'")
        await connection.execute("ROLLBACK")
