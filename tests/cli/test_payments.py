"""`top-up`: which account, which amount, and a reference once. `top-ups`: what waits, what is confirmed, and what a bank file is matched with."""

import asyncio
import csv
import io
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.chained import actor_on
from tests.cli.conftest import MASTER_KEY, Run, assert_refused, sql
from tests.closing import closing

from largesse.customers.actor import Actor
from largesse.db.pool import Database
from largesse.encryption.vault import Vault
from largesse.ledger.top_ups import (
    WAITS_FOR,
    TopUp,
    cancel_top_up,
    new_transfer_reference,
    request_top_up,
    spelled_reference,
)


@pytest.mark.parametrize("name", ["gbp", "acme/gbp", "ID"])
def test_a_top_up_finds_its_account(run: Run, loaded: dict[str, Any], name: str) -> None:
    account = str(loaded["ids"]["funding_accounts"]["gbp"]) if name == "ID" else name
    result = run("top-up", account, "12.50")
    assert (result.exit_code, result.stdout) == (0, "Acme float now holds £112.50.\n")


def test_a_reference_tops_up_once(run: Run, database: str, loaded: dict[str, Any]) -> None:
    for _ in range(2):
        result = run("top-up", "gbp", "12.50", "--reference", "bank-1")
        assert (result.exit_code, result.stdout) == (0, "Acme float now holds £112.50.\n")
    assert_refused(run("top-up", "gbp", "13", "--reference", "bank-1"), "'bank-1' already credited £12.50")
    # Another account's references are its own.
    assert run("top-up", "acme/shared", "1", "--reference", "bank-1").exit_code == 0
    assert sql(database, "SELECT count(*) FROM entries WHERE reference = 'bank-1'")[0][0] == 2


def test_a_currency_without_decimals(run: Run, loaded: dict[str, Any]) -> None:
    assert run("top-up", "jpy", "500").stdout == "Acme yen now holds ¥500.\n"
    assert_refused(run("top-up", "jpy", "0.5"), "AMOUNT")


@pytest.mark.parametrize(
    ("account", "amount", "said"),
    [
        ("nobody", "1", "there is no funding account 'nobody'"),
        ("acme/nobody", "1", "there is no funding account"),
        ("999999999999999999999", "1", "there is no funding account"),
        ("shared", "1", "could be any of acme/shared"),
        ("gbp", "0", "is not above zero"),
        ("gbp", "ten", "AMOUNT: “ten” is not an amount"),
        ("gbp", "92233720368547758", "AMOUNT"),
    ],
)
def test_a_top_up_that_cannot_be(
    run: Run, database: str, loaded: dict[str, Any], account: str, amount: str, said: str
) -> None:
    assert_refused(run("top-up", account, amount), said)
    assert sql(database, "SELECT count(*) FROM entries")[0][0] == 2


@pytest.mark.parametrize("reference", ["", " ", "x" * 129])
def test_a_reference_of_a_top_up_has_1_to_128_characters(run: Run, loaded: dict[str, Any], reference: str) -> None:
    assert_refused(run("top-up", "gbp", "1", "--reference", reference), "--reference")


Ask = Callable[..., TopUp]


@pytest.fixture
def ask(database: str, loaded: dict[str, Any]) -> Ask:
    """Asks for a top-up as the web application does."""

    async def request(account: str, amount_minor: int) -> TopUp:
        return await as_acme(
            database, lambda actor: request_top_up(actor, loaded["ids"]["funding_accounts"][account], amount_minor)
        )

    return lambda account="gbp", amount_minor=100_00: asyncio.run(request(account, amount_minor))


async def as_acme(database: str, operation: Callable[[Actor], Awaitable[TopUp]]) -> TopUp:
    """Runs an operation as the first customer, in production."""
    async with closing(Database.connect(database)) as pool:
        return await operation(await actor_on(pool, Vault((bytes.fromhex(MASTER_KEY),)), 1, "production"))


def cancel(database: str, top_up: TopUp) -> None:
    asyncio.run(as_acme(database, lambda actor: cancel_top_up(actor, top_up.reference)))


