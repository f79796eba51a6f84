"""No secret in clear: not in a dump of the database, not in any log, not in a file of the data directory."""

import asyncio
import base64
import io
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import pytest

from largesse.base.settings import load_settings
from largesse.db.embedded import EmbeddedServer
from largesse.encryption.vault import Vault, load_vault
from largesse.lines.codes import DrawnCode, open_code

CODES = 60
# What six digits alone may well be.
INSTANT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\.\d+")
PROCESS = re.compile(r"process \[\d+\]")
SIX_DIGITS = re.compile(r"(?<![\w.])\d{6}(?![\w.])")


@pytest.mark.slow
async def test_no_secret_is_stored_or_logged_in_clear(start_installation: Any) -> None:
    installation = start_installation()
    key = installation.world["api_keys"]["acme-prod"]
    service = installation.serve(extra=("--with-worker",), debug=True)
    secret = await _use_everything(installation, service.url)
    settings = load_settings(installation.environ)
    vault = load_vault(settings)
    async with _database(installation) as connection:
        await _until_mailed(connection)
        await _break_and_mend(connection, installation, service.url)
        codes = await _codes(connection, vault)
        dump = await _dump(connection)
    assert service.terminate() == 0
    log = service.log.read_text()

    assert len(codes) >= 2 * CODES
    needles = set(_forms(codes, vault))
    needles |= {key, key[9:], secret, secret.removeprefix("whsec_")}
    for master_key in settings.master_keys or _generated_master_keys(installation):
        needles |= {master_key.hex(), base64.b64encode(master_key).decode().rstrip("=")}
    # The search finds what is there.
    assert "externalReference" in dump
    assert '"level":"debug"' in log
    assert "request_failed" in log
    for text in (dump, log):
        assert [needle for needle in needles if needle in text] == []
        assert [needle for needle in needles if needle.lower() in text.lower()] == []
        assert _six_digits(text) & {code.pin_text for code in codes} == set()
    if installation.is_embedded:
        _assert_absent(Path(installation.environ["LARGESSE_DATA_DIR"]), needles)


async def _use_everything(installation: Any, url: str) -> str:
    """Sends, reads, subscribes and provokes errors; returns the subscription's secret."""
    headers = {"Authorization": f"Bearer {installation.world['api_keys']['acme-prod']}"}
    coffee = {
        "productId": installation.id("products", "coffee"),
        "value": 5,
        "accountId": installation.id("funding_accounts", "gbp"),
    }
    people = [{"email": f"{'abcdefghij'[n % 10]}{'klmnop'[n // 10]}@example.com"} for n in range(CODES)]
    async with aiohttp.ClientSession(url, headers=headers) as session:

        async def ask(status: int, method: str, path: str, **more: Any) -> Any:
            async with session.request(method, path, **more) as response:
                assert response.status == status, await response.text()
                return await response.json()

        batch = await ask(
            200, "POST", "/send/gift", json={**coffee, "codeQuantity": CODES, "externalReference": "batch"}
        )
        await ask(200, "POST", "/send/gift", json={**coffee, "recipients": people})
        assert (await ask(200, "GET", f"/orders/{batch['reference']}"))["codes"] == batch["codes"]
        webhook = await ask(
            201, "POST", "/webhooks", json={"targetUrl": "https://hooks.invalid/orders", "event": "order.created"}
        )
        await ask(200, "POST", "/send/gift", json={**coffee, "recipients": people[:1]})
        await ask(409, "POST", "/send/gift", json={**coffee, "codeQuantity": 1, "externalReference": "batch"})
        await ask(400, "POST", "/send/gift", json={**coffee, "codeQuantity": 5001})
        await ask(400, "POST", "/send/gift", data="{", headers={"Content-Type": "application/json"})
        code = batch["codes"][0]
        link = code["redemptionUrl"].removeprefix("http://127.0.0.1:8000")
        wrong = f"{(int(code['pin']) + 1) % 1_000_000:06d}"
        for pin, status in ((None, 200), (wrong, 403), (code["pin"], 303)):
            async with session.request(
                "GET" if pin is None else "POST", link, data=pin and {"pin": pin}, allow_redirects=False
            ) as response:
                assert response.status == status
        # Secrets where they do not belong are not repeated either.
        await ask(404, "GET", f"/orders/{code['code']}")
        await ask(400, "GET", f"/products?country={code['code']}")
        await ask(401, "GET", "/me", headers={"Authorization": f"Bearer {key_with_a_typo(headers)}"})
        return str(webhook["secret"])


