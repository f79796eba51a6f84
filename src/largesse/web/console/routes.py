"""The table of routes and roles: every address of the application, who may, and its place in the menu.

The menu is drawn from it, in this order; the guard asks it; tests hold every role to it. What acts is a POST, and has the right
that it needs of its own.
"""

from __future__ import annotations

from largesse.base.i18n import text
from largesse.people import Right
from largesse.web.console import entrance, home, keys, people
from largesse.web.console.table import Entry, Group, Who

ENTRIES = (
    # The way in
    Entry("GET", "/app/sign-in", entrance.sign_in, Who.ANYONE, text("Sign in")),
    Entry("POST", "/app/sign-in", entrance.signed_in, Who.ANYONE, text("Sign in")),
    Entry("POST", "/app/sign-out", entrance.sign_out, Who.ANYONE),
    Entry("GET", "/app/link/{secret}", entrance.link, Who.ANYONE, text("Sign in")),
    Entry("POST", "/app/link/{secret}", entrance.follow, Who.ANYONE, text("Sign in")),
    Entry("GET", "/app/customers", entrance.customers, Who.SIGNED_IN, text("Choose a company")),
    Entry("POST", "/app/customers", entrance.choose_customer, Who.SIGNED_IN),
    Entry("POST", "/app/environment", entrance.switch_environment, Who.MEMBER),
    # Gifts
    Entry("GET", "/app", home.show, Who.MEMBER, text("Home"), Group.GIFTS),
    # Set-up
    Entry("GET", "/app/keys", keys.show, Right.SETTINGS, text("API keys"), Group.SETUP),
    Entry("POST", "/app/keys", keys.create, Right.SETTINGS, text("API keys")),
    Entry("GET", "/app/keys/{key:int}/delete", keys.ask_deletion, Right.SETTINGS, text("Delete a key")),
    Entry("POST", "/app/keys/{key:int}/delete", keys.remove, Right.SETTINGS),
    Entry(
        "GET",
        "/app/service-accounts",
        keys.show_accounts,
        Right.SETTINGS,
        text("Service accounts"),
        Group.SETUP,
    ),
    Entry("POST", "/app/service-accounts", keys.create_account, Right.SETTINGS, text("Service accounts")),
    Entry("POST", "/app/service-accounts/{account:int}/active", keys.switch_account, Right.SETTINGS),
    Entry("GET", "/app/people", people.show, Right.SETTINGS, text("People"), Group.SETUP),
    Entry("POST", "/app/people", people.send_invitation, Right.SETTINGS, text("People")),
    Entry("POST", "/app/people/{user:int}/invitation", people.send_again, Right.SETTINGS),
    Entry("POST", "/app/people/{user:int}/role", people.give_role, Right.SETTINGS),
    Entry(
        "GET", "/app/people/{user:int}/remove", people.ask_removal, Right.SETTINGS, text("Remove somebody")
    ),
    Entry("POST", "/app/people/{user:int}/remove", people.take_away, Right.SETTINGS),
    # Whatever else there is not
    Entry("GET", "/app/{rest:path}", entrance.nothing, Who.ANYONE, text("Not found")),
)
