"""The supplier that the docs write, run as they say: a module with an entry point, against an API on loopback."""

import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from tests.suppliers.conftest import SETTLED, claim, pool, work
from tests.suppliers.conftest import WORLD as WORLD  # noqa: PLC0414 - the service's
from tests.suppliers.server import SupplierServer, serving

from largesse.base.errors import OperatorError
from largesse.cli.suppliers import suppliers_orders
from largesse.db.scope import WORKER
from largesse.suppliers.buyer import Buyer
from largesse.suppliers.description import Description, open_supplier
from largesse.suppliers.model import Balance, Offer
from largesse.suppliers.service import as_seed
from largesse.webhooks.resolver import Resolver

PAGE = (Path(__file__).parents[2] / "docs" / "suppliers.md").read_text()


class PaperCardsServer(SupplierServer):
    """What the documented supplier calls."""

    def app(self) -> Starlette:
        cards: dict[str, dict[str, Any]] = {}

        async def order(request: Request) -> Response:
            body = await request.json()
            self.order_calls[body["reference"]] += 1
            card = {"reference": body["reference"], "state": "printing", "price_cents": 940, "currency": "GBP"}
            cards[body["reference"]] = card
            return JSONResponse({"error": "lost"}, 500) if len(cards) == 1 else JSONResponse(card)

        async def poll(request: Request) -> Response:
            card = cards.get(request.path_params["id"])
            if card is None:
                return JSONResponse({}, 404)
            card |= {"state": "printed", "number": f"PAPER-{list(cards).index(card['reference'])}"}
            return JSONResponse(card)

        async def catalogue(_: Request) -> Response:
            card = {"card": "P1", "title": "Paper", "currency": "GBP", "countries": ["GB"], "amounts": ["5", "7.50"]}
            return JSONResponse([card])

        async def balance(_: Request) -> Response:
            return JSONResponse({"cents": 5, "currency": "GBP"})

        return Starlette(
            routes=[
                Route("/cards", order, methods=["POST"]),
                Route("/cards", catalogue),
                Route("/cards/{id}", poll),
                Route("/balance", balance),
            ]
        )


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The documented module, installed with its entry point."""
    (module,) = re.findall(r"```python\n(\"\"\"Paper Cards.*?)```", PAGE, re.DOTALL)
    assert len(module.splitlines()) < 80
    (entry,) = re.findall(r"^paper-cards = \"(.*)\"$", PAGE, re.MULTILINE)
    (tmp_path / "paper_cards.py").write_text(module)
    info = tmp_path / "paper_cards-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: paper-cards\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[largesse.suppliers]\npaper-cards = {entry}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("paper_cards", None)


@pytest.mark.usefixtures("installed")
async def test_the_documented_supplier_sells(service: Any) -> None:
    server = PaperCardsServer()
    with serving(server):
        described = {
            "name": "cards",
            "kind": "paper-cards",
            "poll_s": 0.05,
            "pace": 0.01,
            "allowed_networks": ["127.0.0.0/8"],
            "secrets": {"key": {"env": "PAPER_KEY"}},
            "options": {"url": server.url},
        }
        resolver = Resolver()
        supplier = open_supplier(msgspec.convert(described, Description), resolver.look_up, {"PAPER_KEY": "k"})
        try:
            offers = await supplier.supplier.catalogue()
            assert offers == [Offer("P1", "Paper", "GBP", ("GB",), ("5", "7.50"))]
            assert "denominations:\n  - 5\n  - 7.5\n" in as_seed("cards", offers)
            assert await supplier.supplier.balance() == Balance(5, "GBP")
            async with pool(service) as (database, vault):
                await claim(database, service, "bought", 3)
                await work([Buyer(database, vault, supplier)], database, SETTLED)
                costs = await database.fetchval(WORKER, "SELECT sum(cost_minor) FROM supplier_costs")
            assert costs == 3 * 940
            assert list(server.order_calls.values()) == [1, 1, 1]
        finally:
            await supplier.close()
            await resolver.close()


async def test_an_unknown_kind_is_named() -> None:
    resolver = Resolver()
    with pytest.raises(OperatorError, match="there is no kind 'nothing'"):
        open_supplier(Description("one", "nothing"), resolver.look_up, {})
    await resolver.close()


def test_states_are_typed_as_the_page_writes_them() -> None:
    [typed] = re.findall(r"`largesse suppliers orders (--state [^`]+)`", PAGE)
    assert suppliers_orders.make_context("orders", typed.split()).params["states"] == ("asked", "pending")
