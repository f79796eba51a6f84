"""Messages with placeholders: filled in for each recipient as the order is placed, read in mail and on the gift's page, and erased."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.distributed import IS_DISTRIBUTED
from tests.web.api.conftest import RICH_WORLD, Service, on_database
from tests.web.mailbox.conftest import capture_mail

from largesse.encryption.vault import Vault
from largesse.lines import store
from largesse.mail.mailbox import list_captured, open_captured

WORLD = RICH_WORLD
MESSAGE = "Dear {first_name|friend}, {company} thanks you. {cost_centre|-}"
PEOPLE = [
    {"email": "Ada@example.com", "name": "Dr. Ada Byron", "quantity": 2},
    {"email": "bo@example.com"},
    {"email": "cy@example.com"},
]


@pytest.fixture(scope="module", autouse=True)
def contacts(service: Service) -> None:
    service.sql(
        "INSERT INTO contact_fields (customer_id, environment, key, name) VALUES ($1, 'production', 'cost_centre', 'Cost centre')",
        service.ids["customers"]["acme"],
    )
    client = service.client("hr")
    for contact in (
        {"email": "ada@example.com", "name": "Somebody Else", "fields": {"cost_centre": "4100"}},
        {"email": "cy@example.com", "name": "Cy Twombly"},
    ):
        assert client.post("/contacts", json=contact).status_code == 201


def send(service: Service, **members: Any) -> Any:
    return service.send("gift", "coffee", **{"value": 5, "recipients": PEOPLE, "message": MESSAGE, **members})


def line_messages(service: Service, reference: str) -> list[str]:
    """What each line's recipient reads, as the page of the gift has it."""
    lines = service.of_order(reference, "customer_id, code_lookup", "lines")
    lookups = [line["code_lookup"] for line in lines]
    if IS_DISTRIBUTED:
        found = service.sql(store._FIND_ON_NODE, lines[0]["customer_id"], lookups, "production")
    else:
        found = service.sql(store._FIND, lookups, "production", False)
    return [row["message"] for row in sorted(found, key=lambda row: row["number"])]


@pytest.mark.parametrize("others", [0, 150])
def test_each_line_has_its_own_message(service: Service, others: int) -> None:
    """Of an order of a few lines, and of one that goes through the lane for large orders."""
    more = [{"email": f"p{number}@example.com", "name": f"P{number} Q"} for number in range(others)]
    placed = send(service, placeholders=True, recipients=[*PEOPLE, *more])
    assert placed.status_code == 200, placed.text
    assert line_messages(service, placed.json()["reference"]) == [
        *["Dear Ada, Acme Ltd thanks you. 4100"] * 2,
        "Dear friend, Acme Ltd thanks you. -",
        "Dear Cy, Acme Ltd thanks you. -",
        *(f"Dear P{number}, Acme Ltd thanks you. -" for number in range(others)),
    ]


def test_a_message_is_literal_unless_said_otherwise(service: Service) -> None:
    before = service.sql("SELECT count(*) FROM line_messages")
    for said in ({}, {"placeholders": False}, {"placeholders": True, "message": "Thank you {}"}):
        placed = send(service, **{"message": "{anything} goes", **said})
        assert placed.status_code == 200, placed.text
        assert set(line_messages(service, placed.json()["reference"])) == {said.get("message", "{anything} goes")}
    assert service.sql("SELECT count(*) FROM line_messages") == before


def test_a_code_batch_has_what_stands_after_the_bars(service: Service) -> None:
    placed = send(service, placeholders=True, recipients=None, codeQuantity=2).json()
    assert line_messages(service, placed["reference"]) == ["Dear friend, Acme Ltd thanks you. -"] * 2
    request = service.client("hr").get(f"/orders/{placed['reference']}/request").json()
    assert request["message"] == "Dear friend, Acme Ltd thanks you. -"


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"message": "Dear {firstname}"}, "`message` has placeholders that do not exist: {firstname}."),
        ({"message": "{name}" * 40, "recipients": [{"email": "x@b.example", "name": "n" * 200}]}, "at most 1,000"),
        ({"placeholders": "yes"}, "`placeholders` must be a boolean"),
    ],
)
def test_what_is_wrong_is_refused_and_quoted_so(
    service: Service, problem: Callable[..., str], quote: Any, members: dict[str, Any], said: str
) -> None:
    before = service.state()
    given = {"value": 5, "recipients": PEOPLE, "placeholders": True, **members}
    assert said in problem(service.send("gift", "coffee", **given), 400)
    assert said in problem(quote("gift", "coffee", **given), 400)
    assert service.state() == before


def test_mail_has_each_recipients_message_and_erasing_ends_it(service: Service) -> None:
    reference = send(service, placeholders=True).json()["reference"]
    capture_mail(service)

    async def read(connection: Any) -> dict[str, str]:
        vault = Vault(service.settings.master_keys)
        found = {}
        for one in await list_captured(connection, "production", limit=1000):
            found.setdefault(one.recipient, (await open_captured(connection, vault, "production", one.id)).text)
        return found

    read_mail = on_database(service.database_url, read)
    assert "Dear Ada, Acme Ltd thanks you. 4100" in re.sub(
        r"\s+", " ", next(text for to, text in read_mail.items() if to.lower() == "ada@example.com")
    )
    assert "Dear friend, Acme Ltd" in re.sub(r"\s+", " ", read_mail["bo@example.com"])
    service.sql("UPDATE line_messages SET message = message || ' {name}'")
    assert line_messages(service, reference)[0].endswith("{name}"), "filled in once"
