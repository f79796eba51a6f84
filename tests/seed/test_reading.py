import dataclasses
import re
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.seed.conftest import parse, refusal
from tests.seed.worlds import SMALL

from largesse.base.errors import OperatorError
from largesse.seed import document
from largesse.seed.document import Collection, Product, Template
from largesse.seed.reading import demo_seed, parse_seed, read_seed
from largesse.seed.values import compose


def gift(fields: str) -> Product:
    return parse(f"products:\n  - {{key: a, name: A, currency: GBP, {fields}}}\n").products[0]


def test_the_example_is_faultless() -> None:
    world = parse(SMALL)

    assert [customer.key for customer in world.customers] == ["acme", "globex"]
    assert world.customers[0].funding_accounts[0].environment == "production"
    assert world.customers[0].funding_accounts[0].service_accounts == ("bot",)


def test_norway_needs_no_quotes() -> None:
    assert gift("digital: true, countries: [NO, gb], denominations: [1]").countries == ("NO", "GB")
    physical = gift("digital: false, cost: 1, postage: {NO: 2, IE: 3}, vat_percent: {no: 25}")
    assert physical.postage_minor == {"NO": 200, "IE": 300}
    assert physical.vat_percent == {"NO": 25}


def test_words_that_yaml_takes_for_booleans_are_text_where_text_is_wanted() -> None:
    world = parse("customers:\n  - {key: on, name: No, plan: pro, funding: balance}\n")

    assert (world.customers[0].key, world.customers[0].name) == ("on", "No")


@pytest.mark.parametrize(
    ("word", "flag"), [("true", True), ("Yes", True), ("on", True), ("false", False), ("NO", False)]
)
def test_flags(word: str, flag: bool) -> None:
    assert gift(f"digital: true, countries: [GB], denominations: [1], active: {word}").active is flag


@pytest.mark.parametrize(
    ("currency", "written", "minor"),
    [
        ("GBP", "1000.00", 100000),
        ("GBP", "0.1", 10),
        ("GBP", "1000000000", 100_000_000_000),
        ("GBP", ".5", 50),
        ("GBP", "+5", 500),
        ("JPY", "5000", 5000),
        ("JPY", "5000.00", 5000),
        ("KWD", "2.505", 2505),
    ],
)
def test_amounts_are_exact(currency: str, written: str, minor: int) -> None:
    text = f"  - {{key: a, name: A, digital: true, currency: {currency}, countries: [GB], denominations: [{written}]}}"

    assert parse(f"products:\n{text}\n").products[0].denominations_minor == (minor,)


@given(st.integers(min_value=1, max_value=100_000_000_000))
def test_any_amount_is_read_to_the_penny(minor: int) -> None:
    written = f"{minor // 100}.{minor % 100:02}"

    assert gift(f"digital: true, countries: [GB], denominations: [{written}]").denominations_minor == (minor,)


def test_amounts_are_brought_into_order() -> None:
    assert gift("digital: true, countries: [GB], denominations: [25, 5, 10]").denominations_minor == (500, 1000, 2500)
    collection = parse(SMALL.replace("[10, 25]", "[25, 10]")).collections[0]
    assert collection.value_points_minor == (1000, 2500)


def test_defaults() -> None:
    physical = gift("digital: false, cost: 1, postage: {GB: 0}")

    assert (physical.markup_percent, physical.vat_percent) == (Decimal(0), {})
    assert physical.customers is None
    assert physical.active
    text = "customers:\n  - {key: a, name: A, plan: pro, funding: balance, funding_accounts: [{key: f, name: F, currency: EUR}]}"
    account = parse(text).customers[0].funding_accounts[0]
    assert (account.master, account.environment, account.balance_minor) == (False, "production", 0)
    assert account.service_accounts is None


def test_funding_accounts_open_to_all() -> None:
    world = parse(SMALL.replace("service_accounts: [bot]", "service_accounts: all"))

    assert world.customers[0].funding_accounts[0].service_accounts is None


def template(fields: str) -> Template:
    return parse(SMALL.replace("product: coffee, value: 10", fields)).customers[0].templates[0]


def test_templates_take_implied_values() -> None:
    assert template("product: hamper").value_minor == 3000
    assert template("product: hamper, value: 30.00").value_minor == 3000
    assert template("collection: thanks, value: 25").value_minor == 2500
    assert template("product: range, value: 5").value_minor == 500


def test_the_country_of_a_template() -> None:
    assert template("product: coffee, value: 5").country == "GB"
    assert template("collection: thanks").country == "IE"


