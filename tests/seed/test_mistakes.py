"""Mistakes in a seed file: each is refused with its line."""

import pytest
from tests.seed.conftest import parse, refusal
from tests.seed.worlds import SMALL

from largesse.catalogue.service import MOST_COLLECTIONS, MOST_PRODUCTS
from largesse.customers.members import MOST_PEOPLE
from largesse.customers.service_accounts import MOST_SERVICE_ACCOUNTS
from largesse.ledger.accounts import MOST_ACCOUNTS
from largesse.templates.service import MOST_TEMPLATES

# One mistake each: a piece of SMALL, what stands there instead, and the refusal from the line on.
MISTAKES = [
    # Text
    ("name: Acme Ltd", "name: 1984", "3: customers[0].name: must be text: put it in quotes"),
    ("name: Acme Ltd", "name: [Acme]", "3: customers[0].name: must be text"),
    ("name: Acme Ltd", 'name: "\\u200b"', "3: customers[0].name: must not be empty"),
    ("name: Acme Ltd", "name: ~", "3: customers[0].name: is required"),
    ("    name: Acme Ltd\n", "", "2: customers[0].name: is required"),
    ("name: Acme Ltd", 'name: "Acme\\x07"', "3: customers[0].name: must not contain control characters"),
    ("name: Acme Ltd", 'name: "Acme\\nLtd"', "3: customers[0].name: must not contain control characters"),
    ("name: Acme Ltd", f"name: {'x' * 201}", "3: customers[0].name: must have at most 200 characters, not 201"),
    ("name: Ada", f"name: {'x' * 101}", "7: customers[0].users[0].name: must have at most 100 characters, not 101"),
    ("name: Bot", f"name: {'x' * 101}", "9: customers[0].service_accounts[0].name: must have at most 100 characters, not 101"),
    ("name: Float", f"name: {'x' * 101}", "13: customers[0].funding_accounts[0].name: must have at most 100 characters, not 101"),
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
    ("digital: true", 'digital: "true"', "20: products[0].digital: must be true or false, without quotes"),
    ("digital: true", "digital: 1", "20: products[0].digital: must be true or false"),
    # Addresses
    ("ada@acme.example", "ada", "7: customers[0].users[0].email: must be an e-mail address: "),
    ("ada@acme.example", "ada@localhost", "7: customers[0].users[0].email: must be an e-mail address: "),
    # Codes
    ("currency: GBP, balance: 10", "currency: POUND, balance: 10", "13: customers[0].funding_accounts[0].currency: must be a currency of three letters, as GBP"),
    ("countries: [GB]", "countries: [GB, GBR]", "20: products[0].countries[1]: must be the code of a country in ISO 3166-1, as GB"),
    ("countries: [GB]", "countries: [GB, gb]", "20: products[0].countries[1]: GB comes twice"),
    ("countries: [GB]", "countries: GB", "20: products[0].countries: must be a list"),
    ("countries: [GB]", "countries: []", "20: products[0].countries: must not be an empty list"),
    ("countries: [GB], denom", "denom", "20: products[0].countries: is required"),
    ("postage: {GB: 4}", "postage: {GBR: 4}", "22: products[2].postage.GBR: must be the code of a country in ISO 3166-1, as GB"),
    ("postage: {GB: 4}", "postage: {GB: 4, gb: 5}", "22: products[2].postage.gb: GB comes twice"),
    ("postage: {GB: 4}", "postage: {}", "22: products[2].postage: must name at least one country"),
    ("postage: {GB: 4}", "postage: [GB]", "22: products[2].postage: must be a mapping of countries, as {GB: 4.95}"),
    # Amounts
    ("balance: 10", "balance: -0.01", "13: customers[0].funding_accounts[0].balance: must not be negative"),
    ("balance: 10", "balance: 10.001", "13: customers[0].funding_accounts[0].balance: must have at most 2 decimals in GBP"),
    ("balance: 10", "balance: 5000000000000.01", "13: customers[0].funding_accounts[0].balance: must be at most 5000000000000"),
    ("balance: 10", 'balance: "10"', "13: customers[0].funding_accounts[0].balance: must be a number, without quotes"),
    ("balance: 10", "balance: 1e3", "13: customers[0].funding_accounts[0].balance: must be a number"),
    ("balance: 10", "balance: 1.0000000000000000000000001", "13: customers[0].funding_accounts[0].balance: must be a number"),
    ("GBP, balance: 10", "JPY, balance: 10.5", "13: customers[0].funding_accounts[0].balance: must have no decimals in JPY"),
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
    ("collection: thanks}", "collection: thanks, value: 24}", "16: customers[0].templates[1].value: must be 25.00, the value of the collection, or left out"),
    ("collection: any, value: 0.01", "collection: treats, value: 11", "17: customers[0].templates[2].value: must be one of 10.00, 25.00"),
    ("value: 10}", "value: 10, country: FR}", "15: customers[0].templates[0].country: 'coffee' is not sold in FR"),
    ("collection: thanks}", "collection: thanks, country: GB}", "16: customers[0].templates[1].country: must be IE, the country of the collection, or left out"),
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
    ("name: Acme Ltd", "name: Acme Ltd\n    name: Acme", "4: 'name' is repeated in one mapping"),
    ("name: Acme Ltd", "name: !!python/name:os.system", "3: the tag 'tag:yaml.org,2002:python/name:os.system' is not supported"),
    ("name: Acme Ltd", "name: 'Acme", "27: this is not YAML: found unexpected end of stream (while scanning a quoted scalar, from line 3 on)"),
    ("name: Acme Ltd", "name: Acme\x01", "3: the character U+0001 is not allowed"),
    ("products:\n", "---\nproducts:\n", "19: a seed file must be one YAML document, but a second one begins here"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "refused"), MISTAKES)
