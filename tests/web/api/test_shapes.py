"""The JSON of products and collections that `test_catalogue.py` has none of."""

from decimal import Decimal

import msgspec
import pytest
from tests.catalogue.images import png
from tests.web.api.conftest import Service
from tests.web.console.gifts import PICTURE, WORLD, with_a_picture

from largesse.catalogue.model import Collection, Product
from largesse.web.api.shapes import CollectionShape, ProductShape, collection_shape, product_shape


def test_a_country_without_vat_pays_cost_and_postage() -> None:
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
    shape = product_shape(product, "IE", "https://gifts.example")
    assert (shape.total_price, shape.label) == (48.45, "Autumn hamper (£48.45)")


def test_a_currency_without_a_sign_is_named() -> None:
    product = Product(id=1, name="Voucher", is_digital=True, currency="CHF", denominations_minor=(1000,))
    shape = product_shape(product, "CH", "https://gifts.example")
    assert (shape.denominations, shape.denomination_choices) == ([10.0], {"10.00": "CHF 10.00"})


def test_columns_that_mean_nothing_for_a_custom_collection_do_not_show() -> None:
    shape = collection_shape(
        Collection(
            id=5,
            name="Acme thanks",
            country="GB",
            currency="GBP",
            customer_id=1,
            value_minor=2500,
            value_points_minor=(1000,),
            allow_custom_value=True,
        )
    )
    assert (shape.kind, shape.value, shape.allow_custom_value, shape.value_points) == ("custom", 25.0, False, [])
    assert (shape.value_choices, shape.min_value, shape.max_value) == (None, None, None)
    assert shape.label == "Acme thanks (£25.00)"


@pytest.mark.parametrize("shape", [ProductShape, CollectionShape])
def test_every_member_is_required_and_described(shape: type[msgspec.Struct]) -> None:
    _, components = msgspec.json.schema_components([shape])
    schema = components[shape.__name__]
    assert schema["required"] == list(schema["properties"])
    for name, member in schema["properties"].items():
        described = "description" in member or any("description" in part for part in member.get("anyOf", []))
        assert described, name


__all__ = ["WORLD", "with_a_picture"]


def test_a_product_names_the_address_of_its_picture(service: Service) -> None:
    caller, ids = service.client("hr"), service.ids["products"]
    listed = {one["id"]: one["picture"] for one in caller.get("/products").json()}
    assert listed[ids["shop"]] is None
    address = caller.get(f"/products/{ids['coffee']}").json()["picture"]
    assert address == listed[ids["coffee"]] == f"{service.settings.public_url}/pictures/{PICTURE.name}"
    shown = service.client().get(address.removeprefix(service.settings.public_url))
    assert (shown.status_code, shown.content) == (200, png())


def test_one_product_tells_what_is_said_of_it(service: Service) -> None:
    caller, ids = service.client("hr"), service.ids["products"]
    coffee = caller.get(f"/products/{ids['coffee']}").json()
    said = {"description": "Hot & fresh.", "howToRedeem": "Show it.\nDrink it.", "terms": "No refunds."}
    [listed] = [one for one in caller.get("/products").json() if one["id"] == ids["coffee"]]
    assert coffee == {**listed, **said}
    hamper = caller.get(f"/products/{ids['hamper']}").json()
    assert (hamper["description"], hamper["terms"]) == ("Jam and more.", None)
