"""An installation whose services come and go, each with master keys of its own."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import asyncpg
from msgspec.structs import replace
from tests.closing import closing
from tests.web.api.conftest import RICH_WORLD, Service, Statements, as_the_service_sees_it, on_database, serving
from tests.web.api.loading import load_document

from largesse.base.errors import OperatorError
from largesse.base.settings import load_settings
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.encryption.key_rotation import Resealed, encrypted_columns, reseal
from largesse.encryption.master_keys import prove_master_key
from largesse.encryption.vault import Vault
from largesse.main import build_app
from largesse.seed.reading import parse_seed
from largesse.verify.audit import audit

OLD, NEW = b"\x11" * 32, b"\x22" * 32
BEFORE, BOTH, AFTER = Vault((OLD,)), Vault((NEW, OLD)), Vault((NEW,))
IDLE = timedelta(seconds=1)


class Place:
    """An installation whose services come and go, each with keys of its own."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self._folder = folder
        document = parse_seed(RICH_WORLD.encode(), "world.yaml")
        loaded = on_database(url, lambda connection: load_document(connection, document, OLD))
        self._ids, self._keys = loaded.ids, loaded.api_keys

    @contextmanager
    def service(self, *keys: bytes) -> Iterator[Service]:
        settings = replace(
            load_settings({}),
            database_url=as_the_service_sees_it(self.url),
            owner_database_url=self.url,
            data_dir=self._folder,
            public_url="https://gifts.example",
            master_keys=keys,
        )
        app = build_app(settings)
        with serving(app) as url:
            service = Service(url, self.url, settings, app, self._ids, self._keys, Statements(self.url))
            try:
                yield service
            finally:
                service.close()

    def reseal(self, vault: Vault = BOTH, **changes: object) -> Resealed:
        return asyncio.run(self._reseal(vault, **changes))

    async def _reseal(self, vault: Vault, **changes: object) -> Resealed:
        async with closing(Database.connect(self.url)) as database:
            async with database.connection(OPERATOR) as connection:
                await prove_master_key(connection, vault, keep=True)
            return await reseal(database, vault, **{"idle": IDLE, "rest": 0.0, **changes})

    def is_refused(self, vault: Vault) -> str:
        """What a process is told that starts with this vault; nothing when it may."""

        async def prove(connection: asyncpg.Connection) -> str:
            try:
                await prove_master_key(connection, vault, keep=False)
            except OperatorError as refusal:
                return str(refusal)
            return ""

        return on_database(self.url, prove)

    def sql(self, query: str, *arguments: object) -> list[asyncpg.Record]:
        return on_database(self.url, lambda connection: connection.fetch(query, *arguments))

    def older(self, of: str | None = None) -> int:
        """How many rows are not sealed under the newest key, in that table or in all."""
        return sum(
            self.sql(
                f"SELECT count(*) FROM {table.table} WHERE substring({table.column} FROM 1 FOR 4) <> $1",
                table.part(BOTH).newest_id,
            )[0][0]
            for table in encrypted_columns()
            if of in (None, table.table)
        )

    def verify(self, vault: Vault) -> None:
        async def run() -> None:
            async with closing(Database.connect(self.url)) as database:
                report = await audit(database, vault)
            assert report.findings == []

        asyncio.run(run())
