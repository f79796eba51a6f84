"""The context of a request to a page of the back office, its uploaded file, and its layout: the web application's, with its own colour, menu and words."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path

from largesse.audit.service import Acting, by_staff
from largesse.base.errors import FileRefused
from largesse.base.i18n.languages import text
from largesse.base.text import cleaned
from largesse.customers.actor import Actor
from largesse.customers.staff_roles import StaffMember
from largesse.db.pool import Database
from largesse.staff.sign_in import StaffSession, staff_actor
from largesse.web.console import layout as console
from largesse.web.console.context import PageContext, note_no_file
from largesse.web.console.words import WORDS, Names, Word
from largesse.web.kit.query import INT64

_WHOLE = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class OfficeContext(PageContext):
    """A request to a page of the back office."""

    session: StaffSession | None

    @property
    def person(self) -> StaffMember:
        """The signed-in member of staff. Only for routes that need a right."""
        assert self.session is not None, "the guard requires a session"
        return self.session.person

    @property
    def place(self) -> str:
        """The member of staff that the forms of the page are for; empty without one."""
        return f"staff-{self.session.person_id}" if self.session else ""

    @property
    def actor(self) -> Actor:
        """The member of staff as the actor of an operation."""
        return self._actor_on(self.users.database)

    @asynccontextmanager
    async def patient_actor(self) -> AsyncIterator[Actor]:
        """The same actor for an operation that reads whole tables, which takes longer than a request may. Suspends the time-out of the request."""
        with self.services.timeouts.suspended():
            async with self.users.database.patient() as database:
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


# Errors of uploaded files. They never repeat a number or a name from the file.
_MOST_NAME = 100  # the most characters of a file name that pages show
_TOO_LARGE = text("The file is larger than %(most)s MB.")
_REFUSED: Mapping[str, str] = {
    "empty": text("Line %(line)s has nothing in the column %(column)s."),
    "encoding": text(
        "Line %(line)s: the letters of a number or PIN cannot be read for certain. Save the file as CSV in UTF-8."
    ),
    "formula": text(
        "Line %(line)s has a spreadsheet's error text, such as #N/A or ####. Correct it there, and save the file again."
    ),
    "heading_twice": text("The heading names the column %(column)s twice. Rename or remove one of them."),
    "no_camt": text("This is neither a CSV file nor a CAMT file."),
    "no_csv": text("This is not a CSV file."),
    "no_heading": text(
        "The first line must be a heading. These columns are missing: %(lacks)s. It may have: %(may_have)s."
    ),
    "no_parcel": text("Line %(line)s names no parcel."),
    "no_text": text("This is not a text file. Save it as CSV in UTF-8."),
    "no_transfers": text("The file has a heading, but no transfers below it."),
    "no_value": text("Line %(line)s does not say what the number is worth. Add a column “value”, or choose an amount."),
    "number": text("Line %(line)s: a number has at most %(most)s characters, all of them printable."),
    "other_format": text(
        "This file has the format %(format)s. Import the CSV or CAMT file that the bank offers beside it."
    ),
    "other_value": text("Line %(line)s has an amount at which this gift is not sold."),
    "over": text("The last day in line %(line)s has passed."),
    "shortened": text(
        "Line %(line)s has a number that a spreadsheet shortened to one such as 1.23E+11. Make its column text there, and save the file again."
    ),
    "too_large": _TOO_LARGE,
    "too_long": text("Line %(line)s has a text of more than %(most)s characters."),
    "too_many_lines": text("The file has more than %(most)s lines. Split it."),
    "too_wide": text("Line %(line)s has more columns than the heading, or more than %(most)s."),
    "total": text("Line %(line)s is a sum, not a number. Remove it."),
    "twice": text("Line %(line)s contradicts line %(first)s about a parcel."),
    "use_by": text("Line %(line)s: write the last day as 2030-12-31."),
    "value": text("Line %(line)s has an amount that cannot be read."),
    "all_other_value": text("This gift is sold at %(amounts)s."),
    "all_value": text("The amount cannot be read."),
}


def file_name(context: OfficeContext) -> str:
    """Returns the name of the uploaded file; empty if none was uploaded."""
    return cleaned(context.file_names.get("file", ""), "")[:_MOST_NAME]


def refused(context: OfficeContext, refusal: FileRefused) -> str:
    """Returns why a file was refused, in the language of the page, with its name. What is wrong with a field, or was typed, names no file."""
    numbers = {
        name: context.language.number(value) if isinstance(value, int) else value
        for name, value in refusal.values.items()
    }
    said, name = context.say(_REFUSED[refusal.code], **numbers), file_name(context)
    if not name or refusal.code.startswith("all_"):
        return said
    return context.say("%(file)s: %(said)s", file=name, said=said)


def uploaded(context: OfficeContext, most_bytes: int) -> bytes | None:
    """Returns the file of the form; None, with an error in the form, if it is missing or too large."""
    content = context.files.get("file", b"")
    if not content:
        note_no_file(context)
    elif len(content) > most_bytes:
        context.form.error("file", context.say(_TOO_LARGE, most=most_bytes // 1024 // 1024))
    else:
        return content
    return None
