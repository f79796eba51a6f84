"""The service of tests/web/api, for these tests too."""

from __future__ import annotations

import os

import pytest
from tests.web.api.conftest import problem, run_on_database, service, staging, start_service

__all__ = ["problem", "run_on_database", "service", "staging", "start_service"]

NEUTRALISED = ("test_api.py", "test_walk.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where customers are spread, what a statement says of customers is how its node is found, and cannot be taken out of it.

    There tests/web/api/test_isolation.py asks the same with all that is said, and tests/citus of the policies on the nodes.
    """
    if not os.environ.get("LARGESSE_TEST_NODES"):
        return
    for item in items:
        if item.path.parent.name == "isolation" and item.path.name in NEUTRALISED:
            item.add_marker(
                pytest.mark.skip(reason="on a cluster, statements are routed by what is taken out here")
            )
