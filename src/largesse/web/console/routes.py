"""The table of routes: every address of the web application, its handler, who may call it, and its place in the menu.

The menu shows pages in the order of the table, the guard checks each request against it, and tests try every route with every role.
A route that changes something is a POST and names the right that it needs.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from starlette.responses import Response

from largesse.base.i18n.languages import text
from largesse.catalogue.service import MOST_PRODUCTS
from largesse.contacts.model import MOST_GROUPS
from largesse.customers.members import MOST_PEOPLE
from largesse.customers.roles import Right
from largesse.customers.staff_roles import StaffRight
from largesse.drafts.sheet import MAX_FILE_BYTES
from largesse.ledger.accounts import MOST_ACCOUNTS
from largesse.mail.resending import MAX_CHOSEN
from largesse.web.console import (
    accounts,
    audit_log,
    budgets,
    contact_groups,
    contact_import,
    contacts,
    funding,
    home,
    keys,
    order,
    order_acts,
    orders,
    people,
    reports,
    requests,
    search,
    security,
    service_accounts,
    sign_in,
    top_ups,
    webhooks,
)
from largesse.web.console.context import RequestContext
from largesse.web.console.gifts import browsing, collections, templates
from largesse.web.console.page_routes import Access, Group, PageRoute
from largesse.web.console.programme_routes import APPROVALS, AUTOMATIONS, BRANDING, CAMPAIGNS, NOTES
from largesse.web.console.send import delivery, gift, message, recipients, review, sent, sources
from largesse.web.console.send.opening import open_draft
from largesse.web.kit.body import BodyLimits

_page = partial(PageRoute, "GET")
_form = partial(PageRoute, "POST")
_step_up = partial(_form, step_up=True)  # requires that the person recently confirmed who they are

_LIST, _ONE = "/app/orders", "/app/orders/{reference}"
_RECIPIENT = f"{_ONE}/recipients/{{number:int}}"

ORDERS = (
    _page(_LIST, orders.show, Right.SEE_ORDERS, text("Orders"), Group.GIFTS, "package"),
    _page(f"{_LIST}.csv", orders.download, Right.MOVE_FUNDS, text("Orders")),
    _form(f"{_LIST}/views", orders.save, Right.SEE_ORDERS, text("Orders")),
    _form(f"{_LIST}/views/{{view:int}}/remove", orders.remove, Right.SEE_ORDERS),
    _page(_ONE, order.show, Right.SEE_ORDERS, text("Order")),
    _page(f"{_ONE}/recipients.csv", order.download, Right.MOVE_FUNDS, text("Recipients")),
    _form(f"{_ONE}/resend", order_acts.send_again, Right.SEND),
    _form(f"{_ONE}/resend-chosen", order_acts.send_chosen_again, Right.SEND, most_fields=MAX_CHOSEN + 10),
    _page(f"{_ONE}/resend-unclaimed", order_acts.ask_sending_again, Right.SEND, text("Send again to all")),
    _form(f"{_ONE}/resend-unclaimed", order_acts.send_all_again, Right.SEND),
    _step_up(f"{_ONE}/correct", order_acts.correct, Right.SEND, text("Order")),
    _form(f"{_ONE}/claim-by", order_acts.move_claim_by, Right.SEND, text("Order")),
    _form(f"{_ONE}/schedule", order_acts.change_schedule, Right.SEND, text("Order")),
    _page(f"{_ONE}/codes", order_acts.ask_codes, Right.READ_CODES, text("Codes again")),
    _step_up(f"{_ONE}/codes", order_acts.show_codes, Right.READ_CODES, text("Codes again")),
    _step_up(f"{_RECIPIENT}/link", order_acts.show_link, Right.READ_CODES, text("Claim link")),
    _page(f"{_ONE}/cancel", order_acts.ask_cancelling, Right.SEND, text("Cancel unclaimed gifts")),
    _form(f"{_ONE}/cancel", order_acts.cancel, Right.SEND),
    _page(f"{_RECIPIENT}/cancel", order_acts.ask_cancelling_one, Right.SEND, text("Cancel a gift")),
    _form(f"{_RECIPIENT}/cancel", order_acts.cancel_one, Right.SEND),
)

REPORTS = (
    _page("/app/reports", reports.show, Right.SEE_ORDERS, text("Reports"), Group.MONEY, "chart-column"),
    _page("/app/reports.csv", reports.download, Right.MOVE_FUNDS, text("Reports")),
)


_TEMPLATES, _TEMPLATE = text("Templates"), text("Template")
_COLLECTIONS, _COLLECTION = text("Collections"), text("Collection")
_OF_ONE, _OF_SET = "/app/templates/{template:int}", "/app/collections/{collection:int}"
_MOST_FIELDS = 2 * MOST_PRODUCTS + 20  # allows too many gifts, so that the page can report them beside the form

GIFTS = (
    _page("/app/templates", templates.show, Right.TEMPLATES, _TEMPLATES, Group.GIFTS, "layout-template"),
    _form("/app/templates", templates.create, Right.TEMPLATES, text("New template")),
    _page("/app/templates/new", templates.ask, Right.TEMPLATES, text("New template")),
    _page(_OF_ONE, templates.edit, Right.TEMPLATES, _TEMPLATE),
    _form(_OF_ONE, templates.change, Right.TEMPLATES, _TEMPLATE),
    _form(f"{_OF_ONE}/price", templates.take_price, Right.TEMPLATES),
    _page(f"{_OF_ONE}/remove", templates.ask_removal, Right.TEMPLATES, text("Delete a template")),
    _form(f"{_OF_ONE}/remove", templates.remove, Right.TEMPLATES),
    _page("/app/collections", collections.show, Access.MEMBER, _COLLECTIONS, Group.GIFTS, "library"),
    _form("/app/collections", collections.create, Right.TEMPLATES, text("New collection"), most_fields=_MOST_FIELDS),
    _page("/app/collections/new", collections.ask, Right.TEMPLATES, text("New collection")),
    _page(_OF_SET, collections.one, Access.MEMBER, _COLLECTION),
    _page(f"{_OF_SET}/claim", collections.claim, Access.MEMBER, _COLLECTION),
    _page(f"{_OF_SET}/edit", collections.edit, Right.TEMPLATES, _COLLECTION),
    _form(f"{_OF_SET}/edit", collections.change, Right.TEMPLATES, _COLLECTION, most_fields=_MOST_FIELDS),
    _page(f"{_OF_SET}/remove", collections.ask_removal, Right.TEMPLATES, text("Delete a collection")),
    _form(f"{_OF_SET}/remove", collections.remove, Right.TEMPLATES),
    _page("/app/catalogue", browsing.show, Access.MEMBER, text("Catalogue"), Group.GIFTS, "store"),
    _page("/app/catalogue/{product:int}", browsing.one, Access.MEMBER, text("Gift")),
)


# Reads a little more than the limit, so that the page can say beside the form what is too large.
_OF_ROWS = BodyLimits(2 * MAX_FILE_BYTES, whole_s=60.0, pause_s=15.0)

_CONTACTS, _CONTACT = text("Contacts"), text("Contact")
_OF_CONTACT, _OF_GROUP = "/app/contacts/{contact:int}", "/app/contacts/groups/{group:int}"
_OF_FIELD = "/app/contacts/fields/{field}"
_contact_page = partial(_page, who=Right.CONTACTS)
_contact_form = partial(_form, who=Right.CONTACTS)
_contact_file = partial(_contact_form, title=text("Import contacts"), limits=_OF_ROWS, takes_files=True)
# The form has each text twice: as it was when the page was opened, too.
_save_contact = partial(
    _contact_form, most_fields=MOST_GROUPS + 60, limits=BodyLimits(2**17, whole_s=15.0, pause_s=15.0)
)

CONTACTS = (
    _contact_page("/app/contacts", contacts.show, title=_CONTACTS, group=Group.GIFTS, icon="contact"),
    _save_contact("/app/contacts", contacts.create, title=text("New contact")),
    _contact_page("/app/contacts.csv", contacts.download, title=_CONTACTS),
    _contact_page("/app/contacts/new", contacts.ask, title=text("New contact")),
    _contact_form("/app/contacts/past", contacts.add_past),
    _contact_page("/app/contacts/import", contact_import.ask, title=text("Import contacts")),
    _contact_file("/app/contacts/import", contact_import.read),
    _contact_file("/app/contacts/check", contact_import.take),
    _contact_page("/app/contacts/groups", contact_groups.show, title=text("Groups")),
    _contact_form("/app/contacts/groups", contact_groups.create, title=text("Groups")),
    _contact_page(_OF_GROUP, contact_groups.one, title=text("Group")),
    _contact_form(_OF_GROUP, contact_groups.rename, title=text("Group")),
    _contact_form(f"{_OF_GROUP}/remove", contact_groups.remove),
    _contact_page("/app/contacts/fields", contact_groups.show_fields, title=text("Custom fields")),
    _contact_form("/app/contacts/fields", contact_groups.define, title=text("Custom fields")),
    _contact_page(_OF_FIELD, contact_groups.show_field, title=text("Field")),
    _contact_form(_OF_FIELD, contact_groups.name_field, title=text("Field")),
    _contact_form(f"{_OF_FIELD}/remove", contact_groups.drop_field),
    _contact_page(_OF_CONTACT, contacts.one, title=_CONTACT),
    _save_contact(_OF_CONTACT, contacts.change, title=_CONTACT),
    _contact_page(f"{_OF_CONTACT}/remove", contacts.ask_removal, title=text("Delete a contact")),
    _contact_form(f"{_OF_CONTACT}/remove", contacts.remove),
)


_TITLE = text("Send a gift")
_DRAFT = "/app/send/{draft}"
_OF_MENDED = BodyLimits(1024 * 1024, whole_s=30.0, pause_s=15.0)

_send_page = partial(_page, who=Right.SEND, title=_TITLE)


def _send_form(path: str, handler: Callable[[RequestContext], Awaitable[Response]], **declared: Any) -> PageRoute:
    """Declares a form of a draft. Once the draft was sent, in another window, it leads to the order."""
    return _form(path, sent.or_order(handler), Right.SEND, _TITLE, **declared)


# Reads the body only for the draft's owner.
_send_upload = partial(_send_form, before_reading=sent.or_order(open_draft))

SEND = (
    _send_page("/app/send", gift.choose, group=Group.GIFTS, icon="gift"),
    _send_page("/app/send/gift", gift.amount),
    _form("/app/send/gift", gift.take, Right.SEND, _TITLE),
    _send_form(f"{_DRAFT}/drop", gift.drop),
    _send_page(f"{_DRAFT}/recipients", sent.or_order(recipients.show)),
    _send_upload(f"{_DRAFT}/recipients", sources.take_typed, limits=_OF_ROWS, takes_files=True),
    _send_upload(f"{_DRAFT}/file", sources.take_file, limits=_OF_ROWS, takes_files=True),
    _send_page(f"{_DRAFT}/contacts", sent.or_order(sources.show)),
    _send_form(f"{_DRAFT}/contacts", sources.take, most_fields=sources.PAGE + 10),
    _send_form(f"{_DRAFT}/codes", sources.take_quantity),
    _send_form(f"{_DRAFT}/reading", sources.read_again),
    _send_form(f"{_DRAFT}/letters", sources.repair_letters),
    _send_form(f"{_DRAFT}/start-over", sources.start_over),
    _send_upload(f"{_DRAFT}/rows", recipients.save, limits=_OF_MENDED, most_fields=recipients.MOST_FIELDS),
    _send_form(f"{_DRAFT}/remove", recipients.remove),
    _send_form(f"{_DRAFT}/remove-invalid", recipients.remove_invalid),
    _send_form(f"{_DRAFT}/remove-repeated", recipients.remove_repeated),
    _send_form(f"{_DRAFT}/suggestions", recipients.use_suggestions, most_fields=recipients.MOST_FIELDS),
    _send_form(f"{_DRAFT}/leave-out", recipients.leave_out),
    _send_page(f"{_DRAFT}/rows-to-fix.csv", recipients.bad_rows),
    _send_page(f"{_DRAFT}/message", sent.or_order(message.write)),
    _send_form(f"{_DRAFT}/message", message.take),
    _send_page(f"{_DRAFT}/mail", message.mail),
    _send_page(f"{_DRAFT}/claim", message.claim),
    _send_page(f"{_DRAFT}/delivery", sent.or_order(delivery.show)),
    _send_form(f"{_DRAFT}/delivery", delivery.take),
    _send_page(f"{_DRAFT}/review", review.show),
    _send_form(f"{_DRAFT}/place", review.place),
    _send_form(f"{_DRAFT}/ask", review.ask),
    _send_page(f"{_DRAFT}/sent", sent.show),
    _send_page(f"{_DRAFT}/codes", sent.codes),
    _send_page(f"{_DRAFT}/codes.csv", sent.codes_file),
    _send_form(f"{_DRAFT}/again", sent.again),
    _form(f"{_DRAFT}/template", sent.save_template, Right.TEMPLATES, _TITLE),
)


_SECURITY = text("Security")


def sign_in_routes(root: str, who: Right | StaffRight | Access) -> tuple[PageRoute, ...]:
    """Returns the routes by which people sign in and change how they do, here and in the back office. `who` is everybody who signs in."""
    own = {"who": who, "title": _SECURITY, "before_second_step": True}
    page, form, change = partial(_page, **own), partial(_form, **own), partial(_step_up, **own)
    return (
        _page(f"{root}/sign-in", sign_in.sign_in, Access.ANYONE, text("Sign in")),
        _form(f"{root}/sign-in", sign_in.signed_in, Access.ANYONE, text("Sign in")),
        _form(f"{root}/sign-out", sign_in.sign_out, Access.ANYONE),
        _page(f"{root}/second-step", security.ask_second_step, Access.ENTERING, text("Second step")),
        _form(f"{root}/second-step", security.second_step, Access.ENTERING, text("Second step")),
        _page(f"{root}/prove", sign_in.ask_proof, who, sign_in.PROOF_TITLE, before_second_step=True),
        _form(f"{root}/prove", sign_in.prove, who, sign_in.PROOF_TITLE, before_second_step=True),
        page(f"{root}/security", security.show),
        page(f"{root}/security/app", security.app),
        page(f"{root}/security/passkeys/new", security.new_passkey, title=text("New passkey")),
        form(f"{root}/security/sessions/{{session:int}}/end", security.end_one),
        form(f"{root}/security/sessions/end", security.end_others),
        form(f"{root}/security/preferences", security.prefer),
        change(f"{root}/security/password", security.change_password),
        change(f"{root}/security/app", security.turn_app_on),
        change(f"{root}/security/app/off", security.turn_app_off),
        change(f"{root}/security/passkeys", security.add_passkey),
        change(f"{root}/security/passkeys/{{passkey:int}}/remove", security.remove_passkey),
        change(f"{root}/security/recovery-codes", security.recovery_codes),
    )


_FUNDING, _BUDGET = "/app/funding/{account:int}", "/app/budgets/{budget:int}"
_SERVICE, _SERVICE_TITLE = "/app/service-accounts/{account:int}", text("Service account")

ROUTES = (
    # Sign-in
    *sign_in_routes("/app", Access.MEMBER),
    _page("/app/forgot", sign_in.forgot, Access.ANYONE, text("Forgotten password")),
    _form("/app/forgot", sign_in.ask_link, Access.ANYONE, text("Forgotten password")),
    _page("/app/link/{secret}", sign_in.link, Access.ANYONE, text("Sign in")),
    _form("/app/link/{secret}", sign_in.follow, Access.ANYONE, text("Sign in")),
    _page("/app/customers", sign_in.customers, Access.SIGNED_IN, text("Choose a company")),
    _form("/app/customers", sign_in.choose_customer, Access.SIGNED_IN),
    _form("/app/environment", sign_in.switch_environment, Access.MEMBER),
    _form("/app/security/name", security.rename, Access.MEMBER, _SECURITY, before_second_step=True),
    _step_up("/app/security/required", security.require_of_all, Right.SETTINGS, _SECURITY, before_second_step=True),
    _step_up("/app/security/large-sends", security.confirm_above, Right.SETTINGS, _SECURITY, before_second_step=True),
    # Gifts
    _page("/app", home.show, Access.MEMBER, text("Home"), Group.GIFTS, "house"),
    _page("/app/search", search.show, Access.MEMBER, search.TITLE),
    _page("/app/help", search.show_help, Access.MEMBER, text("Help")),
    *SEND,
    *CONTACTS,
    *ORDERS,
    *AUTOMATIONS,
    *CAMPAIGNS,
    *NOTES,
    *APPROVALS,
    *GIFTS,
    # Money
    _page("/app/funding", funding.show, Right.SEE_FUNDS, text("Funding"), Group.MONEY, "wallet"),
    _page(_FUNDING, funding.show_statement, Right.SEE_FUNDS, text("Statement")),
    _page(f"{_FUNDING}/statement.csv", funding.statement_csv, Right.SEE_FUNDS, text("Statement")),
    _page("/app/funding/accounts/new", accounts.ask, Right.SETTINGS, text("New account")),
    _step_up("/app/funding/accounts", accounts.create, Right.SETTINGS, text("New account")),
    _page(f"{_FUNDING}/print", funding.print_statement, Right.SEE_FUNDS, text("Statement")),
    _page(f"{_FUNDING}/verify", funding.verify, Right.SEE_FUNDS, text("Verify")),
    _page("/app/funding/owed", funding.show_owed, Right.SEE_OWED, text("Amount due")),
    _page("/app/funding/owed.csv", funding.download_owed, Right.SEE_OWED, text("Amount due")),
    _page(f"{_FUNDING}/account", accounts.show, Right.TRANSFER, text("Account")),
    _step_up(f"{_FUNDING}/watch", accounts.set_watch, Right.TRANSFER, text("Account"), most_fields=MOST_PEOPLE + 10),
    _step_up(f"{_FUNDING}/name", accounts.rename, Right.SETTINGS, text("Account")),
    _step_up(f"{_FUNDING}/close", accounts.close, Right.SETTINGS),
    _step_up(f"{_FUNDING}/open", accounts.reopen, Right.SETTINGS),
    _page("/app/funding/transfer", accounts.ask_transfer, Right.TRANSFER, text("Transfer money")),
    _step_up("/app/funding/transfers", accounts.make_transfer, Right.TRANSFER, text("Transfer money")),
    _page("/app/funding/top-ups", top_ups.list_all, Right.SEE_FUNDS, text("Top-ups")),
    _step_up("/app/funding/top-ups", top_ups.request, Right.MOVE_FUNDS, text("Top up")),
    _page("/app/funding/top-ups/new", top_ups.ask, Right.MOVE_FUNDS, text("Top up")),
    _page("/app/funding/top-ups/{reference}", top_ups.show, Right.SEE_FUNDS, text("Top-up")),
    _step_up("/app/funding/top-ups/{reference}/cancel", top_ups.cancel, Right.MOVE_FUNDS),
    _page("/app/budgets", budgets.show, Right.SEE_BUDGETS, text("Budgets"), Group.MONEY, "piggy-bank"),
    _step_up("/app/budgets", budgets.create, Right.SETTINGS, text("Budgets"), most_fields=budgets.MOST_FIELDS),
    _page(_BUDGET, budgets.one, Right.SETTINGS, text("Budget")),
    _step_up(_BUDGET, budgets.change, Right.SETTINGS, text("Budget"), most_fields=budgets.MOST_FIELDS),
    _page(f"{_BUDGET}/end", budgets.ask_end, Right.SETTINGS, text("End a budget")),
    _step_up(f"{_BUDGET}/end", budgets.end, Right.SETTINGS),
    *REPORTS,
    # Set-up
    _page("/app/webhooks", webhooks.show, Right.SETTINGS, text("Webhooks"), Group.SETUP, "webhook"),
    _step_up("/app/webhooks", webhooks.create, Right.SETTINGS, text("Webhooks")),
    _page("/app/webhooks/{subscription}", webhooks.one, Right.SETTINGS, text("Webhook")),
    _page("/app/webhooks/{subscription}/deliveries.csv", webhooks.download, Right.SETTINGS, text("Webhook")),
    _form("/app/webhooks/{subscription}/test", webhooks.test, Right.SETTINGS),
    _form("/app/webhooks/{subscription}/again", webhooks.again, Right.SETTINGS),
    _step_up("/app/webhooks/{subscription}/rotate", webhooks.rotate, Right.SETTINGS, text("New secret")),
    _page("/app/webhooks/{subscription}/remove", webhooks.ask_removal, Right.SETTINGS, text("Remove a webhook")),
    _step_up("/app/webhooks/{subscription}/remove", webhooks.remove, Right.SETTINGS),
    _page("/app/keys", keys.show, Right.SETTINGS, text("API keys"), Group.SETUP, "key-round"),
    _page("/app/keys.csv", keys.download, Right.SETTINGS, text("API keys")),
    _step_up("/app/keys", keys.create, Right.SETTINGS, text("API keys")),
    _page("/app/keys/{key:int}", keys.one, Right.SETTINGS, text("API key")),
    _step_up("/app/keys/{key:int}/narrow", keys.narrow, Right.SETTINGS, text("API key")),
    _step_up("/app/keys/{key:int}/replace", keys.replace, Right.SETTINGS, text("API key")),
    _page("/app/keys/{key:int}/delete", keys.ask_deletion, Right.SETTINGS, text("Delete a key")),
    _step_up("/app/keys/{key:int}/delete", keys.remove, Right.SETTINGS),
    _page("/app/requests", requests.show, Right.SETTINGS, text("Request log"), Group.SETUP, "activity"),
    _page("/app/requests.csv", requests.download, Right.SETTINGS, text("Request log")),
    _page("/app/requests/{request:int}", requests.one, Right.SETTINGS, text("Request")),
    _page("/app/service-accounts", service_accounts.show, Right.SETTINGS, text("Service accounts"), Group.SETUP, "bot"),
    _page("/app/service-accounts.csv", service_accounts.download, Right.SETTINGS, text("Service accounts")),
    _step_up("/app/service-accounts", service_accounts.create, Right.SETTINGS, text("Service accounts")),
    _page(_SERVICE, service_accounts.one, Right.SETTINGS, _SERVICE_TITLE),
    _step_up(f"{_SERVICE}/limit", service_accounts.limit, Right.SETTINGS, _SERVICE_TITLE),
    _step_up(f"{_SERVICE}/accounts", service_accounts.assign, Right.SETTINGS, most_fields=MOST_ACCOUNTS + 10),
    _step_up(f"{_SERVICE}/active", service_accounts.switch, Right.SETTINGS),
    _page("/app/people", people.show, Right.SETTINGS, text("People"), Group.SETUP, "users"),
    _page("/app/people.csv", people.download, Right.SETTINGS, text("People")),
    _step_up("/app/people", people.send_invitation, Right.SETTINGS, text("People")),
    _page("/app/people/{user:int}", people.one, Right.SETTINGS, text("Person")),
    _step_up("/app/people/{user:int}/accounts", people.assign, Right.SETTINGS, most_fields=MOST_ACCOUNTS + 10),
    _step_up("/app/people/{user:int}/invitation", people.send_again, Right.SETTINGS),
    _page("/app/people/{user:int}/role", people.ask_role, Right.SETTINGS, text("Change your own role")),
    _step_up("/app/people/{user:int}/role", people.give_role, Right.SETTINGS),
    _page("/app/people/{user:int}/remove", people.ask_removal, Right.SETTINGS, text("Remove somebody")),
    _step_up("/app/people/{user:int}/remove", people.take_away, Right.SETTINGS),
    _page(delivery.UNCLAIMED, delivery.show_defaults, Right.SETTINGS, delivery.UNCLAIMED_TITLE, Group.SETUP, "timer"),
    _step_up(delivery.UNCLAIMED, delivery.save_defaults, Right.SETTINGS, delivery.UNCLAIMED_TITLE),
    *BRANDING,
    _page("/app/audit", audit_log.show, Right.AUDIT, text("Audit log"), Group.SETUP, "scroll-text"),
    _page("/app/audit.csv", audit_log.download, Right.AUDIT, text("Audit log")),
    # Every other address
    _page("/app/{rest:path}", sign_in.nothing, Access.ANYONE, text("Not found")),
)
