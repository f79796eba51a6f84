"""The page Collections: what is made there is sent by every process at once, and concerns nobody else."""

import re
from typing import Any

import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser
from tests.web.console.gifts import WORLD, acts, ada, gather, gathered, gil, send, with_a_picture

__all__ = ["WORLD", "ada", "gil", "with_a_picture"]


def test_a_collection_made_here_is_sent_at_once_by_every_process(
    service: Service, staging: Service, ada: Browser
) -> None:
    service.client("hr").get("/collections")  # both have a catalogue in memory
    staging.client("hr-test").get("/collections")
    collection = gathered(service, ada, "coffee", "hamper")
    for one, key in ((service, "hr"), (staging, "hr-test")):
        listed = {found["id"]: found for found in one.client(key).get("/collections").json()}
        made = listed[collection]
        assert (made["name"], made["value"], made["kind"]) == ("Ours", 25.0, "custom")
    assert send(service, "collection", collection).json()["value"] == 25.0
    assert send(staging, "collection", collection, "hr-test", "test-gbp").status_code == 200
    assert "Ours" in ada.read("/app/send?tab=collections")
    assert collection not in {one["id"] for one in service.client("globex").get("/collections").json()}

    claim = ada.get(f"/app/collections/{collection}/claim?lang=en").text
    for said in ("Choose your gift, worth £25.00", "Coffee House", "Jam and more."):
        assert said in claim


def test_whoever_has_not_chosen_yet_chooses_from_what_is_saved_and_goes_on_to_after_a_removal(
    service: Service, ada: Browser
) -> None:
    collection = gathered(service, ada, "coffee", "shop")
    opened = claimed(service, send(service, "collection", collection).json()["codes"][0])
    assert choices(opened) == ["Coffee House e-gift", "Shop e-gift"]
    answer = gather(service, ada, "hamper", path=f"/app/collections/{collection}/edit", name="Hampers", value="99")
    assert answer.headers["location"] == f"/app/collections/{collection}"
    assert choices(opened) == ["Autumn hamper"]
    row = service.client("hr").get(f"/collections/{collection}").json()
    assert (row["name"], row["value"]) == ("Hampers", 25.0), "its value is settled"

    ada.submit(f"/app/collections/{collection}/remove")
    assert send(service, "collection", collection).status_code == 400
    assert ada.get(f"/app/collections/{collection}").status_code == 404
    assert choices(opened) == ["Autumn hamper"]
    assert acts(service)[-3:] == ["collection.created", "collection.changed", "collection.removed"]


def claimed(service: Service, code: dict[str, str]) -> tuple[Browser, str]:
    """The browser of who claimed a code, and the page of their gift."""
    recipient = Browser(service)
    path = code["redemptionUrl"].removeprefix("https://gifts.example")
    answer = recipient._send("POST", path, data={"pin": code["pin"]})
    return recipient, answer.headers["location"].removesuffix("#open")


def choices(opened: tuple[Browser, str]) -> list[str]:
    """What may be chosen."""
    recipient, gift = opened
    return re.findall(r'<span class="choice-name">([^<]*)', recipient.get(gift).text)


def test_what_fits_is_offered_and_nothing_else(service: Service, ada: Browser) -> None:
    fitting = {"25": {"Coffee House", "Shop", "Autumn hamper"}, "12.50": {"Shop", "Cinema"}, "3": {"Shop"}}
    for value, names in fitting.items():
        page = ada.get(f"/app/collections/new?country=GB&currency=GBP&value={value}").text
        found = set(re.findall(r"<strong>(Coffee House|Shop|Cinema|Autumn hamper|Globex club|Bookshop)", page))
        assert found == names, value
    page = ada.get("/app/collections/new?country=GB&currency=GBP&value=25&name=Ours&q=ham&product=1").text
    assert re.findall(r'value="(\d+)" checked', page) == ["1"], "what was ticked stays so"
    assert "Autumn hamper" in page
    assert "Shop e-gift" not in page
    assert "Autumn hamper" in ada.read("/app/collections/new?country=GB&currency=GBP&value=700")
    assert "No gift is available for this amount" in ada.read("/app/collections/new?country=FR&currency=EUR&value=700")


@pytest.mark.parametrize(
    ("products", "fields", "wrong"),
    [
        ((), {}, "Select at least one gift."),
        (("coffee",), {"value": ""}, "Type an amount"),
        (("coffee",), {"value": "-5"}, "Type an amount"),
        (("coffee",), {"value": "1.234"}, "“1.234” can mean £1,234.00 or 1.234 GBP"),
        (("coffee",), {"name": " "}, "Fill this in."),
        (("cinema",), {}, "Cinema e-gift is not available for this amount"),
        (("club",), {}, "is not available for this amount"),
    ],
)
def test_what_is_wrong_with_a_collection_is_said(
    service: Service, ada: Browser, products: tuple[str, ...], fields: dict[str, str], wrong: str
) -> None:
    version = service.sql("SELECT version FROM collection_versions")
    answer = gather(service, ada, *products, **fields)
    assert answer.status_code == 422
    assert wrong in answer.text
    assert service.sql("SELECT version FROM collection_versions") == version


def test_the_first_wrong_field_has_the_focus(service: Service, ada: Browser) -> None:
    answer = gather(service, ada, "coffee", name="", value="abc")
    assert re.findall(r'id="(\w+)"[^>]* autofocus', answer.text) == ["name"]


def test_too_many_gifts_are_refused(service: Service, ada: Browser) -> None:
    ids: Any = [str(number) for number in range(1, 102)]
    answer = gather(service, ada, product=ids)
    assert answer.status_code == 422
    assert "Tick at most 100 gifts." in answer.text or "is not available" in answer.text


def test_curated_collections_are_copied_and_not_changed(service: Service, ada: Browser) -> None:
    treats = service.ids["collections"]["treats"]
    assert ada.get(f"/app/collections/{treats}").status_code == 200
    for path in ("/edit", "/remove"):
        assert ada.get(f"/app/collections/{treats}{path}").status_code == 404
    page = ada.get(f"/app/collections/new?copy={treats}").text
    assert 'value="Copy of Treats"' in page
    assert len(re.findall(r'value="\d+" checked', page)) == 2, "both can be had for the least of its values"
