"""GET /products, /products/{id}, /collections and /collections/{id}."""

from typing import Any

import pytest

NOTHING_SAID = {"description": None, "howToRedeem": None, "terms": None}
COFFEE = {
    "name": "Coffee House e-gift",
    "isDigital": True,
    "currency": "GBP",
    "currencyPrefix": "£",
    "totalPrice": None,
    "denominations": [5.0, 10.0, 25.0],
    "denominationChoices": {"5.00": "£5.00", "10.00": "£10.00", "25.00": "£25.00"},
    "minAmount": 5.0,
    "maxAmount": 25.0,
    "requiresAmount": True,
    "label": "Coffee House e-gift (£5.00 to £25.00)",
    "picture": None,
}
CINEMA = {
    **COFFEE,
    "name": "Cinema e-gift",
    "denominations": [12.5],
    "denominationChoices": {"12.50": "£12.50"},
    "minAmount": 12.5,
    "maxAmount": 12.5,
    "requiresAmount": False,
    "label": "Cinema e-gift (£12.50)",
}
BOOKS = {
    **COFFEE,
    "name": "Bookshop e-gift",
    "currency": "EUR",
    "currencyPrefix": "€",
    "denominations": [],
    "denominationChoices": {},
    "maxAmount": 200.0,
    "label": "Bookshop e-gift (€5.00 to €200.00)",
}
RAMEN = {
    **BOOKS,
    "name": "Ramen e-gift",
    "currency": "JPY",
    "currencyPrefix": "¥",
    "minAmount": 500.0,
    "maxAmount": 10000.0,
    "label": "Ramen e-gift (¥500 to ¥10,000)",
}
DATES = {
    **COFFEE,
    "name": "Dates e-gift",
    "currency": "KWD",
    "currencyPrefix": "KWD",
    "denominations": [1.25, 5.0],
    "denominationChoices": {"1.25": "KWD 1.250", "5.00": "KWD 5.000"},
    "minAmount": 1.25,
    "maxAmount": 5.0,
    "label": "Dates e-gift (KWD 1.250 to KWD 5.000)",
}
HAMPER = {
    **COFFEE,
    "name": "Autumn hamper",
    "isDigital": False,
    "totalPrice": 52.14,
    "denominations": [],
    "denominationChoices": {},
    "minAmount": None,
    "maxAmount": None,
    "requiresAmount": False,
    "label": "Autumn hamper (£52.14)",
}
TREATS = {
    "name": "Treats",
    "kind": "curated",
    "country": "GB",
    "currency": "GBP",
    "currencyPrefix": "£",
    "value": None,
    "requiresValue": True,
    "allowCustomValue": False,
    "valuePoints": [10.0, 25.0, 50.0],
    "valueChoices": {"10.00": "£10.00", "25.00": "£25.00", "50.00": "£50.00"},
    "minValue": 10.0,
    "maxValue": 50.0,
    "label": "Treats (£10.00 to £50.00)",
}
ANYTHING = {
    **TREATS,
    "name": "Anything",
    "country": "IE",
    "currency": "EUR",
    "currencyPrefix": "€",
    "allowCustomValue": True,
    "valuePoints": [20.0, 40.0],
    "valueChoices": {"20.00": "€20.00", "40.00": "€40.00"},
    "minValue": 20.0,
    "maxValue": 40.0,
    "label": "Anything (€20.00 to €40.00)",
}
OPEN = {
    **ANYTHING,
    "name": "Open",
    "country": "KW",
    "currency": "KWD",
    "currencyPrefix": "KWD",
    "valuePoints": [],
    "valueChoices": None,
    "minValue": None,
    "maxValue": None,
    "label": "Open (KWD)",
}
THANKS = {
    **TREATS,
    "name": "Acme thanks",
    "kind": "custom",
    "value": 25.0,
    "requiresValue": False,
    "valuePoints": [],
    "valueChoices": None,
    "minValue": None,
    "maxValue": None,
    "label": "Acme thanks (£25.00)",
}


@pytest.mark.parametrize(
    ("name", "country", "shown"),
    [
        ("coffee", "GB", COFFEE),
        ("coffee", "IE", COFFEE),
        ("cinema", "GB", CINEMA),
        ("books", "IE", BOOKS),
        ("books", "FR", BOOKS),
        ("ramen", "JP", RAMEN),
        ("dates", "KW", DATES),
        ("hamper", "GB", HAMPER),
        # (35.00 * 1.10 + 9.95) * 1.23 = 59.5935
        ("hamper", "IE", {**HAMPER, "totalPrice": 59.59, "label": "Autumn hamper (£59.59)"}),
    ],
)
def test_a_product(service, typed, name: str, country: str, shown: dict[str, Any]) -> None:
    product_id = service.ids["products"][name]
    expected = {"id": product_id, **shown}
    one = service.client("hr").get(f"/products/{product_id}", params={"country": country})
    assert one.status_code == 200
    assert one.headers["Content-Type"] == "application/json"
    assert typed(one.json()) == typed({**expected, **NOTHING_SAID})
    listed = service.client("hr").get("/products", params={"country": country}).json()
    assert typed(expected) in typed(listed)


