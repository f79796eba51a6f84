"""The context of a request to a page of the back office, and its layout: the web application's, with its own colour, menu and words."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path

from largesse.audit.service import Acting, by_staff
from largesse.base.i18n.languages import text
from largesse.customers.actor import Actor
from largesse.customers.security import SecurityService
from largesse.db.pool import Database, ReadOnly
from largesse.staff.model import StaffMember
from largesse.staff.sign_in import StaffSession, StaffSigningIn, staff_actor
from largesse.web.console import layout as console
from largesse.web.console.context import PageContext
from largesse.web.console.layout import Layout
from largesse.web.console.words import WORDS, Names, Word
from largesse.web.kit.page_services import Office
from largesse.web.kit.query import INT64

_WHOLE = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class OfficeContext(PageContext):
    """A request to a page of the back office."""

    session: StaffSession | None

    @property
    def office(self) -> Office:
        """The services that only the back office uses."""
        assert self.services.office is not None, "the guard requires it"
        return self.services.office

    @property
    def person(self) -> StaffMember:
        """The signed-in member of staff. Only for routes that need a right."""
        assert self.session is not None, "the guard requires a session"
        return self.session.person

    @property
    def database(self) -> Database:
        """The pool of the back office, for reading: `context.database.connection(OFFICE)`. To write, call an operation of a service."""
        return ReadOnly(self.office.database)

    @property
    def signing_in(self) -> StaffSigningIn:
        """The sign-in steps for members of staff."""
        return self.office.signing_in

    @property
    def security(self) -> SecurityService:
        """The service that changes passwords, second steps and sessions of members of staff."""
        return self.office.security

    @property
    def layout(self) -> Layout:
        """The layout of the pages."""
        return self._layout

    @property
    def place(self) -> str:
        """The member of staff that the forms of the page are for; empty without one."""
        return f"staff-{self.session.person_id}" if self.session else ""

    @property
    def actor(self) -> Actor:
        """The member of staff as the actor of an operation."""
        return self._actor_on(self.office.database)

    @asynccontextmanager
    async def patient_actor(self) -> AsyncIterator[Actor]:
        """The same actor for an operation that reads whole tables, which takes longer than a request may. Suspends the time-out of the request."""
        with self.services.timeouts.suspended():
            async with self.office.database.patient() as database:
                yield self._actor_on(database)

    def _actor_on(self, database: Database) -> Actor:
        member = self.person
        who = by_staff(member.person_id, member.email, self.origin.address, self.request.scope["request_id"])
        return staff_actor(database, member, Acting(who, self.services.chains))

    @property
    def past(self) -> tuple[datetime, int] | None:
        """The position in the page's address after which a list by time and id goes on; None without one."""
        before, at_us = self.parameters.number("before", INT64), self.parameters.number("after", INT64)
        if before is None or at_us is None or at_us > INT64 // 1_000:
            return None
        return _EPOCH + at_us * _WHOLE, before

    def here_past(self, at: datetime, last_id: int) -> str:
        """Returns the address of this page after a position."""
        return self.here(before=last_id, after=(at - _EPOCH) // _WHOLE)


HERE = Path(__file__).parent
CATALOGUES = HERE / "locale"
TEMPLATES = HERE / "templates"

ROLE_NAMES = Names(
    {
        "owner": text("Owner"),
        "catalogue": text("Catalogue manager"),
        "finance": text("Finance staff"),
        "warehouse": text("Warehouse"),
        "support": text("Support"),
        "auditor": text("Auditor"),
    }
)


class Group(Enum):
    """The groups of the menu, in order, and their names."""

    TODAY = text("Today")
    CUSTOMERS = text("Customers and gifts")
    GOODS = text("Catalogue and stock")
    MONEY = text("Money")
    SETUP = text("Settings")


class OfficeLayout(console.Layout):
    """The layout of all pages of the back office."""

    root = "/office"
    guide = "office.html"
    name = "Largesse Office"
    groups = Group
    templates = (TEMPLATES, console.TEMPLATES)
    catalogues = (console.CATALOGUES, CATALOGUES)
    asset_folders = (console.HERE / "assets", HERE / "assets")
    sheets = (*console.Layout.sheets, "office.css")
    words: Mapping[str, Word] = {"second-step": WORDS["second-step"]}
    role_names = ROLE_NAMES
