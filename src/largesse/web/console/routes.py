"""The part of the table of routes that is about orders, and what they add up to.

The addresses of the catalogue, of templates and of collections.

The addresses of a send, for who may send.

The table of routes and roles: every address of the application, who may, and its place in the menu.

The menu is drawn from it, in this order; the guard asks it; tests hold every role to it. What acts is a POST, and has the right
that it needs of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.responses import Response

from largesse.base.i18n.templates import text
from largesse.catalogue.store import MOST_PRODUCTS
from largesse.customers.roles import Right
from largesse.drafts.sheet import MAX_FILE_BYTES
from largesse.web.console import (
    accounts,
    amounts_due,
    audit_log,
    funding,
    home,
    keys,
    order,
    orders,
    passkeys,
    people,
    reports,
    security,
    service_accounts,
    sign_in,
    step_up,
    top_ups,
    transfers,
    webhooks,
)
from largesse.web.console import service_accounts as limiting
from largesse.web.console.gifts import catalogue, collections, templates
from largesse.web.console.gifts import collections as making
from largesse.web.console.gifts import templates as saving
from largesse.web.console.page_routes import Access, Group, PageRoute
from largesse.web.console.send import delivery, gift, message, recipients, review, sent
from largesse.web.console.send import recipients as mending
from largesse.web.console.send.opening import open_draft
from largesse.web.kit.body import BodyLimits

_LIST, _ONE = "/app/orders", "/app/orders/{reference}"

ORDERS = (
    PageRoute("GET", _LIST, orders.show, Right.SEE_ORDERS, text("Orders"), Group.GIFTS),
    PageRoute("GET", f"{_LIST}.csv", orders.download, Right.MOVE_FUNDS, text("Orders")),
    PageRoute("GET", _ONE, order.show, Right.SEE_ORDERS, text("Order")),
    PageRoute("POST", f"{_ONE}/resend", order.send_again, Right.SEND),
    PageRoute("GET", f"{_ONE}/resend-unclaimed", order.ask_sending_again, Right.SEND, text("Send again to all")),
    PageRoute("POST", f"{_ONE}/resend-unclaimed", order.send_all_again, Right.SEND),
    PageRoute("POST", f"{_ONE}/correct", order.correct, Right.SEND, text("Order")),
    PageRoute("GET", f"{_ONE}/codes", order.ask_codes, Right.READ_CODES, text("Codes again")),
    PageRoute("POST", f"{_ONE}/codes", order.show_codes, Right.READ_CODES, text("Codes again"), step_up=True),
    PageRoute("GET", f"{_ONE}/cancel", order.ask_cancelling, Right.SEND, text("Cancel what is unclaimed")),
    PageRoute("POST", f"{_ONE}/cancel", order.cancel, Right.SEND),
)

REPORTS = (
    PageRoute("GET", "/app/reports", reports.show, Right.SEE_ORDERS, text("Reports"), Group.MONEY),
    PageRoute("GET", "/app/reports.csv", reports.download, Right.MOVE_FUNDS, text("Reports")),
)


_TEMPLATES, _TEMPLATE = text("Templates"), text("Template")
_COLLECTIONS, _COLLECTION = text("Collections"), text("Collection")
_OF_ONE, _OF_SET = "/app/templates/{template:int}", "/app/collections/{collection:int}"
_MOST_FIELDS = 2 * MOST_PRODUCTS + 20  # one ticked too many is said beside the form

GIFTS = (
    PageRoute("GET", "/app/templates", templates.show, Right.TEMPLATES, _TEMPLATES, Group.GIFTS),
    PageRoute("POST", "/app/templates", saving.create, Right.TEMPLATES, text("New template")),
    PageRoute("GET", "/app/templates/new", saving.ask, Right.TEMPLATES, text("New template")),
    PageRoute("GET", _OF_ONE, saving.edit, Right.TEMPLATES, _TEMPLATE),
    PageRoute("POST", _OF_ONE, saving.change, Right.TEMPLATES, _TEMPLATE),
    PageRoute("GET", f"{_OF_ONE}/remove", templates.ask_removal, Right.TEMPLATES, text("Remove a template")),
    PageRoute("POST", f"{_OF_ONE}/remove", templates.remove, Right.TEMPLATES),
    PageRoute("GET", "/app/collections", collections.show, Access.MEMBER, _COLLECTIONS, Group.GIFTS),
    PageRoute(
        "POST", "/app/collections", making.create, Right.TEMPLATES, text("New collection"), most_fields=_MOST_FIELDS
    ),
    PageRoute("GET", "/app/collections/new", making.ask, Right.TEMPLATES, text("New collection")),
    PageRoute("GET", _OF_SET, collections.one, Access.MEMBER, _COLLECTION),
    PageRoute("GET", f"{_OF_SET}/claim", collections.claim, Access.MEMBER, _COLLECTION),
    PageRoute("GET", f"{_OF_SET}/edit", making.edit, Right.TEMPLATES, _COLLECTION),
    PageRoute("POST", f"{_OF_SET}/edit", making.change, Right.TEMPLATES, _COLLECTION, most_fields=_MOST_FIELDS),
    PageRoute("GET", f"{_OF_SET}/remove", collections.ask_removal, Right.TEMPLATES, text("Remove a collection")),
    PageRoute("POST", f"{_OF_SET}/remove", collections.remove, Right.TEMPLATES),
    PageRoute("GET", "/app/catalogue", catalogue.show, Access.MEMBER, text("Catalogue"), Group.GIFTS),
    PageRoute("GET", "/app/catalogue/{product:int}", catalogue.one, Access.MEMBER, text("Gift")),
)


_TITLE = text("Send a gift")
_DRAFT = "/app/send/{draft}"
# What is somewhat too large is read, so that it can be said beside the form.
_OF_ROWS = BodyLimits(2 * MAX_FILE_BYTES, whole_s=60.0, pause_s=15.0)
_OF_MENDED = BodyLimits(1024 * 1024, whole_s=30.0, pause_s=15.0)


def _page(path: str, handler: Callable[[Any], Awaitable[Response]], group: Group | None = None) -> PageRoute:
    return PageRoute("GET", path, handler, Right.SEND, _TITLE, group)


def _form(path: str, handler: Callable[[Any], Awaitable[Response]], **more: Any) -> PageRoute:
    return PageRoute("POST", path, handler, Right.SEND, _TITLE, **more)


def _large_form(path: str, handler: Callable[[Any], Awaitable[Response]], **more: Any) -> PageRoute:
    """One that is read for whom the draft is of alone."""
    return _form(path, handler, before_reading=open_draft, **more)


SEND = (
    _page("/app/send", gift.choose, Group.GIFTS),
    _page("/app/send/gift", gift.amount),
    _form("/app/send/gift", gift.take),
    _form(f"{_DRAFT}/drop", gift.drop),
    _page(f"{_DRAFT}/recipients", recipients.show),
    _large_form(f"{_DRAFT}/recipients", recipients.take_typed, limits=_OF_ROWS, takes_files=True),
    _large_form(f"{_DRAFT}/file", recipients.take_file, limits=_OF_ROWS, takes_files=True),
    _form(f"{_DRAFT}/codes", recipients.take_quantity),
    _form(f"{_DRAFT}/columns", recipients.take_columns),
    _form(f"{_DRAFT}/start-over", recipients.start_over),
    _large_form(f"{_DRAFT}/rows", mending.mend, limits=_OF_MENDED, most_fields=5 * recipients.MENDED_AT_ONCE),
    _form(f"{_DRAFT}/leave-out", mending.leave_out),
    _page(f"{_DRAFT}/bad-rows.csv", mending.bad_rows),
    _page(f"{_DRAFT}/message", message.write),
    _form(f"{_DRAFT}/message", message.take),
    _page(f"{_DRAFT}/mail", message.mail),
    _page(f"{_DRAFT}/claim", message.claim),
    _page(f"{_DRAFT}/delivery", delivery.show),
    _form(f"{_DRAFT}/delivery", delivery.take),
    _page(f"{_DRAFT}/review", review.show),
    _form(f"{_DRAFT}/place", review.place),
    _page(f"{_DRAFT}/sent", sent.show),
    _page(f"{_DRAFT}/codes", sent.codes),
    _page(f"{_DRAFT}/codes.csv", sent.codes_file),
    _form(f"{_DRAFT}/again", sent.again),
    PageRoute("POST", f"{_DRAFT}/template", sent.save_template, Right.TEMPLATES, _TITLE),
)


ROUTES = (
    # The way in
    PageRoute("GET", "/app/sign-in", sign_in.sign_in, Access.ANYONE, text("Sign in")),
    PageRoute("POST", "/app/sign-in", sign_in.signed_in, Access.ANYONE, text("Sign in")),
    PageRoute("GET", "/app/forgot", sign_in.forgot, Access.ANYONE, text("Forgotten password")),
    PageRoute("POST", "/app/forgot", sign_in.ask_link, Access.ANYONE, text("Forgotten password")),
    PageRoute("POST", "/app/sign-out", sign_in.sign_out, Access.ANYONE),
    PageRoute("GET", "/app/link/{secret}", sign_in.link, Access.ANYONE, text("Sign in")),
    PageRoute("POST", "/app/link/{secret}", sign_in.follow, Access.ANYONE, text("Sign in")),
    PageRoute("GET", "/app/second-step", security.ask_second_step, Access.ENTERING, text("Second step")),
    PageRoute("POST", "/app/second-step", security.second_step, Access.ENTERING, text("Second step")),
    PageRoute("GET", "/app/customers", sign_in.customers, Access.SIGNED_IN, text("Choose a company")),
    PageRoute("POST", "/app/customers", sign_in.choose_customer, Access.SIGNED_IN),
    PageRoute("POST", "/app/environment", sign_in.switch_environment, Access.MEMBER),
    PageRoute("GET", "/app/prove", step_up.ask, Access.MEMBER, step_up.TITLE, before_second_step=True),
    PageRoute("POST", "/app/prove", step_up.prove, Access.MEMBER, step_up.TITLE, before_second_step=True),
    *(
        PageRoute(method, path, handler, Access.MEMBER, text("Security"), before_second_step=True)
        for method, path, handler in (
            ("GET", "/app/security", security.show),
            ("GET", "/app/security/app", security.app),
            ("POST", "/app/security/sessions/{session:int}/end", security.end_one),
            ("POST", "/app/security/sessions/end", security.end_others),
            ("POST", "/app/security/preferences", security.prefer),
        )
    ),
    *(
        PageRoute("POST", path, handler, who, text("Security"), before_second_step=True, step_up=True)
        for path, handler, who in (
            ("/app/security/password", security.change_password, Access.MEMBER),
            ("/app/security/app", security.turn_app_on, Access.MEMBER),
            ("/app/security/app/off", security.turn_app_off, Access.MEMBER),
            ("/app/security/passkeys", passkeys.add, Access.MEMBER),
            ("/app/security/passkeys/{passkey:int}/remove", passkeys.remove, Access.MEMBER),
            ("/app/security/recovery-codes", security.recovery_codes, Access.MEMBER),
            ("/app/security/required", security.require_of_all, Right.SETTINGS),
            ("/app/security/large-sends", security.confirm_above, Right.SETTINGS),
        )
    ),
    PageRoute(
        "GET",
        "/app/security/passkeys/new",
        passkeys.begin,
        Access.MEMBER,
        text("A new passkey"),
        before_second_step=True,
    ),
    # Gifts
    PageRoute("GET", "/app", home.show, Access.MEMBER, text("Home"), Group.GIFTS),
    *SEND,
    *ORDERS,
    *GIFTS,
    # Money
    PageRoute("GET", "/app/funding", funding.show, Right.SEE_FUNDS, text("Funding"), Group.MONEY),
    PageRoute("GET", "/app/funding/{account:int}", funding.show_statement, Right.SEE_FUNDS, text("Statement")),
    PageRoute(
        "GET", "/app/funding/{account:int}/statement.csv", funding.statement_csv, Right.SEE_FUNDS, text("Statement")
    ),
    PageRoute("GET", "/app/funding/accounts/new", accounts.ask_account, Right.SETTINGS, text("New account")),
    PageRoute("POST", "/app/funding/accounts", accounts.create, Right.SETTINGS, text("New account"), step_up=True),
    PageRoute("GET", "/app/funding/{account:int}/print", funding.print_statement, Right.SEE_FUNDS, text("Statement")),
    PageRoute("GET", "/app/funding/{account:int}/verify", funding.verify, Right.SEE_FUNDS, text("Verify")),
    PageRoute("GET", "/app/funding/owed", amounts_due.show, Right.SEE_OWED, text("What we owe")),
    PageRoute("GET", "/app/funding/owed.csv", amounts_due.download, Right.SEE_OWED, text("What we owe")),
    PageRoute("GET", "/app/funding/{account:int}/account", accounts.show, Right.TRANSFER, text("Account")),
    PageRoute(
        "POST", "/app/funding/{account:int}/watch", accounts.watch, Right.TRANSFER, text("Account"), step_up=True
    ),
    PageRoute(
        "POST", "/app/funding/{account:int}/name", accounts.rename, Right.SETTINGS, text("Account"), step_up=True
    ),
    PageRoute("POST", "/app/funding/{account:int}/close", accounts.close, Right.SETTINGS, step_up=True),
    PageRoute("POST", "/app/funding/{account:int}/open", accounts.reopen, Right.SETTINGS, step_up=True),
    PageRoute("GET", "/app/funding/transfer", transfers.ask, Right.TRANSFER, text("Move money")),
    PageRoute("POST", "/app/funding/transfers", transfers.make, Right.TRANSFER, text("Move money"), step_up=True),
    PageRoute("GET", "/app/funding/top-ups", top_ups.list_all, Right.SEE_FUNDS, text("Top-ups")),
    PageRoute("POST", "/app/funding/top-ups", top_ups.request, Right.MOVE_FUNDS, text("Top up"), step_up=True),
    PageRoute("GET", "/app/funding/top-ups/new", top_ups.ask, Right.MOVE_FUNDS, text("Top up")),
    PageRoute("GET", "/app/funding/top-ups/{reference}", top_ups.show, Right.SEE_FUNDS, text("Top-up")),
    PageRoute("POST", "/app/funding/top-ups/{reference}/cancel", top_ups.cancel, Right.MOVE_FUNDS, step_up=True),
    *REPORTS,
    # Set-up
    PageRoute("GET", "/app/webhooks", webhooks.show, Right.SETTINGS, text("Webhooks"), Group.SETUP),
    PageRoute("POST", "/app/webhooks", webhooks.create, Right.SETTINGS, text("Webhooks"), step_up=True),
    PageRoute("GET", "/app/webhooks/{subscription}", webhooks.one, Right.SETTINGS, text("Webhook")),
    PageRoute("GET", "/app/webhooks/{subscription}/deliveries.csv", webhooks.download, Right.SETTINGS, text("Webhook")),
    PageRoute("POST", "/app/webhooks/{subscription}/test", webhooks.test, Right.SETTINGS),
    PageRoute("POST", "/app/webhooks/{subscription}/again", webhooks.again, Right.SETTINGS),
    PageRoute(
        "GET", "/app/webhooks/{subscription}/remove", webhooks.ask_removal, Right.SETTINGS, text("Remove a webhook")
    ),
    PageRoute("POST", "/app/webhooks/{subscription}/remove", webhooks.remove, Right.SETTINGS, step_up=True),
    PageRoute("GET", "/app/keys", keys.show, Right.SETTINGS, text("API keys"), Group.SETUP),
    PageRoute("GET", "/app/keys.csv", keys.download, Right.SETTINGS, text("API keys")),
    PageRoute("POST", "/app/keys", keys.create, Right.SETTINGS, text("API keys"), step_up=True),
    PageRoute("GET", "/app/keys/{key:int}", keys.one, Right.SETTINGS, text("API key")),
    PageRoute("POST", "/app/keys/{key:int}/narrow", keys.narrow, Right.SETTINGS, text("API key"), step_up=True),
    PageRoute("POST", "/app/keys/{key:int}/replace", keys.replace, Right.SETTINGS, text("API key"), step_up=True),
    PageRoute("GET", "/app/keys/{key:int}/delete", keys.ask_deletion, Right.SETTINGS, text("Delete a key")),
    PageRoute("POST", "/app/keys/{key:int}/delete", keys.remove, Right.SETTINGS, step_up=True),
    PageRoute(
        "GET", "/app/service-accounts", service_accounts.show, Right.SETTINGS, text("Service accounts"), Group.SETUP
    ),
    PageRoute("GET", "/app/service-accounts.csv", service_accounts.download, Right.SETTINGS, text("Service accounts")),
    PageRoute(
        "POST", "/app/service-accounts", service_accounts.create, Right.SETTINGS, text("Service accounts"), step_up=True
    ),
    PageRoute(
        "GET", "/app/service-accounts/{account:int}", service_accounts.one, Right.SETTINGS, text("Service account")
    ),
    PageRoute(
        "POST",
        "/app/service-accounts/{account:int}/limit",
        limiting.limit,
        Right.SETTINGS,
        text("Service account"),
        step_up=True,
    ),
    PageRoute("POST", "/app/service-accounts/{account:int}/accounts", limiting.assign, Right.SETTINGS, step_up=True),
    PageRoute(
        "POST", "/app/service-accounts/{account:int}/active", service_accounts.switch, Right.SETTINGS, step_up=True
    ),
    PageRoute("GET", "/app/people", people.show, Right.SETTINGS, text("People"), Group.SETUP),
    PageRoute("GET", "/app/people.csv", people.download, Right.SETTINGS, text("People")),
    PageRoute("POST", "/app/people", people.send_invitation, Right.SETTINGS, text("People"), step_up=True),
    PageRoute("GET", "/app/people/{user:int}", people.one, Right.SETTINGS, text("Person")),
    PageRoute("POST", "/app/people/{user:int}/accounts", people.assign, Right.SETTINGS, step_up=True),
    PageRoute("POST", "/app/people/{user:int}/invitation", people.send_again, Right.SETTINGS, step_up=True),
    PageRoute("GET", "/app/people/{user:int}/role", people.ask_role, Right.SETTINGS, text("Change your own role")),
    PageRoute("POST", "/app/people/{user:int}/role", people.give_role, Right.SETTINGS, step_up=True),
    PageRoute("GET", "/app/people/{user:int}/remove", people.ask_removal, Right.SETTINGS, text("Remove somebody")),
    PageRoute("POST", "/app/people/{user:int}/remove", people.take_away, Right.SETTINGS, step_up=True),
    PageRoute("GET", "/app/audit", audit_log.show, Right.AUDIT, text("Audit log"), Group.SETUP),
    PageRoute("GET", "/app/audit.csv", audit_log.download, Right.AUDIT, text("Audit log")),
    # Whatever else there is not
    PageRoute("GET", "/app/{rest:path}", sign_in.nothing, Access.ANYONE, text("Not found")),
)
