"""A supplier's API over real HTTP on loopback that answers well, slowly, wrongly, twice, late or not at all, as it is asked to."""

import asyncio
import hashlib
import hmac
import json
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

SECRET, KEY = "signing-secret-of-a-test", "api-key-of-a-test"


@dataclass
class Bought:
    """An order that the supplier has, and charges for unless it is cancelled."""

    number: str
    cost: int
    state: str = "done"
    polls: int = 0


@dataclass
class SupplierServer:
    """`behave` draws what is done with the next order: a name of `_BEHAVIOURS`."""

    behaviours: dict[str, int] = field(default_factory=lambda: {"well": 1})
    cost: int = 900
    worth: int = 1_000  # of each voucher
    ends: str = "1970-01-01"  # their last day: none
    slow_s: float = 0.8  # more than a caller waits
    can_cancel: bool = True
    seed: int = 1
    prefix: str = "V"
    orders: dict[str, Bought] = field(default_factory=dict)
    order_calls: Counter[str] = field(default_factory=Counter)
    behaved: Counter[str] = field(default_factory=Counter)
    wrong_signatures: int = 0
    bodies: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""
    released: threading.Event = field(default_factory=threading.Event)  # what orders that are held wait for

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._odd: dict[str, str] = {}  # behaviours that answers to polls have, by id
        self._handed: list[str] = []

    @property
    def charged(self) -> int:
        """What it charges for in all."""
        return sum(order.cost for order in self.orders.values() if order.state != "cancelled")

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/orders", self._order, methods=["POST"]),
                Route("/orders/{id}", self._poll),
                Route("/orders/{id}", self._cancel, methods=["DELETE"]),
                Route("/catalogue", self._catalogue),
                Route("/balance", self._balance),
            ]
        )

    def buy(self, id_: str, state: str = "done") -> Bought:
        assert id_ not in self.orders, "the service ordered twice under one id"
        order = self.orders[id_] = Bought(f"{self.prefix}-{len(self.orders):06d}", self.cost, state)
        return order

    async def _order(self, request: Request) -> Response:
        raw = await request.body()
        signed = hmac.new(
            SECRET.encode(), request.headers["x-timestamp"].encode() + b"." + raw, hashlib.sha256
        ).hexdigest()
        if request.headers["x-signature"] != signed or request.headers["authorization"] != f"Bearer {KEY}":
            self.wrong_signatures += 1
            return JSONResponse({}, 401)
        body = json.loads(raw)
        self.bodies.append(body)
        id_ = body["id"]
        self.order_calls[id_] += 1
        (behaviour,) = self._random.choices(list(self.behaviours), list(self.behaviours.values()))
        self.behaved[behaviour] += 1
        return await self._behave(behaviour, id_)

    async def _behave(self, behaviour: str, id_: str) -> Response:
        if behaviour == "refuse":
            return JSONResponse({"order": {"id": id_, "status": "sold_out"}}, 422)
        if behaviour == "lose_request":
            return JSONResponse({"error": "try later"}, 503)
        if behaviour == "late":
            await asyncio.sleep(self.slow_s * 2.5)  # the caller has gone, polled, and ordered elsewhere
            return self._said(id_, self.buy(id_))
        order = self.buy(id_, "working" if behaviour == "pending" else "done")
        if behaviour == "lose_answer":
            return JSONResponse({"error": "after it was bought"}, 500)
        if behaviour == "hold":
            await asyncio.to_thread(self.released.wait, 30)
        if behaviour == "time_out":
            await asyncio.sleep(self.slow_s)
        if behaviour == "redirect":  # who follows it orders twice
            return Response(status_code=307, headers={"Location": f"{self.url}/orders"})
        if behaviour in {"no_json", "huge"}:
            return Response("<html>" if behaviour == "no_json" else f'"{"x" * 2_000_000}"', 200)
        if behaviour in {"foreign", "twice", "malformed", "expired"}:
            self._odd[id_] = behaviour
        return self._said(id_, order)

    async def _poll(self, request: Request) -> Response:
        id_ = request.path_params["id"]
        order = self.orders.get(id_)
        if order is None:
            return JSONResponse({}, 404)
        order.polls += 1
        if order.state == "working" and order.polls >= 2:
            order.state = "done"
        return self._said(id_, order)

    async def _cancel(self, request: Request) -> Response:
        order = self.orders.get(request.path_params["id"])
        if order is None:
            return JSONResponse({}, 404)
        if not self.can_cancel:
            return JSONResponse({}, 409)
        order.state = "cancelled"
        return self._said(request.path_params["id"], order)

    def _said(self, id_: str, order: Bought) -> Response:
        number, said_id = order.number, id_
        odd = self._odd.pop(id_, None)  # wrong once, right when it is polled
        if odd == "foreign":
            said_id = "another-order"
        elif odd == "twice" and self._handed:
            number = self._handed[-1]
        elif odd == "malformed":
            number = "A\nB"
        elif order.state == "done":
            self._handed.append(number)
        ends = "2020-01-31" if odd == "expired" else self.ends
        voucher = {"code": number, "pin": "1234", "ends": ends} if order.state == "done" else None
        return JSONResponse(
            {
                "order": {"id": said_id, "status": order.state},
                "voucher": voucher,
                "worth": self.worth,
                "cost": {"minor": order.cost, "in": "GBP"},
            }
        )

    async def _catalogue(self, _: Request) -> Response:
        item = {"sku": "SKU-1", "title": "Coffee: & more", "cur": "GBP", "sold_in": ["GB"], "amounts": ["500", 1000]}
        return JSONResponse({"items": [item]})

    async def _balance(self, _: Request) -> Response:
        return JSONResponse({"left": 123456, "cur": "GBP"})