def test_a_message_may_have_several_lines() -> None:
    assert template('product: coffee, value: 5, message: "One\\nTwo\\n"').message == "One\nTwo"


def test_collections() -> None:
    world = parse(SMALL)

    curated, free, custom = world.collections
    assert (curated.customer, curated.value_points_minor, curated.value_minor) == (None, (1000, 2500), None)
    assert (free.allow_custom_value, free.value_points_minor) == (True, ())
    assert isinstance(custom, Collection)
    assert (custom.customer, custom.value_minor) == ("acme", 2500)


def test_control_characters_do_not_reach_the_terminal() -> None:
    text = refusal('"\\e[31m\\n": 1\n')

    assert text == "world.yaml:1: \ufffd[31m\ufffd: unknown field"


def test_aliases_repeat_what_stands_above() -> None:
    text = SMALL.replace("countries: [GB], denominations", "countries: &here [GB], denominations", 1)
    text = text.replace("countries: [GB], min", "countries: *here, min")

    assert parse(text).products[1].countries == ("GB",)


def test_aliases_that_multiply_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]

    assert refusal("\n".join(lines)) == "world.yaml:7: the file holds more than 5000000 values"


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("a: &a [*a]", "1: *a must repeat a value that is complete above it"),
        ("a: *b", "1: *b must repeat a value that is complete above it"),
        ("a:\n  <<: {b: 1}", "2: merge keys (<<) are not supported"),
        ("[" * 500, "1: lists and mappings are nested too deeply"),
        ("? [a]\n: b", "1: the name of a field must be a word, not a list or a mapping"),
        ("", "1: the file is empty"),
        ("# nothing\n", "1: the file is empty"),
        ("- a", "1: the file: must be a mapping of fields"),
        ("customers:\n\t- a", "2: this is not YAML: "),
        ("products: {}", "1: products: must be a list"),
    ],
)
def test_what_is_no_world_at_all(text: str, refused: str) -> None:
    assert refusal(text).startswith(f"world.yaml:{refused}")


def test_a_file_nested_beyond_what_is_parsed_is_refused() -> None:
    """By newer releases of the parser, before it gives its first list."""
    assert re.search(r"nest(ed|ing)", refusal("[" * 100_000))


def test_lines_are_counted_as_the_parser_does() -> None:
    assert compose("\r\n\r\na: b", "f").items["a"][0] == 3  # type: ignore[union-attr]
    assert refusal("a: 1\r\nb: 2\rc: \x02") == "world.yaml:3: the character U+0002 is not allowed"


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "world.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + SMALL.encode())
    assert read_seed(path) == parse(SMALL)

    path.write_bytes(b"customers:\n  - {name: \xff}\n")
    with pytest.raises(OperatorError, match=r"^world\.yaml:2: the file must be UTF-8$"):
        read_seed(path)

    path.write_bytes(b"#" * (32 * 2**20 + 1))
    with pytest.raises(OperatorError, match=r"^world\.yaml:1: a seed file has at most 32 MiB$"):
        read_seed(path)

    with pytest.raises(OperatorError, match="No such file"):
        read_seed(tmp_path / "none.yaml")


def test_the_demo_world_has_something_of_everything() -> None:
    world = demo_seed()

    assert len(world.products) >= 40
    assert {product.currency for product in world.products} >= {"GBP", "EUR", "USD", "JPY"}
    assert {country for product in world.products for country in product.countries} >= {
        "GB",
        "IE",
        "FR",
        "DE",
        "US",
        "JP",
    }
    assert any(product.customers for product in world.products)
    assert any(len(product.denominations_minor) == 1 for product in world.products)
    assert any(product.min_amount_minor for product in world.products)
    assert any(len(product.postage_minor) > 1 and product.vat_percent for product in world.products)
    assert any(collection.allow_custom_value for collection in world.collections)
    assert any(collection.customer for collection in world.collections)
    assert {customer.funding for customer in world.customers} == {"balance", "invoiced"}


def test_what_a_collection_of_the_demo_offers_is_sold_where_it_is() -> None:
    world = demo_seed()
    products = {product.key: product for product in world.products}

    for collection in world.collections:
        for key in collection.products:
            product = products[key]
            assert product.currency == collection.currency, (collection.key, key)
            assert collection.country in (product.countries or product.postage_minor), (collection.key, key)
            assert product.customers is None or collection.customer in product.customers, (collection.key, key)


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
