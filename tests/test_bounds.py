"""What a user of the wheel may get: each dependency is bounded on both sides, and the locks lie within."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from tests.bounds import bound, dependencies, locked


@pytest.mark.parametrize("requirement", dependencies(), ids=lambda requirement: requirement.name)
def test_a_dependency_is_bounded_and_locked_within(requirement: Requirement) -> None:
    assert Version(bound(requirement, ">=")) < Version(bound(requirement, "<"))
    version = locked()[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(version)


@pytest.mark.parametrize("text", ["one", "one >=1", "one <2", "one ==1", "one >=1,<2,!=1.5"])
def test_one_that_is_not_is_found(text: str) -> None:
    with pytest.raises(ValueError, match="must have a lower bound"):
        bound(Requirement(text), ">=")
