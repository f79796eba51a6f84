"""The table of routes: every path of the back office, its handler, the right that it needs, and its place in the menu.

The menu shows pages in the order of the table, the guard checks each request against it, and tests try every route with every role.
A route that changes something is a POST.
"""

from functools import partial

from largesse.base.i18n.languages import text
from largesse.catalogue.sheet import MOST_BYTES
from largesse.customers.staff_roles import StaffRight
from largesse.web.console import sign_in
from largesse.web.console.page_routes import Access, PageRoute
from largesse.web.console.routes import sign_in_routes
from largesse.web.kit.body import BodyLimits
from largesse.web.office import (
    audit_log,
    bank_files,
    catalogue,
    catalogue_files,
    corrections,
    customer_people,
    customers,
    deliveries,
    gifts,
    money,
    overview,
    parcels,
    privacy,
    see_as,
    staff,
    stock,
)
from largesse.web.office.context import Group

_page = partial(PageRoute, "GET")
_form = partial(PageRoute, "POST")
_step_up = partial(_form, step_up=True)  # requires that the member recently confirmed who they are

_see_catalogue = partial(_page, who=StaffRight.SEE_CATALOGUE)
_catalogue_page = partial(_page, who=StaffRight.CATALOGUE)
_catalogue_form = partial(_form, who=StaffRight.CATALOGUE, limits=BodyLimits(65_536, whole_s=10.0, pause_s=5.0))
_file_form = partial(
    _form, who=StaffRight.CATALOGUE, limits=BodyLimits(4 * MOST_BYTES, whole_s=60.0, pause_s=15.0), takes_files=True
)


def _of_catalogue(pages: catalogue.Pages, title: str, new: str, icon: str) -> tuple[PageRoute, ...]:
    """Returns the routes of products or of collections."""
    one = f"{pages.path}/{{id:int}}"
    return (
        _see_catalogue(pages.path, pages.show_list, title=title, group=Group.GOODS, icon=icon),
        _catalogue_page(f"{pages.path}/new", pages.ask_new, title=new),
        _catalogue_form(f"{pages.path}/new", pages.create, title=new),
        _see_catalogue(one, pages.show, title=title),
        _catalogue_form(one, pages.save, title=title),
        *(
            _catalogue_form(f"{one}/{name}", handler, title=title)
            for name, handler in (
                ("publish", pages.publish),
                ("schedule", pages.schedule),
                ("unschedule", pages.unschedule),
                ("undo", pages.undo),
                ("discard", pages.discard),
                ("release", pages.release),
            )
        ),
    )


def _files_of(files: catalogue_files.Files) -> tuple[PageRoute, ...]:
    """Returns the routes of the CSV files of products or of collections."""
    return (
        _see_catalogue(f"{files.path}.csv", files.download, title=files.title),
        _catalogue_page(f"{files.path}/import", files.ask, title=files.title),
        _file_form(f"{files.path}/import", files.upload, title=files.title),
        _catalogue_form(f"{files.path}/publish", files.publish_all, title=files.title),
    )


_ONE_PRODUCT = f"{catalogue.PRODUCTS.path}/{{id:int}}"
CATALOGUE = (
    *_of_catalogue(catalogue.PRODUCTS, catalogue.PRODUCTS_TITLE, text("New product"), "store"),
    *_of_catalogue(catalogue.COLLECTIONS, catalogue.COLLECTIONS_TITLE, text("New collection"), "layers"),
    _file_form(f"{_ONE_PRODUCT}/picture", catalogue.PRODUCTS.save_picture, title=catalogue.PRODUCTS_TITLE),
    _catalogue_form(
        f"{_ONE_PRODUCT}/picture/remove", catalogue.PRODUCTS.remove_picture, title=catalogue.PRODUCTS_TITLE
    ),
    *_files_of(catalogue_files.PRODUCTS),
    *_files_of(catalogue_files.COLLECTIONS),
)

_MEMBER = f"{staff.HERE}/{{member:int}}"
STAFF = (
    _page(staff.HERE, staff.show, StaffRight.STAFF, text("Staff"), Group.SETUP, "users"),
    _step_up(staff.HERE, staff.send_invitation, StaffRight.STAFF, text("Staff")),
    _page(_MEMBER, staff.ask, StaffRight.STAFF, text("Member of staff")),
    _step_up(f"{_MEMBER}/role", staff.give_role, StaffRight.STAFF),
    _step_up(f"{_MEMBER}/reset", staff.begin_anew, StaffRight.STAFF, text("Member of staff")),
    _step_up(f"{_MEMBER}/deactivate", staff.take_away, StaffRight.STAFF),
)

