"""Who gets in at the embedded server, and how far: tried with psql, as anybody on the machine would."""

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from largesse.db.cluster import TRUSTING, Cluster, programs
from largesse.db.embedded import EmbeddedServer
from largesse.db.roles import Role

pytestmark = pytest.mark.embedded

LIMIT_S = 60.0
WORLD = """
customers:
  - key: acme
    name: Acme Ltd
    plan: pro
    funding: balance
    funding_accounts: [{key: gbp, name: Float, master: true, currency: GBP, balance: 50.00}]
"""
# What somebody says who acts for another customer than the one there is.
OTHERS = "SET largesse.customers = '{2}'; SET largesse.environments = '{production}';"
KEPT = "SELECT (SELECT count(*) FROM customers), (SELECT count(*) FROM accounts), (SELECT count(*) FROM entries)"


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The data directory of a migrated installation whose server runs."""
    data_dir = tmp_path_factory.mktemp("passwords") / "data"
    world = data_dir.with_name("world.yaml")
    world.write_text(WORLD)
    with EmbeddedServer(data_dir):
        for command in (("migrate",), ("load", str(world))):
            done = largesse(data_dir, *command)
            assert done.returncode == 0, done.stderr
        yield data_dir


def largesse(data_dir: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What a command of an installation came to."""
    return subprocess.run(
        [sys.executable, "-m", "largesse", *arguments],
        env={**os.environ, "LARGESSE_DATA_DIR": str(data_dir)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


@cache
def address(data_dir: Path, role: str) -> str:
    """Where a role finds the database, as the command says: the same for as long as the server runs."""
    done = largesse(data_dir, "database-url", "--role", role)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def psql(url: str, sql: str, *, user: str | None = None) -> tuple[int, str, str]:
    """The exit code of psql, what it printed and what it complained of; `user` of the machine runs it."""
    program = shutil.which("psql") if user else str(programs() / "psql")  # ours may lie where others cannot go
    assert program is not None
    drop = {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []} if user else {}
    done = subprocess.run(
        [program, "-XAtqw", "-v", "ON_ERROR_STOP=1", url, "-c", sql],
        cwd="/",
        env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        **drop,
    )
    return done.returncode, done.stdout.strip(), done.stderr.strip()


@pytest.mark.parametrize("role", ["app", "worker", "operator", "read", "owner"])
def test_each_role_logs_in_as_itself_and_is_no_superuser(installation: Path, role: str) -> None:
    url = address(installation, role)
    asked = "SELECT session_user, current_user, rolsuper FROM pg_roles WHERE rolname = session_user"
    assert psql(url, asked) == (0, f"largesse_{role}|largesse_{role}|f", "")


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("UPDATE entries SET amount_minor = 1", "permission denied for table entries"),
        ("DELETE FROM entries", "permission denied for table entries"),
        ("TRUNCATE entries", "permission denied for table entries"),
        ("UPDATE code_readings SET order_id = 1", "permission denied for table code_readings"),
        ("DELETE FROM code_readings", "permission denied for table code_readings"),
        ("ALTER TABLE entries DISABLE TRIGGER ALL", "must be owner of table entries"),
        ("ALTER TABLE entries DISABLE ROW LEVEL SECURITY", "must be owner of table entries"),
        ("SET session_replication_role = replica", "permission denied to set parameter"),
        ("COPY entries FROM PROGRAM 'id'", "permission denied to COPY"),
        ("COPY (SELECT 1) TO PROGRAM 'id'", "permission denied to COPY"),
        ("SET ROLE largesse_owner", "permission denied to set role"),
        ("SET SESSION AUTHORIZATION largesse", "permission denied to set session authorization"),
        ("CREATE TABLE mine ()", "permission denied for schema public"),
        ("ALTER ROLE largesse_app SUPERUSER", "permission denied to alter role"),
        ("SELECT rolpassword FROM pg_authid", "permission denied for table pg_authid"),
        ("INSERT INTO order_acts (customer_id, order_id, act) VALUES (1, 1, 'x')", "violates row-level"),
        ("SET row_security = off; SELECT FROM accounts", "query would be affected by row-level security"),
        ("ALTER TABLE accounts NO FORCE ROW LEVEL SECURITY", "must be owner of table accounts"),
        ("DROP POLICY own_rows ON accounts", "must be owner of relation accounts"),
        ("CREATE POLICY mine ON accounts USING (true)", "must be owner of table accounts"),
        ("COPY accounts FROM STDIN", "COPY FROM not supported with row-level"),
        ("ALTER FUNCTION callers RESET ALL", "must be owner of function callers"),
    ],
)
def test_the_application_cannot_undo_what_guards_the_data(installation: Path, sql: str, said: str) -> None:
    code, printed, complained = psql(address(installation, "app"), f"{OTHERS} {sql}")
    assert (code, printed) == (1, "")
    assert said in complained


def test_the_application_sees_the_rows_of_whom_it_says(installation: Path) -> None:
    asked = "SELECT count(*) FROM accounts"
    app = address(installation, "app")
    code, printed, complained = psql(app, asked)
    assert (code, printed) == (1, "")
    assert 'unrecognized configuration parameter "largesse.customers"' in complained
    assert psql(app, f"{OTHERS} {asked}; {asked.replace('accounts', 'entries')}") == (0, "0\n0", "")
    own = OTHERS.replace("2", "1")
    assert psql(app, f"{own} {asked}")[1] == psql(address(installation, "operator"), asked)[1] == "4"
    assert psql(app, f"{own.replace('production', 'staging')} {asked}")[1] == "0"


