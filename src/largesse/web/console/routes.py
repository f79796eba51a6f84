"""The table of routes and roles: every address of the application, who may, and its place in the menu.

The menu is drawn from it, in this order; the guard asks it; tests hold every role to it. What acts is a POST, and has the right
that it needs of its own.
"""

from __future__ import annotations

from largesse.base.i18n.templates import text
from largesse.people.roles import Right
from largesse.web.console import (
    accounts,
    entrance,
    funding,
    home,
    keys,
    limiting,
    log,
    owed,
    passkeys,
    people,
    proving,
    security,
    service_accounts,
    top_ups,
    transfers,
    webhooks,
)
from largesse.web.console.gifts.routes import GIFTS
from largesse.web.console.order_routes import ORDERS, REPORTS
from largesse.web.console.send.routes import SEND
from largesse.web.console.table import Entry, Group, Who

ENTRIES = (
    # The way in
    Entry("GET", "/app/sign-in", entrance.sign_in, Who.ANYONE, text("Sign in")),
    Entry("POST", "/app/sign-in", entrance.signed_in, Who.ANYONE, text("Sign in")),
    Entry("GET", "/app/forgot", entrance.forgot, Who.ANYONE, text("Forgotten password")),
    Entry("POST", "/app/forgot", entrance.ask_link, Who.ANYONE, text("Forgotten password")),
    Entry("POST", "/app/sign-out", entrance.sign_out, Who.ANYONE),
    Entry("GET", "/app/link/{secret}", entrance.link, Who.ANYONE, text("Sign in")),
    Entry("POST", "/app/link/{secret}", entrance.follow, Who.ANYONE, text("Sign in")),
    Entry("GET", "/app/second-step", security.ask_second_step, Who.ENTERING, text("Second step")),
    Entry("POST", "/app/second-step", security.second_step, Who.ENTERING, text("Second step")),
    Entry("GET", "/app/customers", entrance.customers, Who.SIGNED_IN, text("Choose a company")),
    Entry("POST", "/app/customers", entrance.choose_customer, Who.SIGNED_IN),
    Entry("POST", "/app/environment", entrance.switch_environment, Who.MEMBER),
    Entry("GET", "/app/prove", proving.ask, Who.MEMBER, proving.TITLE, before_second_step=True),
    Entry("POST", "/app/prove", proving.prove, Who.MEMBER, proving.TITLE, before_second_step=True),
    *(
        Entry(method, path, handler, Who.MEMBER, text("Security"), before_second_step=True)
        for method, path, handler in (
            ("GET", "/app/security", security.show),
            ("GET", "/app/security/app", security.app),
            ("POST", "/app/security/sessions/{session:int}/end", security.end_one),
            ("POST", "/app/security/sessions/end", security.end_others),
            ("POST", "/app/security/preferences", security.prefer),
        )
    ),
    *(
        Entry("POST", path, handler, who, text("Security"), before_second_step=True, step_up=True)
        for path, handler, who in (
            ("/app/security/password", security.change_password, Who.MEMBER),
            ("/app/security/app", security.turn_app_on, Who.MEMBER),
            ("/app/security/app/off", security.turn_app_off, Who.MEMBER),
            ("/app/security/passkeys", passkeys.add, Who.MEMBER),
            ("/app/security/passkeys/{passkey:int}/remove", passkeys.remove, Who.MEMBER),
            ("/app/security/recovery-codes", security.recovery_codes, Who.MEMBER),
            ("/app/security/required", security.require_of_all, Right.SETTINGS),
            ("/app/security/large-sends", security.confirm_above, Right.SETTINGS),
        )
    ),
    Entry(
        "GET",
        "/app/security/passkeys/new",
        passkeys.begin,
        Who.MEMBER,
        text("A new passkey"),
        before_second_step=True,
    ),
    # Gifts
    Entry("GET", "/app", home.show, Who.MEMBER, text("Home"), Group.GIFTS),
    *SEND,
    *ORDERS,
    *GIFTS,
    # Money
    Entry("GET", "/app/funding", funding.show, Right.SEE_FUNDS, text("Funding"), Group.MONEY),
    Entry("GET", "/app/funding/{account:int}", funding.show_statement, Right.SEE_FUNDS, text("Statement")),
    Entry(
        "GET",
        "/app/funding/{account:int}/statement.csv",
        funding.statement_csv,
        Right.SEE_FUNDS,
        text("Statement"),
    ),
    Entry("GET", "/app/funding/accounts/new", accounts.ask_account, Right.SETTINGS, text("New account")),
    Entry(
        "POST", "/app/funding/accounts", accounts.create, Right.SETTINGS, text("New account"), step_up=True
    ),
    Entry(
        "GET", "/app/funding/{account:int}/print", funding.print_statement, Right.SEE_FUNDS, text("Statement")
    ),
    Entry("GET", "/app/funding/{account:int}/verify", funding.verify, Right.SEE_FUNDS, text("Verify")),
    Entry("GET", "/app/funding/owed", owed.show, Right.SEE_OWED, text("What we owe")),
    Entry("GET", "/app/funding/owed.csv", owed.download, Right.SEE_OWED, text("What we owe")),
    Entry("GET", "/app/funding/{account:int}/account", accounts.show, Right.TRANSFER, text("Account")),
    Entry(
        "POST",
        "/app/funding/{account:int}/watch",
        accounts.watch,
        Right.TRANSFER,
        text("Account"),
        step_up=True,
    ),
    Entry(
        "POST",
        "/app/funding/{account:int}/name",
        accounts.rename,
        Right.SETTINGS,
        text("Account"),
        step_up=True,
    ),
    Entry("POST", "/app/funding/{account:int}/close", accounts.close, Right.SETTINGS, step_up=True),
    Entry("POST", "/app/funding/{account:int}/open", accounts.reopen, Right.SETTINGS, step_up=True),
    Entry("GET", "/app/funding/transfer", transfers.ask, Right.TRANSFER, text("Move money")),
    Entry("POST", "/app/funding/transfers", transfers.make, Right.TRANSFER, text("Move money"), step_up=True),
    Entry("GET", "/app/funding/top-ups", top_ups.list_all, Right.SEE_FUNDS, text("Top-ups")),
    Entry("POST", "/app/funding/top-ups", top_ups.request, Right.MOVE_FUNDS, text("Top up"), step_up=True),
    Entry("GET", "/app/funding/top-ups/new", top_ups.ask, Right.MOVE_FUNDS, text("Top up")),
    Entry("GET", "/app/funding/top-ups/{reference}", top_ups.show, Right.SEE_FUNDS, text("Top-up")),
    Entry("POST", "/app/funding/top-ups/{reference}/cancel", top_ups.cancel, Right.MOVE_FUNDS, step_up=True),
    *REPORTS,
    # Set-up
    Entry("GET", "/app/webhooks", webhooks.show, Right.SETTINGS, text("Webhooks"), Group.SETUP),
    Entry("POST", "/app/webhooks", webhooks.create, Right.SETTINGS, text("Webhooks"), step_up=True),
    Entry("GET", "/app/webhooks/{subscription}", webhooks.one, Right.SETTINGS, text("Webhook")),
    Entry(
        "GET",
        "/app/webhooks/{subscription}/deliveries.csv",
        webhooks.download,
        Right.SETTINGS,
        text("Webhook"),
    ),
    Entry("POST", "/app/webhooks/{subscription}/test", webhooks.test, Right.SETTINGS),
    Entry("POST", "/app/webhooks/{subscription}/again", webhooks.again, Right.SETTINGS),
    Entry(
        "GET",
        "/app/webhooks/{subscription}/remove",
        webhooks.ask_removal,
        Right.SETTINGS,
        text("Remove a webhook"),
    ),
    Entry("POST", "/app/webhooks/{subscription}/remove", webhooks.remove, Right.SETTINGS, step_up=True),
    Entry("GET", "/app/keys", keys.show, Right.SETTINGS, text("API keys"), Group.SETUP),
    Entry("GET", "/app/keys.csv", keys.download, Right.SETTINGS, text("API keys")),
    Entry("POST", "/app/keys", keys.create, Right.SETTINGS, text("API keys"), step_up=True),
    Entry("GET", "/app/keys/{key:int}", keys.one, Right.SETTINGS, text("API key")),
    Entry("POST", "/app/keys/{key:int}/narrow", keys.narrow, Right.SETTINGS, text("API key"), step_up=True),
    Entry("POST", "/app/keys/{key:int}/replace", keys.replace, Right.SETTINGS, text("API key"), step_up=True),
    Entry("GET", "/app/keys/{key:int}/delete", keys.ask_deletion, Right.SETTINGS, text("Delete a key")),
    Entry("POST", "/app/keys/{key:int}/delete", keys.remove, Right.SETTINGS, step_up=True),
    Entry(
        "GET",
        "/app/service-accounts",
        service_accounts.show,
        Right.SETTINGS,
        text("Service accounts"),
        Group.SETUP,
    ),
    Entry(
        "GET",
        "/app/service-accounts.csv",
        service_accounts.download,
        Right.SETTINGS,
        text("Service accounts"),
    ),
    Entry(
        "POST",
        "/app/service-accounts",
        service_accounts.create,
        Right.SETTINGS,
        text("Service accounts"),
        step_up=True,
    ),
    Entry(
        "GET",
        "/app/service-accounts/{account:int}",
        service_accounts.one,
        Right.SETTINGS,
        text("Service account"),
    ),
    Entry(
        "POST",
        "/app/service-accounts/{account:int}/limit",
        limiting.limit,
        Right.SETTINGS,
        text("Service account"),
        step_up=True,
    ),
    Entry(
        "POST", "/app/service-accounts/{account:int}/accounts", limiting.assign, Right.SETTINGS, step_up=True
    ),
    Entry(
        "POST",
        "/app/service-accounts/{account:int}/active",
        service_accounts.switch,
        Right.SETTINGS,
        step_up=True,
    ),
    Entry("GET", "/app/people", people.show, Right.SETTINGS, text("People"), Group.SETUP),
    Entry("GET", "/app/people.csv", people.download, Right.SETTINGS, text("People")),
    Entry("POST", "/app/people", people.send_invitation, Right.SETTINGS, text("People"), step_up=True),
    Entry("GET", "/app/people/{user:int}", people.one, Right.SETTINGS, text("Person")),
    Entry("POST", "/app/people/{user:int}/accounts", people.assign, Right.SETTINGS, step_up=True),
    Entry("POST", "/app/people/{user:int}/invitation", people.send_again, Right.SETTINGS, step_up=True),
    Entry(
        "GET", "/app/people/{user:int}/role", people.ask_role, Right.SETTINGS, text("Change your own role")
    ),
    Entry("POST", "/app/people/{user:int}/role", people.give_role, Right.SETTINGS, step_up=True),
    Entry(
        "GET", "/app/people/{user:int}/remove", people.ask_removal, Right.SETTINGS, text("Remove somebody")
    ),
    Entry("POST", "/app/people/{user:int}/remove", people.take_away, Right.SETTINGS, step_up=True),
    Entry("GET", "/app/audit", log.show, Right.AUDIT, text("Audit log"), Group.SETUP),
    Entry("GET", "/app/audit.csv", log.download, Right.AUDIT, text("Audit log")),
    # Whatever else there is not
    Entry("GET", "/app/{rest:path}", entrance.nothing, Who.ANYONE, text("Not found")),
)