_CUSTOMERS, _OF_CUSTOMER = "/office/customers", "/office/customers/{customer:int}"
_SEE_CUSTOMERS, _CHANGE_CUSTOMERS = StaffRight.SEE_CUSTOMERS, StaffRight.CUSTOMERS
_PEOPLE, _SERVICES, _GIFT = text("People"), text("Service accounts"), text("Gift")
_OF_PERSON, _OF_SERVICES = f"{_OF_CUSTOMER}/people/{{user:int}}", f"{_OF_CUSTOMER}/service-accounts"

CUSTOMERS = (
    _page(_CUSTOMERS, customers.show, _SEE_CUSTOMERS, text("Customers"), Group.CUSTOMERS, "building-2"),
    _page(f"{_CUSTOMERS}/new", customers.ask, _CHANGE_CUSTOMERS, text("Open a customer")),
    _step_up(_CUSTOMERS, customers.create, _CHANGE_CUSTOMERS, text("Open a customer")),
    _page(_OF_CUSTOMER, customers.one, _SEE_CUSTOMERS, text("Customer")),
    _step_up(f"{_OF_CUSTOMER}/terms", customers.change, _CHANGE_CUSTOMERS, text("Customer")),
    _step_up(f"{_OF_CUSTOMER}/accounts", customers.add_account, _CHANGE_CUSTOMERS, text("Customer")),
    _form(f"{_OF_CUSTOMER}/notes", customers.note, _CHANGE_CUSTOMERS, text("Customer")),
    _form(f"{_OF_CUSTOMER}/notes/{{note:int}}/erase", customers.unnote, _CHANGE_CUSTOMERS),
    _page(f"{_OF_CUSTOMER}/people", customer_people.show, _SEE_CUSTOMERS, _PEOPLE),
    _step_up(f"{_OF_CUSTOMER}/people", customer_people.send_invitation, _CHANGE_CUSTOMERS, _PEOPLE),
    _step_up(f"{_OF_PERSON}/invitation", customer_people.send_again, _CHANGE_CUSTOMERS, _PEOPLE),
    _step_up(f"{_OF_PERSON}/role", customer_people.give_role, _CHANGE_CUSTOMERS),
    _page(f"{_OF_PERSON}/reset", customer_people.ask_reset, _CHANGE_CUSTOMERS, text("New password")),
    _step_up(f"{_OF_PERSON}/reset", customer_people.make_reset, _CHANGE_CUSTOMERS, _PEOPLE),
    _page(_OF_SERVICES, customer_people.show_services, _SEE_CUSTOMERS, _SERVICES),
    _step_up(_OF_SERVICES, customer_people.create_service, _CHANGE_CUSTOMERS, _SERVICES),
    _step_up(f"{_OF_SERVICES}/limit", customer_people.limit_service, _CHANGE_CUSTOMERS, _SERVICES),
    _step_up(f"{_OF_SERVICES}/{{account:int}}/active", customer_people.switch_service, _CHANGE_CUSTOMERS),
    _page(f"{_OF_CUSTOMER}/see-as", see_as.ask, StaffRight.SEE_AS, text("See as")),
    _form(f"{_OF_CUSTOMER}/see-as", see_as.begin, StaffRight.SEE_AS, text("See as")),
    _form("/office/see-as/end", see_as.end, StaffRight.SEE_AS),
    _page("/office/as/{rest:path}", see_as.show, StaffRight.SEE_AS, text("See as")),
)

_OF_ORDER = "/office/gifts/{customer:int}/{environment}/{reference}"
_OF_GIFT = f"{_OF_ORDER}/{{number:int}}"

FIND = (
    _page("/office/find", gifts.ask, StaffRight.FIND, text("Find a gift"), Group.CUSTOMERS, "search"),
    _form("/office/find", gifts.search, StaffRight.FIND, text("Find a gift")),
    _page(_OF_ORDER, gifts.order, StaffRight.FIND, text("Order")),
    _page(_OF_GIFT, gifts.show, StaffRight.FIND, _GIFT),
    _step_up(f"{_OF_GIFT}/correct", gifts.correct, StaffRight.DELIVERIES, _GIFT),
    _form(f"{_OF_GIFT}/resend", gifts.resend, StaffRight.DELIVERIES, _GIFT),
    _step_up(f"{_OF_GIFT}/cancel", gifts.cancel, StaffRight.DELIVERIES, _GIFT),
)

