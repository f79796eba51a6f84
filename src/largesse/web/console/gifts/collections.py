"""Collections: the list of curated and own ones, the page of one, and the forms that create, change and remove an own one.

A collection has a country, a currency and a value, and contains gifts that can be sent for exactly that value.
"""

from collections.abc import Callable, Container, Iterable, Sequence

import msgspec
from starlette.responses import Response

from largesse.base.cooperative import Steps
from largesse.base.errors import NotFound
from largesse.base.i18n.languages import LANGUAGES, language_of_country, text
from largesse.base.money import canonical
from largesse.catalogue import service
from largesse.catalogue.model import Collection, Product, can_become
from largesse.catalogue.products import Filters
from largesse.catalogue.snapshot import Snapshot
from largesse.catalogue.store import OwnCollection, read_details
from largesse.web.claim.pages import Previews
from largesse.web.claim.rendering import brand_styles
from largesse.web.console.context import RequestContext, typed_amount
from largesse.web.console.gifts import browsing
from largesse.web.console.send.opening import caller_and_catalogue
from largesse.web.console.send.preview import brand_of, of_claim
from largesse.web.kit.pages import page
from largesse.web.kit.query import Whole
from largesse.web.kit.security import OF_FORMS_WITH_FRAMES


async def show(context: RequestContext) -> Response:
    """Shows all collections, the customer's own first."""
    _, snapshot = await caller_and_catalogue(context)
    customer_id = context.person.customer_id
    found = snapshot.collections(customer_id)
    return context.page(
        "gifts/collections.html",
        own=sorted((one for one in found if one.customer_id), key=lambda one: one.name.casefold()),
        curated=[one for one in found if not one.customer_id],
        pictured=browsing.pictured(snapshot, found, customer_id),
        request_template=browsing.for_template(context),
        **browsing.rights(context),
    )


async def one(context: RequestContext) -> Response:
    """Shows a collection with its gifts, and a preview of the page on which recipients choose. Raises NotFound."""
    snapshot, collection = await _opened(context)
    response = context.page(
        "gifts/collection.html",
        collection=collection,
        products=browsing.products_of(snapshot, collection, context.person.customer_id),
        amounts=[(canonical(minor, collection.currency), minor) for minor in _values(collection)],
        value_minor=_value(context, collection),
        here_value=canonical(_value(context, collection), collection.currency),
        shown_in=LANGUAGES.get(context.query("lang")) or language_of_country(collection.country),
        **browsing.rights(context),
    )
    response.headers.update(OF_FORMS_WITH_FRAMES)
    return response


async def claim(context: RequestContext) -> Response:
    """Returns the page on which recipients choose, as a separate document for a frame. Raises NotFound."""
    snapshot, collection = await _opened(context)
    customer_id, value_minor = context.person.customer_id, _value(context, collection)
    choices = [
        product
        for product in browsing.products_of(snapshot, collection, customer_id)
        if can_become(product, collection.country, collection.currency, value_minor, customer_id)
    ]
    details = await context.read(read_details, [product.id for product in choices])
    brand = await brand_of(context)
    html = Previews(context.services.settings).choice(
        LANGUAGES.get(context.query("lang")) or language_of_country(collection.country),
        environment=context.person.environment,
        value_minor=value_minor,
        currency=collection.currency,
        choices=choices,
        details=details,
        brand=brand,
    )
    return page(html, of_claim(brand_styles(brand, None)))


async def ask_removal(context: RequestContext) -> Response:
    """Asks whether to remove the customer's own collection. Raises NotFound."""
    _, collection = await _own(context)
    said = context.say(
        "Nobody can send the collection %(name)s any more, nor templates that use it. Recipients who have not chosen yet can still choose from it.",
        name=collection.name,
    )
    no = f"/app/collections/{collection.id}"
    return context.page("question.html", said=said, yes=(f"{no}/remove", context.say("Delete the collection")), no=no)


async def remove(context: RequestContext) -> Response:
    """Removes the customer's own collection. It can no longer be sent. Raises NotFound."""
    _, collection = await _own(context)
    await service.remove_collection(context.actor, collection.id)
    return context.see("/app/collections", context.say("The collection %(name)s was deleted.", name=collection.name))


async def _opened(context: RequestContext) -> tuple[Snapshot, Collection]:
    """Returns the catalogue and the collection of the path. Raises NotFound, also for one that the person may not see."""
    _, snapshot = await caller_and_catalogue(context)
    found = snapshot.collection(context.number("collection"), context.person.customer_id)
    if found is None:
        raise NotFound("There is no such collection.")
    return snapshot, found