def balance(database: str, account: str = "gbp") -> int:
    return int(sql(database, f"SELECT balance_minor FROM accounts WHERE key = '{account}'")[0][0])


def test_one_is_listed_and_confirmed(run: Run, database: str, ask: Ask) -> None:
    assert run("top-ups", "list").stdout == "No top-up waits for its money.\n"
    asked, cancelled = ask(), ask("jpy", 500)
    cancel(database, cancelled)
    spelled = spelled_reference(asked.reference)
    [listed] = json.loads(run("top-ups", "list", "--json").stdout)
    assert (listed["reference"], listed["state"], listed["amount"], listed["currency"]) == (
        spelled,
        "waiting",
        100.0,
        "GBP",
    )
    assert json.loads(run("top-ups", "list", "--customer", "globex", "--json").stdout) == []
    assert_refused(run("top-ups", "confirm", spelled, "--amount", "0"), "is not above zero")
    said = f"{spelled}: £100.00 credited to Acme float of acme.\n"
    for typed in (asked.reference, spelled.lower(), spelled):
        done = run("top-ups", "confirm", typed)
        assert (done.exit_code, done.stdout) == (0, said)
    assert balance(database) == 200_00
    assert_refused(run("top-ups", "confirm", spelled, "--amount", "5"), "confirmed with £100.00 already")
    assert_refused(run("top-ups", "confirm", cancelled.reference), "was cancelled")
    rows = list(csv.DictReader(io.StringIO(run("top-ups", "list", "--all", "--csv").stdout)))
    assert [(row["state"], row["amount"], row["credited"]) for row in rows] == [
        ("confirmed", "100.00", "100.00"),
        ("cancelled", "500", ""),
    ]
    assert run("verify").exit_code == 0
    events = json.loads(run("audit", "--customer", "acme", "--json").stdout)
    told = [(event["act"], event["subject"]) for event in events if event["act"].startswith("top_up.")]
    assert told == [
        ("top_up.requested", f"top-up {asked.reference}"),
        ("top_up.requested", f"top-up {cancelled.reference}"),
        ("top_up.cancelled", f"top-up {cancelled.reference}"),
        ("top_up.confirmed", f"top-up {asked.reference}"),
    ], "each once"


def test_a_reference_that_is_none(run: Run, database: str, ask: Ask) -> None:
    asked = ask().reference
    assert_refused(run("top-ups", "confirm", asked[:-1]), "REFERENCE: a reference is RF and 14 digits")
    wrong = asked[:-1] + str((int(asked[-1]) + 1) % 10)
    assert_refused(run("top-ups", "confirm", wrong), "mistyped")
    assert_refused(run("top-ups", "confirm", new_transfer_reference()), "there is no top-up")