def describe(name: str, server: SupplierServer, **more: Any) -> dict[str, Any]:
    """A description of the server, as a file of LARGESSE_SUPPLIERS has it."""
    options = {
        "url": server.url,
        "headers": {"Authorization": "Bearer {secrets.key}"},
        "sign": {"header": "X-Signature", "secret": "signing", "timestamp_header": "X-Timestamp"},
        "amounts": "minor",
        "order": {
            "method": "POST",
            "path": "/orders",
            "body": {"id": "{id}", "sku": "{sku}", "amount": "{value_minor}", "currency": "{currency}"},
        },
        "poll": {"path": "/orders/{id}"},
        "cancel": {"method": "DELETE", "path": "/orders/{id}"},
        "answer": {
            "id": "order.id",
            "status": "order.status",
            "number": "voucher.code",
            "pin": "voucher.pin",
            "use_by": "voucher.ends",
            "cost": "cost.minor",
            "cost_currency": "cost.in",
        },
        "statuses": {"done": "delivered", "working": "pending", "cancelled": "cancelled"},
        "http_statuses": {404: "unknown", 422: "refused", 409: "not_cancellable"},
        "catalogue": {
            "path": "/catalogue",
            "items": "items",
            "sku": "sku",
            "name": "title",
            "currency": "cur",
            "countries": "sold_in",
            "amounts": "amounts",
        },
        "balance": {"path": "/balance", "amount": "left", "currency": "cur"},
    }
    return {
        "name": name,
        "at_once": 16,
        "timeout_s": 0.5,
        "poll_s": 0.2,
        "unknown_after_s": 0.6,
        "pace": 0.02,
        "allowed_networks": ["127.0.0.0/8"],
        "secrets": {"key": {"env": "SUPPLIER_KEY"}, "signing": {"env": "SUPPLIER_SIGNING"}},
        "options": options,
    } | more


ENVIRON = {"SUPPLIER_KEY": KEY, "SUPPLIER_SIGNING": SECRET}


@contextmanager
def serving(server: SupplierServer) -> Iterator[SupplierServer]:
    """Serves it on a free port of loopback, in a thread."""
    config = uvicorn.Config(server.app(), host="127.0.0.1", port=0, log_level="error", lifespan="off")
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while not running.started:
        thread.join(0.01)
        assert thread.is_alive(), "it could not be started"
    port = running.servers[0].sockets[0].getsockname()[1]
    server.url = f"http://127.0.0.1:{port}"
    try:
        yield server
    finally:
        running.should_exit = True
        thread.join(10)
