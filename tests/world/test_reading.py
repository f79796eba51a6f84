from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from largesse.base.errors import StartError
from largesse.world import demo_world, parse_world, read_world
from largesse.world.document import Collection, Product, Template, World
from largesse.world.nodes import compose

WORLD = """\
customers:
  - key: acme
    name: Acme Ltd
    plan: enterprise
    funding: balance
    users:
      - {email: ada@acme.example, name: Ada, role: admin}
    service_accounts:
      - {key: bot, name: Bot}
    api_keys:
      - {key: prod, service_account: bot, environment: production}
    funding_accounts:
      - {key: gbp, name: Float, currency: GBP, balance: 10, service_accounts: [bot]}
    templates:
      - {key: welcome, product: coffee, value: 10}
      - {key: thanks, collection: thanks}
      - {key: any, collection: any, value: 0.01}
  - {key: globex, name: Globex, plan: pro, funding: invoiced}
products:
  - {key: coffee, name: Coffee, digital: true, currency: GBP, countries: [GB], denominations: [5, 10]}
  - {key: range, name: Range, digital: true, currency: GBP, countries: [GB], min_amount: 5, max_amount: 50}
  - {key: hamper, name: Hamper, digital: false, currency: GBP, cost: 30, postage: {GB: 4}, vat_percent: {GB: 20}}
collections:
  - {key: treats, name: Treats, country: GB, currency: GBP, value_points: [10, 25], products: [coffee]}
  - {key: any, name: Any, country: GB, currency: GBP, allow_custom_value: true, products: [coffee]}
  - {key: thanks, customer: acme, name: Thanks, country: IE, currency: GBP, value: 25, products: [coffee]}
"""


def parse(text: str) -> World:
    return parse_world(text.encode(), "world.yaml")


def refusal(text: str) -> str:
    with pytest.raises(StartError) as caught:
        parse(text)
    return str(caught.value)


def gift(fields: str) -> Product:
    return parse(f"products:\n  - {{key: a, name: A, currency: GBP, {fields}}}\n").products[0]


def test_the_example_is_faultless() -> None:
    world = parse(WORLD)

    assert [customer.key for customer in world.customers] == ["acme", "globex"]
    assert world.customers[0].funding_accounts[0].environment == "production"
    assert world.customers[0].funding_accounts[0].service_accounts == ("bot",)


