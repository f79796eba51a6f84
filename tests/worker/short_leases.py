"""`python short_leases.py SECONDS`: a worker as `largesse worker` is one, but for the length of its leases."""

import asyncio
import signal
import sys

import uvloop

from largesse.base.logs import configure_logs
from largesse.base.settings import load_settings
from largesse.encryption.vault import load_vault
from largesse.installation import open_database
from largesse.worker import DATABASE_CONNECTIONS, Worker


async def work(lease_s: float) -> None:
    settings = load_settings()
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    async with (
        open_database(settings, max_connections=DATABASE_CONNECTIONS) as database,
        Worker(database, settings, load_vault(settings), lease_s=lease_s),
    ):
        await ended.wait()


configure_logs("json")
uvloop.run(work(float(sys.argv[1])))
