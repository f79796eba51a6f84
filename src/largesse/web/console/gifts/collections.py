"""Collections: the curated ones to look at, and those of one's own; removing one. `making` makes and changes them.

The form of a collection of one's own: for which country and value, and the gifts that can be had for just that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from starlette.responses import Response

from largesse.base.errors import NotFound
from largesse.base.i18n.languages import LANGUAGES, language_of_country
from largesse.base.i18n.templates import text
from largesse.base.money import canonical
from largesse.catalogue.model import Collection, Product, can_become, read_details
from largesse.catalogue.snapshot import Snapshot
from largesse.catalogue.store import (
    MAX_NAME,
    MOST_PRODUCTS,
    OwnCollection,
    TooManyCollections,
    add_collection,
    change_collection,
    remove_collection,
)
from largesse.customers.authenticator import Caller
from largesse.web.claim.pages import Previews
from largesse.web.console.context import Visit, typed_amount
from largesse.web.console.gifts.browsing import (
    country_asked,
    currencies_in,
    for_template,
    pictured,
    products_of,
    rights,
)
from largesse.web.console.gifts.picking import id_of
from largesse.web.console.send.opening import person_as_caller
from largesse.web.console.send.preview import OF_CLAIM
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


MOST_OFFERED = 120  # beside those that are ticked; more are found by their names

_NOTHING_CHOSEN = text("Tick at least one gift.")
_TOO_MANY_CHOSEN = text("Tick at most %(most)s gifts.")
_CANNOT_BE_HAD = text(
    "%(name)s cannot be had for just this amount there. It was left out: look again, and save."
)
_TOO_MANY = text("You have as many collections as there may be. Remove one first.")
_SAVED = text("The collection was saved. It can be sent at once, here and by programs.")


class _Terms(msgspec.Struct, frozen=True):
    """What a collection is for; settled when it is made."""

    country: str
    currency: str
    value_minor: int | None  # None as long as none is typed, or what was typed is none


async def ask(visit: Visit) -> Response:
    """The form of a new collection; where the address names one, like that one."""
    _, snapshot = await opened(visit)
    customer_id = visit.person.customer_id
    if like := snapshot.collection(id_of(visit.query("copy")) or 0, customer_id):
        value = like.value_minor or (like.value_points_minor[0] if like.value_points_minor else None)
        terms = _Terms(like.country, like.currency, value)
        name = visit.say("Copy of %(name)s", name=like.name)[:MAX_NAME]
        return _show(visit, snapshot, terms, name=name, ticked=like.product_ids)
    visit.form = visit.form_of_address
    terms = _terms(visit, snapshot)
    if not visit.form["value"]:
        visit.form.errors.clear()
    return _show(visit, snapshot, terms, ticked=_ticked(visit))


async def create(visit: Visit) -> Response:
    """Makes a collection, which every process knows with the next request it answers."""
    _, snapshot = await opened(visit)
    person, form = visit.person, visit.form
    terms, ticked = _terms(visit, snapshot), _ticked(visit)
    name = form.text("name", MAX_NAME)
    chosen = _chosen(visit, snapshot, terms, ticked)
    if form.errors or terms.value_minor is None:
        return _show(visit, snapshot, terms, ticked=chosen, status=422)
    wanted = OwnCollection(name, terms.country, terms.currency, terms.value_minor, chosen)
    try:
        async with visit.writing() as connection:
            collection_id = await add_collection(connection, person.customer_id, wanted)
            told = {
                "name": name,
                "value": canonical(terms.value_minor, terms.currency),
                "currency": terms.currency,
            }
            await visit.record(
                connection,
                "collection.created",
                f"collection {collection_id}",
                after={**told, "country": terms.country, "products": len(chosen)},
            )
    except TooManyCollections:
        form.error("name", visit.say(_TOO_MANY))
        return _show(visit, snapshot, terms, ticked=chosen, status=422)
    return visit.see(f"/app/collections/{collection_id}", visit.say(_SAVED))


async def edit(visit: Visit) -> Response:
    """The form of a collection of one's own. Raises NotFound."""
    caller, snapshot = await opened(visit)
    collection = own_collection(visit, caller, snapshot)
    if "name" in visit.form_of_address:  # looked for more gifts
        visit.form = visit.form_of_address
        return _show(visit, snapshot, _terms_of(collection), ticked=_ticked(visit), collection=collection)
    return _show(
        visit,
        snapshot,
        _terms_of(collection),
        name=collection.name,
        ticked=collection.product_ids,
        collection=collection,
    )


