"""The data that checks share: callers, lists of the service, and the orders of the run."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar

from largesse_conformance import expect
from largesse_conformance.http import Answer, Caller, Service, bearer
from largesse_conformance.outcome import Failed, LimitReached, Skipped
from largesse_conformance.settings import ACCOUNT, KEYS, Settings

T = TypeVar("T")
_PAGE = 200


@dataclass(frozen=True)
class Gift:
    """Something to send: the kind of send, the members that name it, and its value."""

    kind: str
    members: dict[str, Any]
    value: Decimal
    item: dict[str, Any]

    @property
    def path(self) -> str:
        """The operation that sends it."""
        return f"/send/{self.kind}"


@dataclass(frozen=True)
class Order:
    """An order of this run: its request and the response."""

    body: dict[str, Any]
    response: dict[str, Any]
    gift: Gift

    @property
    def reference(self) -> str:
        """The public key of the order."""
        return str(expect.member(self.response, "reference"))


class Context:
    """The data of one run of the suite."""

    def __init__(self, settings: Settings, service: Service) -> None:
        self.settings = settings
        self.service = service
        self.run_id = secrets.token_hex(5)
        self.placed: list[tuple[Caller, str]] = []
        self.subscribed: list[tuple[Caller, str]] = []
        self.spent = Decimal(0)
        self._once: dict[str, tuple[Any, Exception | None]] = {}
        self._references = 0

    def once(self, name: str, find: Callable[[], T]) -> T:
        """Returns the result of `find`, or raises its error. Calls it only once in a run."""
        if name not in self._once:
            try:
                self._once[name] = (find(), None)
            except (Failed, Skipped) as raised:
                self._once[name] = (None, raised)
        value, error = self._once[name]
        if error is not None:
            raise error
        found: T = value
        return found

    # Callers

    @property
    def main(self) -> Caller:
        """The customer to test."""
        return self.caller("main")

    @property
    def nobody(self) -> Caller:
        """A caller without a key."""
        return Caller(self.service)

    def caller(self, name: str) -> Caller:
        """Returns the caller with that name. Raises Skipped if its key is not given."""
        if name not in self.settings.keys:
            variable, whose = KEYS[name]
            raise Skipped(f"Set {variable} to {whose}.")
        return bearer(self.service, self.settings.keys[name])

    def me(self, name: str = "main") -> dict[str, Any]:
        """Returns the identity of a caller."""
        found: dict[str, Any] = self.once(f"me {name}", lambda: expect.found(self.caller(name).get("/me")))
        return found

    # What the service lists

    def products(self, country: str | None = None) -> list[dict[str, Any]]:
        """Returns the first 200 products of a country."""
        parameters = {"country": country or self.settings.country, "limit": _PAGE}
        return self.once(f"products {country}", lambda: expect.listed(self.main.get("/products", **parameters)))

    def collections(self) -> list[dict[str, Any]]:
        """Returns all collections."""
        return self.once("collections", lambda: expect.listed(self.main.get("/collections")))

    def templates(self) -> list[dict[str, Any]]:
        """Returns the newest 200 templates."""
        return self.once("templates", lambda: expect.listed(self.main.get("/templates", limit=_PAGE)))

    def accounts(self, name: str = "main") -> list[dict[str, Any]]:
        """Returns the funding accounts of a caller, as they were the first time."""
        return self.once(f"accounts {name}", lambda: expect.listed(self.caller(name).get("/funding-accounts")))

    @property
    def account(self) -> dict[str, Any] | None:
        """Returns the account to charge; None if orders are invoiced. Raises Skipped if none is given."""
        accounts = self.accounts()
        if not accounts:
            return None
        if self.settings.account is None:
            raise Skipped(f"Set {ACCOUNT} to the id of the funding account to charge.")
        for account in accounts:
            if account.get("id") == self.settings.account:
                return account
        raise Failed(f"GET /funding-accounts does not list the account {self.settings.account} ({ACCOUNT}).")

    def balance(self) -> Decimal:
        """Returns the current balance of the account to charge. Raises Skipped if orders are invoiced."""
        account = self.account
        if account is None:
            raise Skipped("Orders of this customer are invoiced.")
        for now in expect.listed(self.main.get("/funding-accounts")):
            if now.get("id") == account["id"]:
                return expect.amount(expect.member(now, "balance"), "`balance`")
        raise Failed("GET /funding-accounts no longer lists the account to charge.")

    # Gifts to send

    def gift(self, wanted: str = "cheapest") -> Gift:
        """Returns the cheapest product of a kind in the account's currency: see `_KINDS`."""
        return self.once(f"gift {wanted}", lambda: self._find_gift(wanted))

    def _find_gift(self, wanted: str) -> Gift:
        fits = _KINDS[wanted]
        found = [p for p in self.products() if self._is_payable(p) and fits(p)]
        if not found:
            raise Skipped(
                f"The catalogue has no product for this check: {wanted} in {self.settings.country}, in the account's currency."
            )
        item = min(found, key=_least)
        members: dict[str, Any] = {"productId": item["id"], "country": self.settings.country}
        if item["requiresAmount"]:
            members["value"] = _least(item)
        return Gift("gift", members, _least(item), item)

    def collection(self, wanted: str) -> Gift:
        """Returns the cheapest collection in the account's currency: `points`, `any amount` or `custom`."""
        fits = _KINDS_OF_COLLECTIONS[wanted]
        found = [c for c in self.collections() if self._is_payable(c) and fits(c)]
        if not found:
            raise Skipped(f"There is no collection for this check: {wanted}, in the account's currency.")
        item = min(found, key=_least_of_collection)
        value = _least_of_collection(item)
        members = {"collectionId": item["id"]} | ({} if wanted == "custom" else {"value": value})
        return Gift("collection", members, value, item)

    def template(self) -> Gift:
        """Returns the cheapest template in the account's currency."""
        found = [t for t in self.templates() if self._is_payable(t)]
        if not found:
            raise Skipped("There is no template in the account's currency.")
        item = min(found, key=lambda one: Decimal(one["value"]))
        return Gift("template", {"templateId": item["id"]}, Decimal(item["value"]), item)

    def _is_payable(self, item: dict[str, Any]) -> bool:
        account = self.account
        return account is None or item.get("currency") == account["currency"]

    # Orders

    def body(self, gift: Gift, **members: Any) -> dict[str, Any]:
        """Returns a valid send body: one anonymous code of a gift, with these members. `...` leaves a member out."""
        account = self.account
        body = dict(gift.members)
        if account is not None:
            body["accountId"] = account["id"]
        if "recipients" not in members:
            body["codeQuantity"] = 1
        return {name: value for name, value in (body | members).items() if value is not ...}

    def new_reference(self) -> str:
        """Returns an externalReference that no order has."""
        self._references += 1
        return f"conformance-{self.run_id}-{self._references}"

    def send(self, path: str, body: dict[str, Any], caller: Caller | None = None) -> Answer:
        """Sends a body and remembers the order if one was placed. Raises LimitReached if the run may spend no more."""
        if self.spent >= self.settings.max_cost:
            raise LimitReached(f"this run has spent {self.spent} of at most {self.settings.max_cost} (--max-cost)")
        caller = caller or self.main
        answer = caller.post(path, body)
        self.remember(answer, caller)
        return answer

    def remember(self, answer: Answer, caller: Caller) -> None:
        """Records a placed order: counts its cost, and cancels it at the end of the run."""
        if answer.status != 200:
            return
        response = answer.body()
        if isinstance(response, dict) and isinstance(response.get("reference"), str):
            self.placed.append((caller, response["reference"]))
            cost = response.get("totalCost")
            self.spent += Decimal(cost) if isinstance(cost, int | Decimal) else 0

    def place(self, gift: Gift, **members: Any) -> Order:
        """Places an order. Raises Failed if it is refused."""
        body = self.body(gift, **members)
        response = expect.found(self.send(gift.path, body))
        return Order(body, response, gift)

    def quote(self, kind: str, body: dict[str, Any]) -> Answer:
        """Requests a quote, which costs nothing. Raises Skipped if the service has no quotes."""
        answer = self.main.post(f"/quote/{kind}", body)
        if answer.status == 404:
            raise Skipped("The service has no quotes.")
        return answer

    def newest(self) -> dict[str, Any]:
        """Returns the newest order record."""
        orders = expect.listed(self.main.get("/orders", limit=1))
        return orders[0] if orders else {}

    def record(self, order: Order) -> dict[str, Any]:
        """Returns the order record of an order of this run."""

        def find() -> dict[str, Any]:
            for one in expect.listed(self.main.get("/orders", limit=50)):
                if one.get("reference") == order.reference:
                    return one
            raise Failed("GET /orders?limit=50 does not list an order that was just placed.")

        return self.once(f"record {order.reference}", find)


def _least(product: dict[str, Any]) -> Decimal:
    """Returns the lowest cost of one code of a product."""
    return Decimal(product["minAmount"] if product["isDigital"] else product["totalPrice"])


def _least_of_collection(collection: dict[str, Any]) -> Decimal:
    """Returns the lowest value of a collection: the lowest value point, or one unit if any amount is allowed and that is less."""
    if collection["kind"] == "custom":
        return Decimal(collection["value"])
    points = [Decimal(one) for one in collection["valuePoints"]]
    return min(points) if points else Decimal(1)


_KINDS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "cheapest": lambda p: p["isDigital"],
    "denominations": lambda p: p["isDigital"] and len(p["denominations"]) > 1,
    "a range": lambda p: p["isDigital"] and not p["denominations"],
    "one denomination": lambda p: p["isDigital"] and len(p["denominations"]) == 1,
    "physical": lambda p: not p["isDigital"],
}

_KINDS_OF_COLLECTIONS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "points": lambda c: c["kind"] == "curated" and not c["allowCustomValue"] and c["valuePoints"],
    "any amount": lambda c: c["kind"] == "curated" and c["allowCustomValue"],
    "custom": lambda c: c["kind"] == "custom",
}