def test_a_banks_file_is_matched_line_by_line(run: Run, database: str, ask: Ask, tmp_path: Path) -> None:
    paid, short, late, gone, yen, twice = (ask(), ask(), ask(), ask(), ask("jpy", 5_000), ask(amount_minor=30_00))
    cancel(database, gone)
    sql(
        database,
        f"UPDATE top_ups SET requested_at = requested_at - interval '90 days', expires_at = expires_at - interval '{WAITS_FOR.days} days' WHERE reference = '{late.reference}'",
    )
    stranger = new_transfer_reference()
    rows = [
        (f"Acme {spelled_reference(paid.reference)}", "100.00", "GBP", "confirmed", None),
        (short.reference, "90.00", "GBP", "unmatched", "£90.00 came where £100.00 was asked for"),
        (late.reference, "100.00", "GBP", "unmatched", "expired on"),
        (gone.reference, "100.00", "GBP", "unmatched", "was cancelled"),
        (yen.reference, "5000", "GBP", "unmatched", "it is in GBP, the account in JPY"),
        (yen.reference.lower(), "5,000.00", "JPY", "confirmed", None),
        (twice.reference, "30.00", "GBP", "confirmed", None),
        (twice.reference, "30.00", "GBP", "unmatched", "may have been paid twice"),
        (short.reference, "-100.00", "GBP", "unmatched", "no payment in"),
        (short.reference, "1,000", "GBP", "unmatched", "could be two amounts"),
        (short.reference, "100.0011", "GBP", "unmatched", "at most 2 decimals"),
        (f"{short.reference} {paid.reference}", "100.00", "GBP", "unmatched", "names several"),
        (stranger, "100.00", "GBP", "unmatched", "there is no top-up"),
        ("=cmd()", "1.00", "GBP", "unmatched", "names no reference"),
    ]
    path = tmp_path / "bank.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["Details", "Amount", "Currency"])
        writer.writerows(row[:3] for row in rows)

    dry = run("top-ups", "import", str(path), "--dry-run", "--json")
    assert (dry.exit_code, balance(database), balance(database, "jpy")) == (1, 100_00, 0)
    assert dry.stderr == "Would be confirmed: 3; taken before: 0; not matched: 11.\n"
    done = run("top-ups", "import", str(path), "--json")
    assert done.exit_code == 1
    assert done.stderr == "Confirmed: 3; taken before: 0; not matched: 11.\n"
    assert json.loads(done.stdout) == json.loads(dry.stdout)
    for (*_, outcome, why), match in zip(rows, json.loads(done.stdout), strict=True):
        assert match["outcome"] == outcome, match
        assert (match["why"] is None) if why is None else (why in match["why"]), match
    assert [match["line"] for match in json.loads(done.stdout)] == list(range(2, 16))
    assert (balance(database), balance(database, "jpy")) == (230_00, 5_000)

    again = run("top-ups", "import", str(path))
    assert again.stderr == "Confirmed: 0; taken before: 3; not matched: 11.\n"
    assert (balance(database), balance(database, "jpy")) == (230_00, 5_000)
    assert run("verify").exit_code == 0
    printed = run("top-ups", "import", str(path), "--csv").stdout
    assert len(list(csv.DictReader(io.StringIO(printed)))) == 14


def test_a_file_that_is_wholly_taken_ends_well(run: Run, database: str, ask: Ask, tmp_path: Path) -> None:
    asked = [ask(amount_minor=amount) for amount in range(1, 13)]
    (tmp_path / "bank.csv").write_text(
        "Text;Betrag\n" + "".join(f"{one.reference};{one.amount_minor / 100:.2f}\n".replace(".", ",") for one in asked)
    )
    done = run("top-ups", "import", "bank.csv", "--currency", "gbp")
    assert (done.exit_code, balance(database)) == (0, 100_78)
    assert done.stderr == "Confirmed: 12; taken before: 0; not matched: 0.\n"
    assert run("top-ups", "list").stdout == "No top-up waits for its money.\n"


@pytest.mark.parametrize(("sign", "done"), [("\N{YEN SIGN}", False), ("jpy", True), ("JP\N{YEN SIGN}", True)])
def test_a_sign_of_several_currencies_credits_nothing(
    run: Run, database: str, ask: Ask, tmp_path: Path, sign: str, done: bool
) -> None:
    """It may be the sign of Chinese yuan, too."""
    (tmp_path / "bank.csv").write_text(f"Text;Amount;Currency\n{ask('jpy', 500).reference};500;{sign}\n")
    read = run("top-ups", "import", "bank.csv")
    assert (read.exit_code, balance(database, "jpy")) == ((0, 500) if done else (1, 0))
    assert ("stands for several currencies: name the file's currency with --currency" in read.stdout) is not done
    assert run("top-ups", "import", "bank.csv", "--currency", "JPY").exit_code == 0
    assert balance(database, "jpy") == 500


def test_a_file_that_is_none_is_refused_in_one_line(run: Run, loaded: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "bank.csv").write_text("Date,Text\n1,2\n")
    assert_refused(run("top-ups", "import", "bank.csv"), "no line is a heading")
    assert_refused(run("top-ups", "import", "nothing.csv"), "nothing.csv")


def test_a_read_only_database_is_said_in_words(run: Run, loaded: dict[str, Any], database: str) -> None:
    sql(
        database,
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$",
    )
    result = run("top-up", "gbp", "5")
    assert result.exit_code == 1
    assert "it is a standby, or read-only: it takes no changes" in result.stderr
