"""Contacts over the API: read, made, changed, deleted and saved in bulk, with keys that may."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.web.api.conftest import RICH_WORLD, Service

from largesse.web.api.openapi.document import build_document
from largesse.web.api.routes import OPERATIONS

WORLD = RICH_WORLD
SAM = {
    "email": "Sam@example.com",
    "name": "Sam Okoye",
    "language": "en",
    "country": "GB",
    "birthday": "02-29",
    "startDate": "2024-03-01",
    "address": "1 High Street\nLeeds",
    "externalId": "employee-1138",
    "groups": ["Sales"],
}


@pytest.fixture(autouse=True)
def nobody(service: Service) -> None:
    service.sql("DELETE FROM contacts")


def test_a_contact_is_made_read_changed_and_deleted(service: Service) -> None:
    client = service.client("hr")
    made = client.post("/contacts", json=SAM)
    assert made.status_code == 201
    expected = {**SAM, "id": made.json()["id"], "active": True, "fields": {}}
    assert made.json() == expected
    path = f"/contacts/{expected['id']}"
    assert client.get(path).json() == expected
    (listed,) = client.get("/contacts").json()
    assert listed == {name: value for name, value in expected.items() if name != "address"}
    patched = client.patch(path, json={"birthday": None, "groups": [], "active": False})
    assert patched.json() == {**expected, "birthday": None, "groups": [], "active": False}
    assert client.get("/contacts", params={"active": "true"}).json() == []
    assert client.delete(path).status_code == 204
    assert [client.request(method, path).status_code for method in ("GET", "DELETE")] == [404, 404]
    assert client.patch(path, json={}).status_code == 404


def test_groups_of_null_stay(service: Service) -> None:
    """As clients send that write every member. The groups of null are no empty list: nobody leaves them by mistake."""
    client = service.client("hr")
    contact = client.post("/contacts", json={"email": "null@example.com", "groups": ["Sales"]}).json()
    patched = client.patch(f"/contacts/{contact['id']}", json={"name": "Sam", "groups": None})
    assert (patched.json()["name"], patched.json()["groups"]) == ("Sam", ["Sales"])
    people = [{"externalId": "null", "email": "null@example.com", "groups": None}]
    assert client.post("/contacts/bulk", json={"contacts": people}).json()["ids"] == [contact["id"]]
    assert client.get(f"/contacts/{contact['id']}").json()["groups"] == ["Sales"]
    assert client.delete(f"/contacts/{contact['id']}").status_code == 204


def test_lists_that_may_be_left_out_may_be_null() -> None:
    """A client in Java that openapi-generator makes sends an empty list for each other one: a contact would leave all groups."""
    schemas = build_document(OPERATIONS)["components"]["schemas"]
    for name in (
        "Subscribe",
        "NewContact",
        "ChangedContact",
        "BulkContact",
        "SendGift",
        "SendCollection",
        "SendTemplate",
    ):
        lists = {member: schema["type"] for member, schema in schemas[name]["properties"].items() if "items" in schema}
        assert lists
        assert all(types == ["array", "null"] for types in lists.values()), name


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"birthday": "02-30"}, "`birthday`: No year has this day."),
        *(
            ({"birthday": typed}, "`birthday` must be a month and a day without a year, such as 03-14.")
            for typed in ("1990-03-14", "3-14", "14/03", "13-01")
        ),
        ({"language": "xx"}, "`language`: The language must be one of en, fr, de."),
        ({"name": "x" * 201}, "`name` must have at most 200 characters."),
        ({"fields": {"no": "x", "cost": "1"}}, "`fields`: There is no such field of your own: cost, no."),
        ({"groups": [str(number) for number in range(21)]}, "`groups`"),
        ({"email": "nobody"}, "`email`: The @ is missing"),
        ({"email": None}, "`email`"),
        ({"email": "TAKEN@example.com"}, "`email`: Another contact has this address."),
        ({"externalId": "taken"}, "`externalId`: Another contact has this id."),
    ],
)
def test_what_is_wrong_is_named(
    service: Service, problem: Callable[..., str], members: dict[str, Any], said: str
) -> None:
    client = service.client("hr")
    assert client.post("/contacts", json={"email": "taken@example.com", "externalId": "taken"}).status_code == 201
    assert said in problem(client.post("/contacts", json={**SAM, **members}), 400)
    assert len(client.get("/contacts").json()) == 1
    other = client.post("/contacts", json={"email": "other@example.com"}).json()
    assert said in problem(client.patch(f"/contacts/{other['id']}", json=members), 400)
    assert client.get(f"/contacts/{other['id']}").json() == other


@pytest.mark.parametrize(
    "members",
    [
        {"email": "idn@xn--bcher-kva.example"},
        {"email": "idn@bu\u0308cher.example"},
        {"email": "IDN@B\u00dcCHER.example"},
        {"email": "other@example.com", "externalId": " 7 "},
    ],
)
def test_another_spelling_changes_no_other_contact(
    service: Service, problem: Callable[..., str], members: dict[str, Any]
) -> None:
    client = service.client("hr")
    first = client.post("/contacts", json={"email": "idn@b\u00fccher.example", "externalId": "7", "name": "First"})
    assert "Another contact has this" in problem(client.post("/contacts", json={"name": "Second", **members}), 400)
    assert client.get(f"/contacts/{first.json()['id']}").json() == first.json()


@pytest.mark.parametrize("member", ["email", "externalId"])
def test_a_contact_with_a_null_character_is_refused(service: Service, problem: Callable[..., str], member: str) -> None:
    refused = service.client("hr").post("/contacts", json={"email": "a@example.com", member: "a\u0000b"})
    assert f"`{member}`: " in problem(refused, 400)


def test_several_are_saved_by_their_external_ids_or_none(service: Service, problem: Callable[..., str]) -> None:
    client = service.client("hr")
    client.post("/contacts", json={"email": "bo@example.com", "name": "Bo"})
    people = [{"externalId": "1", "email": "ada@example.com"}, {"externalId": "2", "email": "BO@example.com"}]
    first = client.post("/contacts/bulk", json={"contacts": people}).json()
    assert (first["created"], first["changed"]) == (1, 1)
    people[0] = {"externalId": "1", "email": "byron@example.com", "name": "Ada Byron"}
    again = client.post("/contacts/bulk", json={"contacts": people}).json()
    assert again == {"created": 0, "changed": 1, "ids": first["ids"]}
    wrong = [{**people[0], "birthday": "02-31"}, {"externalId": "3", "email": "no"}]
    refused = client.post("/contacts/bulk", json={"contacts": [{"externalId": "9", "email": "x@example.com"}, *wrong]})
    problem(refused, 400)
    assert [error["pointer"] for error in refused.json()["errors"]] == ["#/contacts/1/birthday", "#/contacts/2/email"]
    refused = client.post(
        "/contacts/bulk", json={"contacts": [{**wrong[0], "birthday": "03-14", "country": "ZZ"}, wrong[1]]}
    )
    assert [error["pointer"] for error in refused.json()["errors"]] == ["#/contacts/0/country", "#/contacts/1/email"]
    assert {one["email"] for one in client.get("/contacts").json()} == {"byron@example.com", "BO@example.com"}


@pytest.mark.parametrize("is_reversed", [False, True])
def test_addresses_and_ids_change_hands_in_one_call(service: Service, is_reversed: bool) -> None:
    """Whatever the order of the contacts: an address goes to a new person, through a chain of people, and two people swap."""
    client = service.client("hr")
    people = [
        {"externalId": str(number), "email": f"{number}@example.com", "name": f"P{number}"} for number in range(6)
    ]
    ids = client.post("/contacts/bulk", json={"contacts": people}).json()["ids"]
    changed = [
        {"externalId": "0", "email": "left@example.com"},
        {"externalId": "new", "email": "0@example.com", "name": "New"},
        {"externalId": "1", "email": "2@example.com"},
        {"externalId": "2", "email": "3@example.com"},
        {"externalId": "3", "email": "free@example.com"},
        {"externalId": "4", "email": "5@example.com"},
        {"externalId": "5", "email": "4@example.com"},
    ]
    if is_reversed:
        changed.reverse()
    saved = client.post("/contacts/bulk", json={"contacts": changed})
    assert saved.status_code == 200, saved.text
    assert (saved.json()["created"], saved.json()["changed"]) == (1, 6)
    found = {one["externalId"]: one for one in client.get("/contacts").json()}
    assert {one: found[one]["email"] for one in found} == {one["externalId"]: one["email"] for one in changed}
    assert [found[one["externalId"]]["id"] for one in people] == ids
    assert [found[one["externalId"]]["id"] for one in changed] == saved.json()["ids"]
    again = client.post("/contacts/bulk", json={"contacts": changed}).json()
    assert (again["created"], again["changed"]) == (0, 0)


def test_two_people_of_a_call_have_two_addresses(service: Service) -> None:
    client = service.client("hr")
    client.post("/contacts/bulk", json={"contacts": [{"externalId": "1", "email": "one@example.com"}]})
    for first, second in (("1", "2"), ("2", "1"), ("2", "3")):
        people = [{"externalId": one, "email": "ONE@example.com"} for one in (first, second)]
        refused = client.post("/contacts/bulk", json={"contacts": people})
        assert refused.status_code == 400, refused.text
        (error,) = refused.json()["errors"]
        assert error["detail"].endswith("].email`: Another contact has this address.")
        assert [one["externalId"] for one in client.get("/contacts").json()] == ["1"]


@pytest.mark.parametrize("known", [[], ["one"], ["one", "two"]])
def test_two_people_of_a_call_have_two_ids(service: Service, known: list[str]) -> None:
    """Neither of them takes the place of the other, whoever of them there was before. The same person may come twice."""
    client = service.client("hr")
    for name in known:
        client.post("/contacts", json={"email": f"{name}@example.com", "externalId": None if name == "two" else "1"})
    people = [{"externalId": "1", "email": "one@example.com"}, {"externalId": "1", "email": "two@example.com"}]
    refused = client.post("/contacts/bulk", json={"contacts": people})
    assert refused.status_code == 400, refused.text
    assert refused.json()["errors"] == [
        {"pointer": "#/contacts/1/externalId", "detail": "`contacts[1].externalId`: Another contact has this id."}
    ]
    assert len(client.get("/contacts").json()) == len(known)
    twice = client.post("/contacts/bulk", json={"contacts": [people[0], {**people[0], "email": "One@example.com"}]})
    assert twice.status_code == 200, twice.text


def test_all_contacts_to_fix_are_named_at_once(service: Service, problem: Callable[..., str]) -> None:
    client = service.client("hr")
    wrong = [
        {"externalId": "1", "email": "no"},
        {"externalId": "2", "email": "two@example.com", "birthday": "2-3"},
        {"externalId": "3", "email": "three@example.com"},
        {"email": "four@example.com"},
        {"externalId": "5", "email": "five@example.com", "active": 1},
        {"externalId": "6", "email": "six@example.com", "birthday": "02-31"},
        7,
        {"externalId": "8", "email": "three@example.com", "country": "zz"},
    ]
    refused = client.post("/contacts/bulk", json={"contacts": wrong})
    assert problem(refused, 400).endswith("6 more are wrong: see `errors`.")
    members = ["0/email", "1/birthday", "3/externalId", "4/active", "5/birthday", "6", "7/country"]
    errors = refused.json()["errors"]
    assert [error["pointer"] for error in errors] == [f"#/contacts/{one}" for one in members]
    for error, (at, _, member) in zip(errors, (one.partition("/") for one in members), strict=True):
        assert error["detail"].startswith(f"`contacts[{at}]{member and f'.{member}'}`"), error
    assert client.get("/contacts").json() == []


def test_a_blank_id_of_several_is_refused_and_takes_nobodys_away(service: Service, problem: Callable[..., str]) -> None:
    """A synchronisation that has lost an id would otherwise leave a contact that it does not find by its next address."""
    client = service.client("hr")
    known = client.post("/contacts", json={"email": "blank-id@example.com", "externalId": "blank-1"}).json()
    bodies = [{"email": "blank-id@example.com", "externalId": blank} for blank in ("", " \n", None)]
    refused = client.post("/contacts/bulk", json={"contacts": [{"externalId": "b", "email": "b@example.com"}, *bodies]})
    assert problem(refused, 400) == "`contacts[1].externalId` must not be blank. 2 more are wrong: see `errors`."
    assert [error["pointer"] for error in refused.json()["errors"]] == [
        f"#/contacts/{at}/externalId" for at in (1, 2, 3)
    ]
    assert client.get(f"/contacts/{known['id']}").json()["externalId"] == "blank-1"
    assert client.get("/contacts", params={"q": "b@example.com"}).json() == []


def test_the_letter_case_of_a_country_is_ignored(service: Service) -> None:
    made = service.client("hr").post("/contacts", json={"email": "sam@example.com", "country": "gb"})
    assert (made.status_code, made.json()["country"]) == (201, "GB")


def test_lists_go_on_after_an_id(service: Service) -> None:
    client = service.client("hr")
    people = [{"externalId": str(number), "email": f"p{number}@example.com"} for number in range(5)]
    client.post("/contacts/bulk", json={"contacts": people})
    seen: list[int] = []
    while page := client.get("/contacts", params={"limit": 2, "after": seen[-1] if seen else 0}).json():
        seen += [one["id"] for one in page]
    assert len(seen) == len(set(seen)) == 5
    assert [one["email"] for one in client.get("/contacts", params={"q": "P3"}).json()] == ["p3@example.com"]


def test_a_change_of_nothing_changes_nothing(service: Service) -> None:
    client = service.client("hr")
    made = client.post("/contacts", json={"email": "same@example.com", "name": "Same"}).json()
    changed = client.patch(f"/contacts/{made['id']}", json={})
    assert (changed.status_code, changed.json()) == (200, made)


def test_a_search_for_control_characters_is_refused(service: Service, problem: Callable[..., str]) -> None:
    assert problem(service.client("hr").get("/contacts?q=%00"), 400) == "`q` must not contain control characters."
