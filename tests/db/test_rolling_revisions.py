"""What a revision may hold that runs while the release before is in use: nothing that rewrites, locks for long, or takes away.

The rules are those of docs/upgrades. They hold for revisions that say of themselves that they expand or contract; from release 0.3.0 on,
each new one must.
"""

import re
import sys
from pathlib import Path

import pytest

from largesse.db.migrate import REVISIONS

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "sdk/python/release"))
from largesse_build import RELEASE  # noqa: E402

_MARK = re.compile(r"-- (Expand|Contract: code of \d{4})\b")
# What locks a table that is in use for as long as it has rows, or changes them all: by what it is, how it is recognised, and what to write.
_LONG = {
    r"ALTER COLUMN \w+ (SET DATA )?TYPE": "rewrites the table: add a column of the other type",
    r"ALTER COLUMN \w+ SET NOT NULL": "reads the table under its lock: add CHECK (… IS NOT NULL) NOT VALID, and VALIDATE CONSTRAINT later",
    r"ADD COLUMN[^,;]* (GENERATED|SERIAL|BIGSERIAL)": "rewrites the table",
    r"ADD COLUMN[^,;]* DEFAULT (clock_timestamp|clock_now|random|gen_random_uuid|nextval|timeofday)\b": "rewrites the table: fill it in parts",
    r"ADD COLUMN(?=[^,;]* NOT NULL)(?![^,;]* DEFAULT )": "refuses the rows that are there, and those of the release before",
    r"ADD (CONSTRAINT \w+ )?(PRIMARY KEY|UNIQUE)(?! USING INDEX)": "builds an index under the lock: build it CONCURRENTLY, and add it USING INDEX",
    r"ADD (CONSTRAINT \w+ )?(CHECK|FOREIGN KEY)(?![^;]*\bNOT VALID)": "reads the table under its lock: add it NOT VALID, and VALIDATE CONSTRAINT later",
    r"SET (UNLOGGED|LOGGED|TABLESPACE)|\bCLUSTER\b|VACUUM FULL|\bREINDEX (?!.*CONCURRENTLY)": "rewrites the table or index",
    r"^LOCK TABLE": "keeps everybody from the table",
    r"^(UPDATE|DELETE FROM)": "changes rows in one transaction: change them in parts, outside a transaction",
}
# What the release before may still use.
_GONE = {
    r"DROP (TABLE|COLUMN|VIEW|FUNCTION|TRIGGER|TYPE|SEQUENCE|SCHEMA)": "takes away what the release before may use",
    r"RENAME (COLUMN |TO|CONSTRAINT )": "takes away the name that the release before uses: add the other one beside it",
    r"^REVOKE": "takes a right away that the release before may use",
}
_IN_USE = r"CREATE (UNIQUE )?INDEX (?!CONCURRENTLY)(IF NOT EXISTS )?\w+ ON (?P<table>\w+)"


def faults(sql: str) -> list[str]:
    """What a revision must not hold, each with what to do; empty for one that does not say that it expands or contracts."""
    mark = _MARK.match(sql)
    if mark is None:
        return []
    # Comments and the bodies of functions and blocks are no statements of the revision.
    plain = re.sub(r"\$(\w*)\$.*?\$\1\$", "''", re.sub(r"--.*", "", sql), flags=re.DOTALL)
    made = set(re.findall(r"CREATE TABLE (?:IF NOT EXISTS )?(\w+)", plain))
    statements = [" ".join(one.split()) for one in re.split(r";|\n\n", plain) if one.strip()]
    found = []
    for statement in statements:
        altered = re.match(r"ALTER TABLE (?:ONLY )?(\w+)", statement)
        if altered and altered[1] in made:
            continue
        rules = _LONG if mark[1] != "Expand" else _LONG | _GONE
        found += [
            f"{statement[:60]}: {why}" for rule, why in rules.items() if re.search(rule, statement, re.IGNORECASE)
        ]
        index = re.match(_IN_USE, statement, re.IGNORECASE)
        if index and index["table"] not in made:
            found.append(f"{statement[:60]}: keeps writers out while it is built: CREATE INDEX CONCURRENTLY")
    return found


