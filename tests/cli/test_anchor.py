"""`largesse anchor`, and what `verify --anchor` finds against one."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.chained import forge
from tests.cli.conftest import Run, assert_refused, sql
from tests.closing import closing

from largesse.base.errors import OperatorError
from largesse.db.pool import Database
from largesse.verify.anchor import read_anchor, take_anchor

OLD_STATE = """
    CREATE SCHEMA before;
    CREATE TABLE before.entries AS SELECT * FROM entries;
    CREATE TABLE before.accounts AS SELECT * FROM accounts;
    CREATE TABLE before.events AS SELECT * FROM audit_events;
    CREATE TABLE before.heads AS SELECT * FROM audit_heads
"""
ROLL_BACK = """
    DELETE FROM entries WHERE id NOT IN (SELECT id FROM before.entries);
    UPDATE accounts SET balance_minor = b.balance_minor, chain_head = b.chain_head
    FROM before.accounts b WHERE b.id = accounts.id;
    DELETE FROM audit_events WHERE id NOT IN (SELECT id FROM before.events);
    UPDATE audit_heads SET head = b.head FROM before.heads b WHERE b.customer_id = audit_heads.customer_id;
    DELETE FROM audit_heads WHERE customer_id NOT IN (SELECT customer_id FROM before.heads)
"""
UNCHAIN = """
    UPDATE entries SET mac = NULL; UPDATE accounts SET chain_head = DEFAULT;
    DELETE FROM audit_events; DELETE FROM audit_heads; DELETE FROM chain_keys
"""


def script(url: str, statements: str) -> None:
    async def execute() -> None:
        async with closing(Database.connect(url, max_connections=1)) as database:
            await forge(database, statements)

    asyncio.run(execute())


@pytest.fixture
def anchored(run: Run, loaded: dict[str, Any], tmp_path: Path) -> Path:
    """An anchor made after a top-up of 5."""
    assert run("top-up", "gbp", "5").exit_code == 0
    made = run("anchor", "--json")
    assert made.exit_code == 0, made.output
    file = tmp_path / "anchor.json"
    file.write_text(made.stdout)
    return file


def missed(run: Run, anchor: Path) -> list[str]:
    """What of the anchor `verify` does not find, when nothing else is wrong."""
    report = json.loads(run("verify", "--json", "--anchor", str(anchor)).stdout)
    assert {finding["check"] for finding in report["findings"]} <= {"anchor-holds"}
    return [one for finding in report["findings"] for one in finding["ids"]]


@pytest.mark.slow
def test_an_anchor_holds_as_long_as_chains_only_grow(run: Run, database: str, anchored: Path) -> None:
    assert missed(run, anchored) == []
    assert run("top-up", "gbp", "7").exit_code == 0
    assert missed(run, anchored) == []
    assert "anchor-holds" in json.loads(run("verify", "--json", "--anchor", str(anchored)).stdout)["checks"]
    shown = run("anchor").stdout
    assert "  acme/gbp entry 5\n" in shown
    assert "  installation event 1\n" in shown
    told = json.loads(anchored.read_text())
    heads = {row["h"] for row in sql(database, "SELECT encode(chain_head, 'hex') AS h FROM accounts")}
    assert not heads & {one["mac"] for one in told["entries"]}, "an anchor gives no way to go on from it"


@pytest.mark.slow
def test_a_chain_that_was_rolled_back_is_found(run: Run, database: str, anchored: Path) -> None:
    script(database, OLD_STATE)
    assert run("top-up", "gbp", "7").exit_code == 0
    later = anchored.with_name("later.json")
    later.write_text(run("anchor", "--json").stdout)
    assert missed(run, later) == []
    script(database, ROLL_BACK)
    assert missed(run, anchored) == []
    assert missed(run, later) == ["acme/gbp entry 5", "acme/deposits GBP production entry 6", "acme event 3"]


@pytest.mark.slow
def test_chains_that_were_made_anew_are_found(run: Run, database: str, anchored: Path) -> None:
    """With the database and a command of ours: the forger had everything."""
    script(database, UNCHAIN)
    done = run("migrate")
    assert "Entries that were there before and are chained now: 4." in done.stderr
    assert run("verify").exit_code == 0
    ledger = json.loads(run("audit", "--json").stdout)
    assert [event["act"] for event in ledger] == ["ledger.chained"]
    assert {"acme/gbp entry 3", "acme event 2"} <= set(missed(run, anchored))


@pytest.mark.slow
def test_an_account_that_was_emptied_and_looks_new_is_found(run: Run, database: str, anchored: Path) -> None:
    script(database, "DELETE FROM entries; UPDATE accounts SET balance_minor = 0, chain_head = DEFAULT")
    assert run("verify").exit_code == 0
    assert len(missed(run, anchored)) == 2


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"made_at": 1, "entries": [], "events": []}', "anchor"])
def test_what_is_no_anchor_is_refused(run: Run, loaded: dict[str, Any], tmp_path: Path, text: str) -> None:
    (tmp_path / "no.json").write_text(text)
    assert_refused(run("verify", "--anchor", "no.json"), "no.json is not an anchor")


def test_a_file_without_an_end_is_no_anchor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("largesse.verify.anchor._MOST_BYTES", 1000)
    with pytest.raises(OperatorError, match=r"^/dev/zero is too large for an anchor$"):
        read_anchor(Path("/dev/zero"))


def test_an_empty_installation_has_an_anchor(run: Run, database: str, tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_text(run("anchor", "--json").stdout)
    assert missed(run, Path("empty.json")) == []
    assert run("anchor").stdout == ""


def test_anchors_may_be_noted_at_the_same_time(anchored: Path, database: str) -> None:
    async def note_together() -> None:
        async with closing(Database.connect(database)) as pool:
            await asyncio.gather(*(take_anchor(pool, note=True) for _ in range(8)))

    for _ in range(5):
        asyncio.run(note_together())
    assert {row["made"] for row in sql(database, "SELECT count(*) > 0 AS made FROM noted_anchors")} == {True}
