"""The gift step of a send: a product, a collection or a template, and its amount. Templates are made of a gift that is picked in the same way."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from starlette.responses import Response

from largesse.base.errors import InvalidRequest, NotFound
from largesse.base.money import to_number
from largesse.catalogue.model import Collection, Product
from largesse.catalogue.snapshot import Snapshot
from largesse.customers.authenticator import Caller
from largesse.customers.roles import Right
from largesse.drafts.model import Draft, DraftContent
from largesse.drafts.store import list_drafts, list_products_sent
from largesse.orders.order import Gift
from largesse.orders.request import DEFAULT_COUNTRY, Choice, CollectionChoice, ProductChoice, TemplateChoice
from largesse.templates.service import MOST_TEMPLATES
from largesse.templates.store import Template, list_templates, read_template
from largesse.web.console.context import RequestContext, typed_amount
from largesse.web.console.gifts.browsing import CARDS, delivered, page_number, pictured, products_found, search_values
from largesse.web.console.send.opening import (
    Chosen,
    caller_and_catalogue,
    change,
    chosen,
    cost_minor,
    new_price,
    open_draft,
)
from largesse.web.kit.query import Whole

TABS = ("gifts", "collections", "templates")
_MOST_RECENT = 4


class Picked(msgspec.Struct, frozen=True):
    """A picked gift: a product, a collection or a template. Exactly one of the three is set."""

    country: str
    product: Product | None = None
    collection: Collection | None = None
    template: Template | None = None

    @property
    def currency(self) -> str:
        """The currency of its amounts."""
        named = self.product or self.collection or self.template
        assert named is not None, "one of the three was picked"
        return named.currency

    @property
    def needs_amount(self) -> bool:
        """Whether it can be sent for more than one amount."""
        if self.product is not None:
            return self.product.is_digital and len(self.product.denominations_minor) != 1
        return self.collection is not None and self.collection.value_minor is None


async def read_picked(
    context: RequestContext, caller: Caller, snapshot: Snapshot, given: Callable[[str], str]
) -> Picked:
    """Returns the gift that `given` names by product (and country), collection or template. Raises NotFound."""
    customer_id = caller.principal.customer_id
    country = given("country").upper() or DEFAULT_COUNTRY
    picked = None
    if number := Whole().read(given("product")):
        product = snapshot.product(number, country, customer_id)
        picked = Picked(country, product=product) if product else None
    elif number := Whole().read(given("collection")):
        collection = snapshot.collection(number, customer_id)
        picked = Picked(collection.country, collection=collection) if collection else None
    elif number := Whole().read(given("template")):
        template = await context.read(read_template, caller.principal, number)
        picked = Picked(template.country or country, template=template) if template else None
    if picked is None:
        raise NotFound("There is no such gift.")
    return picked


async def priced(context: RequestContext, caller: Caller, picked: Picked) -> tuple[Choice, Gift | None]:
    """Returns the gift with the typed amount, and its price. If the amount is wrong, adds an error to the form; the price is then None."""
    choice = _choice(context, picked)
    if context.form.errors:
        return choice, None
    draft = Draft("", DraftContent().chosen(choice), caller.now)
    try:
        gift, _ = await context.services.drafts.gift(caller, draft)
    except InvalidRequest:
        context.form.error("value", _wrong_amount(context, picked))
        return choice, None
    return choice, gift


def _wrong_amount(context: RequestContext, picked: Picked) -> str:
    """Returns the error of an amount. It names those for which the gift can be sent, unless it is one of them."""
    typed, offered = typed_amount(context, "value", picked.currency), _offered(picked)
    if offered and typed not in offered:
        amounts = ", ".join(context.language.amount(minor, picked.currency) for minor in offered)
        return context.say("It can be sent for: %(amounts)s.", amounts=amounts)
    within = picked.product.range_minor if picked.product else None
    if within is None or within[0] <= typed <= within[1]:
        return context.say("It cannot be sent for this amount.")
    least, most = (context.language.amount(minor, picked.currency) for minor in within)
    return context.say("Type an amount from %(least)s to %(most)s.", least=least, most=most)


def _offered(picked: Picked) -> tuple[int, ...]:
    """Returns the amounts to choose from, in minor units; none if others can be typed, or the gift has one price."""
    if picked.product is not None:
        return picked.product.denominations_minor
    if picked.collection is not None and not picked.collection.allow_custom_value:
        return picked.collection.value_points_minor
    return ()


def amount_values(context: RequestContext, picked: Picked) -> dict[str, Any]:
    """Returns the values of the amount field: the amounts to choose from, or their range."""
    product, currency = picked.product, picked.currency
    return {
        "picked": picked,
        "needs_amount": picked.needs_amount,
        "offered": [
            (context.language.typed(minor, currency), context.language.amount(minor, currency))
            for minor in _offered(picked)
        ],
        "range": product.range_minor if product else None,
        "currency": currency,
        "country_name": context.language.country(picked.country),
        "delivered": delivered,
    }


def _choice(context: RequestContext, picked: Picked) -> Choice:
    if picked.template is not None:
        return TemplateChoice(picked.template.id)
    has_value = picked.needs_amount or context.form["value"].strip()
    value = to_number(typed_amount(context, "value", picked.currency), picked.currency) if has_value else None
    if picked.product is not None:
        return ProductChoice(picked.product.id, value, picked.country)
    assert picked.collection is not None, "one of the three was picked"
    return CollectionChoice(picked.collection.id, value)


async def choose(context: RequestContext) -> Response:
    """Shows the gifts to choose from, and the person's drafts."""
    caller, snapshot = await caller_and_catalogue(context)
    tab = context.query("tab") if context.query("tab") in TABS else TABS[0]
    principal = caller.principal
    async with context.database.connection(principal.scope) as connection:
        templates = await list_templates(connection, principal, offset=0, limit=MOST_TEMPLATES)
        drafts = await list_drafts(connection, principal)
        lately = await list_products_sent(connection, principal)
    page = page_number(context)
    found: Sequence[Any] = []
    if tab == "gifts":
        found = await products_found(context, snapshot, principal.customer_id, first=lately)
    elif tab == "collections":
        found = list(snapshot.collections(principal.customer_id))
    else:
        found = [one for one in templates if snapshot.has_gift(one.product_id, one.collection_id)]
    recent = _recent(context, found, lately) if tab == "gifts" and page == 1 else []
    start = (page - 1) * CARDS
    items = found[start : start + CARDS]
    return context.page(
        "send/gift.html",
        status=200,  # a wrong amount does not fail the search
        tab=tab,
        recent=recent,
        items=items[len(recent) :],
        pictures=_pictures(snapshot, principal.customer_id, tab, items),
        older=context.here(page=page + 1) if len(found) > start + CARDS else None,
        newer=context.here(page=page - 1) if page > 1 else None,
        draft_id=context.query("draft"),
        may_keep=context.person.may(Right.TEMPLATES),
        drafts=[(one, _name(one, snapshot, principal.customer_id)) for one in drafts if not one.content.is_campaign],
        delivered=delivered,
        **search_values(context, snapshot, principal.customer_id),
    )


