"""The addresses of the catalogue, of templates and of collections."""

from __future__ import annotations

from largesse.base.i18n.templates import text
from largesse.catalogue.own import MOST_PRODUCTS
from largesse.people.roles import Right
from largesse.web.console.gifts import catalogue, collections, making, saving, templates
from largesse.web.console.table import Entry, Group, Who

_TEMPLATES, _TEMPLATE = text("Templates"), text("Template")
_COLLECTIONS, _COLLECTION = text("Collections"), text("Collection")
_OF_ONE, _OF_SET = "/app/templates/{template:int}", "/app/collections/{collection:int}"
_MOST_FIELDS = 2 * MOST_PRODUCTS + 20  # one ticked too many is said beside the form

GIFTS = (
    Entry("GET", "/app/templates", templates.show, Right.TEMPLATES, _TEMPLATES, Group.GIFTS),
    Entry("POST", "/app/templates", saving.create, Right.TEMPLATES, text("New template")),
    Entry("GET", "/app/templates/new", saving.ask, Right.TEMPLATES, text("New template")),
    Entry("GET", _OF_ONE, saving.edit, Right.TEMPLATES, _TEMPLATE),
    Entry("POST", _OF_ONE, saving.change, Right.TEMPLATES, _TEMPLATE),
    Entry("GET", f"{_OF_ONE}/remove", templates.ask_removal, Right.TEMPLATES, text("Remove a template")),
    Entry("POST", f"{_OF_ONE}/remove", templates.remove, Right.TEMPLATES),
    Entry("GET", "/app/collections", collections.show, Who.MEMBER, _COLLECTIONS, Group.GIFTS),
    Entry(
        "POST",
        "/app/collections",
        making.create,
        Right.TEMPLATES,
        text("New collection"),
        most_fields=_MOST_FIELDS,
    ),
    Entry("GET", "/app/collections/new", making.ask, Right.TEMPLATES, text("New collection")),
    Entry("GET", _OF_SET, collections.one, Who.MEMBER, _COLLECTION),
    Entry("GET", f"{_OF_SET}/claim", collections.claim, Who.MEMBER, _COLLECTION),
    Entry("GET", f"{_OF_SET}/edit", making.edit, Right.TEMPLATES, _COLLECTION),
    Entry("POST", f"{_OF_SET}/edit", making.change, Right.TEMPLATES, _COLLECTION, most_fields=_MOST_FIELDS),
    Entry("GET", f"{_OF_SET}/remove", collections.ask_removal, Right.TEMPLATES, text("Remove a collection")),
    Entry("POST", f"{_OF_SET}/remove", collections.remove, Right.TEMPLATES),
    Entry("GET", "/app/catalogue", catalogue.show, Who.MEMBER, text("Catalogue"), Group.GIFTS),
    Entry("GET", "/app/catalogue/{product:int}", catalogue.one, Who.MEMBER, text("Gift")),
)
