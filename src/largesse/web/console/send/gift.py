"""Which gift: a product, a collection or a template, and for how much."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec
from starlette.responses import Response

from largesse.base.errors import InvalidRequest, NotFound
from largesse.base.i18n import text
from largesse.base.money import canonical
from largesse.catalogue import Collection, Product, Snapshot, gift_price
from largesse.drafts import Draft, DraftContent, begin_draft, drop_draft, list_drafts, sent_lately
from largesse.identity import Caller
from largesse.orders import (
    DEFAULT_COUNTRY,
    Choice,
    CollectionChoice,
    ProductChoice,
    TemplateChoice,
)
from largesse.templates import list_templates, read_template
from largesse.web.console.send.opening import change, open_draft, person_as_caller
from largesse.web.console.visit import Visit

CARDS = 60
TABS = ("gifts", "collections", "templates")
_MAX_TEMPLATES = 200
_LONGEST_AMOUNT = 20

_NO_AMOUNT = text("Type an amount, such as 25 or 12.50.")
_NOT_THIS_AMOUNT = text("It cannot be sent for this amount.")


async def choose(visit: Visit) -> Response:
    """What there is to send, and the drafts that were begun."""
    caller = await person_as_caller(visit)
    snapshot = await visit.services.catalogue.at(caller.catalogue_version)
    tab = visit.query("tab") if visit.query("tab") in TABS else TABS[0]
    principal = caller.principal
    async with visit.database.connection(principal.scope) as connection:
        templates = await list_templates(connection, principal, offset=0, limit=_MAX_TEMPLATES)
        drafts = await list_drafts(connection, principal)
        lately = await sent_lately(connection, principal)
    page = int(visit.query("page")) if visit.query("page") in map(str, range(2, 1_000)) else 1
    found: list[Any] = []
    if tab == "gifts":
        found = _products(visit, snapshot, principal.customer_id)
        found.sort(key=lambda one: lately.index(one.id) if one.id in lately else len(lately))
    elif tab == "collections":
        found = list(snapshot.collections(principal.customer_id))
    else:
        found = [one for one in templates if snapshot.has_gift(one.product_id, one.collection_id)]
    start = (page - 1) * CARDS
    return visit.page(
        "send/gift.html",
        tab=tab,
        items=found[start : start + CARDS],
        older=visit.here(page=page + 1) if len(found) > start + CARDS else None,
        newer=visit.here(page=page - 1) if page > 1 else None,
        count=len(found),
        country=_country(visit, snapshot, principal.customer_id),
        countries=snapshot.countries(principal.customer_id),
        asked={name: visit.query(name)[:100] for name in ("q", "kind", "amount", "currency")},
        currencies=_currencies(visit, snapshot, principal.customer_id),
        draft_id=visit.query("draft"),
        drafts=[(one, _name(one, snapshot, principal.customer_id)) for one in drafts],
        least=least,
        delivered=delivered,
    )


async def amount(visit: Visit) -> Response:
    """The gift that was picked, and for how much it can be sent. Raises NotFound."""
    caller = await person_as_caller(visit)
    snapshot = await visit.services.catalogue.at(caller.catalogue_version)
    return await _amount(visit, await _picked(visit, caller, snapshot, visit.query))


async def take(visit: Visit) -> Response:
    """Takes gift and amount into a new draft, or the one that is open. Raises NotFound."""
    caller = await person_as_caller(visit)
    snapshot = await visit.services.catalogue.at(caller.catalogue_version)
    picked = await _picked(visit, caller, snapshot, visit.form.__getitem__)
    choice = _choice(visit, picked)
    content = DraftContent().chosen(choice)
    if not visit.form.errors:
        try:
            await visit.services.drafts.gift(caller, Draft("", content, caller.now))
        except InvalidRequest:
            visit.form.error("value", visit.say(_NOT_THIS_AMOUNT))
    if visit.form.errors:
        return await _amount(visit, picked, status=422)
    if visit.form["draft"]:
        opened = await open_draft(visit, visit.form["draft"])
        names = ("product_id", "collection_id", "template_id", "country", "value")
        await change(visit, opened, **{name: getattr(content, name) for name in names})
        return visit.see(f"{opened.path}/recipients")
    async with visit.database.transaction(caller.principal.scope) as connection:
        draft = await begin_draft(connection, caller.principal, caller.now, content)
    return visit.see(f"/app/send/{draft.id}/recipients")


async def drop(visit: Visit) -> Response:
    """Drops a draft."""
    opened = await open_draft(visit)
    async with visit.database.connection(opened.caller.principal.scope) as connection:
        await drop_draft(connection, opened.caller.principal, opened.draft.id)
    return visit.see("/app/send", visit.say("The draft is gone."))


def least(product: Product) -> int:
    """The least that a product can be sent for, in minor units."""
    return product.limits_minor[0] if product.limits_minor else 0


def delivered(product: Product, country: str) -> int:
    """What a physical gift costs delivered, in minor units."""
    return gift_price(product, country, None).unit_cost_minor


class _Picked(msgspec.Struct, frozen=True):
    """What was picked; one of the three is there."""

    country: str
    product: Product | None = None
    collection: Collection | None = None
    template: Any = None


async def _picked(visit: Visit, caller: Caller, snapshot: Snapshot, given: Any) -> _Picked:
    customer_id = caller.principal.customer_id
    country = given("country").upper() or DEFAULT_COUNTRY
    if number := _id(given("product")):
        product = snapshot.product(number, country, customer_id)
        picked = _Picked(country, product=product) if product else None
    elif number := _id(given("collection")):
        collection = snapshot.collection(number, customer_id)
        picked = _Picked(collection.country, collection=collection) if collection else None
    else:
        async with visit.database.connection(caller.principal.scope) as connection:
            template = await read_template(connection, caller.principal, _id(given("template")) or 0)
        picked = _Picked(template.country or country, template=template) if template else None
    if picked is None:
        raise NotFound("There is no such gift.")
    return picked


def _choice(visit: Visit, picked: _Picked) -> Choice:
    """What was chosen; what is wrong with the amount is noted in the form."""
    if picked.template is not None:
        return TemplateChoice(picked.template.id)
    value = None
    typed = visit.form["value"].strip().replace(",", ".")
    if typed:
        try:
            number = Decimal(typed) if len(typed) <= _LONGEST_AMOUNT else Decimal("NaN")
        except InvalidOperation:
            number = Decimal("NaN")
        if number.is_finite():
            value = float(number)
        else:
            visit.form.error("value", visit.say(_NO_AMOUNT))
    elif _needs_amount(picked):
        visit.form.error("value", visit.say(_NO_AMOUNT))
    if picked.product is not None:
        return ProductChoice(picked.product.id, value, picked.country)
    assert picked.collection is not None, "one of the three was picked"
    return CollectionChoice(picked.collection.id, value)


def _needs_amount(picked: _Picked) -> bool:
    if picked.product is not None:
        return picked.product.is_digital and len(picked.product.denominations_minor) != 1
    return picked.collection is not None and picked.collection.value_minor is None


async def _amount(visit: Visit, picked: _Picked, *, status: int = 200) -> Response:
    product, collection = picked.product, picked.collection
    offered: tuple[int, ...] = ()
    if product is not None:
        offered = product.denominations_minor
    elif collection is not None and not collection.allow_custom_value:
        offered = collection.value_points_minor
    currency = (product or collection or picked.template).currency
    return visit.page(
        "send/amount.html",
        status=status,
        picked=picked,
        needs_amount=_needs_amount(picked),
        offered=[(canonical(minor, currency), visit.language.amount(minor, currency)) for minor in offered],
        range=product.range_minor if product else None,
        currency=currency,
        country_name=visit.language.country(picked.country),
        draft_id=visit.form["draft"] or visit.query("draft"),
        delivered=delivered,
    )


def _products(visit: Visit, snapshot: Snapshot, customer_id: int) -> list[Product]:
    """The products that fit what was searched for; whatever is no filter is none."""
    country = _country(visit, snapshot, customer_id)
    amount_given = visit.query("amount").strip().replace(",", ".")
    try:
        most = Decimal(amount_given) if 0 < len(amount_given) <= _LONGEST_AMOUNT else None
    except InvalidOperation:
        most = None
    found = snapshot.products(
        customer_id,
        country,
        currency=visit.query("currency").upper() or None,
        amount=most if most is not None and most.is_finite() else None,
        keyword=visit.query("q").strip()[:100] or None,
    )
    kind = visit.query("kind")
    return [
        one for one in found if kind not in {"digital", "physical"} or one.is_digital == (kind == "digital")
    ]


def _currencies(visit: Visit, snapshot: Snapshot, customer_id: int) -> list[str]:
    """The currencies that something is sold in, in the country searched in."""
    country = _country(visit, snapshot, customer_id)
    return sorted({product.currency for product in snapshot.products(customer_id, country)})


def _country(visit: Visit, snapshot: Snapshot, customer_id: int) -> str:
    """The country searched in: the one given, else the usual one, else the first there is."""
    countries = snapshot.countries(customer_id)
    given = visit.query("country").upper()
    if given in countries:
        return given
    return DEFAULT_COUNTRY if DEFAULT_COUNTRY in countries or not countries else countries[0]


def _name(draft: Draft, snapshot: Snapshot, customer_id: int) -> str | None:
    """What a draft sends, in a word; None where that is not known."""
    content = draft.content
    if content.product_id is not None:
        product = snapshot.product(content.product_id, content.country or DEFAULT_COUNTRY, customer_id)
        return product.name if product else None
    if content.collection_id is not None:
        collection = snapshot.collection(content.collection_id, customer_id)
        return collection.name if collection else None
    return None


def _id(given: str) -> int | None:
    return int(given) if given.isascii() and given.isdigit() and len(given) < 10 else None
