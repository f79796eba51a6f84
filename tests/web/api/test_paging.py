"""Lists longer than a page: what is given unless said, at most, and page by page."""

import pytest

COUNT = 205

WORLD = f"""
customers:
  - key: acme
    name: Acme Ltd
    plan: pro
    funding: invoiced
    users: [{", ".join(f"{{email: u{n}@acme.example, name: U{n}}}" for n in range(COUNT))}]
    service_accounts: [{{key: bot, name: Bot}}]
    api_keys: [{{key: hr, service_account: bot, environment: production}}]
    templates: [{", ".join(f"{{key: t{n}, name: T{n}, product: p{n}, value: 5}}" for n in range(COUNT))}]
products:
  [{
    ", ".join(
        f"{{key: p{n}, name: P{n}, digital: true, currency: GBP, countries: [GB], denominations: [5, 10]}}"
        for n in range(COUNT)
    )
}]
"""


@pytest.mark.parametrize("path", ["/products", "/templates", "/users"])
def test_a_hundred_unless_said_and_two_hundred_at_most(service, path: str) -> None:
    client = service.client("hr")
    assert len(client.get(path).json()) == 100
    most = client.get(path, params={"limit": 200}).json()
    assert len(most) == 200
    assert client.get(path).json() == most[:100]


def test_products_page_by_page(service) -> None:
    client = service.client("hr")
    pages = [client.get("/products", params={"page": page}).json() for page in (1, 2, 3, 4)]
    assert [len(page) for page in pages] == [100, 100, 5, 0]
    ids = [product["id"] for page in pages for product in page]
    assert ids == sorted(set(ids))
    assert client.get("/products?page=1000000").json() == []
    filtered = client.get("/products", params={"keyword": "p1", "page": 2, "limit": 100}).json()
    assert len(filtered) == 11  # P1, P10 to P19 and P100 to P199 are 111


@pytest.mark.parametrize("path", ["/templates", "/users"])
def test_by_offset(service, path: str) -> None:
    client = service.client("hr")
    whole = [client.get(path, params={"offset": offset, "limit": 100}).json() for offset in (0, 100, 200)]
    assert [len(part) for part in whole] == [100, 100, 5]
    names = [item["name"] for part in whole for item in part]
    letter = path[1].upper()
    assert names == [f"{letter}{n}" for n in reversed(range(COUNT))]
    assert [item["name"] for item in client.get(path, params={"offset": 204}).json()] == [f"{letter}0"]


@pytest.mark.parametrize("path", ["/templates", "/users"])
def test_by_the_last_of_the_page_before(service, path: str) -> None:
    client = service.client("hr")
    ids = [one["id"] for offset in (0, 200) for one in client.get(path, params={"offset": offset, "limit": 200}).json()]
    rest = client.get(path, params={"before": ids[99], "offset": 7, "limit": 200}).json()
    assert [one["id"] for one in rest] == ids[100:]
    assert client.get(path, params={"before": ids[-1]}).json() == []
    assert client.get(path, params={"before": 0}).status_code == 400


def test_none_is_left_out_when_another_is_removed_meanwhile(service) -> None:
    client = service.client("hr")
    ids = [one["id"] for one in client.get("/templates", params={"limit": 200}).json()]
    first = client.get("/templates", params={"limit": 100}).json()
    service.sql("UPDATE templates SET removed_at = clock_now() WHERE id = $1", ids[0])
    try:
        rest = client.get("/templates", params={"limit": 100, "before": first[-1]["id"]}).json()
    finally:
        service.sql("UPDATE templates SET removed_at = NULL WHERE id = $1", ids[0])
    assert [one["id"] for one in (*first, *rest)] == ids


@pytest.mark.parametrize("length", [199, 200, 201, 2_000])
def test_the_same_question_has_the_same_answer(service, length: int) -> None:
    """However long it is, and so whether it is kept or read anew; one that is wrong stays wrong."""
    client = service.client("hr")
    right, wrong = "offset=203&limit=1&x=", "offset=203&limit=201&x="
    for _ in range(2):
        assert [user["name"] for user in client.get(f"/users?{right.ljust(length, 'x')}").json()] == ["U1"]
        assert client.get(f"/users?{wrong.ljust(length, 'x')}").status_code == 400
        # The same text means something else elsewhere.
        assert [one["name"] for one in client.get(f"/products?{right.ljust(length, 'x')}").json()] == ["P0"]
