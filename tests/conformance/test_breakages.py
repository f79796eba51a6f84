"""A service that breaks one rule is found out by the check meant for it."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from largesse_conformance.catalogue import all_checks
from largesse_conformance.command import run
from largesse_conformance.outcome import Result, Verdict
from largesse_conformance.settings import Settings, read_environment
from largesse_conformance.suite import choose
from tests.conformance.breakages import BREAKAGES, DELIVERIES
from tests.conformance.conftest import Deployment
from tests.conformance.proxy import Breakage, broken


def result_of(deployment: Deployment, breakage: Breakage) -> Result:
    """What the check that is meant for a breakage finds."""
    settings = Settings(url="", **read_environment(deployment.variables))
    with broken(deployment.url, breakage, settings.keys) as url:
        report = run(replace(settings, url=url), choose(all_checks(), [breakage.check]))
    assert report is not None
    (result,) = report.results
    return result


@pytest.mark.slow
@pytest.mark.sampled(5)
@pytest.mark.parametrize("breakage", BREAKAGES, ids=lambda breakage: breakage.name)
def test_a_broken_service_fails(deployment: Deployment, breakage: Breakage) -> None:
    result = result_of(deployment, breakage)
    assert result.verdict is Verdict.FAILED, result
    assert not result.reason.startswith("The answer cannot be read"), result.reason


@pytest.mark.long
def test_broken_deliveries_fail(deployment: Deployment) -> None:
    """All at once: each waits for retries for some seconds."""
    with ThreadPoolExecutor(len(DELIVERIES)) as threads:
        found = threads.map(lambda one: result_of(deployment, replace(one, needs_delivery=True)), DELIVERIES)
        passed = {
            breakage.name: result
            for breakage, result in zip(DELIVERIES, found, strict=True)
            if result.verdict is not Verdict.FAILED
        }
    assert passed == {}


def test_each_breakage_has_a_check() -> None:
    names = {check.name for check in all_checks()}
    assert {breakage.check for breakage in (*BREAKAGES, *DELIVERIES)} <= names