@pytest.mark.parametrize(
    ("name", "shown"), [("treats", TREATS), ("any", ANYTHING), ("open", OPEN), ("acme-thanks", THANKS)]
)
def test_a_collection(service, typed, name: str, shown: dict[str, Any]) -> None:
    collection_id = service.ids["collections"][name]
    expected = {"id": collection_id, **shown}
    one = service.client("hr").get(f"/collections/{collection_id}")
    assert one.status_code == 200
    assert typed(one.json()) == typed(expected)
    assert typed(expected) in typed(service.client("hr").get("/collections").json())


PRODUCTS_GB = ["coffee", "cinema", "shop", "hamper", "club", "retired"]


@pytest.mark.parametrize(
    ("key", "query", "names"),
    [
        ("hr", {}, PRODUCTS_GB),
        ("globex", {}, ["coffee", "cinema", "shop", "hamper", "globex-club", "retired"]),
        ("hr", {"country": "IE"}, ["coffee", "books", "hamper"]),
        ("hr", {"country": "ie", "currency": "eur"}, ["books"]),
        ("hr", {"keyword": "HOUSE"}, ["coffee"]),
        ("hr", {"keyword": "house cóffee"}, ["coffee"]),
        ("hr", {"amount": "5"}, ["coffee", "shop"]),
        ("hr", {"amount": "4.99"}, ["shop"]),
        ("hr", {"country": "JP", "amount": "500", "currency": "JPY", "keyword": "ramen"}, ["ramen"]),
    ],
)
def test_products_that_pass_the_filters(service, key: str, query: dict[str, str], names: list[str]) -> None:
    answer = service.client(key).get("/products", params=query)
    assert answer.status_code == 200, answer.text
    by_id = {n: name for name, n in service.ids["products"].items()}
    assert sorted(by_id[product["id"]] for product in answer.json()) == sorted(names)


@pytest.mark.parametrize(
    ("key", "query", "names"),
    [
        ("hr", {}, ["treats", "any", "open", "acme-thanks"]),
        ("globex", {}, ["treats", "any", "open", "globex-thanks"]),
        ("hr", {"country": "ie"}, ["any"]),
        ("hr", {"amount": "24.99"}, ["treats", "any", "open"]),
        ("hr", {"amount": "10", "country": "GB", "currency": "GBP"}, ["treats"]),
    ],
)
def test_collections_that_pass_the_filters(service, key: str, query: dict[str, str], names: list[str]) -> None:
    answer = service.client(key).get("/collections", params=query)
    assert answer.status_code == 200, answer.text
    by_id = {n: name for name, n in service.ids["collections"].items()}
    assert sorted(by_id[collection["id"]] for collection in answer.json()) == sorted(names)


@pytest.mark.parametrize(
    ("path", "query", "member"),
    [
        ("/products", "limit=0", "limit"),
        ("/products", "limit=201", "limit"),
        ("/products", "page=0", "page"),
        ("/products", "country=GBR", "country"),
        ("/products", "currency=GB", "currency"),
        ("/products", "amount=x", "amount"),
        ("/products", "amount=-1", "amount"),
        ("/products", "amount=nan", "amount"),
        ("/products/1", "country=GBR", "country"),
        ("/collections", "country=GBR", "country"),
        ("/collections", "currency=x", "currency"),
        ("/collections", "amount=ten", "amount"),
        ("/templates", "offset=-1", "offset"),
        ("/templates", "offset=2147483648", "offset"),
        ("/templates", "limit=201", "limit"),
        ("/users", "limit=201", "limit"),
        ("/orders", "limit=51", "limit"),
    ],
)
def test_a_malformed_parameter_is_refused_by_name(service, problem, path: str, query: str, member: str) -> None:
    detail = problem(service.client("hr").get(f"{path}?{query}"), 400)
    assert detail.startswith(f"`{member}` ")


def test_edges_of_the_list_limits_are_accepted(service) -> None:
    client = service.client("hr")
    for path, limits in {"/products": (1, 200), "/templates": (1, 200), "/users": (1, 200), "/orders": (1, 50)}.items():
        for limit in limits:
            assert client.get(path, params={"limit": limit}).status_code == 200
    assert client.get("/templates?offset=2147483647").json() == []
    assert client.get("/products?unknown=1").status_code == 200


@pytest.mark.parametrize("path", ["/products/999999", "/products/coffee", "/collections/x"])
def test_an_id_that_names_nothing_is_not_found(service, problem, path: str) -> None:
    problem(service.client("hr").get(path), 404, "not-found")


def test_a_product_is_not_found_in_a_country_it_is_not_sold_in(service, problem) -> None:
    books, hamper = service.ids["products"]["books"], service.ids["products"]["hamper"]
    problem(service.client("hr").get(f"/products/{books}"), 404, "not-found")
    problem(service.client("hr").get(f"/products/{hamper}?country=FR"), 404, "not-found")


def test_a_change_of_the_catalogue_shows_in_the_next_answer(service) -> None:
    client = service.client("initech")
    shop = service.ids["products"]["shop"]
    service.sql("UPDATE products SET name = 'Shop of shops' WHERE id = $1", shop)
    assert client.get(f"/products/{shop}").json()["name"] == "Shop of shops"
    service.sql("UPDATE products SET active = false, name = 'Shop e-gift' WHERE id = $1", shop)
    assert client.get(f"/products/{shop}").status_code == 404
    service.sql("UPDATE products SET active = true WHERE id = $1", shop)
    assert client.get(f"/products/{shop}").status_code == 200
