"""The worker keeps the read models: each order once, whatever came of it, whoever else is at it, and however often it is broken off."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.chained import acting_on
from tests.ledger.test_corrections import staff_on
from tests.privacy.conftest import TELL_OF_GIFTS
from tests.reports.conftest import Pooled, take_all
from tests.web.api.conftest import MASTER_KEY
from tests.web.claim.conftest import Recipient

from largesse.db.pool import Connection, Database
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR, WORKER
from largesse.db.session import COMMANDS
from largesse.encryption.chain_keys import open_chains
from largesse.encryption.vault import Vault
from largesse.ledger.corrections import NewCorrection, approve_correction, propose_correction
from largesse.orders.marks import changing_orders
from largesse.reports.updates import apply_changes, forget_recipient, rebuild

VAULT = Vault((MASTER_KEY,))

Follow = Callable[[], None]

RECIPIENTS = [{"email": "Ada.Lovelace@acme.example", "name": "Ada King", "quantity": 2}, {"email": "ben@acme.example"}]
SUMMED = """
    SELECT sum(orders) AS orders, sum(codes) AS codes, sum(spent_minor) AS spent, sum(claimed) AS claimed,
           sum(cancelled) AS cancelled, sum(refunded_minor) AS refunded, sum(within_hour) AS within_hour
    FROM report_sums WHERE grain = $1