# One mistake each: a piece of WORLD, what stands there instead, and the refusal from the line on.
MISTAKES = [
    # Text
    ("name: Acme Ltd", "name: 1984", "3: customers[0].name: must be text: put it in quotes"),
    ("name: Acme Ltd", "name: true", "3: customers[0].name: must be text: put it in quotes"),
    ("name: Acme Ltd", "name: [Acme]", "3: customers[0].name: must be text"),
    ("name: Acme Ltd", 'name: "  "', "3: customers[0].name: must not be empty"),
    ("name: Acme Ltd", "name: ~", "3: customers[0].name: is required"),
    ("    name: Acme Ltd\n", "", "2: customers[0].name: is required"),
    ("name: Acme Ltd", 'name: "Acme\\x07"', "3: customers[0].name: must not contain control characters"),
    ("name: Acme Ltd", 'name: "Acme\\nLtd"', "3: customers[0].name: must not contain control characters"),
    ("name: Acme Ltd", f"name: {'x' * 201}", "3: customers[0].name: must have at most 200 characters, not 201"),
    ("key: acme", "key: a/b", "2: customers[0].key: must not contain a slash"),
    ("key: acme", f"key: {'x' * 101}", "2: customers[0].key: must have at most 100 characters, not 101"),
    ("value: 10}", f"value: 10, from_name: {'x' * 33}}}", "15: customers[0].templates[0].from_name: must have at most 32 characters, not 33"),
    ("value: 10}", f"value: 10, message: {'x' * 257}}}", "15: customers[0].templates[0].message: must have at most 256 characters, not 257"),
    ("value: 10}", 'value: 10, message: "\\t"}', "15: customers[0].templates[0].message: must not be empty"),
    ("value: 10}", 'value: 10, message: "a\\tb"}', "15: customers[0].templates[0].message: must not contain control characters"),
    ("value: 10}", f"value: 10, wrapping_key: {'x' * 65}}}", "15: customers[0].templates[0].wrapping_key: must have at most 64 characters, not 65"),
    # Choices and flags
    ("plan: enterprise", "plan: gold", "4: customers[0].plan: must be one of starter, pro, enterprise"),
    ("    funding: balance\n", "", "2: customers[0].funding: is required"),
    ("role: admin", "role: owner", "7: customers[0].users[0].role: must be one of admin, member"),
    ("environment: production", "environment: live", "11: customers[0].api_keys[0].environment: must be one of production, staging"),
    (", environment: production", "", "11: customers[0].api_keys[0].environment: is required"),
    ("digital: true", 'digital: "true"', "20: products[0].digital: must be true or false"),
    ("digital: true", "digital: 1", "20: products[0].digital: must be true or false"),
    # Addresses
    ("ada@acme.example", "ada", "7: customers[0].users[0].email: must be an e-mail address: "),
    ("ada@acme.example", "ada@localhost", "7: customers[0].users[0].email: must be an e-mail address: "),
    # Codes
    ("currency: GBP, balance: 10", "currency: POUND, balance: 10", "13: customers[0].funding_accounts[0].currency: must be a currency of three letters, as GBP"),
    ("countries: [GB]", "countries: [GB, GBR]", "20: products[0].countries[1]: must be a country of two letters, as GB"),
    ("countries: [GB]", "countries: [GB, gb]", "20: products[0].countries[1]: GB comes twice"),
    ("countries: [GB]", "countries: GB", "20: products[0].countries: must be a list"),
    ("countries: [GB]", "countries: []", "20: products[0].countries: must not be an empty list"),
    ("countries: [GB], denom", "denom", "20: products[0].countries: is required"),
    ("postage: {GB: 4}", "postage: {GBR: 4}", "22: products[2].postage.GBR: must be a country of two letters, as GB"),
    ("postage: {GB: 4}", "postage: {GB: 4, gb: 5}", "22: products[2].postage.gb: GB comes twice"),
    ("postage: {GB: 4}", "postage: {}", "22: products[2].postage: must name at least one country"),
    ("postage: {GB: 4}", "postage: [GB]", "22: products[2].postage: must be a mapping of countries, as {GB: 4.95}"),
    # Amounts
    ("balance: 10", "balance: -0.01", "13: customers[0].funding_accounts[0].balance: must not be negative"),
    ("balance: 10", "balance: 10.001", "13: customers[0].funding_accounts[0].balance: must have at most 2 decimals in GBP"),
    ("balance: 10", "balance: 1000000000.01", "13: customers[0].funding_accounts[0].balance: must be at most 1000000000"),
    ("balance: 10", 'balance: "10"', "13: customers[0].funding_accounts[0].balance: must be a number, without quotes"),
    ("balance: 10", "balance: 010", "13: customers[0].funding_accounts[0].balance: must be a number"),
    ("balance: 10", "balance: 1_000", "13: customers[0].funding_accounts[0].balance: must be a number"),
    ("balance: 10", "balance: 1e3", "13: customers[0].funding_accounts[0].balance: must be a number"),
    ("balance: 10", "balance: .inf", "13: customers[0].funding_accounts[0].balance: must be a number"),
    ("balance: 10", "balance: ten", "13: customers[0].funding_accounts[0].balance: must be a number"),
    ("balance: 10", "balance: yes", "13: customers[0].funding_accounts[0].balance: must be a number"),
    ("balance: 10", "balance: 1.0000000000000000000000001", "13: customers[0].funding_accounts[0].balance: must be a number"),
    ("GBP, balance: 10", "JPY, balance: 10.5", "13: customers[0].funding_accounts[0].balance: must have at most 0 decimals in JPY"),
    ("[5, 10]", "[5, 10, 0]", "20: products[0].denominations[2]: must be greater than zero"),
    ("[5, 10]", "[5, 10, 5.00]", "20: products[0].denominations[2]: comes twice"),
    ("[5, 10]", "[]", "20: products[0].denominations: must not be an empty list"),
    ("min_amount: 5", "min_amount: 0", "21: products[1].min_amount: must be greater than zero"),
    ("cost: 30", "cost: 0", "22: products[2].cost: must be greater than zero"),
    ("{GB: 4}", "{GB: -4}", "22: products[2].postage.GB: must not be negative"),
    ("vat_percent: {GB: 20}", "vat_percent: {GB: 1000.01}", "22: products[2].vat_percent.GB: must be from 0 to 1000"),
    ("vat_percent: {GB: 20}", "markup_percent: -1", "22: products[2].markup_percent: must be from 0 to 1000"),
    ("vat_percent: {GB: 20}", "markup_percent: 0.00001", "22: products[2].markup_percent: must have at most 4 decimals"),
    ("cost: 30", "cost: 900000000", "22: products[2].cost: comes to more than 1000000000 delivered in GB"),
    # Products
    ("denominations: [5, 10]", "active: true", "20: products[0].denominations: is required, or `min_amount` and `max_amount`"),
    ("min_amount: 5, ", "", "21: products[1].min_amount: `min_amount` and `max_amount` are required together"),
    ("max_amount: 50", "max_amount: 4.99", "21: products[1].min_amount: must be at most `max_amount`"),
    ("max_amount: 50", "max_amount: 50, denominations: [5]", "21: products[1].min_amount: is for gifts without `denominations`"),
    ("max_amount: 50", "max_amount: 50, postage: {GB: 1}", "21: products[1].postage: is for physical gifts only"),
    ("cost: 30, ", "", "22: products[2].cost: is required"),
    ("postage: {GB: 4}, ", "", "22: products[2].postage: is required"),
    ("cost: 30", "cost: 30, denominations: [5]", "22: products[2].denominations: is for digital gifts only"),
    ("cost: 30", "cost: 30, countries: [GB]", "22: products[2].countries: is for digital gifts only"),
    ("cost: 30", "cost: 30, customers: []", "22: products[2].customers: must not be an empty list"),
    ("cost: 30", "cost: 30, customers: [acme, nobody]", "22: products[2].customers[1]: there is no customer 'nobody'"),
    # Collections
    ("value_points: [10, 25], ", "", "24: collections[0].value_points: is required, or `allow_custom_value: true`"),
    ("value_points: [10, 25]", "value_points: [10], value: 5", "24: collections[0].value: is for custom collections only, those with a `customer`"),
    ("value: 25, products", "products", "26: collections[2].value: is required"),
    ("value: 25, products", "value: 25, value_points: [5], products", "26: collections[2].value_points: is for curated collections only, without a `customer`"),
    ("[10, 25], products: [coffee]", "[10, 25], products: []", "24: collections[0].products: must not be an empty list"),
    ("[10, 25], products: [coffee]", "[10, 25], products: [tea]", "24: collections[0].products[0]: there is no product 'tea'"),
    ("[10, 25], products: [coffee]", "[10, 25], products: [coffee, coffee]", "24: collections[0].products[1]: 'coffee' comes twice"),
    ("country: GB, currency: GBP, value_points", "currency: GBP, value_points", "24: collections[0].country: is required"),
    # Templates
    ("product: coffee, value: 10", "value: 10", "15: customers[0].templates[0].product: exactly one of `product` and `collection` is required"),
    ("product: coffee, value: 10", "product: coffee, collection: any, value: 10", "15: customers[0].templates[0].product: exactly one of `product` and `collection` is required"),
    ("product: coffee, value: 10", "product: tea, value: 10", "15: customers[0].templates[0].product: there is no product 'tea'"),
    ("collection: any, value", "collection: all, value", "17: customers[0].templates[2].collection: there is no collection 'all'"),
    ("product: coffee, value: 10", "product: coffee, value: 7", "15: customers[0].templates[0].value: must be one of 5.00, 10.00"),
    ("product: coffee, value: 10", "product: coffee", "15: customers[0].templates[0].value: is required: one of 5.00, 10.00"),
    ("product: coffee, value: 10", "product: range, value: 50.01", "15: customers[0].templates[0].value: must be from 5.00 to 50.00"),
    ("product: coffee, value: 10", "product: hamper, value: 34", "15: customers[0].templates[0].value: must be 30.00 or left out"),
    ("collection: thanks}", "collection: thanks, value: 24}", "16: customers[0].templates[1].value: must be 25.00, the collection's, or left out"),
    ("collection: any, value: 0.01", "collection: treats, value: 11", "17: customers[0].templates[2].value: must be one of 10.00, 25.00"),
    ("collection: any, value: 0.01", "collection: any, value: 0.001", "17: customers[0].templates[2].value: must have at most 2 decimals in GBP"),
    ("value: 10}", "value: 10, country: FR}", "15: customers[0].templates[0].country: 'coffee' is not sold in FR"),
    ("collection: thanks}", "collection: thanks, country: GB}", "16: customers[0].templates[1].country: must be IE, the collection's, or left out"),
    ("denominations: [5, 10]", "denominations: [5, 10], customers: [globex]", "15: customers[0].templates[0].product: 'coffee' is not sold to 'acme'"),
    ("customer: acme", "customer: globex", "16: customers[0].templates[1].collection: 'thanks' is not sold to 'acme'"),
    ("value: 10}", "value: 10, expiry_after_days: 0}", "15: customers[0].templates[0].expiry_after_days: must be a whole number from 1 to 36500"),
    ("value: 10}", "value: 10, expiry_after_days: 1.5}", "15: customers[0].templates[0].expiry_after_days: must be a whole number from 1 to 36500"),
    # References and keys
    ("service_account: bot", "service_account: nobody", "11: customers[0].api_keys[0].service_account: 'acme' has no service account 'nobody'"),
    ("service_accounts: [bot]", "service_accounts: [bot, nobody]", "13: customers[0].funding_accounts[0].service_accounts[1]: 'acme' has no service account 'nobody'"),
    ("service_accounts: [bot]", "service_accounts: everybody", "13: customers[0].funding_accounts[0].service_accounts: must be `all` or a list of keys"),
    ("key: globex", "key: acme", "18: customers[1].key: 'acme' comes twice"),
    ("key: range", "key: coffee", "21: products[1].key: 'coffee' comes twice"),
    ("key: treats", "key: any", "25: collections[1].key: 'any' comes twice"),
    ("- {key: bot, name: Bot}", "- {key: bot, name: Bot}\n      - {key: bot, name: B}", "10: customers[0].service_accounts[1].key: 'bot' comes twice"),
    ("role: admin}", "role: admin}\n      - {email: ADA@acme.example, name: A}", "8: customers[0].users[1].email: 'ada@acme.example' comes twice"),
    # Structure
    ("denominations: [5, 10]", "denominations: [5, 10], denomination: 5", "20: products[0].denomination: unknown field, did you mean `denominations`?"),
    ("name: Acme Ltd", "name: Acme Ltd\n    zzz: 1", "4: customers[0].zzz: unknown field"),
    ("products:\n", "gifts: []\nproducts:\n", "19: gifts: unknown field"),
    ("- {key: bot, name: Bot}", "- bot", "9: customers[0].service_accounts[0]: must be a mapping of fields"),
    ("name: Acme Ltd", "name: Acme Ltd\n    name: Acme", "4: 'name' comes twice in one mapping"),
    ("name: Acme Ltd", "name: !!python/name:os.system", "3: the tag 'tag:yaml.org,2002:python/name:os.system' is not supported"),
    ("name: Acme Ltd", "name: 'Acme", "27: this is not YAML: found unexpected end of stream (while scanning a quoted scalar, from line 3 on)"),
    ("name: Acme Ltd", "name: Acme\x01", "3: the character U+0001 is not allowed"),
    ("products:\n", "---\nproducts:\n", "19: a world file is one YAML document, and here a second one begins"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "refused"), MISTAKES)
