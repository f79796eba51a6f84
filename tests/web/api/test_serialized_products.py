"""What a product looks like, and what is said of it, as callers are told."""

from tests.catalogue.images import png
from tests.web.api.conftest import Service
from tests.web.console.gifts import PICTURE, WORLD, with_a_picture

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