"""


def order_of(service: Any, reference: str) -> dict[str, Any]:
    (row,) = service.sql(
        """
        SELECT r.*, g.source, g.product_id, g.account_id, g.service_account_id, g.currency
        FROM report_orders r JOIN report_groups g ON g.customer_id = r.customer_id AND g.id = r.group_id
        JOIN orders o ON o.id = r.order_id WHERE o.reference = $1
        """,
        reference,
    )
    return dict(row)


def summed(service: Any, grain: str = "day") -> dict[str, int]:
    return {name: int(value or 0) for name, value in service.sql(SUMMED, grain)[0].items()}


RENAMED = "UPDATE lines SET recipient_email = $2, recipient_name = NULL WHERE order_id = $1 AND number = 1"


async def change_marked(service: Any, connection: Connection, order_id: int, change: str, *arguments: Any) -> None:
    """Changes an order with the mark that `verify` asks for, as what erases does."""
    chains = await open_chains(connection, Vault(service.settings.master_keys), keep=True)
    async with changing_orders(connection, chains.entries, 1, [order_id], waits=True):
        await connection.execute(change, order_id, *arguments)


def changed(service: Any, *change: Any) -> Callable[[Database], Awaitable[None]]:
    async def work(database: Database) -> None:
        async with database.transaction(OPERATOR) as connection:
            await change_marked(service, connection, *change)

    return work


def words_of(service: Any, order_id: int) -> set[str]:
    return {row["word"] for row in service.sql("SELECT word FROM report_words WHERE order_id = $1", order_id)}


def test_an_order_is_told_with_what_it_has_in_common(service: Any, follow: Follow) -> None:
    before = summed(service)
    sent = service.send(
        "gift",
        "coffee",
        value=10,
        recipients=RECIPIENTS,
        source="Onboarding",
        externalReference="PO-2030/17",
        fromName="The People team",
        message="Merci, Zoë",
    ).json()
    follow()
    order = order_of(service, sent["reference"])
    assert (order["state"], order["codes"], order["spent_minor"], order["claimed"]) == ("waiting", 3, 3_000, 0)
    assert (order["source"], order["currency"]) == ("onboarding", "GBP")
    assert order["product_id"] == service.ids["products"]["coffee"]
    assert order["account_id"] == service.ids["funding_accounts"]["gbp"]
    assert order["service_account_id"] == service.ids["service_accounts"]["hr-bot"]
    assert words_of(service, order["order_id"]) == {
        *("ada.lovelace@acme.example", "ada", "lovelace", "king", "ben@acme.example", "ben"),
        *("po-2030/17", "po", "2030", "17", "the", "people", "team", "merci", "zoe"),
    }
    after = summed(service)
    assert (after["orders"] - before["orders"], after["spent"] - before["spent"]) == (1, 3_000)
    assert after == summed(service, "month")
    assert service.findings() == []


def test_claims_and_cancellations_follow(service: Any, follow: Follow) -> None:
    before = summed(service)
    sent = service.send("gift", "coffee", value=10, codeQuantity=3).json()
    follow()
    recipient = Recipient(service)
    recipient.gift(sent["codes"][0])
    follow()
    order = order_of(service, sent["reference"])
    assert (order["state"], order["claimed"], order["ages"]) == ("waiting", 1, [1, 0, 0, 0, 0])
    assert service.client("hr").post(f"/orders/{sent['reference']}/cancel").status_code == 200
    follow()
    order = order_of(service, sent["reference"])
    assert (order["state"], order["claimed"], order["cancelled"]) == ("claimed", 1, 2)
    after = summed(service)
    assert {name: after[name] - before[name] for name in after} == {
        "orders": 1,
        "codes": 3,
        "spent": 3_000,
        "claimed": 1,
        "cancelled": 2,
        "refunded": 2_000,
        "within_hour": 1,
    }
    assert service.findings() == []


def test_a_refund_by_correction_is_deducted_from_what_was_spent(
    service: Any, pooled: Pooled[Any], follow: Follow
) -> None:
    sent = service.send("gift", "coffee", value=10, codeQuantity=2).json()
    for code in sent["codes"]:
        Recipient(service).gift(code)
    follow()
    before, order = summed(service), order_of(service, sent["reference"])

    async def correct(database: Database) -> None:
        fay, max_ = [await staff_on(database, Vault(service.settings.master_keys), id_) for id_ in (11, 12)]
        for amount_minor in (150, 250):
            new = NewCorrection(order["account_id"], "refund", amount_minor, "It did not work.", sent["reference"])
            await approve_correction(max_, (await propose_correction(fay, new)).id)
        await propose_correction(fay, NewCorrection(order["account_id"], "refund", 1, "It waits.", sent["reference"]))

    pooled(correct)
    follow()
    after = summed(service)
    assert {name: after[name] - before[name] for name in after if after[name] != before[name]} == {"refunded": 400}
    assert after == summed(service, "month")
    assert service.findings() == []


@pytest.mark.slow
def test_a_cancelled_order_and_a_scheduled_one_are_told_apart(
    service: Any, follow: Follow, pooled: Pooled[Any]
) -> None:
    cancelled = service.send("gift", "coffee", value=5).json()["reference"]
    service.client("hr").post(f"/orders/{cancelled}/cancel")
    scheduled = service.send("gift", "coffee", value=5, recipients=RECIPIENTS, sendAt="2999-01-01T00:00:00Z").json()[
        "reference"
    ]
    follow()
    assert order_of(service, cancelled)["state"] == "cancelled"
    assert order_of(service, scheduled)["state"] == "scheduled"
    # Its time comes: the fan-out of its mail says so.
    service.sql(
        """
        UPDATE mail_jobs SET due_at = now() FROM orders
        WHERE orders.customer_id = mail_jobs.customer_id AND id = order_id AND reference = $1
        """,
        scheduled,
    )
    order = order_of(service, scheduled)["order_id"]
    pooled(changed(service, order, "UPDATE orders SET scheduled_for = now() WHERE id = $1"))
    pooled(_fan_out_mail)
    follow()
    assert order_of(service, scheduled)["state"] == "waiting"
    assert service.findings() == []


async def _fan_out_mail(database: Database) -> None:
    from largesse.mail.messages import fan_out

    async with database.transaction(WORKER) as connection:
        await fan_out(connection, 100)


def test_the_age_of_a_claim_counts_from_when_the_gift_was_sent(service: Any, follow: Follow) -> None:
    sent = service.send("gift", "coffee", value=5, codeQuantity=5).json()
    (order,) = service.sql("SELECT * FROM orders WHERE reference = $1", sent["reference"])
    ages = [timedelta(minutes=59), timedelta(hours=1), timedelta(days=6), timedelta(days=29), timedelta(days=30)]
    for number, age in enumerate(ages, 1):
        service.sql(
            """
            WITH claimed AS (
                INSERT INTO line_states (customer_id, order_id, number, state, claimed_at)
                VALUES ($4, $1, $2, 'claimed', $3))
            INSERT INTO line_events (customer_id, order_id, number, event, at) VALUES ($4, $1, $2, 'claimed', $3)
            """,
            order["id"],
            number,
            order["created_at"] + age,
            order["customer_id"],
        )
    service.sql(TELL_OF_GIFTS)
    follow()
    told = order_of(service, sent["reference"])
    assert told["ages"] == [1, 1, 1, 1, 1]
    assert sum(told["claim_counts"]) == 5


@pytest.mark.slow
def test_several_workers_at_once_count_each_order_once(service: Any, pooled: Pooled[Any]) -> None:
    for _ in range(30):
        service.send("gift", "coffee", value=5, source="crowd")

    async def crowd(database: Database) -> None:
        await asyncio.gather(*(take_all(database) for _ in range(4)))

    pooled(crowd)
    (row,) = service.sql(
        """
        SELECT sum(s.orders)::int AS orders FROM report_sums s JOIN report_groups g ON g.id = s.group_id
        WHERE grain = 'day' AND g.source = 'crowd'
        """
    )
    assert row["orders"] == 30
    assert service.findings() == []


@pytest.mark.slow
def test_what_was_broken_off_is_as_if_it_had_not_begun(service: Any, pooled: Pooled[Any], follow: Follow) -> None:
    reference = service.send("gift", "coffee", value=5).json()["reference"]

    async def break_off(database: Database) -> None:
        from largesse.webhooks.queues import fan_out

        async with database.connection(WORKER) as connection:
            await fan_out(connection, 100)
        acting = await acting_on(database, VAULT)
        async with database.transaction(WORKER) as connection:
            assert await apply_changes(connection, acting) > 0
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        pooled(break_off)
    order = "SELECT count(*) FROM report_orders r JOIN orders o ON o.id = r.order_id WHERE reference = $1"
    assert service.sql(order, reference)[0][0] == 0
    follow()
    assert service.sql(order, reference)[0][0] == 1
    assert service.findings() == []


def test_a_batch_is_bounded_by_codes_too(service: Any, pooled: Pooled[Any], follow: Follow) -> None:
    follow()
    for count in (10, 10, 10):
        service.send("gift", "coffee", value=5, codeQuantity=count)

    async def step(database: Database) -> list[int]:
        from largesse.reports import updates
        from largesse.webhooks.queues import fan_out

        async with database.connection(WORKER) as connection:
            await fan_out(connection, 100)
        taken, acting = [], await acting_on(database, VAULT)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(updates, "_CODES_AT_ONCE", 15)
            while True:
                async with database.transaction(WORKER) as connection:
                    taken.append(await apply_changes(connection, acting))
                if not taken[-1]:
                    return taken

    assert pooled(step) == [1, 1, 1, 0]


def test_mail_that_was_refused_is_told_until_it_is_sent_again(
    service: Any, pooled: Pooled[Any], follow: Follow
) -> None:
    sent = service.send("gift", "coffee", value=5, recipients=RECIPIENTS).json()
    pooled(_fan_out_mail)
    service.sql(
        """
        UPDATE messages SET state = 'bounced', finished_at = now() FROM orders o
        WHERE o.id = order_id AND o.reference = $1 AND email LIKE 'Ada%'
        """,
        sent["reference"],
    )
    follow()
    told = order_of(service, sent["reference"])
    assert (told["state"], told["bounced"]) == ("bounced", 1)
    answer = service.client("hr").post(
        f"/orders/{sent['reference']}/resend", json={"email": "ada.lovelace@acme.example"}
    )
    assert answer.status_code == 202, answer.text
    follow()
    told = order_of(service, sent["reference"])
    assert (told["state"], told["bounced"]) == ("waiting", 0)


@pytest.mark.slow
def test_a_recipient_is_forgotten_and_others_of_the_order_are_not(
    service: Any, pooled: Pooled[Any], follow: Follow
) -> None:
    people = [
        {"email": "eve.stone@acme.example", "name": "Eve Stone"},
        {"email": "adam@acme.example", "name": "Adam Stone"},
    ]
    sent = service.send("gift", "coffee", value=5, recipients=people).json()
    follow()
    order = order_of(service, sent["reference"])

    async def forget(database: Database) -> None:
        async with database.transaction(OPERATOR) as connection:
            await change_marked(service, connection, order["order_id"], RENAMED, "erased")
            await forget_recipient(
                connection, order["customer_id"], [order["order_id"]], [("eve.stone@acme.example", "Eve Stone")]
            )

    pooled(forget)
    assert words_of(service, order["order_id"]) == {"adam@acme.example", "adam"}
    follow()
    assert words_of(service, order["order_id"]) == {"adam@acme.example", "adam", "stone", "erased"}
    # The audit expects addresses.
    pooled(changed(service, order["order_id"], RENAMED, "x@acme.example"))
    service.sql("UPDATE report_words SET word = 'x@acme.example' WHERE word = 'erased'")
    assert service.findings() == []


def test_a_word_that_is_there_already_stops_nothing(service: Any, follow: Follow) -> None:
    """After a repair by hand, say: the words of a new order are added without looking for each."""
    follow()
    sent = service.send("gift", "coffee", value=5, codeQuantity=1, message="Velvet").json()["reference"]
    service.sql(
        "INSERT INTO report_words (customer_id, environment, word, created_at, order_id)"
        " SELECT customer_id, environment, 'velvet', created_at, id FROM orders WHERE reference = $1",
        sent,
    )
    follow()
    assert order_of(service, sent)["codes"] == 1
    assert service.findings() == []


@pytest.mark.slow
def test_all_of_it_is_made_anew_beside_orders(service: Any, pooled: Pooled[Any], follow: Follow) -> None:
    service.send("gift", "coffee", value=5, recipients=RECIPIENTS)
    follow()
    told = "SELECT to_jsonb(r) - 'group_id' AS told FROM report_orders r ORDER BY order_id"
    words = "SELECT * FROM report_words ORDER BY 1, 2, 3, 4, 5"
    before = service.sql(told), service.sql(words), summed(service)
    # Whatever is wrong with them.
    service.sql("UPDATE report_sums SET orders = orders + 1")
    service.sql("DELETE FROM report_words WHERE word LIKE '%@%'")
    service.sql("UPDATE report_orders SET claimed = claimed + 1")
    assert {finding.split(":")[0] for finding in service.findings()} == {
        "orders-are-reported",
        "recipients-are-found",
        "report-days-fit",
        "sums-follow-orders",
    }
    # An earlier rebuild was interrupted.
    service.sql(
        "INSERT INTO order_changes (customer_id, order_id, texts, changed_at) SELECT customer_id, id, true, now() FROM orders"
    )
    shown: list[tuple[int, int]] = []

    async def anew(database: Database) -> int:
        acting = await acting_on(database, VAULT)
        return await rebuild(database, acting, lambda done, total: shown.append((done, total)))

    total = pooled(anew)
    (placed,) = service.sql("SELECT count(*) FROM orders")
    assert total == placed[0]
    assert shown[-1] == (total, total)
    assert (service.sql(told), service.sql(words), summed(service)) == before
    assert service.findings() == []
    kept = service.sql("SELECT actor, after::text FROM audit_events WHERE act = 'reports.rebuilt'")
    assert [tuple(row) for row in kept] == [("command", f'{{"orders":{total}}}')]


def test_claims_that_wait_for_their_marks_do_not_stop_a_rebuild(service: Any, follow: Follow) -> None:
    """The command may not mark claims: the worker still does."""
    sent = service.send("gift", "coffee", value=10, codeQuantity=3).json()
    follow()
    Recipient(service).gift(sent["codes"][0])

    async def anew(database: Database, vault: Vault) -> int:
        return await rebuild(database, await acting_on(database, vault), lambda _done, _total: None)

    service.on_pool(anew, role=Role.OPERATOR, limits=COMMANDS)
    assert order_of(service, sent["reference"])["claimed"] == 1
    waiting = "SELECT count(*) FROM order_changes JOIN orders ON orders.id = order_id WHERE reference = $1"
    assert service.sql(waiting, sent["reference"])[0][0] > 0
    follow()
    assert service.findings() == []