def test_a_mistake_is_refused_with_its_line(old: str, new: str, refused: str) -> None:
    assert old in WORLD

    assert refusal(WORLD.replace(old, new, 1)).startswith(f"world.yaml:{refused}")


def test_mistakes_come_in_the_order_of_lines_one_on_each() -> None:
    text = "\n".join(["products:", *["  - {key: 1}"] * 30])

    lines = refusal(text).split("\n")

    assert lines[0].startswith("world.yaml:2: products[0].")
    assert len(lines) == 21
    assert lines[-1] == f"… and {30 * 6 - 20} more"  # each lacks digital, currency, name, cost and postage


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
    assert gift("digital: true, countries: [GB], denominations: [25, 5, 10]").denominations_minor == (
        500,
        1000,
        2500,
    )
    collection = parse(WORLD.replace("[10, 25]", "[25, 10]")).collections[0]
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
    world = parse(WORLD.replace("service_accounts: [bot]", "service_accounts: all"))

    assert world.customers[0].funding_accounts[0].service_accounts is None


def template(fields: str) -> Template:
    return parse(WORLD.replace("product: coffee, value: 10", fields)).customers[0].templates[0]


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
    world = parse(WORLD)

    curated, free, custom = world.collections
    assert (curated.customer, curated.value_points_minor, curated.value_minor) == (None, (1000, 2500), None)
    assert (free.allow_custom_value, free.value_points_minor) == (True, ())
    assert isinstance(custom, Collection)
    assert (custom.customer, custom.value_minor) == ("acme", 2500)


