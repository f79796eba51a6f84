"""The table of routes: every address of the back office, its handler, the right that it needs, and its place in the menu.

The menu shows pages in the order of the table, the guard checks each request against it, and tests try every route with every role.
A route that changes something is a POST.
"""

from __future__ import annotations

from functools import partial

from largesse.base.i18n.templates import text
from largesse.catalogue.sheet import MOST_BYTES
from largesse.staff.model import StaffRight
from largesse.web.console import passkeys, security, step_up
from largesse.web.console import sign_in as console_sign_in
from largesse.web.console.page_routes import Access, PageRoute
from largesse.web.kit.body import BodyLimits
from largesse.web.office import audit_log, catalogue, catalogue_files, overview, settings, sign_in, staff
from largesse.web.office.layout import Group

_page = partial(PageRoute, "GET")
_form = partial(PageRoute, "POST")
_step_up = partial(_form, step_up=True)  # the member of staff has confirmed who they are a moment ago

_SECURITY = {"who": StaffRight.OVERVIEW, "title": text("Security"), "before_second_step": True}
_security_page, _security_form, _security_change = (
    partial(_page, **_SECURITY),
    partial(_form, **_SECURITY),
    partial(_step_up, **_SECURITY),
)
_SIGN_IN = text("Sign in")

ENTRANCE = (
    _page("/office/sign-in", sign_in.sign_in, Access.ANYONE, _SIGN_IN),
    _form("/office/sign-in", sign_in.signed_in, Access.ANYONE, _SIGN_IN),
    _form("/office/sign-out", console_sign_in.sign_out, Access.ANYONE),
    _page("/office/link/{secret}", sign_in.link, Access.ANYONE, _SIGN_IN),
    _form("/office/link/{secret}", sign_in.follow, Access.ANYONE, _SIGN_IN),
    _page("/office/second-step", security.ask_second_step, Access.ENTERING, text("Second step")),
    _form("/office/second-step", security.second_step, Access.ENTERING, text("Second step")),
    _page("/office/prove", step_up.ask, StaffRight.OVERVIEW, step_up.TITLE, before_second_step=True),
    _form("/office/prove", step_up.prove, StaffRight.OVERVIEW, step_up.TITLE, before_second_step=True),
)
SECURITY = (
    _security_page("/office/security", security.show),
    _security_page("/office/security/app", security.app),
    _security_page("/office/security/passkeys/new", passkeys.begin, title=text("New passkey")),
    _security_form("/office/security/sessions/{session:int}/end", security.end_one),
    _security_form("/office/security/sessions/end", security.end_others),
    _security_form("/office/security/preferences", security.prefer),
    _security_change("/office/security/password", security.change_password),
    _security_change("/office/security/app", security.turn_app_on),
    _security_change("/office/security/app/off", security.turn_app_off),
    _security_change("/office/security/passkeys", passkeys.add),
    _security_change("/office/security/passkeys/{passkey:int}/remove", passkeys.remove),
    _security_change("/office/security/recovery-codes", security.recovery_codes),
)

_see_catalogue = partial(_page, who=StaffRight.SEE_CATALOGUE)
_catalogue_page = partial(_page, who=StaffRight.CATALOGUE)
_catalogue_form = partial(_form, who=StaffRight.CATALOGUE, limits=BodyLimits(65_536, whole_s=10.0, pause_s=5.0))
_file_form = partial(
    _form, who=StaffRight.CATALOGUE, limits=BodyLimits(4 * MOST_BYTES, whole_s=60.0, pause_s=15.0), takes_files=True
)


def _of_catalogue(pages: catalogue.Pages, title: str, icon: str) -> tuple[PageRoute, ...]:
    """Returns the routes of products, or of collections."""
    one = f"{pages.path}/{{id:int}}"
    return (
        _see_catalogue(pages.path, pages.show_list, title=title, group=Group.GOODS, icon=icon),
        _catalogue_page(f"{pages.path}/new", pages.ask_new, title=text("New")),
        _catalogue_form(f"{pages.path}/new", pages.create, title=text("New")),
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


_ONE_PRODUCT = f"{catalogue.PRODUCTS.path}/{{id:int}}"
CATALOGUE = (
    *_of_catalogue(catalogue.PRODUCTS, catalogue.PRODUCTS_TITLE, "store"),
    *_of_catalogue(catalogue.COLLECTIONS, catalogue.COLLECTIONS_TITLE, "layers"),
    _file_form(f"{_ONE_PRODUCT}/picture", catalogue.PRODUCTS.save_picture, title=catalogue.PRODUCTS_TITLE),
    _catalogue_form(
        f"{_ONE_PRODUCT}/picture/remove", catalogue.PRODUCTS.remove_picture, title=catalogue.PRODUCTS_TITLE
    ),
    _see_catalogue("/office/catalogue.csv", catalogue_files.download, title=catalogue.PRODUCTS_TITLE),
    _catalogue_page("/office/catalogue/import", catalogue_files.ask, title=catalogue_files.TITLE),
    _file_form("/office/catalogue/import", catalogue_files.upload, title=catalogue_files.TITLE),
    _catalogue_form("/office/catalogue/publish", catalogue_files.publish_all, title=catalogue.PRODUCTS_TITLE),
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

ROUTES = (
    *ENTRANCE,
    *SECURITY,
    # Today
    _page("/office", overview.show, StaffRight.OVERVIEW, text("Overview"), Group.TODAY, "house"),
    # Catalogue and stock
    *CATALOGUE,
    # Settings
    *STAFF,
    _page("/office/audit", audit_log.show, StaffRight.AUDIT, text("Audit log"), Group.SETUP, "scroll-text"),
    _page("/office/settings", settings.show, StaffRight.SETTINGS, text("Settings"), Group.SETUP, "settings"),
    # Every other address
    _page("/office/{rest:path}", console_sign_in.nothing, Access.ANYONE, text("Not found")),
)