def _recent(context: RequestContext, found: Sequence[Product], lately: Sequence[int]) -> Sequence[Product]:
    """Returns the gifts at the start of the list that the person sent recently; none during a search."""
    if any(context.query(name) for name in ("q", "kind", "amount", "currency")):
        return []
    return [product for product in found[:_MOST_RECENT] if product.id in lately]


async def amount(context: RequestContext) -> Response:
    """Shows the picked gift, and the values for which it can be sent. Raises NotFound."""
    caller, snapshot = await caller_and_catalogue(context)
    return _amount(context, snapshot, await read_picked(context, caller, snapshot, context.query))


async def take(context: RequestContext) -> Response:
    """Saves the gift and the amount in a new draft, or in the open one. Raises NotFound."""
    caller, snapshot = await caller_and_catalogue(context)
    picked = await read_picked(context, caller, snapshot, context.form.__getitem__)
    choice, _ = await priced(context, caller, picked)
    if context.form.errors:
        return _amount(context, snapshot, picked)
    content = DraftContent().chosen(choice)
    if context.form["draft"]:
        opened = await open_draft(context, context.form["draft"])
        before = await chosen(context, opened)
        names = ("product_id", "collection_id", "template_id", "country", "value", "has_texts")
        await change(context, opened, **{name: getattr(content, name) for name in names})
        is_other = msgspec.structs.replace(opened.content, has_texts=False).choice != choice
        return context.see(f"{opened.path}/recipients", _replaced(context, before) if before and is_other else None)
    draft = await context.services.drafts.begin(context.actor, caller.now, content)
    return context.see(f"/app/send/{draft.id}/recipients")


def _replaced(context: RequestContext, before: Chosen) -> str:
    """Returns the notice that names the gift before, which another window may have chosen."""
    amount = context.language.amount(before.gift.value_minor, before.gift.currency)
    return context.say("The gift was changed. Before, it was: %(gift)s, %(amount)s.", gift=before.name, amount=amount)


async def drop(context: RequestContext) -> Response:
    """Deletes a draft."""
    opened = await open_draft(context)
    await context.services.drafts.drop(context.actor, opened.draft.id)
    return context.see("/app/send", context.say("The draft was deleted."))


def _amount(context: RequestContext, snapshot: Snapshot, picked: Picked) -> Response:
    draft_id, customer_id = context.form["draft"] or context.query("draft"), context.person.customer_id
    return context.page(
        "send/amount.html",
        amounts=amount_values(context, picked),
        picked=picked,
        draft_id=draft_id,
        new_price=new_price(snapshot, customer_id, picked.template) if picked.template else None,
        cost_minor=cost_minor(snapshot, customer_id, picked.template) if picked.template else None,
    )


def _pictures(snapshot: Snapshot, customer_id: int, tab: str, items: Sequence[Any]) -> dict[int, list[str]]:
    """Returns the pictures of collections or templates, by id. Products have their own."""
    if tab == "collections":
        return pictured(snapshot, items, customer_id)
    return {one.id: _template_pictures(snapshot, customer_id, one) for one in items} if tab == "templates" else {}


def _template_pictures(snapshot: Snapshot, customer_id: int, template: Template) -> list[str]:
    if collection := snapshot.collection(template.collection_id or 0, customer_id):
        return pictured(snapshot, [collection], customer_id)[collection.id]
    product = snapshot.product(template.product_id or 0, template.country or DEFAULT_COUNTRY, customer_id)
    return [product.picture] if product and product.picture else []


def _name(draft: Draft, snapshot: Snapshot, customer_id: int) -> str | None:
    """Returns the name of a draft's gift; None if it is not known."""
    content = draft.content
    if content.product_id is not None:
        product = snapshot.product(content.product_id, content.country or DEFAULT_COUNTRY, customer_id)
        return product.name if product else None
    if content.collection_id is not None:
        collection = snapshot.collection(content.collection_id, customer_id)
        return collection.name if collection else None
    return None
