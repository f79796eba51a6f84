"""The release after this one, made from a copy of the tree: it adds, renames and drops a column of tables that are in use all the time.

`next_release` adds the cost centre of orders, gives `trying_since` of messages a second name, which its code uses, and no longer reads
from where API keys were last used. `release_after` drops what only this release used.
"""

from pathlib import Path

from tests.walks import tree

_EXPAND = """-- Expand
ALTER TABLE messages ADD COLUMN retrying_since timestamptz;

-- Whichever name is written to, until this release has left.
CREATE FUNCTION messages_retrying_since() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        NEW.retrying_since := coalesce(NEW.retrying_since, NEW.trying_since);
        NEW.trying_since := NEW.retrying_since;
    ELSIF NEW.trying_since IS DISTINCT FROM OLD.trying_since THEN
        NEW.retrying_since := NEW.trying_since;
    ELSE
        NEW.trying_since := NEW.retrying_since;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER messages_retrying_since BEFORE INSERT OR UPDATE ON messages
    FOR EACH ROW EXECUTE FUNCTION messages_retrying_since();
"""
_FILL = """-- Expand
-- Outside a transaction

DO $$
BEGIN
    LOOP
        UPDATE messages SET retrying_since = trying_since
        WHERE (customer_id, id) IN (
            SELECT customer_id, id FROM messages WHERE retrying_since IS DISTINCT FROM trying_since LIMIT 1000);
        EXIT WHEN NOT FOUND;
        COMMIT;
    END LOOP;
END $$

DROP INDEX CONCURRENTLY IF EXISTS orders_cost_centre

CREATE INDEX CONCURRENTLY orders_cost_centre ON orders (customer_id, cost_centre) WHERE cost_centre IS NOT NULL
"""
_CONTRACT = """-- Contract: code of {first}
CREATE OR REPLACE FUNCTION note_keys_seen(ids integer[], addresses inet[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE api_keys SET last_seen_at = clock_now() WHERE id = ANY (ids);
END $$;
ALTER TABLE api_keys DROP COLUMN last_seen_address;
DROP TRIGGER messages_retrying_since ON messages;
DROP FUNCTION messages_retrying_since();
ALTER TABLE messages DROP COLUMN trying_since;
"""


def next_release(folder: Path) -> Path:
    """A copy of the tree whose migrations expand the schema."""
    copy = tree.copy_tree(folder)
    migrations = copy / "src/largesse/db/migrations"
    tree.apply(Path(__file__).with_name("cost_centre.patch"), copy)
    (added,) = migrations.glob("*_cost_centre.sql")
    added.write_text(f"-- Expand\n{added.read_text()}")
    (migrations / f"{_next(migrations)}_retrying_since.sql").write_text(_EXPAND)
    (migrations / f"{_next(migrations)}_retrying_since_filled.sql").write_text(_FILL)
    mail, customers = copy / "src/largesse/mail", copy / "src/largesse/customers"
    _edit(mail / "resending_store.py", "trying_since", "retrying_since", count=2)
    _edit(mail / "messages.py", 'row["trying_since"]', 'row["retrying_since"]')
    _edit(mail / "tasks.py", '"trying_since"', '"retrying_since"')
    _edit(customers / "key_store.py", "host(k.last_seen_address)", "NULL::text")
    _edit(copy / "src/largesse/db/office_rights.py", '        "last_seen_address",\n', "")
    return copy


def release_after(folder: Path) -> Path:
    """A copy of the tree whose last migration contracts the schema to what the next release uses."""
    copy = next_release(folder)
    migrations = copy / "src/largesse/db/migrations"
    (first,) = migrations.glob("*_retrying_since.sql")
    number = _next(migrations)
    (migrations / f"{number}_contract.sql").write_text(_CONTRACT.format(first=first.name[:4]))
    return copy


def _next(migrations: Path) -> str:
    last = max(path.name[:4] for path in migrations.glob("[0-9]*.sql"))
    return f"{int(last) + 1:04}"


def _edit(path: Path, before: str, after: str, *, count: int = 1) -> None:
    text = path.read_text()
    assert text.count(before) == count, (path, before)
    path.write_text(text.replace(before, after))