async def change(visit: Visit) -> Response:
    """Gives a collection of one's own another name and other gifts. Raises NotFound."""
    caller, snapshot = await opened(visit)
    collection, person, form = own_collection(visit, caller, snapshot), visit.person, visit.form
    terms = _terms_of(collection)
    name = form.text("name", MAX_NAME)
    chosen = _chosen(visit, snapshot, terms, _ticked(visit))
    if form.errors:
        return _show(visit, snapshot, terms, ticked=chosen, collection=collection, status=422)
    async with visit.writing() as connection:
        await change_collection(connection, person.customer_id, collection.id, name=name, product_ids=chosen)
        await visit.record(
            connection,
            "collection.changed",
            f"collection {collection.id}",
            before={"name": collection.name, "products": len(collection.product_ids)},
            after={"name": name, "products": len(chosen)},
        )
    return visit.see(f"/app/collections/{collection.id}", visit.say(_SAVED))


def _terms_of(collection: Collection) -> _Terms:
    return _Terms(collection.country, collection.currency, collection.value_minor)


def _terms(visit: Visit, snapshot: Snapshot) -> _Terms:
    """What was typed of country, currency and value; what is wrong with the value is noted in the form."""
    customer_id, form = visit.person.customer_id, visit.form
    countries = snapshot.countries(customer_id)
    country = (
        form["country"].upper()
        if form["country"].upper() in countries
        else country_asked(visit, snapshot, customer_id)
    )
    currency = form["currency"]
    if currency not in currencies_in(snapshot, customer_id, country):
        currency = _usual_currency(snapshot, customer_id, country)
    value_minor = typed_amount(visit, "value", currency) or None
    return _Terms(country, currency, value_minor)


def _usual_currency(snapshot: Snapshot, customer_id: int, country: str) -> str:
    """The currency that most is sold in, in a country."""
    sold = [product.currency for product in snapshot.products(customer_id, country)]
    return max(sorted(set(sold)), key=sold.count, default="")


def _ticked(visit: Visit) -> list[int]:
    """The products that were ticked, each once, in their order."""
    found = (id_of(given) for given in visit.form.all("product"))
    return list(dict.fromkeys(number for number in found if number))


def _fits(visit: Visit, terms: _Terms) -> Callable[[Product], bool]:
    customer_id, value_minor = visit.person.customer_id, terms.value_minor
    if value_minor is None:
        return lambda _: False
    return lambda product: can_become(product, terms.country, terms.currency, value_minor, customer_id)


def _chosen(visit: Visit, snapshot: Snapshot, terms: _Terms, ticked: Sequence[int]) -> list[int]:
    """Those of the ticked products that can be had; what is wrong is noted in the form."""
    customer_id, form, fits = visit.person.customer_id, visit.form, _fits(visit, terms)
    chosen = []
    for product_id in ticked[: MOST_PRODUCTS + 1]:
        product = snapshot.product(product_id, terms.country, customer_id)
        if product is not None and fits(product):
            chosen.append(product_id)
        elif terms.value_minor is not None:
            name = product.name if product else str(product_id)
            form.error("product", visit.say(_CANNOT_BE_HAD, name=name))
    if not ticked:
        form.error("product", visit.say(_NOTHING_CHOSEN))
    elif len(ticked) > MOST_PRODUCTS:
        form.error("product", visit.say(_TOO_MANY_CHOSEN, most=MOST_PRODUCTS))
    return chosen if terms.value_minor is not None else list(ticked)


def _show(
    visit: Visit,
    snapshot: Snapshot,
    terms: _Terms,
    *,
    ticked: Sequence[int],
    name: str = "",
    collection: Collection | None = None,
    status: int = 200,
) -> Response:
    customer_id, fits, known_ids = visit.person.customer_id, _fits(visit, terms), set(ticked)
    keyword = visit.form["q"].strip()[:100]
    known = (snapshot.product(one, terms.country, customer_id) for one in ticked)
    first = [product for product in known if product is not None and fits(product)]
    found = snapshot.products(customer_id, terms.country, currency=terms.currency, keyword=keyword or None)
    others = [product for product in found if product.id not in known_ids and fits(product)]
    return visit.page(
        "gifts/make_collection.html",
        status=status,
        collection=collection,
        terms=terms,
        value=visit.language.typed(terms.value_minor, terms.currency) if terms.value_minor else "",
        name=name,
        ticked=first,
        others=others[:MOST_OFFERED],
        more=max(0, len(others) - MOST_OFFERED),
        countries=snapshot.countries(customer_id),
        currencies=currencies_in(snapshot, customer_id, terms.country),
        most_name=MAX_NAME,
    )