def test_nobody_gets_in_without_the_password(installation: Path) -> None:
    parts = urlsplit(address(installation, "app"))
    host = parse_qs(parts.query)["host"][0]
    for name in ("largesse", *Role, "postgres"):
        for password in ("", ":wrong"):
            code, _, complained = psql(f"postgresql://{name}{password}@/largesse?host={host}", "SELECT 1")
            assert code == 2
            assert "fe_sendauth: no password" in complained or "password authentication failed" in complained
    passwords = installation / "postgres.passwords"
    assert passwords.stat().st_mode & 0o777 == 0o600
    assert passwords.stat().st_uid == os.geteuid()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can try as another user")
@pytest.mark.skipif(shutil.which("psql") is None, reason="no psql that others on this machine may run")
def test_another_user_of_the_machine_does_not_get_in(installation: Path) -> None:
    """As root runs it the server is `nobody`'s process, who so reaches the socket; and is refused like everybody."""
    socket_dir = parse_qs(urlsplit(address(installation, "app")).query)["host"][0]
    for parent in installation.parents:
        if parent.stat().st_uid == os.geteuid() and parent != Path("/") and not parent.stat().st_mode & 0o1:
            parent.chmod(parent.stat().st_mode | 0o11)  # so that it is the password alone that keeps them out
    for user in ("nobody", "daemon"):
        for name in ("largesse", Role.APP, Role.OWNER):
            code, _, complained = psql(f"postgresql://{name}@/largesse?host={socket_dir}", "SELECT 1", user=user)
            assert code == 2
            assert ("no password supplied" in complained) == (user == "nobody"), complained
        code, _, complained = psql(f"postgresql://{Role.APP}@127.0.0.1/largesse", "SELECT 1", user=user)
        assert code == 2


def test_a_server_that_lets_everybody_in_is_put_right_in_place(tmp_path: Path) -> None:
    """As one of a release before there were passwords, running or not, or one whose file was lost."""
    data_dir = tmp_path / "data"
    with EmbeddedServer(data_dir) as server:
        host = parse_qs(urlsplit(server.url()).query)["host"][0]
        anybody = f"postgresql://largesse@/largesse?host={host}"
        psql(server.url(), "CREATE TABLE kept (); ")
        cluster = Cluster(data_dir, {})
        for lost in (True, False):
            before = cluster.running()
            assert before is not None
            (data_dir / "postgres.passwords").unlink()
            if not lost:
                cluster._let_in(before, TRUSTING, asked=False)
                psql(anybody, "DROP ROLE largesse_app, largesse_read, largesse_worker, largesse_operator")
                assert psql(anybody, "SELECT 1")[0] == 0
            with EmbeddedServer(data_dir) as again:
                assert psql(again.url(role=Role.APP), "SELECT current_user")[1] == Role.APP
                assert psql(again.url(), "SELECT count(*) FROM kept") == (0, "0", "")
                assert psql(anybody, "SELECT 1")[0] == 2


@pytest.mark.slow
def test_a_dump_by_the_owner_restores_whole(installation: Path, tmp_path: Path) -> None:
    """Every row, whatever row-level security says, with owners, rights and policies."""
    dump = [str(programs() / "pg_dump"), "--format=custom", f"--file={tmp_path / 'dump'}"]
    subprocess.run([*dump, address(installation, "owner")], check=True, timeout=LIMIT_S)
    with EmbeddedServer(tmp_path / "data") as other:
        restore = [str(programs() / "pg_restore"), "--exit-on-error", f"--dbname={other.url()}"]
        subprocess.run([*restore, str(tmp_path / "dump")], check=True, timeout=LIMIT_S)
        assert psql(other.url(), KEPT) == psql(address(installation, "owner"), KEPT) == (0, "1|4|2", "")
        app = other.url(role=Role.APP)
        assert psql(app, f"{OTHERS} SELECT count(*) FROM accounts") == (0, "0", "")
        assert psql(app, "DROP POLICY own_rows ON accounts")[0] == 1
    shutil.copy(installation / "master-key", tmp_path / "data")
    done = largesse(tmp_path / "data", "verify")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_an_owner_who_was_given_no_bypass_dumps_every_row_all_the_same(installation: Path, tmp_path: Path) -> None:
    """Its policies let it, once pg_dump is told that security may stay on."""
    with EmbeddedServer(installation) as server:
        administrator = server.url()
    dump = [str(programs() / "pg_dump"), "--data-only", "--table=accounts", address(installation, "owner")]
    psql(administrator, f"ALTER ROLE {Role.OWNER} NOBYPASSRLS")
    try:
        refused = subprocess.run(dump, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert "query would be affected by row-level security" in refused.stderr
        done = subprocess.run(
            [*dump, "--enable-row-security"], capture_output=True, text=True, timeout=LIMIT_S, check=True
        )
    finally:
        psql(administrator, f"ALTER ROLE {Role.OWNER} BYPASSRLS")
    rows = done.stdout.partition("COPY public.accounts")[2].partition("FROM stdin;\n")[2].partition("\n\\.")[0]
    assert len(rows.splitlines()) == 4
