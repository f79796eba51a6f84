"""The reference of the order benchmarks: one SQL function that writes what an order writes, one order a commit.

It is called by pgbench with prepared statements. It is given every advantage that keeps it honest: no HTTP, no key to
look up, no JSON, no encryption (random bytes of the same length are stored), ids by arithmetic, and the rows of the
accounts locked as late as can be, after all that need not wait for them. The tables, their indexes and constraints are
the product's own, made by its migrations. What is written is an order the product has placed, with new ids, references,
codes and balances, so that all rows have the product's sizes.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import msgspec

from bench.installation import REFERENCE, Failed, Installation
from largesse.db.cluster import programs
from largesse.verify.audit import CHECKS

_OWN_COLUMNS = """
    reference, customer_id, service_account_id, external_reference, account_id, total_minor, created_at, id
""".replace("\n", "").replace(" ", "")

_FUNCTION = """
CREATE FUNCTION place_order(customer integer, bot integer, payer integer, sales integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    new_id      integer := nextval('orders_id_seq');
    movement    bigint := nextval('movements_id_seq');
    left_minor  bigint;
    sales_minor bigint;
BEGIN
    INSERT INTO orders ({columns}, {own_columns})
    VALUES ({values},
            '{hour}' || upper(left(replace(gen_random_uuid()::text, '-', ''), 16)), customer, bot,
            'bench000-' || lpad(new_id::text, 11, '0'), payer, {total_minor}, now(), new_id);
    INSERT INTO lines (customer_id, order_id, number, recipient_email, recipient_name, code_lookup, sealed)
    VALUES {lines};
    INSERT INTO events (order_id, customer_id, environment, event, body, created_at)
    VALUES (new_id, customer, 'production', 'order.created', {body}, now());
    INSERT INTO mail_jobs (customer_id, order_id, environment, due_at) VALUES (customer, new_id, 'production', now());
    UPDATE accounts SET balance_minor = balance_minor - {total_minor} WHERE customer_id = customer AND id = payer
        RETURNING balance_minor INTO STRICT left_minor;
    UPDATE accounts SET balance_minor = balance_minor + {total_minor} WHERE customer_id = customer AND id = sales
        RETURNING balance_minor INTO STRICT sales_minor;
    INSERT INTO entries (customer_id, account_id, movement_id, kind, order_id, amount_minor, balance_minor, created_at)
    VALUES (customer, payer, movement, 'order', new_id, -{total_minor}, left_minor, now()),
           (customer, sales, movement, 'order', new_id, {total_minor}, sales_minor, now());
    RETURN new_id;
END $$
"""
_LINE = "(customer, new_id, {number}, {email}, {name}, random(-9223372036854775808, 9223372036854775807), {sealed})"
_UUID_BYTES = 16


class Commits(msgspec.Struct):
    """What pgbench measured: orders a second and, where asked for, the middle time of one in microseconds."""

    rate: float
    p50_us: float | None


def prepare(made: Installation) -> None:
    """Makes the reference's database, and in it the function after the product's last order of two recipients."""
    made.make_reference()
    order = made.sql("SELECT * FROM orders WHERE code_count = 2 ORDER BY id DESC LIMIT 1")[0]
    lines = made.sql("SELECT * FROM lines WHERE order_id = $1 ORDER BY number", order["id"])
    event = made.sql("SELECT * FROM events WHERE order_id = $1", order["id"])[0]
    own = set(_OWN_COLUMNS.split(","))
    columns = [name for name, _ in order.items() if name not in own]
    made.sql(
        _FUNCTION.format(
            columns=", ".join(columns),
            own_columns=_OWN_COLUMNS,
            values=", ".join(_literal(order[name]) for name in columns),
            hour=order["reference"][:4],
            total_minor=order["total_minor"],
            lines=",\n           ".join(_line(line) for line in lines),
            body=_literal(event["body"]),
        ),
        url=made.reference_url,
    )


def check(made: Installation) -> None:
    """Holds what the reference wrote to the rules of `largesse verify` (all but codes that open). Raises Failed."""

    async def audit(connection: asyncpg.Connection[asyncpg.Record]) -> list[str]:
        return [check.rule for check in CHECKS if await connection.fetch(check.sql, timeout=600)]

    broken = made.connected(audit, made.reference_url)
    if broken:
        raise Failed(f"the reference does not write what an order writes: {broken}")


def run(
    made: Installation,
    *,
    clients: int,
    seconds: float,
    times: bool = False,
    database: str = REFERENCE,
    script: str | None = None,
) -> Commits:
    """Calls the function from pgbench, for a random account in each transaction; `times` has each one logged.

    Another reference has another `database`, and a `script` that pgbench runs.
    """
    with tempfile.TemporaryDirectory(dir=made.folder) as folder:
        file = Path(folder, "order.sql")
        file.write_text(script or _script(made))
        command = [str(programs() / "pgbench"), "--no-vacuum", "--protocol=prepared", f"--client={clients}"]
        command += ["--jobs=1", f"--time={max(1, round(seconds))}", f"--file={file}"]
        command += ["--log"] if times else []
        command += ["-h", made.socket_dir, "-U", "largesse", database]
        password = urlsplit(made.url_of(database)).password or ""
        environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "PGPASSWORD": password}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0 or "number of failed transactions: 0" not in done.stdout:
            raise Failed(f"pgbench: {done.stdout}{done.stderr}")
        rate = next(line.split()[2] for line in done.stdout.splitlines() if line.startswith("tps = "))
        times_us = [
            int(line.split()[2]) for log in Path(folder).glob("pgbench_log.*") for line in log.read_text().splitlines()
        ]
    return Commits(float(rate), median(times_us) if times else None)


def _script(made: Installation) -> str:
    """One call; the ids of the world follow from a random number, which is checked here."""
    rows = made.sql(
        """
        SELECT f.id AS payer, f.customer_id AS customer, s.id AS bot, o.id AS sales
        FROM accounts f
        JOIN service_accounts s ON s.customer_id = f.customer_id
        JOIN accounts o ON o.customer_id = f.customer_id AND o.kind = 'sales' AND o.environment = 'production'
        WHERE f.kind = 'funding' ORDER BY f.id
        """,
        url=made.reference_url,
    )
    accounts_each = len(rows) // len({row["customer"] for row in rows})
    terms = {name: _arithmetic(name, rows, accounts_each) for name in ("customer", "bot", "payer", "sales")}
    return (
        f"\\set n random(0, {len(rows) - 1})\n"
        + "".join(f"\\set {name} {term}\n" for name, term in terms.items())
        + "SELECT place_order(:customer, :bot, :payer, :sales);\n"
    )


def _arithmetic(name: str, rows: Sequence[Any], accounts_each: int) -> str:
    """How a column follows from the number of the funding account. Raises Failed where it does not."""
    divisor = 1 if name == "payer" else accounts_each
    first = rows[0][name]
    step = rows[divisor][name] - first if len(rows) > divisor else 0
    if any(row[name] != first + number // divisor * step for number, row in enumerate(rows)):
        raise Failed(f"the ids of {name} do not follow each other")
    return f"{first} + :n / {divisor} * {step}"


def _line(line: Any) -> str:
    length = len(line["sealed"])
    uuids = " || ".join(["uuid_send(gen_random_uuid())"] * -(-length // _UUID_BYTES))
    return _LINE.format(
        number=line["number"],
        email=_literal(line["recipient_email"]),
        name=_literal(line["recipient_name"]),
        sealed=f"substr({uuids}, 1, {length})",
    )


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"'\\x{value.hex()}'::bytea"
    if isinstance(value, int):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"
