"""The JSON of products and collections, member by member."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from largesse.catalogue.model import Collection, Product
from largesse.web.api.shapes import CollectionShape, ProductShape, collection_shape, product_shape

GB = frozenset({"GB"})


def product_json(product: Product, country: str = "GB") -> Any:
    return msgspec.json.decode(msgspec.json.encode(product_shape(product, country, "https://gifts.example")))


def collection_json(collection: Collection) -> Any:
    return msgspec.json.decode(msgspec.json.encode(collection_shape(collection)))


def test_digital_with_denominations() -> None:
    product = Product(
        id=1,
        name="Coffee House e-gift",
        is_digital=True,
        currency="GBP",
        countries=GB,
        denominations_minor=(500, 1000, 2500),
    )
    assert list(product_json(product).items()) == [
        ("id", 1),
        ("name", "Coffee House e-gift"),
        ("isDigital", True),
        ("currency", "GBP"),
        ("currencyPrefix", "£"),
        ("totalPrice", None),
        ("denominations", [5.0, 10.0, 25.0]),
        ("denominationChoices", {"5.00": "£5.00", "10.00": "£10.00", "25.00": "£25.00"}),
        ("minAmount", 5.0),
        ("maxAmount", 25.0),
        ("requiresAmount", True),
        ("label", "Coffee House e-gift (£5.00 to £25.00)"),
        ("picture", None),
    ]


def test_digital_with_one_denomination_implies_its_amount() -> None:
    product = Product(id=1, name="Cinema", is_digital=True, currency="EUR", countries=GB, denominations_minor=(1250,))
    shape = product_json(product)
    assert shape["denominations"] == [12.5]
    assert shape["denominationChoices"] == {"12.50": "€12.50"}
    assert (shape["minAmount"], shape["maxAmount"]) == (12.5, 12.5)
    assert shape["requiresAmount"] is False
    assert shape["label"] == "Cinema (€12.50)"


def test_digital_with_a_range() -> None:
    product = Product(
        id=2, name="Bookshop e-gift", is_digital=True, currency="EUR", countries=GB, range_minor=(500, 20000)
    )
    shape = product_json(product)
    assert shape["denominations"] == []
    assert shape["denominationChoices"] == {}
    assert (shape["minAmount"], shape["maxAmount"]) == (5.0, 200.0)
    assert shape["requiresAmount"] is True
    assert shape["totalPrice"] is None
    assert shape["label"] == "Bookshop e-gift (€5.00 to €200.00)"


def test_physical_has_the_delivered_price_of_the_country() -> None:
    product = Product(
        id=3,
        name="Autumn hamper",
        is_digital=False,
        currency="GBP",
        cost_minor=3500,
        markup_percent=Decimal(10),
        postage_minor={"GB": 495, "IE": 995},
        vat_percent={"GB": Decimal(20)},
    )
    assert product_json(product) == {
        "id": 3,
        "name": "Autumn hamper",
        "isDigital": False,
        "currency": "GBP",
        "currencyPrefix": "£",
        "totalPrice": 52.14,
        "denominations": [],
        "denominationChoices": {},
        "minAmount": None,
        "maxAmount": None,
        "requiresAmount": False,
        "label": "Autumn hamper (£52.14)",
        "picture": None,
    }
    abroad = product_json(product, "IE")
    assert (abroad["totalPrice"], abroad["label"]) == (48.45, "Autumn hamper (£48.45)")


@pytest.mark.parametrize(
    ("currency", "minor", "number", "choices"),
    [
        ("JPY", 500, 500.0, {"500.00": "¥500"}),
        ("KWD", 1500, 1.5, {"1.50": "KWD 1.500"}),
        ("CHF", 1000, 10.0, {"10.00": "CHF 10.00"}),
    ],
)
def test_currencies_of_other_exponents(currency: str, minor: int, number: float, choices: dict[str, str]) -> None:
    product = Product(
        id=1, name="Voucher", is_digital=True, currency=currency, countries=GB, denominations_minor=(minor,)
    )
    shape = product_json(product)
    assert shape["denominations"] == [number]
    assert shape["denominationChoices"] == choices


def test_curated_collection() -> None:
    collection = Collection(
        id=4, name="Treats", country="GB", currency="GBP", value_points_minor=(1000, 2500, 5000), product_ids=(1,)
    )
    assert list(collection_json(collection).items()) == [
        ("id", 4),
        ("name", "Treats"),
        ("kind", "curated"),
        ("country", "GB"),
        ("currency", "GBP"),
        ("currencyPrefix", "£"),
        ("value", None),
        ("requiresValue", True),
        ("allowCustomValue", False),
        ("valuePoints", [10.0, 25.0, 50.0]),
        ("valueChoices", {"10.00": "£10.00", "25.00": "£25.00", "50.00": "£50.00"}),
        ("minValue", 10.0),
        ("maxValue", 50.0),
        ("label", "Treats (£10.00 to £50.00)"),
    ]


def test_curated_collection_without_value_points() -> None:
    shape = collection_json(Collection(id=4, name="Anything", country="GB", currency="GBP", allow_custom_value=True))
    assert shape["requiresValue"] is True
    assert shape["allowCustomValue"] is True
    assert shape["valuePoints"] == []
    assert (shape["valueChoices"], shape["minValue"], shape["maxValue"]) == (None, None, None)
    assert shape["label"] == "Anything (GBP)"


def test_custom_collection() -> None:
    shape = collection_json(
        Collection(
            id=5,
            name="Acme thanks",
            country="GB",
            currency="GBP",
            customer_id=1,
            value_minor=2500,
            # Columns that mean nothing for a custom collection do not show.
            value_points_minor=(1000,),
            allow_custom_value=True,
        )
    )
    assert shape["kind"] == "custom"
    assert shape["value"] == 25.0
    assert shape["requiresValue"] is False
    assert shape["allowCustomValue"] is False
    assert shape["valuePoints"] == []
    assert (shape["valueChoices"], shape["minValue"], shape["maxValue"]) == (None, None, None)
    assert shape["label"] == "Acme thanks (£25.00)"


@pytest.mark.parametrize("shape", [ProductShape, CollectionShape])
def test_every_member_is_required_and_described(shape: type[msgspec.Struct]) -> None:
    _, components = msgspec.json.schema_components([shape])
    schema = components[shape.__name__]
    assert schema["required"] == list(schema["properties"])
    for name, member in schema["properties"].items():
        described = "description" in member or any("description" in part for part in member.get("anyOf", []))
        assert described, name
