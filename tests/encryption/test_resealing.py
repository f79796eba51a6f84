"""Everything is brought under the newest master key beside a service that takes orders, and then the old key can go."""

import asyncio
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest
from tests.encryption.place import AFTER, BEFORE, BOTH, NEW, OLD, Place
from tests.waiting import wait_until
from tests.web.api.conftest import Service, on_database
from tests.web.claim.conftest import Recipient, link, lookup_of, wrong

from largesse.base.errors import OperatorError
from largesse.encryption import master_keys
from largesse.encryption.key_rotation import Resealed, encrypted_columns
from largesse.encryption.master_keys import list_master_keys
from largesse.encryption.vault import DecryptionFailed, Vault
from largesse.fulfilment.notifications import open_email, seal_email
from largesse.fulfilment.vouchers import Voucher, open_voucher, seal_voucher
from largesse.lines.states import LineKey
from largesse.mail.mailbox import sealing_context
from largesse.webhooks.store import secret_context

LINES = int(os.environ.get("RESEAL_LINES", "1000"))
ADDRESS = b'{"name":"Sam"}'


@pytest.fixture(autouse=True)
def telling_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(master_keys, "_TELL_EVERY_S", 0.2)


@pytest.fixture
def place(database_url: str, tmp_path: Path) -> Place:
    return Place(database_url, tmp_path)


def fill(place: Place, order_id: int) -> dict[str, object]:
    """Puts something sealed under the old key into each table but `lines`; what there is to open it by."""
    customer_id = place.sql("SELECT customer_id FROM orders WHERE id = $1", order_id)[0][0]
    line, subscription = LineKey(customer_id, order_id, 2), uuid4()
    product = place.sql("SELECT id FROM products WHERE key = 'coffee'")[0]["id"]
    voucher = seal_voucher(BEFORE, Voucher("NUMBER-1"), product)
    place.sql(
        """
        WITH waits AS (INSERT INTO order_changes (customer_id, order_id, changed_at) VALUES ($1, $2, now()))
        INSERT INTO line_states (customer_id, order_id, number, state, claimed_at, sealed_email)
        VALUES ($1, $2, $3, 'claimed', now(), $4)
        """,
        *line,
        seal_email(BEFORE, "sam@example.com", line),
    )
    place.sql(
        """
        INSERT INTO line_events (customer_id, order_id, number, event, at)
        SELECT customer_id, order_id, number, event, claimed_at FROM line_states, unnest(ARRAY['opened', 'claimed']) AS event
        WHERE (customer_id, order_id, number) = ($1, $2, $3)
        """,
        *line,
    )
    place.sql(
        "INSERT INTO vouchers (product_id, value_minor, lookup, sealed, added_at) VALUES ($1, 500, $2, $3, now())",
        product,
        voucher.lookups[0],
        voucher.sealed,
    )
    place.sql(
        """
        INSERT INTO shipments
            (customer_id, order_id, number, environment, product_id, country, sealed_address, requested_at)
        VALUES ($4, $1, 3, 'production', $2, 'GB', $3, now())
        """,
        order_id,
        product,
        BEFORE.addresses.seal(ADDRESS, b"address/%d/3" % order_id),
        customer_id,
    )
    place.sql(
        """
        INSERT INTO webhook_subscriptions
            (id, customer_id, environment, event, target_url, sealed_secret, previous_secret, previous_until, service_account_id)
        SELECT $1, customer_id, 'production', 'order.created', 'https://hooks.example', $2, $3, 'infinity', id
        FROM service_accounts WHERE key = 'crm'
        """,
        subscription,
        BEFORE.webhooks.seal(b"signing", secret_context(subscription)),
        BEFORE.webhooks.seal(b"signed before", secret_context(subscription)),
    )
    place.sql(
        """
        INSERT INTO captured_mail (customer_id, message_id, environment, recipient, subject, sealed, captured_at)
        VALUES (1, 7, 'staging', 'sam@example.com', 'A gift', $1, now())
        """,
        BEFORE.captured.seal(b"Subject: A gift", sealing_context(7)),
    )
    return {"line": line, "product": product, "subscription": subscription}


def opened(place: Place, vault: Vault, filled: dict[str, object]) -> list[object]:
    """What of it opens under these keys, and whether another copy of the voucher would be found."""
    line, product, subscription = filled["line"], filled["product"], filled["subscription"]
    (voucher,) = place.sql("SELECT sealed, lookup FROM vouchers")
    number = open_voucher(vault, voucher["sealed"], product).number
    return [
        open_email(vault, place.sql("SELECT sealed_email FROM line_states WHERE sealed_email IS NOT NULL")[0][0], line),
        number,
        voucher["lookup"] in seal_voucher(vault, Voucher(number), product).lookups,
        vault.addresses.open(place.sql("SELECT sealed_address FROM shipments")[0][0], b"address/%d/3" % line.order_id),
        vault.webhooks.open(
            place.sql("SELECT sealed_secret FROM webhook_subscriptions")[0][0], secret_context(subscription)
        ),
        vault.webhooks.open(
            place.sql("SELECT previous_secret FROM webhook_subscriptions")[0][0], secret_context(subscription)
        ),
        vault.captured.open(place.sql("SELECT sealed FROM captured_mail")[0][0], sealing_context(7)),
    ]


