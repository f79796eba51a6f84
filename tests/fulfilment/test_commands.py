"""`largesse stock` and `largesse shipments`, as an operator types them."""

import codecs
import csv
import io
import json
import stat
from pathlib import Path

from tests.background import run as run_beside
from tests.cli.conftest import MASTER_KEY, Run, database, installation, run
from tests.orders.builder import insert_order

from largesse.db.pool import connect_once
from largesse.db.scope import OPERATOR
from largesse.encryption.vault import Vault

__all__ = ["database", "installation", "run"]

KEY = bytes.fromhex(MASTER_KEY)


async def fill(database_url: str) -> None:
    async with connect_once(database_url, OPERATOR) as connection:
        await connection.execute(
            """
            INSERT INTO customers (key, name, plan, funding) VALUES ('acme', 'Acme', 'pro', 'balance');
            INSERT INTO products (key, name, is_digital, currency, countries, denominations_minor)
            VALUES ('tea', 'Tea', true, 'GBP', '{GB}', '{500,1000}');
            INSERT INTO products (key, name, is_digital, currency, cost_minor) VALUES ('box', 'Box', false, 'GBP', 1);
            INSERT INTO line_states (customer_id, order_id, number, state, claimed_at, product_id)
            VALUES (1, 7, 1, 'chosen', now(), 2);
            """
        )
        await insert_order(connection, 7, "REF", product_id=2)
        await connection.execute(
            "INSERT INTO lines (customer_id, order_id, number, code_lookup, sealed) VALUES (1, 7, 1, 1, $1)",
            Vault((KEY,)).codes.seal(b"a code", b"REF/1"),
        )
        address = b'{"name":"Sam","street_address":"1 High St\\nFlat 2","city":"Leeds","country_code":"GB"}'
        await connection.execute(
            "INSERT INTO shipments (customer_id, order_id, number, environment, product_id, country, sealed_address, requested_at) "
            "VALUES (1, 7, 1, 'production', 2, 'GB', $1, now())",
            Vault((KEY,)).addresses.seal(address, b"address/7/1"),
        )


async def acts(database_url: str) -> list[tuple[object, ...]]:
    """What the audit log keeps: what was done, to what, where, and what came of it; always by a command."""
    async with connect_once(database_url, OPERATOR) as connection:
        rows = await connection.fetch("SELECT * FROM audit_events ORDER BY id")
    assert all(
        row["actor"] == "command" and " import (" in row["actor_name"].replace("export", "import") for row in rows
    )
    return [(row["act"], row["subject"], row["environment"], json.loads(row["after"])) for row in rows]


def test_numbers_go_in_and_are_listed(database: str, run: Run, tmp_path: Path) -> None:
    run_beside(fill(database))
    (tmp_path / "numbers.csv").write_text("SECRET-1\nSECRET-2\nSECRET-1\n")
    done = run("stock", "import", "tea", "numbers.csv", "--value", "5")
    assert (done.exit_code, done.stdout) == (0, "Tea: numbers added 2, duplicates refused 1, waiting gifts served 0.\n")
    listed = json.loads(run("stock", "list", "--json").stdout)
    assert listed == [{"product": "tea", "value": 5.0, "currency": "GBP", "free": 2, "handed_out": 0, "waiting": 0}]
    assert "2 free" in run("stock", "list").stdout
    assert run("stock", "import", "tea", "numbers.csv", "--value", "5").exit_code == 0
    (tmp_path / "more.csv").write_text("number,batch\nSECRET-1,7\n")
    assert run("stock", "import", "tea", "more.csv", "--value", "5").stdout.endswith("\nNot read: batch.\n")
    assert run_beside(acts(database)) == [("stock.imported", "gift tea", None, {"added": 2})]
    for arguments in (["tea", "numbers.csv"], ["nothing", "numbers.csv"], ["tea", "none.csv"], ["box", "numbers.csv"]):
        refused = run("stock", "import", *arguments)
        assert refused.exit_code != 0
        assert refused.stderr.startswith(("Error: ", "Usage: "))
        assert isinstance(refused.exception, SystemExit), "no traceback"
        assert "SECRET" not in refused.stderr
    (tmp_path / "wrong.csv").write_text("number,value\nSECRET-9,7\n")
    for named, more in (
        ("wrong.csv: line 2: value", ()),
        ("wrong.csv: line 2: value", ("--value", "5")),
        ("--value", ("--value", "x")),
    ):
        assert run("stock", "import", "tea", "wrong.csv", *more).stderr.startswith(f"Error: {named}"), more


def test_parcels_go_out_once_and_come_back_shipped(database: str, run: Run, tmp_path: Path) -> None:
    run_beside(fill(database))
    (tmp_path / "parcels.csv").touch()
    (tmp_path / "parcels.csv").chmod(0o644)  # as a shell left it; it gets names and addresses now
    done = run("shipments", "export", "--output", "parcels.csv")
    assert (done.exit_code, done.stderr) == (0, "Parcels to send: 1.\n")
    assert stat.S_IMODE((tmp_path / "parcels.csv").stat().st_mode) == 0o600
    assert (tmp_path / "parcels.csv").read_bytes().startswith(codecs.BOM_UTF8), "Excel would garble Müller"
    [row] = list(csv.DictReader(io.StringIO((tmp_path / "parcels.csv").read_text("utf-8-sig"))))
    assert (row["order"], row["product"], row["street_address"]) == ("REF", "box", "1 High St\nFlat 2")
    assert len(list(csv.DictReader(io.StringIO(run("shipments", "export").stdout)))) == 0
    assert len(list(csv.DictReader(io.StringIO(run("shipments", "export", "--again").stdout)))) == 1
    (tmp_path / "shipped.csv").write_text(f"shipment,carrier\n{row['shipment']},Post\n99,Post\n")
    refused = run("shipments", "import", "shipped.csv")
    assert (refused.exit_code, refused.stderr) == (
        1,
        "Error: shipped.csv: line 3: there is no shipment 99 in production\n",
    )
    (tmp_path / "shipped.csv").write_text(f"shipment,carrier\n{row['shipment']},Post\n")
    assert run("shipments", "import", "shipped.csv").stdout == "Parcels shipped: 1; shipped before: 0.\n"
    assert run("shipments", "import", "shipped.csv").stdout == "Parcels shipped: 0; shipped before: 1.\n"
    assert run_beside(acts(database)) == [
        ("shipments.exported", "parcels to send", "production", {"parcels": 1}),
        ("shipments.exported", "parcels to send", "production", {"parcels": 1}),
        ("shipments.imported", "file shipped.csv", "production", {"shipped": 1, "shipped_before": 0}),
        ("shipments.imported", "file shipped.csv", "production", {"shipped": 0, "shipped_before": 1}),
    ]
