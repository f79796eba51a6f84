"""A recipient is told of and erased: a dump holds no trace of address and name, and nothing else has changed.

`verify` tells erased orders from those that were changed from outside.
"""

import json
from pathlib import Path

import pytest
from tests.chained import actor_on
from tests.privacy.conftest import ADDRESS, ALEX, SAM, Run, counted, dump, order_id, take_in_all, traces
from tests.web.api.conftest import Service
from tests.web.mailbox.conftest import capture_mail

from largesse.db.pool import Database
from largesse.encryption.vault import Vault
from largesse.mail.service import correct_address


def test_a_recipient_is_told_of_and_erased(service: Service, filled: dict[str, str], run: Run, tmp_path: Path) -> None:
    assert run("verify").exit_code == 0
    before = counted(service)
    assert traces(dump(service)) != []

    told = run("privacy", "export", SAM.upper())
    assert told.exit_code == 0, told.output
    held = json.loads(told.stdout)
    assert {order["reference"] for order in held["orders"]} == set(filled.values())
    by_reference = {order["reference"]: order for order in held["orders"]}
    assert [line["email"] for line in by_reference[filled["mailed"]]["lines"]] == [SAM, SAM]
    assert by_reference[filled["parcel"]]["lines"][0]["parcel"]["address"] == json.loads(ADDRESS)
    assert by_reference[filled["batch"]]["lines"][0]["email_left"] == SAM
    assert by_reference[filled["parcel"]]["lines"][0]["thank_you_note"] == "Samantha Quillfeather says thank you"
    assert ALEX not in told.stdout

    erased = run("privacy", "erase", SAM, "--json")
    assert erased.exit_code == 0, erased.output
    receipt = json.loads(erased.stdout)
    assert {name: receipt[name] for name in ("orders", "lines", "parcels", "texts", "drafts", "cancelled")} == {
        "orders": 5,
        "lines": 6,
        "parcels": 1,
        "texts": 1,
        "drafts": 1,
        "cancelled": 1,
    }
    dumped = dump(service)
    assert traces(dumped) == []
    assert service.sql("SELECT count(*) FROM thank_you_notes")[0][0] == 0
    # Alex's copy had the message, which mentioned Sam.
    assert service.sql("SELECT count(*) FROM captured_mail WHERE recipient = $1", ALEX)[0][0] == 0
    assert ALEX in dumped
    assert counted(service) == before
    take_in_all(service)
    assert run("verify").exit_code == 0, run("verify").output
    assert traces(dump(service)) == []
    assert service.sql("SELECT count(*) FROM erasures WHERE id = $1", receipt["number"])[0][0] == 1
    look_at_what_is_left(service, filled, run)
    look_at_the_gift_whose_parcel_was_not_sent(service, filled["parcel"], run, tmp_path)


def look_at_what_is_left(service: Service, filled: dict[str, str], run: Run) -> None:
    """What callers and operators see of Sam's orders afterwards."""
    request = service.client("hr").get(f"/orders/{filled['mailed']}/request").json()
    assert [(one["email"], one["name"], one["quantity"]) for one in request["recipients"]] == [
        ("erased-1@erased.invalid", None, 2),
        (ALEX, "Alex", 1),
    ]
    assert (request["message"], request["externalReference"]) == ("Ask … about it", f"erased-{filled['mailed']}")
    again = service.client("hr").post(f"/orders/{filled['mailed']}/resend", json={"email": "erased-1@erased.invalid"})
    assert again.status_code == 400
    nowhere = run("privacy", "erase", SAM)
    assert (nowhere.exit_code, nowhere.stdout) == (1, "")
    assert "nothing is held about that address" in nowhere.stderr

    # What was scheduled leaves without Sam, and nobody else's mail is held up by it.
    service.sql("UPDATE mail_jobs SET due_at = now() WHERE fanned_out_at IS NULL")
    capture_mail(service)
    assert (
        service.sql("SELECT count(*) FROM messages WHERE order_id = $1", order_id(service, filled["scheduled"]))[0][0]
        == 0
    )
    exported = run("shipments", "export", "--again")
    assert "hamper" not in exported.stdout


