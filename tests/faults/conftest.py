"""Real processes for the fault tests: an installation, the services that serve it, and clients that never give up.

docs/testing.md says how to run the long forms.
"""

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.faults.installation import WORLD, Installation
from tests.faults.load import Load, check_orders

# How often the service is killed, the database restarted and the connection cut: few times in the suite, more on demand.
ROUNDS = int(os.environ.get("FAULT_ROUNDS", "3"))
SEED = int(os.environ.get("FAULT_SEED", "20"))


@pytest.fixture(scope="session")
def filled_installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """Made once, to be copied."""
    installation = Installation.embedded(tmp_path_factory.mktemp("filled"))
    installation.fill()
    return installation


@pytest.fixture
def start_installation(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Installation]]:
    """Makes an installation with the world in it: embedded, or on the external server when one is given.

    Every process it starts is ended with the test.
    """
    made: list[Installation] = []

    def start(*, embedded: bool | None = None, url: str | None = None, world: str = WORLD) -> Installation:
        if embedded is None:
            embedded = "LARGESSE_TEST_DATABASE_URL" not in os.environ and url is None
        if embedded:
            made.append(Installation.copied(tmp_path, request.getfixturevalue("filled_installation")))
        else:
            made.append(Installation.external(tmp_path, url or request.getfixturevalue("clone_database")()))
            made[-1].fill(world)
        return made[-1]

    yield start
    for installation in made:
        for service in installation.services:
            if service.process.poll() is None:
                service.kill()
        if installation.is_embedded and installation.postmaster():
            installation.run("keys", "list")  # joins the server left behind, and stops it as its last user


@pytest.fixture
def moments() -> random.Random:
    """Where the faults of a test fall."""
    return random.Random(SEED)


@pytest.fixture
def rounds() -> int:
    return ROUNDS


@pytest.fixture
def new_load() -> type[Load]:
    return Load


@pytest.fixture
def check() -> Callable[..., Any]:
    return check_orders
