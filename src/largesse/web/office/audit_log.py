"""The audit log of all customers and of the installation, newest first, in sentences."""

import re
from collections.abc import Mapping

from markupsafe import Markup
from starlette.responses import Response

from largesse.audit.service import (
    INSTALLATION,
    LOOKED_AT,
    LOOKED_AT_OF_CUSTOMER,
    AuditEvent,
    EventFilter,
    newest_events,
    newest_of_all,
)
from largesse.base.errors import OperatorError
from largesse.base.i18n.languages import text
from largesse.customers.customer_store import find_customer
from largesse.db.scope import OFFICE
from largesse.reports.names import Names, read_account_names, read_order_currencies
from largesse.web.console.audit_log import accounts_in, entry_of
from largesse.web.console.audit_words import KINDS, SENTENCES, acts_of
from largesse.web.console.people import ROLE_NAMES
from largesse.web.kit.query import INT64
from largesse.web.office.context import ROLE_NAMES as STAFF_ROLE_NAMES
from largesse.web.office.context import OfficeContext

_INSTALLATION = "installation"  # the filter's value for the installation, in place of a customer's key
# The sentences of acts on the whole installation.
OF_OFFICE: Mapping[str, str] = {
    "bank_file.read": text("%(who)s read the %(what)s, lines: %(new_lines)s"),
    "bank_line.dismissed": text("%(who)s dismissed a line of a bank's file: %(what)s"),
    "catalogue.created": text("%(who)s created the %(what)s as a draft"),
    "catalogue.draft_discarded": text("%(who)s discarded the draft of the %(what)s"),
    "catalogue.draft_saved": text("%(who)s saved a draft of the %(what)s"),
    "catalogue.imported": text("%(who)s imported drafts from the %(what)s"),
    "catalogue.published": text("%(who)s published the %(what)s"),
    "catalogue.published_many": text("%(who)s published %(what)s"),
    "catalogue.released": text("%(who)s released the %(what)s from the seed file"),
    "catalogue.scheduled": text("%(who)s scheduled the draft of the %(what)s"),
    "catalogue.undone": text("%(who)s undid the last publication of the %(what)s"),
    "catalogue.unscheduled": text("%(who)s cancelled the schedule of the %(what)s"),
    "claims.chained": text("%(who)s began to mark changes of codes"),
    "customer_note.added": text("%(who)s added a note about the %(what)s"),
    "customer_note.erased": text("%(who)s erased a note about the %(what)s"),
    "gift.searched": text("%(who)s searched for gifts of all customers"),
    "ledger.chained": text("%(who)s marked the entries of the ledger"),
    "privacy_request.done": text("%(who)s completed the %(what)s"),
    "privacy_request.received": text("%(who)s received the %(what)s"),
    "reports.rebuilt": text("%(who)s rebuilt the reports"),
    "secrets.resealed": text("%(who)s encrypted everything under the newest master key"),
    "staff.deactivated": text("%(who)s deactivated %(what)s"),
    "staff.invited": text("%(who)s invited %(what)s to the back office"),
    "staff.reset": text("%(who)s created a link for %(what)s to set up sign-in again"),
    "staff.role_changed": text("%(who)s changed the role of %(what)s from %(old_role)s to %(new_role)s"),
    "stock.imported": text("%(who)s added voucher numbers to the stock"),
    "stock.warned": text("%(who)s changed the stock warning of the %(what)s"),
    "world.exported": text("%(who)s wrote a seed file from the database"),
    "world.loaded": text("%(who)s loaded a seed file"),
}
_KIND_OF_OFFICE = "office"
# Subjects, which the log stores in English. One that matches a text is shown in the reader's language.
_SUBJECTS = (
    text("automation %(name)s"),
    text("bank file %(name)s, line %(line)s"),
    text("bank file %(name)s"),
    text("collection %(name)s"),
    text("customer %(name)s"),
    text("file %(name)s"),
    text("gift %(name)s"),
    text("order %(name)s"),
    text("parcel %(name)s"),
    text("privacy request %(name)s"),
    text("product %(name)s"),
    text("send %(name)s"),
)
_FORMS = {re.compile(re.sub(r"%\((\w+)\)s", r"(?P<\1>.+)", one)): one for one in _SUBJECTS}
_ACCOUNT = re.compile(r"account ([0-9]{1,9})")
_CONTACT = re.compile(r"contact ([0-9]{1,9})")
_MANY = re.compile(r"(\d+) (product|collection)s")  # the subject of a publication of several


async def show(context: OfficeContext) -> Response:
    """Shows a page of the log, filtered by customer, actor, kind and subject."""
    of, kind, before = context.query("of").strip(), context.query("kind"), context.parameters.number("before", INT64)
    acts = sorted(OF_OFFICE) if kind == _KIND_OF_OFFICE else acts_of(kind)
    events: list[AuditEvent] = []
    older: str | None = None
    names, is_unknown, looked_at = Names(), False, LOOKED_AT
    async with context.database.connection(OFFICE) as connection:
        try:
            customer_id = INSTALLATION if of == _INSTALLATION else await find_customer(connection, of) if of else None
        except OperatorError:
            is_unknown = True
        else:
            who, words = context.query("who").strip(), context.query("q").strip()
            if customer_id is None:
                events, past = await newest_of_all(connection, acts=acts, who=who, words=words, past=context.past)
                older = context.here_past(*past) if past else None
            else:
                looked_at, wanted = LOOKED_AT_OF_CUSTOMER, EventFilter(customer_id, tuple(acts), who, words)
                events, following = await newest_events(connection, wanted, before=before)
                older = context.here(before=following, after=None) if following else None
        mentioned = {one for event in events for one in (event.subject, *accounts_in(event))}
        ids = [int(found[1]) for found in map(_ACCOUNT.fullmatch, mentioned) if found]
        names = await read_account_names(connection, ids)
        orders = [one.subject.removeprefix("order ") for one in events if one.subject.startswith("order ")]
        customers = {one.customer for one in events if one.customer}
        names.currencies.update(await read_order_currencies(connection, customers, orders))
    kinds = [(one, context.say(name)) for one, (_, name, _) in KINDS.items()]
    return context.page(
        "office_log.html",
        entries=[
            entry_of(
                context,
                one,
                names,
                {**SENTENCES, **OF_OFFICE},
                Markup("<strong>{}</strong>").format(_what(context, one.subject, names)),
                STAFF_ROLE_NAMES if one.act.startswith("staff.") else ROLE_NAMES,
            )
            for one in events
        ],
        kinds=[*kinds, (_KIND_OF_OFFICE, context.say("Back office and installation"))],
        query=context.query,
        is_unknown=is_unknown,
        older=older,
        looked_at=context.language.number(looked_at),
        newest=context.here(before=None, after=None) if before is not None else None,
        is_filtered=any(context.query(name) for name in ("of", "kind", "who", "q")) or before is not None,
    )


def _what(context: OfficeContext, subject: str, names: Names) -> str:
    """Returns the subject of an act: the name of an account, or the subject with its kind in the reader's language."""
    if subject in names.subjects:
        return names.subjects[subject]
    if contact := _CONTACT.fullmatch(subject):  # the sentence says that it is a contact
        return contact[1]
    if many := _MANY.fullmatch(subject):
        count, kind = int(many[1]), many[2]
        if kind == "product":
            return context.ngettext("%(count)s product", "%(count)s products", count)
        return context.ngettext("%(count)s collection", "%(count)s collections", count)
    for form, said in _FORMS.items():
        if found := form.fullmatch(subject):
            return context.say(said, **found.groupdict())
    return subject
