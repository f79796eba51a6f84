"""The tests of tests/web/api/test_isolation.py once more, with all that their requests say of customers taken out of the statements."""

from collections.abc import Iterator

import pytest
from tests.isolation.neutral import neutralised
from tests.web.api.test_isolation import (
    test_an_account_of_the_other_environment_pays_nothing,
    test_another_customers_answers_as_what_is_not_there,
    test_lists_hold_nothing_of_others,
    test_sending_with_another_customers_ids,
    test_the_other_environments_answers_as_what_is_not_there,
    theirs,
)

__all__ = [
    "test_an_account_of_the_other_environment_pays_nothing",
    "test_another_customers_answers_as_what_is_not_there",
    "test_lists_hold_nothing_of_others",
    "test_sending_with_another_customers_ids",
    "test_the_other_environments_answers_as_what_is_not_there",
    "theirs",
]


@pytest.fixture(autouse=True)
def on(theirs: object, service: object, staging: object) -> Iterator[None]:
    with neutralised() as switch:
        yield
    assert switch.failed == set()
