"""A recipient in every place where one can be, and looking for traces of them in a dump."""

import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.reports.conftest import take_all
from tests.web.api.conftest import Service, own_service, problem, service, staging, start_service
from tests.web.mailbox.conftest import capture_mail

from largesse.cli import main
from largesse.db.cluster import programs
from largesse.encryption.vault import Vault
from largesse.fulfilment.notifications import seal_email
from largesse.lines.states import LineKey
from largesse.notes.service import note_context

__all__ = ["own_service", "problem", "service", "staging", "start_service"]

SAM, NAME = "Sam.Quillfeather@example.com", "Samantha Quillfeather"
ALEX = "alex@example.com"
ADDRESS = b'{"name":"Samantha Quillfeather","city":"Little Quilling"}'
# What changes when somebody is erased: copies and drafts go, receipts come, and the gift expires whose parcel was not sent. And what the server
# notes of requests by itself.
CHANGED = {
    "api_requests",
    "audit_events",
    "audit_heads",
    "captured_mail",
    "draft_rows",
    "drafts",
    "erasure_jobs",
    "erasure_orders",
    "erasures",
    "events",
    "line_events",
    "order_changes",
    "report_words",
    "thank_you_notes",
}

Run = Callable[..., Result]


@pytest.fixture
def run(service: Service, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command of `largesse` on the service's installation."""
    monkeypatch.setenv("LARGESSE_DATABASE_URL", service.database_url)
    monkeypatch.setenv("LARGESSE_MASTER_KEY", service.settings.master_keys[0].hex())

    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(main, arguments, prog_name="largesse")

    return invoke


@pytest.fixture
def filled(service: Service) -> dict[str, str]:
    """Sam in every place where a recipient can be, beside Alex; the references of the orders by what they are."""
    orders = {
        "mailed": service.send(
            "gift",
            "coffee",
            value=5,
            recipients=[{"email": SAM, "name": NAME, "quantity": 2}, {"email": ALEX, "name": "Alex"}],
            message=f"Ask {SAM.lower()} about it",
            externalReference=f"birthday/{SAM.upper()}",
        ),
        "scheduled": service.send(
            "gift", "coffee", value=5, recipients=[{"email": SAM.lower(), "name": NAME}], sendAt="2099-01-01T00:00:00Z"
        ),
        "other": service.send(
            "gift", "coffee", key="globex", account="globex-gbp", value=5, recipients=[{"email": SAM, "name": NAME}]
        ),
        "parcel": service.send("gift", "hamper", recipients=[{"email": SAM, "name": NAME}]),
        "batch": service.send("gift", "coffee", value=5, codeQuantity=2),
    }
    assert {order.status_code for order in orders.values()} == {200}
    references = {name: order.json()["reference"] for name, order in orders.items()}
    capture_mail(service)
    fill_by_hand(service, references)
    take_in_all(service)
    return references


def order_id(service: Service, reference: str) -> int:
    return int(service.sql("SELECT id FROM orders WHERE reference = $1", reference)[0]["id"])


# What a claim by hand lacks: the events of its gift.
TELL_OF_GIFTS = """
    INSERT INTO events (order_id, customer_id, environment, event, line_number, body, created_at, fanned_out_at)
    SELECT e.order_id, e.customer_id, o.environment, 'gift.' || e.event, e.number,
           convert_to(json_build_object('id', concat_ws('_', 'evt', e.order_id, e.number, e.event))::text, 'UTF8'), e.at, now()
    FROM line_events e JOIN orders o ON o.customer_id = e.customer_id AND o.id = e.order_id
    WHERE e.event <> 'chosen' AND NOT EXISTS (
        SELECT FROM events told WHERE told.customer_id = e.customer_id AND told.order_id = e.order_id
        AND told.line_number = e.number AND told.event = 'gift.' || e.event)
"""


def fill_by_hand(service: Service, references: dict[str, str]) -> None:
    """What takes a recipient's browser, a receiver, a mail server and a person to come about."""
    vault = Vault(service.settings.master_keys)
    parcel, batch = order_id(service, references["parcel"]), order_id(service, references["batch"])
    hamper, coffee = (service.ids["products"][key] for key in ("hamper", "coffee"))
    for order, product in ((parcel, hamper), (batch, coffee)):
        service.sql(
            "INSERT INTO line_states (customer_id, order_id, number, state, claimed_at, product_id) SELECT customer_id, id, 1, 'chosen', now() - interval '1 hour', $2 FROM orders WHERE id = $1",
            order,
            product,
        )
        service.sql(
            """
            INSERT INTO line_events (customer_id, order_id, number, event, at)
            SELECT customer_id, order_id, number, happened, claimed_at
            FROM line_states, unnest('{opened,claimed,chosen}'::text[]) AS happened WHERE order_id = $1
            """,
            order,
        )
    service.sql(TELL_OF_GIFTS)
    service.sql(
        "UPDATE line_states SET sealed_email = $2 WHERE order_id = $1",
        batch,
        seal_email(vault, SAM, LineKey(0, batch, 1)),
    )
    service.sql(
        "INSERT INTO voucher_waits (customer_id, product_id, value_minor, order_id, number, since) SELECT customer_id, $1, 500, id, 1, now() FROM orders WHERE id = $2",
        coffee,
        batch,
    )
    service.sql(
        """
        INSERT INTO shipments (customer_id, order_id, number, environment, product_id, country, sealed_address, requested_at)
        SELECT customer_id, id, 1, 'production', $2, 'GB', $3, now() FROM orders WHERE id = $1
        """,
        parcel,
        hamper,
        vault.addresses.seal(ADDRESS, b"address/%d/1" % parcel),
    )
    service.sql(
        """
        INSERT INTO messages
            (customer_id, order_id, environment, kind, edition, email, line_numbers, state, due_at, rank_at, created_at)
        SELECT customer_id, id, 'production', 'voucher_ready', 1, $2, '{1}', 'pending', now() + interval '1 day',
               now() + interval '1 day', now() FROM orders WHERE id = $1
        """,
        batch,
        SAM,
    )
    service.sql(
        """
        INSERT INTO thank_you_notes (customer_id, order_id, number, environment, sealed, written_at)
        SELECT customer_id, order_id, number, 'production', $2, claimed_at FROM line_states WHERE order_id = $1
        """,
        parcel,
        vault.notes.seal(f"{NAME} says thank you".encode(), note_context(LineKey(1, parcel, 1))),
    )
    fill_beside(service)


def fill_beside(service: Service) -> None:
    """What others said of Sam: mail servers, an operator, a receiver, and a person who has not sent yet."""
    service.sql("UPDATE messages SET reason = $1 WHERE lower(email) = $2", f"550 <{SAM}> unknown", SAM.lower())
    service.sql("INSERT INTO mail_requeues (at, since, reason, messages) VALUES (now(), now(), $1, 0)", SAM)
    service.sql(
        "INSERT INTO delivery_attempts (customer_id, delivery_id, number, started_at, duration_ms, answer) VALUES (1, 1, 1, now(), 1, $1)",
        f"hello {SAM}".encode(),
    )
    service.sql(
        """
        WITH person AS (SELECT id, customer_id FROM users ORDER BY id LIMIT 1), draft AS (
            INSERT INTO drafts (customer_id, environment, id, user_id, content, created_at, changed_at)
            SELECT customer_id, 'production', '00000000000000000001', id, '{}', now(), now() FROM person RETURNING *)
        INSERT INTO draft_rows (customer_id, environment, draft_id, number, cells)
        SELECT customer_id, environment, id, 1, ARRAY[$1, $2] FROM draft
        """,
        SAM,
        NAME,
    )


def take_in_all(service: Service) -> None:
    """What the worker does for the read models."""

    service.on_pool(lambda database, _: take_all(database))


def dump(service: Service) -> str:
    """All of the database as pg_dump writes it, in small letters."""
    command = [str(programs() / "pg_dump"), "--data-only", service.database_url]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.lower()


def traces(dumped: str) -> list[str]:
    """What of Sam is in a dump, as text or as bytes."""
    wanted = (SAM, NAME, "quillfeather")
    return [one for text in wanted for one in (text.lower(), text.lower().encode().hex()) if one in dumped]


def counted(service: Service) -> dict[str, Any]:
    """How many rows each table has, and all of the ledger."""
    tables = [row[0] for row in service.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]
    rows = {table: service.sql(f"SELECT count(*) FROM {table}")[0][0] for table in tables if table not in CHANGED}
    ledger = [tuple(row) for row in service.sql("SELECT * FROM entries ORDER BY account_id, id")]
    return {**rows, "ledger": ledger, "accounts": service.sql("SELECT * FROM accounts ORDER BY id")}
