"""The guide to the seed file says what the code does."""

import dataclasses
import re
from pathlib import Path

import pytest

from largesse.seed import document
from largesse.seed.reading import parse_seed

GUIDE = (Path(__file__).parents[2] / "docs" / "seed-file.md").read_text(encoding="utf-8")

SECTIONS: dict[str, type] = {
    "customers": document.Customer,
    "customers, users": document.User,
    "customers, service_accounts": document.ServiceAccount,
    "customers, api_keys": document.ApiKey,
    "customers, funding_accounts": document.FundingAccount,
    "customers, templates": document.Template,
    "products": document.Product,
    "collections": document.Collection,
}


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_names_exactly_the_fields_there_are(section: str) -> None:
    fields = {field.name.removesuffix("_minor") for field in dataclasses.fields(SECTIONS[section])} - {"place"}
    text = re.split(r"^#{2,3} ", GUIDE.split(f"\n### {section}\n")[1], flags=re.MULTILINE)[0]
    rows = re.findall(r"^\| (`.*?`) \|", text, flags=re.MULTILINE)

    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == fields


def test_every_kind_of_object_has_its_section() -> None:
    kinds = {
        kind
        for kind in vars(document).values()
        if dataclasses.is_dataclass(kind) and kind.__module__ == document.__name__
    }

    assert kinds - {document.SeedFile, document.Place} == set(SECTIONS.values())


def test_the_example_loads() -> None:
    example = GUIDE.split("```yaml\n")[1].split("```")[0]

    assert len(parse_seed(example.encode(), "example.yaml").products) == 3
