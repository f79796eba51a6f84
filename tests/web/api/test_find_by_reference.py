"""GET /orders?externalReference=…: the order that holds it, of this customer and environment, or none."""

from __future__ import annotations

from typing import Any

import pytest


def found(service: Any, reference: str, key: str = "hr", **more: Any) -> list[Any]:
    answer = service.client(key).get("/orders", params={"externalReference": reference, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_order_of_a_reference(service) -> None:
    placed = {
        name: service.send("gift", "coffee", value=5, externalReference=name).json()["reference"]
        for name in ("one", "two")
    }
    listed = {order["reference"]: order for order in service.client("hr").get("/orders").json()}
    for name, reference in placed.items():
        assert found(service, name) == [listed[reference]]
        assert found(service, f" {name}\t", limit=1) == [listed[reference]]
    assert found(service, "three") == found(service, "ONE") == found(service, "on") == []
    order_id = listed[placed["one"]]["id"]
    assert found(service, "one", after=order_id - 1) == [listed[placed["one"]]]
    assert found(service, "one", after=order_id) == []


def test_those_of_others_are_not_found(service, staging) -> None:
    assert service.send("gift", "coffee", value=5, externalReference="ours").status_code == 200
    assert len(found(service, "ours")) == 1
    assert found(service, "ours", key="globex") == []
    assert staging.client("hr-test").get("/orders?externalReference=ours").json() == []


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("", "`externalReference` must not be blank."),
        (" \t", "`externalReference` must not be blank."),
        (129 * "x", "`externalReference` must be at most 128 characters."),
        ("a\x00b", "`externalReference` must not contain"),
    ],
)
def test_what_no_order_can_hold_is_refused(service, problem, reference: str, said: str) -> None:
    answer = service.client("hr").get("/orders", params={"externalReference": reference})
    assert problem(answer, 400).startswith(said)


def test_the_longest_reference(service) -> None:
    assert service.send("gift", "coffee", value=5, externalReference=128 * "é").status_code == 200
    assert len(found(service, f" {128 * 'é'} ")) == 1
