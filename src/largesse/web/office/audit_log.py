"""The audit log of all customers and of the installation, newest first, in sentences."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup
from starlette.responses import Response

from largesse.audit.service import INSTALLATION, AuditEvent, newest_of_all
from largesse.base.errors import OperatorError
from largesse.base.i18n.templates import text
from largesse.customers.customer_store import find_customer
from largesse.db.scope import OFFICE
from largesse.reports.names import Names
from largesse.web.console.audit_log import entry_of
from largesse.web.console.audit_words import KINDS, SENTENCES, acts_of
from largesse.web.kit.query import INT64
from largesse.web.office.context import OfficeContext

_INSTALLATION = "installation"  # in the place of a customer's key
# What is done to the whole installation.
OF_OFFICE: Mapping[str, str] = {
    "catalogue.created": text("%(who)s created the %(what)s as a draft"),
    "catalogue.draft_discarded": text("%(who)s discarded the draft of the %(what)s"),
    "catalogue.draft_saved": text("%(who)s saved a draft of the %(what)s"),
    "catalogue.imported": text("%(who)s imported drafts from the %(what)s"),
    "catalogue.published": text("%(who)s published the %(what)s"),
    "catalogue.published_many": text("%(who)s published %(what)s"),
    "catalogue.released": text("%(who)s released the %(what)s from the seed file"),
    "catalogue.scheduled": text("%(who)s scheduled the draft of the %(what)s"),
    "catalogue.undone": text("%(who)s undid the last publication of the %(what)s"),
    "catalogue.unscheduled": text("%(who)s took back the schedule of the %(what)s"),
    "claims.chained": text("%(who)s began to mark what becomes of codes"),
    "ledger.chained": text("%(who)s marked the entries of the ledger"),
    "reports.rebuilt": text("%(who)s rebuilt the reports"),
    "secrets.resealed": text("%(who)s encrypted everything under the newest master key"),
    "staff.deactivated": text("%(who)s deactivated %(what)s"),
    "staff.invited": text("%(who)s invited %(what)s to the back office"),
    "staff.reset": text("%(who)s created a link to sign in anew for %(what)s"),
    "staff.role_changed": text("%(who)s changed the role of %(what)s from %(old_role)s to %(new_role)s"),
    "stock.imported": text("%(who)s added voucher numbers to the stock"),
    "world.exported": text("%(who)s wrote a seed file from the database"),
    "world.loaded": text("%(who)s loaded a seed file"),
}
_KIND_OF_OFFICE = "office"


async def show(context: OfficeContext) -> Response:
    """Shows a page of the log, filtered by customer, by who acted, by kind and by subject."""
    of, kind, before = context.query("of").strip(), context.query("kind"), context.parameters.number("before", INT64)
    acts = sorted(OF_OFFICE) if kind == _KIND_OF_OFFICE else acts_of(kind)
    events: list[AuditEvent] = []
    following: int | None = None
    is_unknown = False
    async with context.database.connection(OFFICE) as connection:
        try:
            customer_id = INSTALLATION if of == _INSTALLATION else await find_customer(connection, of) if of else None
        except OperatorError:
            is_unknown = True
        else:
            events, following = await newest_of_all(
                connection,
                customer_id=customer_id,
                acts=acts,
                who=context.query("who").strip(),
                words=context.query("q").strip(),
                before=before,
            )
    kinds = [(one, context.say(name)) for one, (_, name, _) in KINDS.items()]
    return context.page(
        "office_log.html",
        entries=[
            entry_of(
                context, one, Names(), {**SENTENCES, **OF_OFFICE}, Markup("<strong>{}</strong>").format(one.subject)
            )
            for one in events
        ],
        kinds=[*kinds, (_KIND_OF_OFFICE, context.say("Back office and installation"))],
        query=context.query,
        is_unknown=is_unknown,
        older=context.here(before=following) if following is not None else None,
        newest=context.here(before=None) if before is not None else None,
        is_filtered=any(context.query(name) for name in ("of", "kind", "who", "q")) or before is not None,
    )
