"""The data directory, the limit of open files, a mail server to which nothing is sent, and the master key."""

import asyncio
import json
import os
import ssl
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.mail.conftest import Office, PostOffice
from tests.mail.test_tls import PASSWORD, Guarded, Offering, make_tls, url_of
from tests.worker.test_metrics import free_port

from largesse.base.settings import Settings, load_settings
from largesse.db.pool import Database, connect_once
from largesse.db.scope import OPERATOR
from largesse.doctor import machine
from largesse.doctor.checks import CheckResult, Level
from largesse.doctor.database import check_database
from largesse.encryption.master_keys import prove_master_key, retire
from largesse.encryption.vault import Vault, load_vault
from largesse.mail.smtp import SmtpTimeouts

EXTERNAL = {"LARGESSE_DATABASE_URL": "postgresql://ada@127.0.0.1/largesse"}
LIMITED = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (256, int(sys.argv[1])))
from largesse.doctor.machine import check_open_files
from largesse.base.settings import load_settings
[found] = check_open_files(load_settings({}))
print(json.dumps([found.level, found.setting, found.text]))
"""


def embedded(folder: Path) -> Settings:
    return load_settings({"LARGESSE_DATA_DIR": str(folder)})


@pytest.mark.parametrize(
    ("mode", "level"), [(0o700, Level.OK), (0o755, Level.OK), (0o775, Level.WARNING), (0o707, Level.WARNING)]
)
def test_nobody_else_may_change_the_data_directory(tmp_path: Path, mode: int, level: Level) -> None:
    tmp_path.chmod(mode)
    [found] = machine.check_data_dir(embedded(tmp_path))
    assert (found.level, found.setting) == (level, "LARGESSE_DATA_DIR")


def test_a_data_directory_that_is_missing_or_none(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert [f.level for f in machine.check_data_dir(embedded(tmp_path / "new"))] == [Level.OK]
    assert [f.level for f in machine.check_data_dir(embedded(file))] == [Level.ERROR]
    assert [f.level for f in machine.check_data_dir(embedded(file / "below" / "a file"))] == [Level.ERROR]
    assert machine.check_data_dir(load_settings({**EXTERNAL, "LARGESSE_DATA_DIR": str(file)})) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_data_directory_of_somebody_else(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert [f.level for f in machine.check_data_dir(embedded(tmp_path))] == [Level.ERROR]
    assert [f.level for f in machine.check_data_dir(embedded(tmp_path / "new"))] == [Level.ERROR]


@pytest.mark.long
@pytest.mark.parametrize(("hard", "level"), [("512", "warning"), ("6403", "warning"), ("6404", "ok")])
def test_the_limit_of_open_files_is_enough_for_the_busiest(hard: str, level: str) -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED, hard], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found[:2] == [level, "RLIMIT_NOFILE"]
    assert ("LimitNOFILE" in found[2]) == (level == "warning")


def test_a_limit_of_connections_with_which_no_process_starts_is_an_error() -> None:
    [found] = machine.check_open_files(load_settings({"LARGESSE_MAX_CONNECTIONS": "1000000"}))
    assert (found.level, found.setting) == (Level.ERROR, "LARGESSE_MAX_CONNECTIONS")
    assert "is 1,000,000" in found.text
    assert "LimitNOFILE" in found.text


def test_a_limit_of_connections_counts(tmp_path: Path) -> None:
    [found] = machine.check_open_files(load_settings({"LARGESSE_MAX_CONNECTIONS": "10"}))
    assert "2,414 files" in found.text


# aiosmtpd means STARTTLS, which a server that speaks TLS from the start does not need.
pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")

SHORT = SmtpTimeouts(connect_s=1.0, greeting_s=1.0, command_s=1.0)


@pytest.fixture
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    context, certificate = make_tls(tmp_path, "127.0.0.1")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    return context


async def finding(server: PostOffice, url: str) -> CheckResult:
    """What is found about a server that runs, which gets no mail of it."""
    await server.start()
    try:
        [found] = await machine.check_mail_server(url.replace("PORT", str(server.port)))
    finally:
        await server.close()
    assert server.got == []
    assert found.setting == "LARGESSE_SMTP_URL"
    assert PASSWORD not in found.text
    return found


async def test_no_server_is_no_conversation() -> None:
    assert await machine.check_mail_server(None) == []


@pytest.mark.parametrize(
    ("server", "url", "level", "said"),
    [
        (PostOffice, "smtp://", Level.OK, "answers, not encrypted. It takes addresses of any letters."),
        (partial(PostOffice, utf8=False), "smtp://", Level.OK, "ASCII letters alone before the @"),
        (Offering, "smtp://?starttls=required", Level.ERROR, "does not offer STARTTLS"),
        (PostOffice, "smtps://", Level.ERROR, "does not speak TLS there"),
    ],
)
async def test_what_a_server_answers(server: Callable[[], PostOffice], url: str, level: Level, said: str) -> None:
    found = await finding(server(), url.replace("://", "://127.0.0.1:PORT"))
    assert found.level is level
    assert said in found.text


@pytest.mark.parametrize("implicit", [False, True], ids=["starttls", "smtps"])
async def test_it_is_encrypted_with_and_logged_in_to(trusted: ssl.SSLContext, implicit: bool) -> None:
    server = Guarded(tls=trusted, implicit=implicit)
    scheme = "smtps" if implicit else "smtp"
    found = await finding(server, f"{scheme}://gifts:{quote(PASSWORD, safe='')}@127.0.0.1:PORT")
    assert found.level is Level.OK
    assert "encrypted, and takes the login" in found.text
    assert server.logins == [(b"gifts", PASSWORD.encode())]
    assert server.encrypted == [True]


async def test_a_refused_login(trusted: ssl.SSLContext) -> None:
    server = Guarded(tls=trusted)
    await server.start()
    [found] = await machine.check_mail_server(url_of(server, password="wrong"))
    await server.close()
    assert (found.level, found.setting) == (Level.ERROR, "LARGESSE_SMTP_URL")
    assert "refuses the login (535)" in found.text
    assert "wrong" not in found.text


async def test_a_server_that_takes_no_password() -> None:
    found = await finding(PostOffice(), "smtp://ada:secret@127.0.0.1:PORT?starttls=never")
    assert found.level is Level.ERROR
    assert "takes no login with a user name and a password" in found.text


@pytest.mark.parametrize("implicit", [False, True], ids=["starttls", "smtps"])
async def test_a_certificate_that_nobody_vouches_for(tmp_path: Path, implicit: bool) -> None:
    tls, _ = make_tls(tmp_path, "127.0.0.1")
    server = Guarded(tls=tls, implicit=implicit)
    scheme = "smtps" if implicit else "smtp"
    found = await finding(server, f"{scheme}://gifts:{quote(PASSWORD, safe='')}@127.0.0.1:PORT")
    assert found.level is Level.ERROR
    assert "its certificate is not trusted (self-signed certificate)" in found.text
    assert server.logins == []


async def test_nobody_listens() -> None:
    [found] = await machine.check_mail_server(f"smtp://127.0.0.1:{free_port()}")
    assert found.level is Level.ERROR
    assert "nobody listens there" in found.text


async def test_somebody_listens_and_says_nothing() -> None:
    silent = asyncio.Event()

    async def wait(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await silent.wait()
        writer.close()

    server = await asyncio.start_server(wait, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    [found] = await machine.check_mail_server(f"smtp://127.0.0.1:{port}", SHORT)
    silent.set()
    server.close()
    assert found.level is Level.ERROR
    assert "does not answer" in found.text


RIGHT, WRONG = "5e" * 32, "5f" * 32
SEALED_UNDER_IT = "The database is encrypted under this key."


def test_a_key_is_not_made_by_looking(tmp_path: Path) -> None:
    [found] = machine.check_master_key(embedded(tmp_path))
    assert found.level is Level.OK
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("mode", "level"), [(0o600, Level.OK), (0o640, Level.WARNING), (0o604, Level.WARNING)])
def test_a_generated_key_is_its_owners_alone(tmp_path: Path, mode: int, level: Level) -> None:
    load_vault(embedded(tmp_path))
    (tmp_path / "master-key").chmod(mode)
    [found] = machine.check_master_key(embedded(tmp_path))
    assert (found.level, found.setting) == (level, "LARGESSE_MASTER_KEY")
    assert ("chmod 600" in found.text) == (level is Level.WARNING)


def test_a_key_that_cannot_be_had(tmp_path: Path) -> None:
    (tmp_path / "master-key").write_text("secret")
    [damaged] = machine.check_master_key(embedded(tmp_path))
    [missing] = machine.check_master_key(load_settings(EXTERNAL))
    for found in (damaged, missing):
        assert (found.level, found.setting) == (Level.ERROR, "LARGESSE_MASTER_KEY")
        assert "secret" not in found.text
        assert "openssl rand -base64 32" in found.text


def test_a_key_that_is_set() -> None:
    [found] = machine.check_master_key(load_settings({**EXTERNAL, "LARGESSE_MASTER_KEY": "5e" * 32}))
    assert found.level is Level.OK


async def fits(url: str, keys: str) -> list[tuple[Level, str]]:
    """What is found about the master key, among all that is found about the database."""
    found = await check_database(load_settings({"LARGESSE_DATABASE_URL": url, "LARGESSE_MASTER_KEY": keys}))
    return [(f.level, f.text) for f in found if f.setting == "LARGESSE_MASTER_KEY"]


async def test_the_key_is_the_one_that_codes_were_sealed_with(database_url: str, tmp_path: Path) -> None:
    assert await fits(database_url, WRONG) == [], "nothing is encrypted yet"
    database = await Database.connect(database_url)
    server = PostOffice()
    await server.start()
    office = Office(database, Vault((bytes.fromhex(RIGHT),)), server)
    await office.open()
    await office.order([("sam@example.com", None, 2)])
    await office.mailer.close()
    await server.close()
    await database.close()
    assert await fits(database_url, RIGHT) == [(Level.OK, SEALED_UNDER_IT)]
    assert await fits(database_url, f"{WRONG},{RIGHT}") == [(Level.OK, SEALED_UNDER_IT)]
    [(level, text)] = await fits(database_url, WRONG)
    assert level is Level.ERROR
    assert "is not the key that this database is encrypted under" in text
    assert WRONG not in text

    async with connect_once(database_url, OPERATOR) as connection:
        [lost] = await machine.check_master_key_fits(connection, embedded(tmp_path))
    assert (lost.level, "missing" in lost.text) == (Level.ERROR, True)
    assert list(tmp_path.iterdir()) == []  # noqa: ASYNC240 - a test's own folder


async def test_the_key_is_told_before_there_is_a_code_and_looking_writes_nothing(database_url: str) -> None:
    async with connect_once(database_url, OPERATOR) as connection:
        await prove_master_key(connection, Vault((bytes.fromhex(RIGHT),)), keep=True)
        kept = await connection.fetchval("SELECT sealed FROM master_keys")
    [(level, _)] = await fits(database_url, WRONG)
    assert level is Level.ERROR
    fitting, rotation = await fits(database_url, f"{WRONG},{RIGHT}")
    assert fitting == (Level.OK, SEALED_UNDER_IT)
    assert rotation[0] is Level.WARNING
    assert "largesse reseal" in rotation[1]
    async with connect_once(database_url, OPERATOR) as connection:
        assert await connection.fetchval("SELECT sealed FROM master_keys") == kept


async def test_what_is_left_to_do_of_a_change_of_keys_is_told(database_url: str) -> None:
    old, both = Vault((bytes.fromhex(RIGHT),)), Vault((bytes.fromhex(WRONG), bytes.fromhex(RIGHT)))
    name = old.key_ids[0].hex()
    async with connect_once(database_url, OPERATOR) as connection:
        await prove_master_key(connection, old, keep=True)
        await prove_master_key(connection, both, keep=True)
        [(level, text)] = await fits(database_url, WRONG)
        assert level is Level.ERROR
        assert f"lacks a key that other processes have, {name}" in text
        await connection.execute("UPDATE master_keys SET sealing_at = NULL")
        assert [key.name for key in await retire(connection, both)] == [name]
    assert await fits(database_url, WRONG) == [(Level.OK, SEALED_UNDER_IT)]
    assert await fits(database_url, f"{WRONG},{RIGHT}") == [
        (Level.OK, SEALED_UNDER_IT),
        (Level.WARNING, f"Nothing is encrypted under {name} any more: leave it out of the list."),
    ]