_DELIVERIES = text("Deliveries")
_OF_WEBHOOK = "/office/deliveries/webhooks/{customer:int}/{environment}/{subscription}"

DELIVERIES = (
    _page("/office/deliveries", deliveries.show, StaffRight.SEE_DELIVERIES, _DELIVERIES, Group.CUSTOMERS, "send"),
    _page("/office/deliveries/requeue", deliveries.ask, StaffRight.DELIVERIES, text("Send again")),
    _step_up("/office/deliveries/requeue", deliveries.send_again, StaffRight.DELIVERIES, text("Send again")),
    _page("/office/deliveries/webhooks", deliveries.webhooks, StaffRight.SEE_DELIVERIES, text("Failing webhooks")),
    _form(_OF_WEBHOOK, deliveries.deliver_again, StaffRight.DELIVERIES),
)

_OF_REQUEST = "/office/privacy/{request:int}"

PRIVACY = (
    _page("/office/privacy", privacy.show, StaffRight.SEE_PRIVACY, text("Privacy"), Group.CUSTOMERS, "shield-check"),
    _form("/office/privacy", privacy.take_in, StaffRight.PRIVACY, text("Privacy")),
    _page(_OF_REQUEST, privacy.one, StaffRight.SEE_PRIVACY, text("Privacy request")),
    _step_up(f"{_OF_REQUEST}/export", privacy.download, StaffRight.PRIVACY, text("Privacy request")),
    _page(f"{_OF_REQUEST}/erase", privacy.ask_erasing, StaffRight.PRIVACY, text("Erase")),
    _step_up(f"{_OF_REQUEST}/erase", privacy.erase, StaffRight.PRIVACY, text("Privacy request")),
    _form(f"{_OF_REQUEST}/done", privacy.close, StaffRight.PRIVACY, text("Privacy request")),
)

# Reads a little more than the limit, so that the page can say beside the form what is too large.
_OF_FILES = BodyLimits(2 * stock.MOST_BYTES, whole_s=60.0, pause_s=15.0)
_STOCK_GIFT, _PARCELS, _PARCEL = text("Stock of a gift"), text("Parcels"), text("Parcel")
_NUMBERS = text("Tracking numbers")
_OF_STOCKED, _OF_PARCEL = f"{stock.HERE}/{{product:int}}", f"{parcels.HERE}/{{parcel:int}}"
_upload_form = partial(_form, limits=_OF_FILES, takes_files=True)

GOODS = (
    _page(stock.HERE, stock.show, StaffRight.SEE_STOCK, text("Stock"), Group.GOODS, "ticket"),
    _page(_OF_STOCKED, stock.one, StaffRight.SEE_STOCK, _STOCK_GIFT),
    _upload_form(f"{_OF_STOCKED}/numbers", stock.add, StaffRight.STOCK, _STOCK_GIFT),
    _form(f"{_OF_STOCKED}/warning", stock.warn, StaffRight.STOCK, _STOCK_GIFT),
    _page(parcels.HERE, parcels.show, StaffRight.SEE_PARCELS, _PARCELS, Group.GOODS, "package"),
    _form(f"{parcels.HERE}/pack", parcels.pack, StaffRight.PARCELS, _PARCELS, most_fields=parcels.MOST_FIELDS),
    _page(f"{parcels.HERE}/send", parcels.ask_numbers, StaffRight.PARCELS, _NUMBERS),
    _form(f"{parcels.HERE}/send", parcels.send, StaffRight.PARCELS, _NUMBERS, most_fields=parcels.MOST_FIELDS),
    _upload_form(f"{parcels.HERE}/import", parcels.import_file, StaffRight.PARCELS, _NUMBERS),
    _page(_OF_PARCEL, parcels.one, StaffRight.SEE_PARCELS, _PARCEL),
    _form(f"{_OF_PARCEL}/send", parcels.send_one, StaffRight.PARCELS, _PARCEL),
    _form(f"{_OF_PARCEL}/correct", parcels.correct, StaffRight.PARCELS, _PARCEL),
    _form(f"{_OF_PARCEL}/returned", parcels.came_back, StaffRight.PARCELS, _PARCEL),
    _form(f"{_OF_PARCEL}/again", parcels.send_again, StaffRight.PARCELS),
)

