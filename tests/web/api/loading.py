"""Worlds in databases: each is loaded once for all tests, and copied."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import asyncpg
from tests.background import on_database
from tests.chained import chain_of
from tests.conftest import Template

from largesse.seed.load import LoadedSeed, load_seed
from largesse.seed.reading import parse_seed

MASTER_KEY = bytes(range(32))


@dataclass(frozen=True)
class Loaded:
    """A database with a world: its address, and the ids and keys of the world."""

    database_url: str
    ids: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)


@contextmanager
def loaded_on(template: Template, world: str | None) -> Iterator[Loaded]:
    """A new database with a world of YAML; None: an empty one. It is loaded once for all tests and copied."""
    if world is None:
        with template.clone() as url:
            yield Loaded(url)
        return
    document = parse_seed(world.encode(), "world.yaml")

    def load(url: str) -> str:
        return str(on_database(url, lambda connection: load_document(connection, document)).to_json())

    with template.filled(world, load) as (url, returned):
        loaded = json.loads(returned)
        yield Loaded(url, loaded["ids"], loaded["api_keys"])


async def load_document(connection: asyncpg.Connection, document: Any, master_key: bytes = MASTER_KEY) -> LoadedSeed:
    """Loads a world as an operator of the services here would, or of one with another master key."""
    return await load_seed(connection, await chain_of(connection, master_key), document)