def look_at_the_gift_whose_parcel_was_not_sent(service: Service, reference: str, run: Run, tmp_path: Path) -> None:
    """It ends: nobody can send it any more, and its order would never be complete."""
    order = order_id(service, reference)
    assert [row["state"] for row in service.sql("SELECT state FROM line_states WHERE order_id = $1", order)] == [
        "expired"
    ]
    events = service.sql("SELECT event FROM events WHERE order_id = $1 ORDER BY id", order)
    assert [row["event"] for row in events][-1:] == ["gift.expired"]
    assert service.sql("SELECT erasable_since IS NOT NULL FROM report_orders WHERE order_id = $1", order)[0][0]

    # It was packed before: where it went is recorded all the same.
    (number,) = service.sql("SELECT id FROM shipments")[0]
    (tmp_path / "shipped.csv").write_text(f"shipment,carrier\n{number},Post\n")
    assert run("shipments", "import", str(tmp_path / "shipped.csv")).exit_code == 0
    assert service.sql("SELECT carrier FROM shipments")[0][0] == "Post"
    assert run("verify").exit_code == 0, run("verify").output


def test_one_customers_alone(service: Service, run: Run) -> None:
    email = "both@example.com"
    for key, account in (("hr", "gbp"), ("globex", "globex-gbp")):
        sent = service.send("gift", "coffee", key=key, account=account, value=5, recipients=[{"email": email}])
        assert sent.status_code == 200
    told = json.loads(run("privacy", "export", email, "--customer", "globex").stdout)
    assert [order["customer"] for order in told["orders"]] == ["globex"]
    assert run("privacy", "erase", email, "--customer", "globex").exit_code == 0
    told = json.loads(run("privacy", "export", email).stdout)
    assert [order["customer"] for order in told["orders"]] == ["acme"]


def test_memberships_and_answers_are_those_of_the_one_customer(service: Service, run: Run) -> None:
    """Who is answered for one customer is not told that somebody works for another."""
    email = "É.both@example.com".lower()
    sent = service.send("gift", "coffee", value=5, key="globex", account="globex-gbp", recipients=[{"email": email}])
    assert sent.status_code == 200
    customers = {key: service.ids["customers"][key] for key in ("acme", "globex")}
    for place, customer_id in enumerate(customers.values()):
        service.sql(
            "INSERT INTO users (customer_id, email, name, role) VALUES ($1, $2, 'Both', 'viewer')", customer_id, email
        )
        service.sql(
            """
            INSERT INTO delivery_attempts (customer_id, delivery_id, number, started_at, duration_ms, answer)
            VALUES ($1, $2, 1, now(), 1, $3)
            """,
            customer_id,
            800 + place,
            f"thanks, {email}".encode(),
        )
    told = json.loads(run("privacy", "export", email, "--customer", "globex").stdout)
    assert [one["customer"] for one in told["people"]] == ["globex"]
    assert [one["customer"] for one in json.loads(run("privacy", "export", email).stdout)["people"]] == [
        "acme",
        "globex",
    ]
    assert run("privacy", "erase", email, "--customer", "globex").exit_code == 0
    left = service.sql("SELECT customer_id FROM delivery_attempts WHERE delivery_id >= 800 AND answer IS NOT NULL")
    assert [row["customer_id"] for row in left] == [customers["acme"]]


