"""Funding accounts."""

from __future__ import annotations

from itertools import pairwise

from largesse_conformance import expect
from largesse_conformance.context import Context
from largesse_conformance.outcome import Skipped
from largesse_conformance.shapes import ACCOUNT
from largesse_conformance.suite import add_members, check

add_members("accounts", "funding account", ACCOUNT, lambda context: context.accounts())


@check()
def ids_are_unique(context: Context) -> None:
    """No two funding accounts have the same id."""
    expect.unique([account["id"] for account in context.accounts()], "The ids of funding accounts")


@check()
def one_id_for_a_currency(context: Context) -> None:
    """Accounts in the same currency have the same `currencyId`, and accounts in other currencies have others."""
    pairs = {(account["currency"], account["currencyId"]) for account in context.accounts()}
    expect.unique([currency for currency, _ in pairs], "The currencies by `currencyId`")
    expect.unique([number for _, number in pairs], "The values of `currencyId` by currency")


@check()
def balance_fits_the_currency(context: Context) -> None:
    """`balance` is not finer than the currency's smallest unit, and not below zero."""
    for account in context.accounts():
        expect.no_finer(account["balance"], account["currency"], f"`balance` of account {account['id']}")
        expect.expect(account["balance"] >= 0, f"`balance` of account {account['id']} is below zero.")


@check()
def label_has_name_and_balance(context: Context) -> None:
    """`label` includes the name, the currency and the balance."""
    for account in context.accounts():
        label = account["label"]
        expect.expect(account["name"] in label, f"`label` of account {account['id']} lacks its name.")
        expect.expect(account["currency"] in label, f"`label` of account {account['id']} lacks its currency.")
        digits = "".join(one for one in label.replace(account["name"], "") if one.isdigit())
        exact = f"{account['balance']:.{expect.decimals(account['currency'])}f}".replace(".", "")
        expect.expect(exact in digits, f"`label` of account {account['id']} lacks its balance.")


@check()
def entries_add_up_to_the_balance(context: Context) -> None:
    """Each entry of GET /funding-accounts/{id}/entries changes the balance of the one before by its `amount`, the first one from 0."""
    for account in context.accounts():
        entries = expect.listed(context.caller("main").get(f"/funding-accounts/{account['id']}/entries"))
        decimals = expect.decimals(account["currency"])
        for before, entry in pairwise([{"balance": 0}, *entries]):
            sum_ = round(before["balance"] + entry["amount"], decimals)
            expect.equal(entry["balance"], sum_, f"`balance` of entry {entry['id']}")


@check()
def one_master_for_a_currency(context: Context) -> None:
    """A customer has at most one master account in a currency."""
    masters = [account["currency"] for account in context.accounts() if account["isMaster"]]
    expect.unique(masters, "The currencies of master accounts")


@check()
def of_one_customer(context: Context) -> None:
    """GET /funding-accounts lists no account of another customer."""
    theirs = {account["id"] for account in context.accounts("other")}
    expect.equal(theirs & {account["id"] for account in context.accounts()}, set(), "Accounts in both lists")


@check()
def invoiced_customers_have_none(context: Context) -> None:
    """An invoiced customer gets an empty array, not an error."""
    expect.equal(context.accounts("invoiced"), [], "The list of an invoiced customer")


@check()
def assigned_accounts(context: Context) -> None:
    """A service account sees only the accounts that are assigned to it or open to all."""
    own = {account["id"] for account in context.accounts()}
    colleagues = {account["id"] for account in context.accounts("colleague")}
    if own == colleagues:
        raise Skipped("Both service accounts may use the same accounts.")
    foreign = colleagues - own
    if not foreign:
        raise Skipped("The colleague has no account of its own.")
    gift = context.gift()
    expect.refused(context.send(gift.path, context.body(gift, accountId=min(foreign))), 400, "accountId")