ALL = ["sam@example.com", "NUMBER-1", True, ADDRESS, b"signing", b"signed before", b"Subject: A gift"]


@contextmanager
def ordering(service: Service, clients: int = 3) -> Iterator[list[int]]:
    """Orders, reads orders again and counts the answers by their status, for as long as the block lasts."""
    answers: list[int] = []
    ended = threading.Event()

    def order(number: int) -> None:
        for at in itertools.count():
            if ended.is_set():
                return
            reference = f"beside-{number}-{at}"
            client = service.client("hr")
            answer = client.post(
                "/send/gift", json=service.body("gift", "coffee", value=5, codeQuantity=2, externalReference=reference)
            )
            again = client.get(f"/orders/{answer.json()['reference']}")
            answers.extend((answer.status_code, again.status_code))

    service.client("hr")
    threads = [threading.Thread(target=order, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        ended.set()
        for thread in threads:
            thread.join()


@pytest.mark.slow
def test_everything_comes_under_the_newest_key_beside_orders_and_the_old_one_can_go(place: Place) -> None:
    with place.service(OLD) as service:
        codes = service.send("gift", "coffee", value=5, codeQuantity=40).json()["codes"]
        assert Recipient(service).claim(codes[0], wrong(codes[0])).status_code == 403
        order_id = place.sql("SELECT max(id) FROM orders")[0][0]
        with pytest.raises(OperatorError, match="a process still encrypts under the key"):
            place.reseal()
    filled = fill(place, order_id)
    assert place.older() == 47
    with place.service(NEW, OLD) as service:
        assert "largesse reseal" in place.is_refused(AFTER)
        with ordering(service) as answers:
            wait_until(lambda: len(answers) >= 10)
            done = place.reseal(at_once=7)
            # A link that the old key made, a code that was sealed anew, and its wrong PIN still counted.
            assert Recipient(service).claim(codes[6]).status_code == 303
        assert set(answers) == {200}
    assert (sum(done.rows.values()), sum(done.broken.values())) == (47, 0)
    assert done.retired == done.dispensable == [OLD_NAME]
    assert place.older() == 0
    assert place.is_refused(AFTER) == ""
    assert place.is_refused(BEFORE).startswith("LARGESSE_MASTER_KEY is not the key")
    assert opened(place, AFTER, filled) == ALL

    with place.service(NEW) as service:
        guessed = place.sql("SELECT key, failures FROM pin_failures WHERE NOT decoy")
        assert [tuple(row) for row in guessed] == [(lookup_of(service, codes[0]), 1)]
        assert Recipient(service).claim(codes[0]).status_code == 303
        assert Recipient(service).get(link(codes[5])).status_code == 200
    place.sql("DELETE FROM shipments")  # no physical gift stands behind it
    place.verify(AFTER)


OLD_NAME = BEFORE.key_ids[0].hex()


@pytest.mark.slow
def test_whoever_is_killed_goes_on_where_it_was(place: Place) -> None:
    put_lines(place, 3_000, OLD)
    place.sql("UPDATE master_keys SET sealing_at = NULL")  # a minute is over
    environ = {**os.environ, "LARGESSE_DATABASE_URL": place.url, "LARGESSE_MASTER_KEY": f"{NEW.hex()},{OLD.hex()}"}
    process = subprocess.Popen(
        [sys.executable, "-m", "largesse", "reseal", "--rest", "20"],
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: 0 < place.older("lines") < 3_000)
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    left = place.older("lines")
    assert left > 0
    assert place.is_refused(AFTER) != ""
    assert place.reseal().rows["lines"] == left
    again = place.reseal()
    assert (sum(again.rows.values()), again.retired, again.dispensable) == (0, [], [OLD_NAME])
    place.verify(AFTER)


@pytest.mark.slow
def test_what_no_key_opens_is_told_and_left(place: Place) -> None:
    put_lines(place, 5, OLD)
    place.sql("UPDATE lines SET sealed = sealed || '\\x00' WHERE number = 2")
    place.sql("UPDATE lines SET sealed = overlay(sealed PLACING '\\xdeadbeef' FROM 1 FOR 4) WHERE number = 4")
    put_lines(place, 1, OLD)
    place.sql("DELETE FROM orders WHERE id = (SELECT max(id) FROM orders)")
    query = "SELECT sealed FROM lines WHERE number IN (2, 4) OR order_id NOT IN (SELECT id FROM orders) ORDER BY 1"
    before = place.sql(query)
    done = place.reseal()
    assert (done.rows["lines"], done.broken["lines"]) == (3, 3)
    assert place.sql(query) == before


def test_what_is_locked_waits_for_another_round(place: Place) -> None:
    put_lines(place, 5, OLD)

    async def run() -> Resealed:
        holder = await asyncpg.connect(place.url)
        transaction = holder.transaction()
        await transaction.start()
        await holder.execute("SELECT FROM lines WHERE customer_id = 1 AND number = 3 FOR UPDATE")
        resealing = asyncio.create_task(place._reseal(BOTH))
        while await asyncio.to_thread(place.older, "lines") != 1:  # noqa: ASYNC110 - another process's doing
            await asyncio.sleep(0.05)
        assert not resealing.done()
        await transaction.rollback()
        await holder.close()
        return await resealing

    assert asyncio.run(run()).rows["lines"] == 5


@pytest.mark.slow
def test_what_is_left_of_a_key_outlives_the_next_one_too(place: Place) -> None:
    third = b"\x44" * 32
    put_lines(place, 3, OLD)
    token = BEFORE.token(bytes(10))
    place.reseal(BOTH)
    place.reseal(Vault((third, NEW)))
    newest = Vault((third,))
    with pytest.raises(DecryptionFailed):
        newest.code_of_token(token)
    assert place.is_refused(newest) == ""
    assert newest.code_of_token(token) == (bytes(10), None)
    known = on_database(place.url, list_master_keys)
    assert [key.is_needed for key in known] == [False, False, True]
    # A key that is put in front again is needed again.
    assert place.reseal(Vault((NEW, third))).rows["lines"] == 3
    assert place.is_refused(AFTER) == ""


def test_every_sealed_column_is_among_those_that_are_sealed_anew(place: Place) -> None:
    """A new column of bytes is sealed, and then it belongs into the list, or it is not, and then it belongs here."""
    not_sealed = {
        ("accounts", "chain_head"),
        ("api_keys", "hash"),
        ("approval_requests", "digest"),
        ("audit_events", "mac"),
        ("audit_heads", "head"),
        ("line_event_head", "head"),
        ("line_event_marks", "mac"),
        ("chain_openings", "mac"),
        ("accounts", "mac"),
        ("orders", "placed_digest"),
        ("orders", "mac"),
        ("draft_columns", "heading"),
        ("entries", "mac"),
        ("form_posts", "answer"),  # sealed, and gone within a day
        ("form_posts", "token"),
        ("master_keys", "credentials_hash"),  # of a key of 32 random bytes
        ("noted_anchors", "mac"),
        ("passkeys", "credential"),  # its public half
        ("passkeys", "credential_id"),
        ("people_mails", "content"),  # a mail sent to oneself as a test: its code is none
        ("brand_pictures", "content"),
        ("pictures", "content"),
        ("recovery_codes", "hash"),
        ("top_ups", "bank_line"),
        ("sessions", "hash"),
        ("sessions", "challenge"),
        ("sessions", "device"),
        ("sign_in_links", "hash"),
        ("staff_form_posts", "answer"),  # sealed, and gone within a day
        ("staff_form_posts", "token"),
        ("staff_links", "hash"),
        ("staff_passkeys", "credential"),  # its public half
        ("staff_passkeys", "credential_id"),
        ("staff_recovery_codes", "hash"),
        ("staff_sessions", "challenge"),
        ("staff_sessions", "device"),
        ("staff_sessions", "hash"),
        ("bank_files", "digest"),
        ("bank_lines", "mark"),
        ("deliveries", "sample"),
        ("delivery_attempts", "answer"),
        ("events", "body"),
    }
    keys_themselves = {("master_keys", "id"), ("master_keys", "sealed"), ("master_keys", "sealed_rest")}
    rows = place.sql(
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' AND data_type = 'bytea'"
    )
    sealed = {(table.table, table.column) for table in encrypted_columns()}
    known = sealed | not_sealed | keys_themselves
    assert {tuple(row) for row in rows} == known, (
        "register it with `sealed_column` in its room's tasks.py, or list it here"
    )


@pytest.mark.slow
def test_the_rate_beside_orders(place: Place) -> None:
    """Long: RESEAL_LINES=1000000. Prints how many lines a second it sealed anew, and what orders took meanwhile."""
    put_lines(place, LINES, OLD)
    with place.service(NEW, OLD) as service, ordering(service, 2) as answers:
        began = time.monotonic()
        done = place.reseal(rest=1.0)
        took = time.monotonic() - began
    assert set(answers) <= {200}
    assert (done.rows["lines"], done.retired) == (LINES, [OLD_NAME])
    assert place.older() == 0
    print(  # noqa: T201 - what the long form is for
        f"{LINES:,} lines in {took:.1f} s: {LINES / took:,.0f}/s, beside {len(answers) / took:.0f} requests/s"
    )


def put_lines(place: Place, count: int, *keys: bytes) -> None:
    """Places so many codes, in orders of 5,000 at most, by a service with these keys."""
    with place.service(*keys) as service:
        for at in range(0, count, 5_000):
            answer = service.send("gift", "shop", value=0.01, codeQuantity=min(count - at, 5_000))
            assert answer.status_code == 200, answer.text