def test_revisions_can_be_rolled_out() -> None:
    found = {path.name: wrong for path in REVISIONS.glob("[0-9]*.sql") if (wrong := faults(path.read_text()))}
    assert not found


def test_a_revision_of_a_later_release_says_what_it_is() -> None:
    """0.2.0 is the last release that needs downtime: its page names the last revision that may be unmarked."""
    said = (ROOT / "docs/upgrades/0.2.0.md").read_text()
    last = re.search(r"schema is at revision (\d{4})", said)
    if RELEASE == "0.2.0":
        assert last is None, "the page names it once 0.2.0 is released"
        return
    assert last, "docs/upgrades/0.2.0.md names the revision of 0.2.0: its schema is at revision NNNN"
    unmarked = [path.name for path in REVISIONS.glob("[0-9]*.sql") if not _MARK.match(path.read_text())]
    assert [name for name in unmarked if name[:4] > last[1]] == []


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE orders ALTER COLUMN total_minor TYPE numeric",
        "ALTER TABLE orders ALTER COLUMN message SET NOT NULL",
        "ALTER TABLE orders ADD COLUMN n bigint GENERATED ALWAYS AS IDENTITY",
        "ALTER TABLE orders ADD COLUMN seen timestamptz DEFAULT clock_timestamp()",
        "ALTER TABLE orders ADD COLUMN kind text NOT NULL",
        "ALTER TABLE orders ADD COLUMN a text, ADD COLUMN kind text NOT NULL",
        "ALTER TABLE orders ADD CONSTRAINT once UNIQUE (reference)",
        "ALTER TABLE orders ADD CONSTRAINT known CHECK (code_count > 0)",
        "ALTER TABLE orders ADD FOREIGN KEY (customer_id) REFERENCES customers",
        "CREATE INDEX orders_kind ON orders (kind)",
        "CREATE UNIQUE INDEX orders_kind ON orders (kind)",
        "UPDATE orders SET kind = 'gift'",
        "LOCK TABLE orders",
    ],
)
def test_what_holds_others_up_is_refused(statement: str) -> None:
    assert len(faults(f"-- Expand\n{statement};")) == 1
    assert len(faults(f"-- Contract: code of 0070\n{statement};")) == 1
    assert faults(f"{statement};") == []


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE orders DROP COLUMN message",
        "DROP TABLE drafts",
        "ALTER TABLE orders RENAME COLUMN message TO text",
        "ALTER TABLE orders RENAME TO sales",
        "DROP FUNCTION clock_now()",
        "REVOKE INSERT ON orders FROM largesse_app",
    ],
)
def test_only_a_contraction_takes_away(statement: str) -> None:
    assert len(faults(f"-- Expand\n{statement};")) == 1
    assert faults(f"-- Contract: code of 0070\n{statement};") == []


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE orders ADD COLUMN occasion text",
        "ALTER TABLE orders ADD COLUMN kind text NOT NULL DEFAULT 'gift'",
        "ALTER TABLE orders ADD CONSTRAINT known CHECK (code_count > 0) NOT VALID",
        "ALTER TABLE orders VALIDATE CONSTRAINT known",
        "ALTER TABLE orders ADD CONSTRAINT once UNIQUE USING INDEX orders_once",
        "CREATE INDEX CONCURRENTLY orders_kind ON orders (kind)",
        "CREATE TABLE notes (id int); CREATE INDEX notes_id ON notes (id); ALTER TABLE notes ADD PRIMARY KEY (id)",
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE orders SET a = 1; DROP TABLE x; END $$",
        "-- DROP TABLE orders\nSELECT 1",
    ],
)
def test_what_can_run_beside_the_release_before_is_taken(statement: str) -> None:
    assert faults(f"-- Expand\n{statement};") == []