def test_a_second_erasure_carries_on_one_that_broke_off_and_counts_all_of_it(
    service: Service, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    email = "broken.off@example.com"
    for _ in range(2):
        assert service.send("gift", "coffee", value=5, recipients=[{"email": email}]).status_code == 200
    service.sql("INSERT INTO mail_requeues (at, since, reason, messages) VALUES (now(), now(), $1, 0)", email)
    service.sql(
        """
        INSERT INTO delivery_attempts (customer_id, delivery_id, number, started_at, duration_ms, answer)
        VALUES (1, 900, 1, now(), 1, $1)
        """,
        email.encode(),
    )
    with monkeypatch.context() as cut:
        cut.setattr("largesse.privacy.service.count_erased", None)  # where it ends, once all orders are erased
        assert run("privacy", "erase", email).exit_code != 0
    again = run("privacy", "erase", email, "--json")
    assert {name: json.loads(again.stdout)[name] for name in ("orders", "lines")} == {"orders": 2, "lines": 2}
    assert run("privacy", "erase", email).exit_code == 1, "nothing is found any more"
    assert email not in dump(service)
    assert email.encode().hex() not in dump(service)


def test_an_address_that_was_corrected_meanwhile_is_erased_where_it_is_left(service: Service, run: Run) -> None:
    """It is nobody's address any more: only events, captured copies and the mail server's answer still have it."""
    wrong, right = "sam.quillfeather@old.example", "somebody.else@example.com"
    sent = service.send("gift", "coffee", value=5, recipients=[{"email": wrong, "name": None}])
    assert sent.status_code == 200
    reference = sent.json()["reference"]
    capture_mail(service)
    service.sql(
        "UPDATE messages SET state = 'bounced', reason = '550 5.1.1 <' || email || '> unknown' WHERE order_id = $1",
        order_id(service, reference),
    )

    async def correct(database: Database, vault: Vault) -> None:
        actor = (await actor_on(database, vault)).on_behalf_of(service.ids["customers"]["acme"], "production")
        await correct_address(actor, reference, wrong, right)

    service.on_pool(correct)
    assert run("privacy", "erase", wrong).exit_code == 0
    assert [one for one in (wrong, wrong.encode().hex()) if one in dump(service)] == []
    assert service.sql("SELECT recipient_email FROM lines WHERE order_id = $1", order_id(service, reference)) == [
        (right,)
    ]
    assert run("privacy", "erase", wrong).exit_code == 1


def test_who_was_reminded_by_mistake_is_not_told_of_the_recipient(service: Service, run: Run) -> None:
    """A reminder went to the address before it was corrected; the gift, its name and its mail are somebody else's."""
    wrong, right = "reminded@old.example", "meant@example.com"
    sent = service.send("gift", "coffee", value=5, recipients=[{"email": wrong, "name": "Meant Recipient"}])
    reference = sent.json()["reference"]
    capture_mail(service)
    number = order_id(service, reference)
    remind = """
        INSERT INTO messages (customer_id, order_id, environment, kind, edition, email, name, line_numbers, due_at, rank_at, created_at, state,
            finished_at)
        SELECT customer_id, order_id, environment, 'reminder_1', 1, email, name, line_numbers, due_at, rank_at, created_at, state, finished_at
        FROM messages WHERE order_id = $1 AND kind = 'gift' AND edition = 0
    """
    service.sql(remind, number)

    async def correct(database: Database, vault: Vault) -> None:
        actor = (await actor_on(database, vault)).on_behalf_of(service.ids["customers"]["acme"], "production")
        await correct_address(actor, reference, wrong, right)

    service.on_pool(correct)
    told = run("privacy", "export", wrong)
    assert "meant" not in told.stdout.lower()
    assert run("privacy", "erase", wrong).exit_code == 0
    assert wrong not in dump(service)
    [line] = service.sql("SELECT recipient_email, recipient_name FROM lines WHERE order_id = $1", number)
    assert tuple(line) == (right, "Meant Recipient")
    states = "SELECT state FROM messages WHERE order_id = $1 AND kind = 'gift' ORDER BY edition"
    assert service.sql(states, number) == [("captured",), ("pending",)]


def test_an_address_in_a_message_that_was_filled_in_for_somebody_else(service: Service, run: Run) -> None:
    client, gone, keeper = service.client("hr"), "gone.lead@example.com", "keeper@example.com"
    service.sql(
        "INSERT INTO contact_fields (customer_id, environment, key, name) SELECT id, 'production', 'lead', 'Lead' FROM customers"
    )
    assert client.post("/contacts", json={"email": keeper, "fields": {"lead": gone}}).status_code == 201
    said = {"message": "Thank {lead|nobody}", "placeholders": True}
    assert service.send("gift", "coffee", value=5, recipients=[{"email": keeper}], **said).status_code == 200
    capture_mail(service)
    service.sql("UPDATE contacts SET own_fields = '{}' WHERE email = $1", keeper)
    copies = "SELECT count(*) FROM captured_mail WHERE recipient = $1"
    assert service.sql(copies, keeper)[0][0] == 1
    told = run("privacy", "export", gone)
    assert [len(order["lines"]) for order in json.loads(told.stdout)["orders"]] == [0], "others' lines are not told"
    assert run("privacy", "erase", gone).exit_code == 0
    assert gone not in dump(service)
    assert service.sql(copies, keeper)[0][0] == 0, "the copy has the message"
    assert run("privacy", "erase", gone).exit_code == 1


def test_an_address_in_an_approvers_note_is_exported_and_erased(service: Service, run: Run) -> None:
    wrong = "wrong.note@example.com"
    service.sql(
        """
        WITH asked AS (
            INSERT INTO approval_requests
                (customer_id, environment, id, user_id, state, rule_ids, quote, digest, total_minor, currency, gift_name, code_count,
                 draft_changed_at, asked_at, expires_at)
            SELECT customer_id, 'production', 'NOTED', id, 'declined', '{}', '', '', 1, 'GBP', 'Coffee', 1, now(), now(), now()
            FROM users WHERE email = 'ada@acme.example' RETURNING *)
        INSERT INTO approval_decisions (customer_id, environment, request_id, round, user_id, approves, note)
        SELECT customer_id, environment, id, 1, user_id, false, $1 FROM asked RETURNING 1
        """,
        f"Not {wrong.title()}, please",
    )
    [told] = json.loads(run("privacy", "export", wrong, "--customer", "acme").stdout)["approval_notes"]
    assert (told["customer"], told["note"]) == ("acme", f"Not {wrong.title()}, please")
    assert run("privacy", "export", wrong, "--customer", "globex").exit_code == 1
    assert run("privacy", "erase", wrong).exit_code == 0
    assert wrong not in dump(service)
    [left] = service.sql("SELECT approves, note FROM approval_decisions WHERE request_id = 'NOTED'")
    assert (left["approves"], left["note"]) == (False, "")
    assert run("privacy", "erase", wrong).exit_code == 1
    service.sql("DELETE FROM approval_requests WHERE id = 'NOTED' RETURNING 1")


@pytest.mark.slow
def test_addresses_beyond_ascii_are_told_apart_as_recipients_are(service: Service, run: Run) -> None:
    emails = ["É.quill@example.com", "é.quill@example.com", "è.quill@example.com"]
    sent = service.send("gift", "coffee", value=5, recipients=[{"email": email} for email in emails])
    assert sent.status_code == 200
    done = json.loads(run("privacy", "erase", emails[0], "--json").stdout)
    assert done["lines"] == 2
    numbered = order_id(service, sent.json()["reference"])
    left = service.sql("SELECT recipient_email FROM lines WHERE order_id = $1 ORDER BY number", numbered)
    assert [row[0] for row in left] == ["erased-1@erased.invalid", "erased-1@erased.invalid", emails[2]]
    take_in_all(service)
    assert run("verify").exit_code == 0


@pytest.mark.parametrize("command", ["export", "erase"])
def test_bad_input(run: Run, command: str) -> None:
    for arguments, said in (
        (("nobody-ever@example.com",), "nothing is held about that address"),
        (("not an address",), "EMAIL is not an e-mail address"),
        (("erased-1@erased.invalid",), "EMAIL is not an e-mail address"),
        (("sam@example.com", "--customer", "nobody"), "there is no customer 'nobody'"),
        (("sam@example.com", "--customer", ""), "there is no customer ''"),  # a variable of a script that is not set
    ):
        refused = run("privacy", command, *arguments)
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert said in refused.stderr
        assert refused.stderr.count("\n") == 1


def test_a_contact_is_exported_and_erased(service: Service, run: Run) -> None:
    client = service.client("hr")
    pat = {
        "email": "Pat@example.com",
        "name": "Pat Wren",
        "birthday": "02-29",
        "address": "9 Wren Lane",
        "groups": ["Sales"],
    }
    assert client.post("/contacts", json={**pat, "externalId": "wren-1"}).status_code == 201
    service.sql(
        "INSERT INTO contact_fields (customer_id, environment, key, name) SELECT id, 'production', 'manager', 'Manager' FROM customers"
    )
    other = {"email": "other@example.com", "fields": {"manager": "PAT@example.com"}}
    assert client.post("/contacts", json=other).status_code == 201

    people = [{"email": "pat@example.com", "name": "Pat Wren"}, {"email": "other@example.com", "name": "Other"}]
    said = {"message": "{name}: {manager|nobody}", "placeholders": True}
    sent = service.send("gift", "coffee", value=5, recipients=people, **said)
    assert sent.status_code == 200, sent.text

    exported = json.loads(run("privacy", "export", "pat@example.com").stdout)
    assert exported["orders"][0]["lines"][0]["message"] == "Pat Wren: nobody"
    (told,) = exported["contacts"]
    assert (told["name"], told["birthday"], told["address"], told["groups"]) == (
        "Pat Wren", "02-29", "9 Wren Lane", ["Sales"]
    )  # fmt: skip
    receipt = json.loads(run("privacy", "erase", "pat@example.com", "--json").stdout)
    assert receipt["contacts"] == 2
    left = dump(service).lower()
    assert [line for line in left.splitlines() if "pat@example.com" in line or "wren" in line] == []
    assert [one["fields"] for one in client.get("/contacts", params={"q": "other@"}).json()] == [{}]
    assert run("privacy", "erase", "pat@example.com").exit_code == 1
    assert run("verify").exit_code == 0


def test_operators_list_and_import_contacts(service: Service, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("email,name,birthday\nlin@example.com,Lin,31/02\n")
    (customer,) = service.sql("SELECT key FROM customers ORDER BY id LIMIT 1")[0]
    refused = run("contacts", "import", str(file), "--customer", customer)
    assert refused.exit_code == 1
    assert "row 2: No year has this day." in refused.output
    file.write_text("email,name,birthday,2026\nlin@example.com,Lin,29/02,50\n")
    done = run("contacts", "import", str(file), "--customer", customer)
    assert (done.exit_code, done.output) == (0, "Created: 1. Changed: 0.\nNot read: 2026.\n"), done.output
    listed = {one["email"]: one for one in json.loads(run("contacts", "list", "--customer", customer, "--json").stdout)}
    assert listed["lin@example.com"]["birthday"] == "02-29"
    assert (
        json.loads(run("contacts", "list", "--customer", customer, "--environment", "staging", "--json").stdout) == []
    )


ERASED = "sam@acme.example"


def broken(run: Run) -> list[str]:
    """What `verify` finds; nothing but entries."""
    findings = json.loads(run("verify", "--json").stdout)["findings"]
    assert {finding["check"] for finding in findings} <= {"entries-are-chained"}
    return [one for finding in findings for one in finding["ids"]]


@pytest.mark.slow
def test_what_was_erased_is_no_finding_and_what_was_diverted_is(service: Service, run: Run) -> None:
    recipients = [{"email": ERASED, "name": "Sam"}, {"email": "x@acme.example"}]
    for _ in range(2):
        assert (
            service.send("gift", "coffee", value=5, recipients=recipients, message=f"For {ERASED}").status_code == 200
        )
    one, other = (row[0] for row in service.sql("SELECT id FROM orders ORDER BY id DESC LIMIT 2"))
    forge = "UPDATE lines SET recipient_email = $2 WHERE order_id = $1 AND number = 2"
    assert broken(run) == []
    service.sql(forge, other, "eve@acme.example")
    (found,) = broken(run)
    # What takes out other data of the order does not make the forgery good.
    assert run("privacy", "erase", ERASED).exit_code == 0
    assert broken(run) == [found]
    service.sql(forge, one, "eve@acme.example")
    assert len(broken(run)) == 2
    service.sql(forge, one, "x@acme.example")
    assert broken(run) == [found]