def test_a_mistake_is_refused_with_its_line(old: str, new: str, refused: str) -> None:
    assert old in SMALL

    assert refusal(SMALL.replace(old, new, 1)).startswith(f"world.yaml:{refused}")


def test_mistakes_come_in_the_order_of_lines_one_on_each() -> None:
    text = "\n".join(["products:", *["  - {key: 1}"] * 30])

    lines = refusal(text).split("\n")

    assert lines[0].startswith("world.yaml:2: products[0].")
    assert len(lines) == 21
    assert lines[-1] == f"… and {30 * 6 - 20} more"  # each lacks digital, currency, name, cost and postage


@pytest.mark.parametrize("new", ["", 'digital: "true", '])
def test_a_digital_gift_that_does_not_say_so_is_not_read_as_a_physical_one(new: str) -> None:
    assert "\n" not in refusal(SMALL.replace("digital: true, ", new, 1))


def test_a_mistake_in_a_gift_is_not_repeated_for_its_templates() -> None:
    assert "\n" not in refusal(SMALL.replace("denominations: [5, 10]", "denominations: [5, 10.001]"))


MOST = {"users": MOST_PEOPLE, "service_accounts": MOST_SERVICE_ACCOUNTS, "funding_accounts": MOST_ACCOUNTS, "templates": MOST_TEMPLATES}  # fmt: skip


@pytest.mark.parametrize("name", MOST)
def test_a_customer_has_no_more_of_anything_than_in_the_web_application(name: str) -> None:
    one = {
        "users": "{{email: u{n}@acme.example, name: U{n}}}",
        "service_accounts": "{{key: s{n}, name: S{n}}}",
        "funding_accounts": "{{key: f{n}, name: F{n}, currency: GBP}}",
        "templates": "{{key: t{n}, product: coffee, value: 10}}",
    }[name]
    most = MOST[name]
    before, after = SMALL.split(f"    {name}:\n")
    there = 3 if name == "templates" else 1

    def file(count: int) -> str:
        return f"{before}    {name}:\n" + "".join(f"      - {one.format(n=n)}\n" for n in range(count - there)) + after

    assert len(getattr(parse(file(most)).customers[0], name)) == most
    assert f": customers[0].{name}: must have at most {most}, not {most + 1}" in refusal(file(most + 1))


def test_people_who_were_removed_take_no_place() -> None:
    removed = "".join(
        f"      - {{email: u{n}@acme.example, name: U, active: {n < MOST_PEOPLE - 1}}}\n" for n in range(600)
    )
    assert parse(SMALL.replace("    users:\n", f"    users:\n{removed}", 1))


def test_a_customer_has_no_more_collections_and_gifts_of_its_own_than_in_the_web_application() -> None:
    def collections(count: int, products: int) -> str:
        many = "".join(
            f"  - {{key: p{n}, name: P, digital: true, currency: GBP, countries: [GB], denominations: [5]}}\n"
            for n in range(products)
        )
        own = "".join(
            f"  - {{key: c{n}, customer: globex, name: C, country: GB, currency: GBP, value: 5, products: [{keys}]}}\n"
            for n in range(count)
            for keys in [", ".join(f"p{m}" for m in range(products))]
        )
        return SMALL.replace("collections:\n", f"{many}collections:\n{own}", 1)

    assert parse(collections(MOST_COLLECTIONS, 1))
    assert "'globex' must have at most 200 collections of its own" in refusal(collections(MOST_COLLECTIONS + 1, 1))
    assert parse(collections(1, MOST_PRODUCTS))
    assert "collections[0].products: must have at most 100, not 101" in refusal(collections(1, MOST_PRODUCTS + 1))
