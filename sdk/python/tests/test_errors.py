"""The tree of errors: it matches its drawing, has a class for each type of problem, and all can be pickled."""

from __future__ import annotations

import copy
import pickle
import re

import pytest

from largesse_client import errors


def drawn() -> list[tuple[int, str, int | None]]:
    """Returns the depth, name and status of each class in the drawing."""
    lines = re.findall(r"^    ([\u2502\u251c\u2514\u2500 ]*)(\w+) *(\d{3})?", errors.__doc__ or "", re.MULTILINE)
    return [(len(lead) // 4, name, int(status) if status else None) for lead, name, status in lines]


def grown(cls: type, depth: int = 1) -> list[tuple[int, str]]:
    below = [(depth, sub.__name__) for sub in cls.__subclasses__()]
    return [*below, *(found for sub in cls.__subclasses__() for found in grown(sub, depth + 1))]


def test_the_tree_is_drawn_as_it_is() -> None:
    tree = [(depth, name) for depth, name, _ in drawn()[1:]]
    assert sorted(tree) == sorted(grown(errors.LargesseError))


def test_each_type_of_problem_has_its_class(largesse_server) -> None:
    """The types are those of the service's document, with the same names and statuses."""
    import httpx

    document = httpx.get(f"{largesse_server.base_url}/openapi.json").json()
    answers = [
        answer["content"]["application/problem+json"]["examples"]
        for answer in document["components"]["responses"].values()
    ]
    known = {slug: one["value"]["status"] for examples in answers for slug, one in examples.items()}
    assert len(known) > 10
    for slug, status in known.items():
        assert slug in errors.PROBLEMS, slug
        assert (2, errors.PROBLEMS[slug].__name__, status) in drawn()


@pytest.mark.parametrize("slug", errors.PROBLEMS)
def test_classes_are_named_as_their_types(slug: str, largesse_server) -> None:
    import httpx

    assert errors.PROBLEMS[slug].__name__ == slug.title().replace("-", "")
    assert httpx.get(f"{largesse_server.base_url}/problems/{slug}").status_code == 200


@pytest.mark.parametrize("again", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy])  # noqa: S301 - our own
def test_errors_can_be_handed_on(largesse, again) -> None:
    with pytest.raises(errors.NotFound) as raised:
        largesse.orders.get("0" * 20)
    copied = again(raised.value)
    assert type(copied) is errors.NotFound
    assert str(copied) == str(raised.value)
    assert vars(copied) == vars(raised.value)
    refused = again(errors.InvalidArgument.of("value", "is wrong."))
    assert (str(refused), refused.argument) == ("`value` is wrong.", "value")
