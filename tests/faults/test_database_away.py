"""The database goes away and comes back, cut off by a proxy between it and the service."""

import asyncio
import random
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import asyncpg
import pytest
from tests.distributed import IS_DISTRIBUTED
from tests.faults.proxy import Proxy
from tests.waiting import until

PATIENCE_S = 45.0
# A COMMIT of orders waits, within the server, for as long as a test holds the lock.
HELD_COMMIT = """
CREATE FUNCTION hold_commit() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0
AS $$ BEGIN PERFORM pg_advisory_xact_lock(42); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER hold_commit AFTER INSERT ON orders
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION hold_commit()
"""
COMMITTING = """
SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
ASKING = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%pg_xact_status%'
"""


@pytest.mark.slow
async def test_while_the_database_is_away_everything_says_so(proxy: Proxy, start_installation: Any) -> None:
    installation = await asyncio.to_thread(start_installation, url=proxy.url)
    service = await asyncio.to_thread(installation.serve)
    headers = {"Authorization": f"Bearer {installation.world['api_keys']['globex-prod']}"}
    body = {
        "productId": installation.id("products", "coffee"),
        "value": 5,
        "codeQuantity": 2,
        "externalReference": "once",
    }
    async with aiohttp.ClientSession(service.url, headers=headers) as session:

        async def ask(method: str, path: str, **more: Any) -> tuple[int, str | None, dict[str, Any]]:
            async with session.request(method, path, **more) as response:
                return response.status, response.headers.get("Retry-After"), await response.json()

        assert (await ask("GET", "/health"))[0] == 200
        await proxy.cut()
        status, _, answer = await ask("GET", "/health")
        assert (status, answer["status"]) == (503, "fail")
        for method, path, more in (("POST", "/send/gift", {"json": body}), ("GET", "/me", {}), ("GET", "/orders", {})):
            status, retry_after, answer = await ask(method, path, **more)
            assert (status, retry_after, answer["status"]) == (503, "1", 503), path
        assert "cannot be reached" in installation.run("verify", code=1)
        started = installation.serve(wait=False)
        assert await asyncio.to_thread(started.process.wait, 45) == 1
        assert started.log.read_text().startswith("Error: the database cannot be reached: ")
        assert started.log.read_text().count("\n") == 1
        await proxy.restore()
        assert (await ask("GET", "/health"))[0] == 200
        status, _, answer = await ask("POST", "/send/gift", json=body)
        assert (status, answer["codeCount"]) == (200, 2)
    assert await asyncio.to_thread(service.terminate) == 0


@pytest.mark.slow
@pytest.mark.skipif(IS_DISTRIBUTED, reason="a login would have to be made on each node")
async def test_a_login_that_is_refused_for_a_while_is_no_fault_of_ours(
    database_url: str, start_installation: Any
) -> None:
    name, parts = f"away_{secrets.token_hex(4)}", urlsplit(database_url)
    installation = await asyncio.to_thread(start_installation, url=database_url)
    admin = await asyncpg.connect(database_url)
    database = await admin.fetchval("SELECT current_database()")
    installation.run("migrate")  # with the key, which such a login may not add
    await admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{name}' IN ROLE largesse_app")
    installation.environ["LARGESSE_DATABASE_URL"] = database_url.replace(
        f"//{parts.netloc}/", f"//{name}:{name}@{parts.netloc.rpartition('@')[2]}/", 1
    )
    try:
        service = await asyncio.to_thread(installation.serve)
        headers = {"Authorization": f"Bearer {installation.world['api_keys']['globex-prod']}"}
        async with aiohttp.ClientSession(service.url, headers=headers) as session:
            for refuse, permit in (
                (f"ALTER ROLE {name} NOLOGIN", f"ALTER ROLE {name} LOGIN"),
                (
                    f"REVOKE CONNECT ON DATABASE {database} FROM PUBLIC",
                    f"GRANT CONNECT ON DATABASE {database} TO PUBLIC",
                ),
            ):
                await admin.execute(refuse)
                await admin.execute(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = $1", name
                )
                # Requests that find a session which has just ended are answered 503 as before.
                for path in ("/health", "/me", "/orders") * 3:
                    async with session.get(path) as answer:
                        assert (answer.status, answer.headers.get("Retry-After")) == (503, "1"), (refuse, path)
                await admin.execute(permit)
                for path in ("/health", "/me", "/orders"):
                    async with session.get(path) as answer:
                        assert answer.status == 200, (permit, path)
        assert await asyncio.to_thread(service.terminate) == 0
        assert "request_failed" not in service.log.read_text()
    finally:
        for service in installation.services:
            if service.process.poll() is None:
                service.kill()
        await admin.execute(f"DROP ROLE {name}")
        await admin.close()


