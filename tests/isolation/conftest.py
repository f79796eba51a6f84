"""The service of tests/web/api, for these tests too."""

import pytest
from tests.distributed import IS_DISTRIBUTED, SHARDS
from tests.web.api.conftest import problem, service, staging, start_service

__all__ = ["problem", "service", "staging", "start_service"]

NEUTRALISED = ("test_api.py", "test_walk.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where customers are distributed, what a statement says of customers is how its node is found, and cannot be taken out of it.

    But where tables have one part: there all customers are one shard group (tests/citus/run.py).
    """
    if not IS_DISTRIBUTED or SHARDS == 1:
        return
    for item in items:
        if item.path.parent.name == "isolation" and item.path.name in NEUTRALISED:
            item.add_marker(
                pytest.mark.skip(
                    reason="on a cluster of several parts, statements are routed by what is taken out here"
                )
            )
