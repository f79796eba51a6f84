"""Schemathesis over the OpenAPI document, against the running service: no 5xx, nothing outside the document.

Each operation gets 5 examples beside the systematic ones, or as many as SCHEMATHESIS_EXAMPLES says: docs/testing.md.

An operation's test is built when it runs, not by Schemathesis' pytest plugin: that builds all of them, seconds of work, as it
collects, in each of pytest's processes.
"""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from tests.web.api.conftest import RICH_WORLD

from largesse.base.throttle import Rate
from largesse.customers.authenticator import WrongKeys, new_secret, secret_hash
from largesse.web.api.openapi.document import build_document
from largesse.web.api.operation import Operation
from largesse.web.api.routes import OPERATIONS

if TYPE_CHECKING:
    import schemathesis

    from conftest import Service, ServiceFactory

KEY = new_secret("production")
EXAMPLES = int(os.environ.get("SCHEMATHESIS_EXAMPLES", "5"))

# How many of each the rich world has.
COUNTS = {"productId": 10, "collectionId": 5, "templateId": 6, "accountId": 9}


def map_body(context: schemathesis.HookContext, body: Any) -> Any:
    """Leads ids and amounts that are right by the schema to ones that exist, so that orders are placed too."""
    if not isinstance(body, dict):
        return body
    for member, count in COUNTS.items():
        if type(body.get(member)) is int and 0 < body[member] < 2**31:
            body = {**body, member: 1 + body[member] % count}
    if type(body.get("value")) is float and body["value"] > 0:
        body = {**body, "value": round(body["value"] % 100, 2)}
    return body


@pytest.fixture(scope="module")
def service(start_service: ServiceFactory) -> Service:
    # Each case is tried with a wrong key too, far more than an address may send in so short a time (test_wrong_keys.py).
    return start_service(RICH_WORLD, wrong_keys=WrongKeys(Rate(1e9, 60.0)))


@pytest.fixture(scope="module")
def base_url(service: Service) -> str:
    service.sql("UPDATE api_keys SET hash = $1 WHERE key = 'hr'", secret_hash(KEY))
    return service.url


@pytest.fixture(scope="module")
def schema() -> schemathesis.BaseSchema:
    # With its first use, Hypothesis looks for what refers to its random numbers. `gc.freeze` hides that, and it would warn.
    gc.unfreeze()
    import schemathesis
    from schemathesis.checks import load_all_checks
    from schemathesis.pytest import _test_builder  # noqa: F401 - uses Hypothesis

    gc.freeze()
    load_all_checks()
    text = Path(__file__).with_name("schemathesis.toml").read_text()
    config = schemathesis.Config.from_str(text.replace("${LARGESSE_API_KEY}", KEY))
    schema = schemathesis.openapi.from_dict(build_document(OPERATIONS), config=config)
    schema.hook(map_body)
    return schema


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_operation_keeps_to_the_document(schema: schemathesis.BaseSchema, base_url: str, operation: Operation) -> None:
    from schemathesis.generation.feedback import FeedbackSources
    from schemathesis.pytest._test_builder import build_operation_test

    tried = 0

    @settings(
        max_examples=EXAMPLES, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    def keeps_to_the_document(case: schemathesis.Case) -> None:
        nonlocal tried
        tried += 1
        case.call_and_validate(base_url=base_url)

    build_operation_test(
        config=schema.config,
        operation=schema[operation.path][operation.method],
        test_func=keeps_to_the_document,
        given_kwargs={},
        feedback=FeedbackSources(),
    )()
    assert tried
