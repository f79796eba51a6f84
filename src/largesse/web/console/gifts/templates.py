"""Templates: the list, with how often each was used; removing one. `saving` makes and changes them."""

from __future__ import annotations

from starlette.responses import Response

from largesse.reports.templates import MOST_COUNTED, template_uses
from largesse.templates.keeping import remove_template
from largesse.templates.listing import Template, list_templates
from largesse.web.console.gifts.browsing import page_number
from largesse.web.console.gifts.picking import read_picked
from largesse.web.console.send.opening import person_as_caller
from largesse.web.console.visit import Visit

_SHOWN = 50


async def show(visit: Visit) -> Response:
    """The templates, newest first."""
    caller = await person_as_caller(visit)
    principal, page = caller.principal, page_number(visit)
    snapshot = await visit.services.catalogue.at(caller.catalogue_version)
    async with visit.database.connection(principal.scope) as connection:
        found = await list_templates(connection, principal, offset=(page - 1) * _SHOWN, limit=_SHOWN + 1)
        shown = found[:_SHOWN]
        uses = await template_uses(connection, principal, [one.id for one in shown])
    return visit.page(
        "gifts/templates.html",
        templates=shown,
        uses=uses,
        most_counted=MOST_COUNTED,
        gone={one.id for one in shown if not snapshot.has_gift(one.product_id, one.collection_id)},
        older=visit.here(page=page + 1) if len(found) > _SHOWN else None,
        newer=visit.here(page=page - 1) if page > 1 else None,
    )


async def ask_removal(visit: Visit) -> Response:
    """Asks whether a template is to be removed. Raises NotFound."""
    return visit.page("gifts/remove_template.html", saved=await read_own(visit))


async def remove(visit: Visit) -> Response:
    """Removes a template: it can be sent no more. Raises NotFound."""
    template, person = await read_own(visit), visit.person
    async with visit.writing() as connection:
        await remove_template(connection, person.customer_id, template.id)
        await visit.record(connection, "template.removed", f"template {template.id}", before=kept(template))
    return visit.see("/app/templates", visit.say("The template %(name)s was removed.", name=called(template)))


async def read_own(visit: Visit) -> Template:
    """The customer's template of the path. Raises NotFound."""
    caller = await person_as_caller(visit)
    given = {"template": str(visit.number("template"))}
    snapshot = await visit.services.catalogue.at(caller.catalogue_version)
    picked = await read_picked(visit, caller, snapshot, lambda name: given.get(name, ""))
    assert picked.template is not None, "a template was asked for"
    return picked.template


def called(template: Template) -> str:
    """What people call it: its name, or that of its gift."""
    return template.name or template.gift_name


def kept(template: Template) -> dict[str, object]:
    """What the audit log keeps of a template: no message, which may name somebody."""
    return {
        "name": template.name,
        "gift": template.gift_name,
        "value": template.value,
        "currency": template.currency,
    }