# `serve` that looked at its database, and goes on once a test says so.
LOOKED_AT = """
import asyncio
from pathlib import Path
from largesse import cli, main
look = main.check_schema
async def look_and_wait(database):
    await look(database)
    Path("{folder}/looked").touch()
    while not Path("{folder}/lost").exists():
        await asyncio.sleep(0.01)
main.check_schema = look_and_wait
cli.main(prog_name="largesse")
"""


async def serve_until_looked(installation: Any, folder: Path) -> Any:
    """Starts `serve`, which has looked at its database and goes on once `lost` is in the folder."""
    service = installation.serve(wait=False, program=LOOKED_AT.format(folder=folder))
    await until((folder / "looked").exists, PATIENCE_S)
    return service


# `serve` whose database goes away after the command has looked, and before its processes open it.
AWAY_ONCE_LOOKED_AT = """
import os
import msgspec
from largesse import cli
from largesse.cli import service
look = service._check_ready
async def look_and_lose(settings):
    await look(settings)
    os.environ["LARGESSE_DATABASE_URL"] = "postgresql://nobody@127.0.0.1:1/nothing"
    msgspec.structs.force_setattr(settings, "database_url", os.environ["LARGESSE_DATABASE_URL"])
service._check_ready = look_and_lose
cli.main(prog_name="largesse")
"""


@pytest.mark.long
async def test_a_database_that_goes_away_while_a_process_starts_is_a_line_and_no_trace(
    proxy: Proxy, start_installation: Any, tmp_path: Path
) -> None:
    installation = await asyncio.to_thread(start_installation, url=proxy.url)
    service = await serve_until_looked(installation, tmp_path)
    await proxy.cut()
    (tmp_path / "lost").touch()
    assert await asyncio.to_thread(service.process.wait, PATIENCE_S) == 1
    (line,) = service.log.read_text().splitlines()
    assert line.startswith("Error: the database ")


@pytest.mark.slow
async def test_a_process_that_is_ended_while_it_starts_ends_quietly(
    start_installation: Any, database_url: str, tmp_path: Path
) -> None:
    installation = await asyncio.to_thread(start_installation, url=database_url)
    service = await serve_until_looked(installation, tmp_path)
    assert await asyncio.to_thread(service.terminate) == 0
    assert "Traceback" not in service.log.read_text()
    assert "Uvicorn running" not in service.log.read_text()


@pytest.mark.long
def test_of_several_processes_each_says_so_and_none_is_started_again(
    start_installation: Any, database_url: str
) -> None:
    installation = start_installation(url=database_url)
    service = installation.serve(wait=False, program=AWAY_ONCE_LOOKED_AT, extra=("--processes", "2"))
    assert service.process.wait(PATIENCE_S) == 1
    log = service.log.read_text()
    assert "Traceback" not in log
    told = [line for line in log.splitlines() if "not_started" in line]
    assert 1 <= len(told) <= 3  # the two, and our own line
    assert "the database cannot be reached" in told[0]
    assert log.splitlines()[-1].startswith("Error: a serving process could not start")