_TOP_UP, _BANK_FILES, _BANK_FILE = text("Top-up"), text("Bank files"), text("Bank file")
_DUE, _CORRECT, _CORRECTION = text("Amounts due"), text("Propose a correction"), text("Correction")
_OF_FILE, _OF_DUE = f"{bank_files.HERE}/{{file:int}}", f"{money.DUE}/{{account:int}}"
_OF_ACCOUNT, _OF_CORRECTION = f"{money.ACCOUNTS}/{{account:int}}", f"{corrections.HERE}/{{correction:int}}"

MONEY = (
    _page(money.HERE, money.show, StaffRight.SEE_MONEY, text("Money"), Group.MONEY, "wallet"),
    _page(f"{money.HERE}/top-ups/{{reference}}", money.top_up, StaffRight.SEE_MONEY, _TOP_UP),
    _step_up(f"{money.HERE}/top-ups/{{reference}}", money.confirm, StaffRight.MONEY, _TOP_UP),
    _page(bank_files.HERE, bank_files.show, StaffRight.SEE_MONEY, _BANK_FILES),
    _upload_form(bank_files.HERE, bank_files.read, StaffRight.MONEY, _BANK_FILES),
    _page(_OF_FILE, bank_files.one, StaffRight.SEE_MONEY, _BANK_FILE),
    _step_up(f"{_OF_FILE}/confirm", bank_files.confirm, StaffRight.MONEY),
    _step_up(f"{_OF_FILE}/lines/{{line:int}}/credit", bank_files.credit, StaffRight.MONEY),
    _form(f"{_OF_FILE}/lines/{{line:int}}/dismiss", bank_files.dismiss, StaffRight.MONEY),
    _page(money.DUE, money.due, StaffRight.SEE_MONEY, _DUE),
    _page(_OF_DUE, money.due_one, StaffRight.SEE_MONEY, _DUE),
    _step_up(_OF_DUE, money.pay, StaffRight.MONEY, _DUE),
    _page(money.ACCOUNTS, money.accounts, StaffRight.SEE_MONEY, text("Accounts")),
    _page(_OF_ACCOUNT, money.account_statement, StaffRight.SEE_MONEY, text("Statement")),
    _page(f"{_OF_ACCOUNT}/statement.csv", money.download_statement, StaffRight.SEE_MONEY, text("Statement")),
    _page(f"{_OF_ACCOUNT}/correct", corrections.ask, StaffRight.MONEY, _CORRECT),
    _step_up(f"{_OF_ACCOUNT}/correct", corrections.propose, StaffRight.MONEY, _CORRECT),
    _page(corrections.HERE, corrections.show, StaffRight.SEE_MONEY, text("Corrections")),
    _page(_OF_CORRECTION, corrections.one, StaffRight.SEE_MONEY, _CORRECTION),
    _step_up(f"{_OF_CORRECTION}/approve", corrections.approve, StaffRight.MONEY, _CORRECTION),
    _step_up(f"{_OF_CORRECTION}/decline", corrections.decline, StaffRight.MONEY, _CORRECTION),
    _form(f"{_OF_CORRECTION}/withdraw", corrections.withdraw, StaffRight.MONEY, _CORRECTION),
    _page(f"{money.HERE}/margins", money.margins, StaffRight.SEE_MONEY, text("Margins")),
)

ROUTES = (
    *sign_in_routes("/office", StaffRight.OVERVIEW),
    _page("/office/link/{secret}", staff.link, Access.ANYONE, text("Sign in")),
    _form("/office/link/{secret}", staff.follow, Access.ANYONE, text("Sign in")),
    # Today
    _page("/office", overview.show, StaffRight.OVERVIEW, text("Overview"), Group.TODAY, "house"),
    # Customers and gifts
    *CUSTOMERS,
    *FIND,
    *DELIVERIES,
    *PRIVACY,
    # Catalogue and stock
    *CATALOGUE,
    *GOODS,
    # Money
    *MONEY,
    # Settings
    *STAFF,
    _page("/office/audit", audit_log.show, StaffRight.AUDIT, text("Audit log"), Group.SETUP, "scroll-text"),
    _page("/office/settings", overview.show_settings, StaffRight.SETTINGS, text("Settings"), Group.SETUP, "settings"),
    # Every other address
    _page("/office/{rest:path}", sign_in.nothing, Access.ANYONE, text("Not found")),
)
