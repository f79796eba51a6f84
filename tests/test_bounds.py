"""What a user of the wheel may get, with each dependency bounded on both sides; and what the long runs of `make` name."""

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from tests.bounds import TESTS, bound, dependencies, locked
from tests.citus.run import KILLED, NEIGHBOURS, SUITES
from tests.walks.tree import ROOT


@pytest.mark.parametrize("requirement", dependencies(), ids=lambda requirement: requirement.name)
def test_a_dependency_is_bounded_and_locked_within(requirement: Requirement) -> None:
    assert Version(bound(requirement, ">=")) < Version(bound(requirement, "<"))
    version = locked()[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(version)


@pytest.mark.parametrize("text", ["one", "one >=1", "one <2", "one ==1", "one >=1,<2,!=1.5"])
def test_one_that_is_not_is_found(text: str) -> None:
    with pytest.raises(ValueError, match="must have a lower bound"):
        bound(Requirement(text), ">=")


@pytest.mark.parametrize("path", [*TESTS, *SUITES, NEIGHBOURS, KILLED])
def test_a_suite_that_make_runs_by_its_name_exists(path: str) -> None:
    file, _, test = path.partition("::")
    assert (ROOT / file).exists()
    assert not test or f"def {test}(" in (ROOT / file).read_text("utf-8")