async def _own(context: RequestContext) -> tuple[Snapshot, Collection]:
    """Returns the catalogue and the collection of the path if it is the customer's own. Raises NotFound."""
    snapshot, found = await _opened(context)
    if found.customer_id is None:
        raise NotFound("There is no such collection of your own.")
    return snapshot, found


def _values(collection: Collection) -> tuple[int, ...]:
    """Returns the values for which the collection can be shown, in minor units."""
    if collection.value_minor is not None:
        return (collection.value_minor,)
    return collection.value_points_minor


def _value(context: RequestContext, collection: Collection) -> int:
    """Returns the value in the address if it is one of `_values`, otherwise the first of them, in minor units."""
    offered = {canonical(minor, collection.currency): minor for minor in _values(collection)}
    return offered.get(context.query("value")) or next(iter(offered.values()), 0)


MOST_OFFERED = 120  # the page offers this many gifts besides the selected ones; a search finds others

_CANNOT_BE_HAD = text(
    "%(name)s is not available for this amount in this country and was removed. Check the collection and save it."
)
_TOO_MANY = text("You have reached the limit of %(most)s collections. Delete one first.")
_SAVED = text("The collection was saved. You can send it here and by the API now.")


class _Terms(msgspec.Struct, frozen=True):
    """The country, currency and value of a collection, which cannot be changed later."""

    country: str
    currency: str
    value_minor: int | None  # None if no valid amount is typed yet


async def ask(context: RequestContext) -> Response:
    """Shows the form of a new collection, filled in from the collection that the address names, if any."""
    _, snapshot = await caller_and_catalogue(context)
    customer_id = context.person.customer_id
    if like := snapshot.collection(Whole().read(context.query("copy")) or 0, customer_id):
        value = like.value_minor or (like.value_points_minor[0] if like.value_points_minor else None)
        terms = _Terms(like.country, like.currency, value)
        name = context.say("Copy of %(name)s", name=like.name)[: service.MAX_NAME]
        return await _show(context, snapshot, terms, name=name, ticked=like.product_ids)
    context.form = context.form_of_address
    terms = _terms(context, snapshot)
    if not context.form["value"]:
        context.form.errors.clear()
    return await _show(context, snapshot, terms, ticked=_ticked(context), status=200)


async def create(context: RequestContext) -> Response:
    """Creates a collection. Every process uses it from its next request on."""
    _, snapshot = await caller_and_catalogue(context)
    form = context.form
    name = form.text("name", service.MAX_NAME)  # the first field, which gets the focus if it is wrong
    terms, ticked = _terms(context, snapshot), _ticked(context)
    chosen = _chosen(context, snapshot, terms, ticked)
    if form.errors or terms.value_minor is None:
        return await _show(context, snapshot, terms, ticked=chosen)
    new = OwnCollection(name, terms.country, terms.currency, terms.value_minor, chosen)
    try:
        collection_id = await service.create_collection(context.actor, new)
    except service.TooManyCollections:
        form.error("name", context.say(_TOO_MANY, most=service.MOST_COLLECTIONS))
        return await _show(context, snapshot, terms, ticked=chosen)
    return context.see(f"/app/collections/{collection_id}", context.say(_SAVED))


async def edit(context: RequestContext) -> Response:
    """Shows the form of the customer's own collection. Raises NotFound."""
    snapshot, collection = await _own(context)
    if "name" in context.form_of_address:  # the form was sent as a search for more gifts
        context.form = context.form_of_address
        ticked = _kept(context, collection)
        return await _show(context, snapshot, _terms_of(collection), ticked=ticked, collection=collection)
    return await _show(
        context,
        snapshot,
        _terms_of(collection),
        name=collection.name,
        ticked=collection.product_ids,
        collection=collection,
    )


async def change(context: RequestContext) -> Response:
    """Changes the name and the gifts of the customer's own collection. Raises NotFound."""
    snapshot, collection = await _own(context)
    form, terms, ticked = context.form, _terms_of(collection), _kept(context, collection)
    name = form.text("name", service.MAX_NAME)
    chosen = _chosen(context, snapshot, terms, ticked)
    if form.errors:
        return await _show(context, snapshot, terms, ticked=chosen, collection=collection)
    await service.change_collection(context.actor, collection.id, name, chosen, collection)
    return context.see(f"/app/collections/{collection.id}", context.say(_SAVED))