def test_a_mistake_in_a_gift_is_not_repeated_for_its_templates() -> None:
    assert "\n" not in refusal(WORLD.replace("denominations: [5, 10]", "denominations: [5, 10.001]"))


def test_control_characters_do_not_reach_the_terminal() -> None:
    text = refusal('"\\e[31m\\n": 1\n')

    assert text == "world.yaml:1: \ufffd[31m\ufffd: unknown field"


def test_aliases_repeat_what_stands_above() -> None:
    text = WORLD.replace("countries: [GB], denominations", "countries: &here [GB], denominations", 1)
    text = text.replace("countries: [GB], min", "countries: *here, min")

    assert parse(text).products[1].countries == ("GB",)


def test_aliases_that_multiply_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]

    assert refusal("\n".join(lines)) == "world.yaml:7: the file holds more than 5000000 values"


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("a: &a [*a]", "1: *a repeats nothing that stands complete above it"),
        ("a: *b", "1: *b repeats nothing that stands complete above it"),
        ("a:\n  <<: {b: 1}", "2: merge keys (<<) are not supported"),
        ("[" * 100_000, "1: lists and mappings lie too deep in one another"),
        ("? [a]\n: b", "1: a field's name is a word, not a list or a mapping"),
        ("", "1: the file is empty"),
        ("# nothing\n", "1: the file is empty"),
        ("- a", "1: the file: must be a mapping of fields"),
        ("customers:\n\t- a", "2: this is not YAML: "),
        ("products: {}", "1: products: must be a list"),
    ],
)
def test_what_is_no_world_at_all(text: str, refused: str) -> None:
    assert refusal(text).startswith(f"world.yaml:{refused}")


