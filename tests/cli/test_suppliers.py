"""`largesse suppliers`: what a supplier on loopback answers to commands, and what was bought."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.conftest import Run, assert_refused, database, loaded, run, sql
from tests.suppliers.server import ENVIRON, SECRET, SupplierServer, describe, serving

__all__ = ["database", "loaded", "run"]


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """The description of a supplier that answers; `run` writes it into the file of LARGESSE_SUPPLIERS."""
    for name, value in {**ENVIRON, "LARGESSE_SUPPLIERS": str(tmp_path / "cards.yaml")}.items():
        monkeypatch.setenv(name, value)
    with serving(SupplierServer()) as server:
        yield describe("cards", server, timeout_s=5.0)


@pytest.mark.usefixtures("database")
def test_a_supplier_is_tried_out_without_buying(run: Run, described: dict[str, Any], tmp_path: Path) -> None:
    file, options = tmp_path / "cards.yaml", described["options"]
    file.write_text(yaml.safe_dump(described))
    checked = run("suppliers", "check", "cards")
    assert (checked.exit_code, "does not have an order that does not exist" in checked.stdout) == (0, True)
    assert "Its balance is 123,456 minor units of GBP." in checked.stdout
    assert run("suppliers", "balance", "cards").stdout == "1234.56 GBP\n"
    [product] = yaml.safe_load(run("suppliers", "catalogue", "cards").stdout)["products"]
    assert (product["key"], product["denominations"], product["active"]) == ("cards-SKU-1", [5, 10], False)
    assert_refused(run("suppliers", "check", "other"), "describes no supplier 'other'; it describes: cards")
    for changes, said in (
        ({"http_statuses": {404: "pending"}}, "does not exist with `pending`: it must be `unknown`"),
        ({"http_statuses": {}}, "supplier cards: status_404: http_statuses does not list the HTTP status 404"),
        ({"balance": None}, "does not report its balance"),
        ({"url": "http://192.0.2.1"}, "supplier cards: forbidden_target: its url must be https"),
        ({"url": "http://127.0.0.1:9"}, "supplier cards: connect: nothing listens at its url"),
    ):
        file.write_text(yaml.safe_dump({**described, "options": options | changes}))
        refused = run("suppliers", "balance" if "balance" in changes else "check", "cards")
        assert_refused(refused, said)
        assert SECRET not in refused.stderr


@pytest.mark.usefixtures("loaded")
def test_costs_are_added_up_by_currency(run: Run, database: str) -> None:
    [coffee] = sql(database, "SELECT id FROM products WHERE key = 'coffee'")[0]
    for day, currency, kept, cost in (
        ("2026-11-01", "GBP", 1, 900), ("2026-11-30", "GBP", 0, 950), ("2026-11-30", "EUR", 0, 800), ("2026-11-30", "", 0, 0),
        ("2026-10-31", "GBP", 0, 111), ("2026-12-01", "GBP", 0, 222),
    ):  # fmt: skip
        sql(
            database,
            "INSERT INTO supplier_costs (supplier, product_id, currency, day, bought, kept, value_minor, cost_minor)"
            " VALUES ('cards', $1, $2, $3::text::date, 1, $4, 1000, $5)",
            coffee, currency, day, kept, cost,
        )  # fmt: skip
    listed = run("suppliers", "costs", "--from", "2026-11-01", "--to", "2026-11-30", "--json")
    assert listed.exit_code == 0, listed.output
    rows = [
        (one["cost_currency"], one["bought"], one["kept"], one["value"], one["cost"], one["margin"])
        for one in json.loads(listed.stdout)
    ]
    assert rows == [("", 1, 0, 10.0, None, None), ("EUR", 1, 0, 10.0, 8.0, None), ("GBP", 2, 1, 20.0, 18.5, 1.5)]
    assert run("suppliers", "costs", "--to", "9999-12-31").exit_code == 0
    [before] = json.loads(run("suppliers", "costs", "--to", "2026-10-31", "--json").stdout)
    assert before["cost"] == 1.11, "of the 30 days before that day"
    assert_refused(
        run("suppliers", "costs", "--from", "2026-11-02", "--to", "2026-11-01"), "--from must not be after --to"
    )
