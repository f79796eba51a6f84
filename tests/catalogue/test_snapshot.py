"""The snapshot: who sees what, filters, pages."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largesse.base.errors import NotFound
from largesse.base.money import to_number
from largesse.catalogue.model import Collection, Product
from largesse.catalogue.products import Filters
from largesse.catalogue.snapshot import Snapshot
from largesse.web.api.shapes import CatalogueInJson

ACME, GLOBEX, OTHER = 1, 2, 3


def voucher(product_id: int, name: str = "Voucher", **fields: Any) -> Product:
    terms = {"currency": "GBP", "countries": frozenset({"GB"}), "denominations_minor": (1000,)}
    return Product(**({"id": product_id, "name": name, "is_digital": True} | terms | fields))


def hamper(product_id: int, **fields: Any) -> Product:
    terms = {
        "currency": "GBP",
        "cost_minor": 3500,
        "markup_percent": Decimal(10),
        "postage_minor": {"GB": 495, "IE": 995},
        "vat_percent": {"GB": Decimal(20)},
    }
    return Product(**({"id": product_id, "name": "Hamper", "is_digital": False} | terms | fields))


def collection(collection_id: int, **fields: Any) -> Collection:
    terms = {"name": "Treats", "country": "GB", "currency": "GBP"}
    points = {} if "value_minor" in fields else {"value_points_minor": (1000, 2500)}
    return Collection(**({"id": collection_id} | terms | points | fields))


def snapshot(products: list[Product] | None = None, collections: list[Collection] | None = None) -> Snapshot:
    return Snapshot.of(1, products or [], collections or [], CatalogueInJson("https://gifts.example"))


def product_ids(
    shop: Snapshot, customer_id: int = ACME, country: str = "GB", page: int = 1, limit: int = 100, **filters: Any
) -> list[int]:
    found = shop.serialized_products(customer_id, Filters(country, **filters), page, limit)
    return [item["id"] for item in msgspec.json.decode(found)]


def collection_ids(shop: Snapshot, customer_id: int = ACME, **arguments: Any) -> list[int]:
    return [item["id"] for item in msgspec.json.decode(shop.serialized_collections(customer_id, **arguments))]


class TestProducts:
    def test_sold_where_its_countries_or_its_postage_say(self) -> None:
        shop = snapshot([voucher(1, countries=frozenset({"GB", "FR"})), hamper(2)])
        assert product_ids(shop, country="GB") == [1, 2]
        assert product_ids(shop, country="FR") == [1]
        assert product_ids(shop, country="IE") == [2]
        assert product_ids(shop, country="US") == []

    def test_listed_by_id_whatever_the_order_they_came_in(self) -> None:
        shop = snapshot([voucher(30), voucher(10), voucher(20, customer_ids=frozenset({ACME})), hamper(5), voucher(25)])
        assert product_ids(shop, ACME) == [5, 10, 20, 25, 30]
        assert product_ids(shop, GLOBEX) == [5, 10, 25, 30]

    def test_restricted_shows_to_its_customers_alone(self) -> None:
        shop = snapshot(
            [
                voucher(1),
                voucher(2, customer_ids=frozenset({ACME})),
                hamper(3, customer_ids=frozenset({ACME, GLOBEX})),
                voucher(4, customer_ids=frozenset()),
            ]
        )
        for _ in range(2):  # the second time from what is kept
            assert product_ids(shop, ACME) == [1, 2, 3]
            assert product_ids(shop, GLOBEX) == [1, 3]
            assert product_ids(shop, OTHER) == [1]
            assert product_ids(shop, ACME, currency="GBP") == [1, 2, 3]
            assert product_ids(shop, OTHER, currency="GBP") == [1]

    @pytest.mark.parametrize(
        ("product_id", "country", "customer_id"),
        [
            pytest.param(9, "GB", ACME, id="unknown"),
            pytest.param(2**70, "GB", ACME, id="beyond any id"),
            pytest.param(1, "FR", ACME, id="not sold there"),
            pytest.param(2, "FR", ACME, id="no postage"),
            pytest.param(3, "GB", GLOBEX, id="another customer's"),
        ],
    )
    def test_unavailable_is_not_found(self, product_id: int, country: str, customer_id: int) -> None:
        shop = snapshot([voucher(1), hamper(2), voucher(3, customer_ids=frozenset({ACME}))])
        assert shop.product(product_id, country, customer_id) is None
        with pytest.raises(NotFound, match=f"no product {product_id} available in {country}"):
            shop.serialized_product(product_id, country, customer_id)

    def test_one_product(self) -> None:
        mine = hamper(3, customer_ids=frozenset({ACME}))
        shop = snapshot([voucher(1), mine])
        assert shop.product(3, "GB", ACME) is mine
        assert msgspec.json.decode(shop.serialized_product(3, "GB", ACME))["totalPrice"] == 52.14
        assert msgspec.json.decode(shop.serialized_product(3, "IE", ACME))["totalPrice"] == 48.45
        assert shop.serialized_product(1, "GB", ACME) == shop.serialized_products(ACME, Filters("GB"), limit=1)[1:-1]

    @pytest.mark.parametrize(
        ("keyword", "found"),
        [
            ("coffee", [1, 2]),
            ("COFFEE", [1, 2]),
            ("ffee h", [1]),
            ("strasse", [3]),
            ("STRAßE", [3]),
            ("%", []),
            ("", [1, 2, 3]),
            (None, [1, 2, 3]),
        ],
    )
    def test_keyword_is_found_anywhere_in_any_case(self, keyword: str | None, found: list[int]) -> None:
        shop = snapshot([voucher(1, "Coffee House"), voucher(2, "Best coffee"), voucher(3, "Café Goethestraße")])
        assert product_ids(shop, keyword=keyword) == found

    @pytest.mark.parametrize(
        ("amount", "found"),
        [
            ("52.14", [1, 2, 3]),
            ("52.13999999999999999999999999999999999", [2, 3]),
            ("52.13", [2, 3]),
            ("10", [2, 3]),
            ("10.00", [2, 3]),
            ("9.999", [3]),
            ("5", [3]),
            ("4.99", []),
            ("0", []),
            ("-1", []),
            ("1E+999999", [1, 2, 3]),
            ("1E-999999", []),
        ],
    )
    def test_amount_keeps_what_can_be_sent_for_it_or_less(self, amount: str, found: list[int]) -> None:
        shop = snapshot(
            [
                hamper(1),
                voucher(2, denominations_minor=(1000, 9000)),
                voucher(3, denominations_minor=(), range_minor=(500, 900)),
                voucher(4, denominations_minor=()),
            ]
        )
        assert product_ids(shop, amount=Decimal(amount)) == found

    def test_amount_is_in_each_products_own_currency(self) -> None:
        shop = snapshot(
            [
                voucher(1, denominations_minor=(1000,)),
                voucher(2, currency="JPY", denominations_minor=(1000,)),
                voucher(3, currency="KWD", denominations_minor=(1000,)),
            ]
        )
        assert product_ids(shop, amount=Decimal(1)) == [3]
        assert product_ids(shop, amount=Decimal(10)) == [1, 3]
        assert product_ids(shop, amount=Decimal(1000)) == [1, 2, 3]

    @given(
        st.lists(st.booleans(), max_size=40), st.integers(1, 50), st.integers(1, 200), st.sampled_from([None, "GBP"])
    )
    def test_pages_are_slices_of_the_whole(
        self, restricted: list[bool], page: int, limit: int, currency: str | None
    ) -> None:
        shop = snapshot(
            [
                voucher(number, customer_ids=frozenset({ACME}) if mine else None)
                for number, mine in enumerate(restricted, start=1)
            ]
        )
        for customer_id in (ACME, GLOBEX):
            whole = [n for n, mine in enumerate(restricted, start=1) if customer_id == ACME or not mine]
            expected = whole[(page - 1) * limit : page * limit]
            arguments: dict[str, Any] = {"currency": currency, "page": page, "limit": limit}
            assert product_ids(shop, customer_id, **arguments) == expected
            assert product_ids(shop, customer_id, **arguments) == expected

    def test_ten_thousand_products_page_by_page(self) -> None:
        products = [voucher(number) if number % 2 else hamper(number) for number in range(1, 10_001)]
        shop = snapshot(products)
        seen = [number for page in range(1, 51) for number in product_ids(shop, page=page, limit=200)]
        assert seen == list(range(1, 10_001))
        assert product_ids(shop, page=51, limit=200) == []
        assert product_ids(shop, country="IE", page=50) == list(range(9802, 10_001, 2))

    @given(st.sampled_from(["GBP", "JPY", "KWD"]), st.integers(1, 10**9), st.integers(-1, 1))
    def test_the_least_amount_is_the_edge_of_the_filter(self, currency: str, least_minor: int, off: int) -> None:
        shop = snapshot([voucher(1, currency=currency, denominations_minor=(least_minor,))])
        amount = Decimal(repr(to_number(least_minor + off, currency)))
        assert product_ids(shop, amount=amount) == ([1] if off >= 0 else [])


class TestCollections:
    SHOP = snapshot(
        collections=[
            collection(4, customer_id=ACME, value_minor=2500),
            collection(1),
            collection(2, country="IE", currency="EUR", value_points_minor=(500,)),
            collection(5, customer_id=GLOBEX, value_minor=700, country="IE", currency="EUR"),
            collection(3, value_points_minor=(), allow_custom_value=True),
            collection(6, value_points_minor=()),
        ]
    )

    @pytest.mark.parametrize(
        ("customer_id", "filters", "found"),
        [
            (ACME, {}, [1, 2, 3, 4, 6]),
            (GLOBEX, {}, [1, 2, 3, 5, 6]),
            (OTHER, {}, [1, 2, 3, 6]),
            (ACME, {"country": "GB"}, [1, 3, 4, 6]),
            (ACME, {"country": "IE"}, [2]),
            (GLOBEX, {"country": "IE"}, [2, 5]),
            (ACME, {"country": "US"}, []),
            (GLOBEX, {"currency": "EUR"}, [2, 5]),
            (ACME, {"currency": "XXX"}, []),
            (ACME, {"amount": Decimal(25)}, [1, 2, 3, 4]),
            (ACME, {"amount": Decimal("24.99")}, [1, 2, 3]),
            (ACME, {"amount": Decimal("9.99")}, [2, 3]),
            (ACME, {"amount": Decimal("0.001")}, [3]),
            (ACME, {"amount": Decimal(0)}, []),
            (GLOBEX, {"country": "IE", "currency": "EUR", "amount": Decimal("6.99")}, [2]),
            (GLOBEX, {"country": "IE", "currency": "EUR", "amount": Decimal(7)}, [2, 5]),
        ],
    )
    def test_listing(self, customer_id: int, filters: dict[str, Any], found: list[int]) -> None:
        assert collection_ids(self.SHOP, customer_id, **filters) == found
        assert collection_ids(self.SHOP, customer_id, **filters) == found

    def test_one_collection(self) -> None:
        own = self.SHOP.collection(4, ACME)
        assert own is not None
        assert own.value_minor == 2500
        assert msgspec.json.decode(self.SHOP.serialized_collection(4, ACME))["value"] == 25.0
        assert msgspec.json.decode(self.SHOP.serialized_collection(1, OTHER))["kind"] == "curated"

    @pytest.mark.parametrize(("collection_id", "customer_id"), [(9, ACME), (4, GLOBEX), (5, ACME), (2**70, ACME)])
    def test_unavailable_is_not_found(self, collection_id: int, customer_id: int) -> None:
        assert self.SHOP.collection(collection_id, customer_id) is None
        with pytest.raises(NotFound, match=f"no collection {collection_id}"):
            self.SHOP.serialized_collection(collection_id, customer_id)
