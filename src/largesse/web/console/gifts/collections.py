"""Collections: the curated ones to look at, and those of one's own; removing one. `making` makes and changes them."""

from __future__ import annotations

from starlette.responses import Response

from largesse.base.errors import NotFound
from largesse.base.i18n.languages import LANGUAGES, language_of_country
from largesse.base.money import canonical
from largesse.catalogue.amounts import can_become
from largesse.catalogue.collections import Collection
from largesse.catalogue.details import read_details
from largesse.catalogue.own import remove_collection
from largesse.catalogue.snapshot import Snapshot
from largesse.identity.keys import Caller
from largesse.web.claim.preview import Previews
from largesse.web.console.gifts.browsing import for_template, pictured, products_of, rights
from largesse.web.console.send.opening import person_as_caller
from largesse.web.console.send.preview import OF_CLAIM
from largesse.web.console.visit import Visit
from largesse.web.kit.pages import page
from largesse.web.kit.security import OF_FORMS_WITH_FRAMES


async def show(visit: Visit) -> Response:
    """All collections there are, one's own first."""
    caller, snapshot = await opened(visit)
    customer_id = caller.principal.customer_id
    found = snapshot.collections(customer_id)
    return visit.page(
        "gifts/collections.html",
        own=sorted((one for one in found if one.customer_id), key=lambda one: one.name.casefold()),
        curated=[one for one in found if not one.customer_id],
        pictured=pictured(snapshot, found, customer_id),
        request_template=for_template(visit),
        **rights(visit),
    )


async def one(visit: Visit) -> Response:
    """One collection with its gifts, and what recipients choose from. Raises NotFound."""
    caller, snapshot = await opened(visit)
    collection = the_collection(visit, caller, snapshot)
    customer_id = caller.principal.customer_id
    response = visit.page(
        "gifts/collection.html",
        collection=collection,
        products=products_of(snapshot, collection, customer_id),
        amounts=[(canonical(minor, collection.currency), minor) for minor in _values(collection)],
        value_minor=_value(visit, collection),
        here_value=canonical(_value(visit, collection), collection.currency),
        shown_in=LANGUAGES.get(visit.query("lang")) or language_of_country(collection.country),
        **rights(visit),
    )
    response.headers.update(OF_FORMS_WITH_FRAMES)
    return response


async def claim(visit: Visit) -> Response:
    """The page on which recipients choose, as a document of its own. Raises NotFound."""
    caller, snapshot = await opened(visit)
    collection = the_collection(visit, caller, snapshot)
    customer_id, value_minor = caller.principal.customer_id, _value(visit, collection)
    choices = [
        product
        for product in products_of(snapshot, collection, customer_id)
        if can_become(product, collection.country, collection.currency, value_minor, customer_id)
    ]
    async with visit.database.connection(caller.principal.scope) as connection:
        details = await read_details(connection, [product.id for product in choices])
    html = Previews(visit.services.settings).choice(
        LANGUAGES.get(visit.query("lang")) or language_of_country(collection.country),
        environment=visit.person.environment,
        value_minor=value_minor,
        currency=collection.currency,
        choices=choices,
        details=details,
    )
    return page(html, OF_CLAIM)


async def ask_removal(visit: Visit) -> Response:
    """Asks whether a collection of one's own is to be removed. Raises NotFound."""
    caller, snapshot = await opened(visit)
    return visit.page("gifts/remove_collection.html", collection=own_collection(visit, caller, snapshot))


async def remove(visit: Visit) -> Response:
    """Removes a collection of one's own: it can be sent no more. Raises NotFound."""
    caller, snapshot = await opened(visit)
    collection, person = own_collection(visit, caller, snapshot), visit.person
    async with visit.writing() as connection:
        await remove_collection(connection, person.customer_id, collection.id)
        await visit.record(
            connection,
            "collection.removed",
            f"collection {collection.id}",
            before={"name": collection.name, "products": len(collection.product_ids)},
        )
    return visit.see(
        "/app/collections", visit.say("The collection %(name)s was removed.", name=collection.name)
    )


async def opened(visit: Visit) -> tuple[Caller, Snapshot]:
    """Who asks, and the catalogue as it is now."""
    caller = await person_as_caller(visit)
    return caller, await visit.services.catalogue.at(caller.catalogue_version)


def the_collection(visit: Visit, caller: Caller, snapshot: Snapshot) -> Collection:
    """The collection of the path. Raises NotFound for one that they may not see."""
    found = snapshot.collection(visit.number("collection"), caller.principal.customer_id)
    if found is None:
        raise NotFound("There is no such collection.")
    return found


def own_collection(visit: Visit, caller: Caller, snapshot: Snapshot) -> Collection:
    """The collection of the path, one of the customer's own. Raises NotFound."""
    found = the_collection(visit, caller, snapshot)
    if found.customer_id is None:
        raise NotFound("There is no such collection of your own.")
    return found


def _values(collection: Collection) -> tuple[int, ...]:
    """The values it can be looked at for, in minor units."""
    if collection.value_minor is not None:
        return (collection.value_minor,)
    return collection.value_points_minor


def _value(visit: Visit, collection: Collection) -> int:
    """The value that was asked for, among those that it is usually sent at; else the least of them."""
    offered = {canonical(minor, collection.currency): minor for minor in _values(collection)}
    return offered.get(visit.query("value")) or next(iter(offered.values()), 0)