def key_with_a_typo(headers: dict[str, str]) -> str:
    key = headers["Authorization"].removeprefix("Bearer ")
    return key[:-1] + ("0" if key[-1] != "0" else "1")


async def _break_and_mend(connection: asyncpg.Connection, installation: Any, url: str) -> None:
    """A failure nobody foresaw: the table of lines is gone, in the middle of an order."""
    headers = {"Authorization": f"Bearer {installation.world['api_keys']['globex-prod']}"}
    body = {"productId": installation.id("products", "coffee"), "value": 5, "codeQuantity": 3}
    await connection.execute("ALTER TABLE lines RENAME TO lines_away")
    try:
        async with (
            aiohttp.ClientSession(url, headers=headers) as session,
            session.post("/send/gift", json=body) as response,
        ):
            assert response.status == 500
    finally:
        await connection.execute("ALTER TABLE lines_away RENAME TO lines")


async def _until_mailed(connection: asyncpg.Connection) -> None:
    """Waits until each recipient's mail, with codes and PINs in it, is in the captured mailbox."""
    deadline = time.monotonic() + 45
    while await connection.fetchval("SELECT count(*) FROM captured_mail") < CODES + 1:
        assert time.monotonic() < deadline
        # Production holds its mail, since no mail server is set; as staging's it is captured.
        await connection.execute("UPDATE messages SET environment = 'staging', state = 'pending' WHERE state = 'held'")
        await asyncio.sleep(0.05)


class _database:  # noqa: N801 - used like a function
    """A connection to the installation's database."""

    def __init__(self, installation: Any) -> None:
        self._installation = installation
        self._server: EmbeddedServer | None = None

    async def __aenter__(self) -> asyncpg.Connection:
        url = self._installation.environ.get("LARGESSE_DATABASE_URL")
        if url is None:
            self._server = EmbeddedServer(Path(self._installation.environ["LARGESSE_DATA_DIR"]))
            self._server.acquire()
            url = self._server.url()
        self._connection = await asyncpg.connect(url)
        return self._connection

    async def __aexit__(self, *_: object) -> None:
        await self._connection.close()
        if self._server is not None:
            self._server.release()


async def _codes(connection: asyncpg.Connection, vault: Vault) -> list[DrawnCode]:
    """Every code there is, those that only mail tells included."""
    rows = await connection.fetch(
        "SELECT o.reference, l.number, l.sealed FROM lines l JOIN orders o ON o.id = l.order_id"
    )
    return [open_code(vault, row["sealed"], row["reference"], row["number"]) for row in rows]


async def _dump(connection: asyncpg.Connection) -> str:
    """Every row of every table, binary columns both as hexadecimal and as the text they hold."""
    parts = []
    tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    for (table,) in tables:
        copied = io.BytesIO()
        await connection.copy_from_table(table, output=copied)
        parts.append(copied.getvalue().decode())
    texts = [row["body"].decode() for row in await connection.fetch("SELECT body FROM events")]
    return "\n".join([*parts, *texts])


def _forms(codes: list[DrawnCode], vault: Vault) -> Iterator[str]:
    """How a code might be written down."""
    for code in codes:
        yield code.code_text
        yield code.code_text.replace("-", "")
        yield code.code.hex()
        yield base64.b64encode(code.code).decode().rstrip("=")
        yield vault.token(code.code)


def _six_digits(text: str) -> set[str]:
    """The numbers of six digits that stand alone in a text, as a PIN would; instants and process ids aside."""
    return set(SIX_DIGITS.findall(PROCESS.sub("", INSTANT.sub("", text))))


def _generated_master_keys(installation: Any) -> tuple[bytes, ...]:
    path = Path(installation.environ["LARGESSE_DATA_DIR"]) / "master-key"
    return (base64.b64decode(path.read_text()),)


def _assert_absent(data_dir: Path, needles: set[str]) -> None:
    """Looks through every file: tables, indexes, the write-ahead log, PostgreSQL's log. The master key has its own."""
    grep = shutil.which("grep")
    if grep is None:
        pytest.skip("no grep on this machine")

    def files_with(wanted: set[str]) -> str:
        done = subprocess.run(
            [grep, "-raiFl", "-f", "-", "--exclude=master-key", str(data_dir)],
            input="\n".join(sorted(wanted)) + "\n",
            env={"LC_ALL": "C"},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == (0 if done.stdout else 1), done.stderr
        return done.stdout

    assert files_with({"order.created"}) != ""  # the search finds what is there
    assert files_with(needles) == ""