def _terms_of(collection: Collection) -> _Terms:
    return _Terms(collection.country, collection.currency, collection.value_minor)


def _terms(context: RequestContext, snapshot: Snapshot) -> _Terms:
    """Returns the country, currency and value in the form. Adds an error to the form if the value is wrong."""
    customer_id, form = context.person.customer_id, context.form
    countries = snapshot.countries(customer_id)
    country = (
        form["country"].upper()
        if form["country"].upper() in countries
        else browsing.country_asked(context, snapshot, customer_id)
    )
    currency = form["currency"]
    if currency not in browsing.currencies_in(snapshot, customer_id, country):
        currency = _usual_currency(snapshot, customer_id, country)
    value_minor = typed_amount(context, "value", currency) or None
    return _Terms(country, currency, value_minor)


def _usual_currency(snapshot: Snapshot, customer_id: int, country: str) -> str:
    """Returns the currency in which most products are sold in a country."""
    sold = snapshot.currencies(customer_id, country)
    return max(sorted(sold), key=sold.__getitem__, default="")


def _fitting(
    found: Iterable[Product], known_ids: Container[int], fits: Callable[[Product], bool]
) -> Steps[list[Product]]:
    """Returns the products that fit, without those in `known_ids`."""
    others = []
    for product in found:
        if product.id not in known_ids and fits(product):
            others.append(product)
        yield
    return others


def _ticked(context: RequestContext, now: Sequence[int] = ()) -> list[int]:
    """Returns the ids of the selected products, each once, in their order. `now` is what others saved."""
    return list(dict.fromkeys(number for number in context.form.numbers_and_others("product", now) if number))


def _kept(context: RequestContext, collection: Collection) -> list[int]:
    """Returns the ids of the selected products. In the form, keeps what others changed in the collection since the page was opened."""
    context.form.keep_others({"name": collection.name})
    return _ticked(context, collection.product_ids)


def _fits(context: RequestContext, terms: _Terms) -> Callable[[Product], bool]:
    customer_id, value_minor = context.person.customer_id, terms.value_minor
    if value_minor is None:
        return lambda _: False
    return lambda product: can_become(product, terms.country, terms.currency, value_minor, customer_id)


def _chosen(context: RequestContext, snapshot: Snapshot, terms: _Terms, ticked: Sequence[int]) -> list[int]:
    """Returns the selected products that fit the terms. Adds an error to the form for others."""
    customer_id, form, fits = context.person.customer_id, context.form, _fits(context, terms)
    chosen = []
    for product_id in ticked[: service.MOST_PRODUCTS + 1]:
        product = snapshot.product(product_id, terms.country, customer_id)
        if product is not None and fits(product):
            chosen.append(product_id)
        elif terms.value_minor is not None:
            name = product.name if product else str(product_id)
            form.error("product", context.say(_CANNOT_BE_HAD, name=name))
    if not ticked:
        form.error("product", context.say("Select at least one gift."))
    elif len(ticked) > service.MOST_PRODUCTS:
        form.error("product", context.say("Select at most %(most)s gifts.", most=service.MOST_PRODUCTS))
    return chosen if terms.value_minor is not None else list(ticked)


async def _show(
    context: RequestContext,
    snapshot: Snapshot,
    terms: _Terms,
    *,
    ticked: Sequence[int],
    name: str = "",
    collection: Collection | None = None,
    status: int | None = None,
) -> Response:
    customer_id, fits, known_ids = context.person.customer_id, _fits(context, terms), set(ticked)
    keyword = context.form["q"].strip()[:100]
    known = (snapshot.product(one, terms.country, customer_id) for one in ticked)
    first = [product for product in known if product is not None and fits(product)]
    catalogue = context.services.catalogue
    wanted = customer_id, Filters(terms.country, terms.currency, keyword=keyword or None)
    await catalogue.prepare(snapshot, *wanted)
    others = await catalogue.finish(customer_id, _fitting(snapshot.products(*wanted), known_ids, fits))
    return context.page(
        "gifts/make_collection.html",
        status=status,
        collection=collection,
        terms=terms,
        value=context.language.typed(terms.value_minor, terms.currency) if terms.value_minor else "",
        name=name,
        ticked=first,
        others=others[:MOST_OFFERED],
        more=max(0, len(others) - MOST_OFFERED),
        countries=context.language.in_order(snapshot.countries(customer_id)),
        currencies=browsing.currencies_in(snapshot, customer_id, terms.country),
        most_name=service.MAX_NAME,
    )