def test_lines_are_counted_as_the_parser_does() -> None:
    assert compose("\r\n\r\na: b", "f").items["a"][0] == 3  # type: ignore[union-attr]
    assert refusal("a: 1\r\nb: 2\rc: \x02") == "world.yaml:3: the character U+0002 is not allowed"


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "world.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + WORLD.encode())
    assert read_world(path) == parse(WORLD)

    path.write_bytes(b"customers:\n  - {name: \xff}\n")
    with pytest.raises(StartError, match=r"^world\.yaml:2: the file must be UTF-8$"):
        read_world(path)

    path.write_bytes(b"#" * (32 * 2**20 + 1))
    with pytest.raises(StartError, match=r"^world\.yaml:1: a world file has at most 32 MiB$"):
        read_world(path)

    with pytest.raises(StartError, match="No such file"):
        read_world(tmp_path / "none.yaml")


def test_the_demo_world_has_something_of_everything() -> None:
    world = demo_world()

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
    world = demo_world()
    products = {product.key: product for product in world.products}

    for collection in world.collections:
        for key in collection.products:
            product = products[key]
            assert product.currency == collection.currency, (collection.key, key)
            assert collection.country in (product.countries or product.postage_minor), (collection.key, key)
            assert product.customers is None or collection.customer in product.customers, (
                collection.key,
                key,
            )