@asynccontextmanager
async def sending(installation: Any) -> AsyncIterator[Callable[[str], Awaitable[tuple[int, dict[str, Any]]]]]:
    """Sends orders by their reference. A first one is placed already; one more has to be at the end, and the audit finds nothing."""
    service = await asyncio.to_thread(installation.serve)
    body = {"productId": installation.id("products", "coffee"), "value": 5, "codeQuantity": 2}
    headers = {"Authorization": f"Bearer {installation.world['api_keys']['globex-prod']}"}
    async with aiohttp.ClientSession(service.url, headers=headers) as session:

        async def send(reference: str) -> tuple[int, dict[str, Any]]:
            async with session.post("/send/gift", json={**body, "externalReference": reference}) as response:
                return response.status, await response.json()

        assert (await send("first"))[0] == 200  # the catalogue is read in a transaction too, once
        yield send
    report = await asyncio.to_thread(installation.verify)
    assert report["counted"]["orders"] == 2
    assert await asyncio.to_thread(service.terminate) == 0


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize(("at_commit", "status"), [("before", 503), ("after", 200)])
async def test_a_commit_without_an_answer_is_looked_up(
    proxy: Proxy, start_installation: Any, at_commit: str, status: int
) -> None:
    """The caller hears what became of the order, and the reference is used if and only if it exists."""
    async with sending(await asyncio.to_thread(start_installation, url=proxy.url)) as send:
        proxy.at_commit = at_commit
        answered, first = await send("once")
        assert proxy.at_commit is None
        assert answered == status
        again, second = await send("once")
        assert again == (409 if status == 200 else 200)
        if status == 200:
            assert second["instance"] == f"/orders/{first['reference']}"
            assert len(first["codes"]) == 2
        else:
            assert "nothing was placed" in first["detail"]


@pytest.mark.long
async def test_a_commit_that_the_server_is_still_at_is_waited_for(
    proxy: Proxy, beside: asyncpg.Connection, start_installation: Any
) -> None:
    """Whoever looks for the order before its transaction has ended finds none, and would say that nothing was placed."""
    async with sending(await asyncio.to_thread(start_installation, url=proxy.url)) as send:
        await beside.execute(HELD_COMMIT)
        await beside.execute("SELECT pg_advisory_lock(42)")
        proxy.at_commit = "during"
        placing = asyncio.create_task(send("once"))
        try:
            await until(lambda: beside.fetchval(COMMITTING), PATIENCE_S)
            assert proxy.at_commit is None

            async def is_settling() -> bool:
                return placing.done() or await beside.fetchval(ASKING) > 0

            await until(is_settling, PATIENCE_S)
            await asyncio.wait([placing], timeout=1)
            assert not placing.done(), await placing
        finally:
            await beside.execute("SELECT pg_advisory_unlock(42)")
        answered, placed = await placing
        assert answered == 200, placed
        assert (await send("once"))[1]["instance"] == f"/orders/{placed['reference']}"
        # The audit would name them.
        await beside.execute("DROP TRIGGER hold_commit ON orders; DROP FUNCTION hold_commit()")


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_connections_cut_at_any_moment_cost_no_order(
    proxy: Proxy, start_installation: Any, new_load: Any, check: Any, rounds: int, moments: random.Random
) -> None:
    """Some cuts fall into a COMMIT: the service finds out what became of it, and never places again."""
    installation = await asyncio.to_thread(start_installation, url=proxy.url)
    service = await asyncio.to_thread(installation.serve)
    load = new_load(installation)
    async with load.running():
        await load.serve_from(service.url)
        for _ in range(rounds * 5):
            await load.settle(moments.randint(1, 30))
            await asyncio.sleep(moments.uniform(0, 0.01))
            await proxy.cut()
            await proxy.restore()
        await load.settle(50)
    assert load.statuses() <= {200, 409, 503}
    assert all(reply.retry_after for reply in load.replies if reply.status == 503)
    await check(installation, load, service)
    assert await asyncio.to_thread(service.terminate) == 0
