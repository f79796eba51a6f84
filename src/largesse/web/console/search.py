"""Search for orders, recipients, contacts, templates, gifts, pages and help. An empty search shows recent orders and templates.

Each part reads a limited number of rows, and shows only what the person may see.
"""

import re
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import NamedTuple
from urllib.parse import urlencode

from msgspec.structs import replace
from starlette.responses import Response

from largesse.base.i18n.languages import text
from largesse.base.text import folded
from largesse.catalogue.model import Product
from largesse.catalogue.products import Filters
from largesse.catalogue.snapshot import Snapshot
from largesse.contacts.model import Contact
from largesse.contacts.store import Filter, list_contacts
from largesse.customers.roles import Right
from largesse.orders.request import DEFAULT_COUNTRY
from largesse.reports.listing import FoundRecipient, ListedOrder, find_recipients, list_page
from largesse.templates.service import MOST_TEMPLATES
from largesse.templates.store import Template, list_templates
from largesse.web.api.routes import OPERATIONS
from largesse.web.console.context import RequestContext
from largesse.web.console.order_words import headline, state_of_order
from largesse.web.console.page_routes import Access, PageRoute
from largesse.web.console.reports import own_filter
from largesse.web.console.send.opening import caller_and_catalogue
from largesse.web.console.words import WORDS

MOST_OF_KIND = 5
_ORDERS_LOOKED_THROUGH = 10  # how many orders are searched for recipients
_MOST_COUNTRIES = 10  # this many countries are searched one after another, until there are enough gifts

TITLE = text("Search")
_WORD = re.compile(r"[^\W_]+")


class Hit(NamedTuple):
    """A result of the search, and its path."""

    path: str
    title: str
    more: str
    icon: str


class Kind(NamedTuple):
    """The results of one kind. `all_path` leads to all results if there are more, and `all_name` names the link."""

    key: str
    name: str
    hits: Sequence[Hit]
    all_path: str | None = None
    all_name: str = ""


async def show(context: RequestContext) -> Response:
    """Shows the results of a search."""
    words = context.query("q").strip()
    kinds = [
        *await _stored(context, words),
        await _gifts(context, words),
        _pages(context, words),
        Kind("help", context.say("Help"), list(islice(_helpful(context, words), MOST_OF_KIND)) if words else []),
    ]
    return context.page("search.html", words=words, kinds=[kind for kind in kinds if kind.hits])


async def show_help(context: RequestContext) -> Response:
    """Shows the help page: explanations of the pages' words, and links to the API's documentation."""
    return context.page("help.html", explained=WORDS)


async def _stored(context: RequestContext, words: str) -> list[Kind]:
    """Finds orders, their recipients, contacts, and templates."""
    wanted = replace(own_filter(context), search=words)
    templates: list[Template] = []
    people: list[Contact] = []
    async with context.database.connection(context.person.scope) as connection:
        page = await list_page(connection, wanted, _ORDERS_LOOKED_THROUGH)
        found: list[FoundRecipient] = []
        if words:
            found = await find_recipients(connection, context.person.customer_id, page.orders, words, MOST_OF_KIND)
        if words and context.person.may(Right.CONTACTS):
            people = await list_contacts(connection, context.customer, Filter(words), MOST_OF_KIND + 1)
        if context.person.may(Right.TEMPLATES):
            templates = await list_templates(connection, context.principal, offset=0, limit=MOST_TEMPLATES)
    has_more = page.next is not None or len(page.orders) > MOST_OF_KIND
    orders = [_order(context, order) for order in page.orders[:MOST_OF_KIND]]
    of_templates = (_template(context, one) for one in templates if _fits(words, one.name, one.gift_name))
    query = f"?{urlencode({'q': words})}" if words else ""
    all_orders = context.say("All orders that match") if words else context.say("All orders")
    all_contacts = f"/app/contacts{query}" if len(people) > MOST_OF_KIND else None
    contacts = [_contact(context, one) for one in people[:MOST_OF_KIND]]
    return [
        Kind("orders", context.say("Orders"), orders, f"/app/orders{query}" if has_more else None, all_orders),
        Kind("recipients", context.say("Recipients"), [_recipient(context, one) for one in found]),
        Kind("contacts", context.say("Contacts"), contacts, all_contacts, context.say("All contacts that match")),
        Kind("templates", context.say("Templates"), list(islice(of_templates, MOST_OF_KIND))),
    ]


async def _gifts(context: RequestContext, words: str) -> Kind:
    """Finds products and collections."""
    name = context.say("Gifts")
    if not words:
        return Kind("gifts", name, [])
    caller, snapshot = await caller_and_catalogue(context)
    customer_id = caller.principal.customer_id
    hits = [
        Hit(f"/app/collections/{one.id}", one.name, context.say("Collection"), "library")
        for one in snapshot.collections(customer_id)
        if _fits(words, one.name)
    ][:MOST_OF_KIND]
    async for country, product in _products(context, snapshot, customer_id, words):
        if len(hits) >= MOST_OF_KIND:
            break
        shown = context.language.country(country)
        hits.append(Hit(f"/app/catalogue/{product.id}?country={country}", product.name, shown, "gift"))
    return Kind("gifts", name, hits)


async def _products(
    context: RequestContext, snapshot: Snapshot, customer_id: int, words: str
) -> AsyncIterator[tuple[str, Product]]:
    """Yields the products whose names match the words, each once, starting with the default country."""
    countries = sorted(snapshot.countries(customer_id), key=lambda country: (country != DEFAULT_COUNTRY, country))
    seen: set[int] = set()
    for country in countries[:_MOST_COUNTRIES]:
        wanted = customer_id, Filters(country, keyword=words)
        await context.services.catalogue.prepare(snapshot, *wanted)
        for product in islice(snapshot.products(*wanted), MOST_OF_KIND):
            if product.id not in seen and _fits(words, product.name):
                seen.add(product.id)
                yield country, product


def _pages(context: RequestContext, words: str) -> Kind:
    """Finds pages that the role may open. An empty search finds none: the menu shows them."""
    role = context.person.role
    hits = (
        Hit(one.path, context.say(one.title), "", one.icon or "file-text")
        for one in context.routes
        if one.title and _is_page(one) and role in one.roles and words and _fits(words, context.say(one.title))
    )
    by_title = {hit.title: hit for hit in reversed(list(hits))}
    return Kind("pages", context.say("Pages"), sorted(by_title.values(), key=lambda hit: hit.title)[:MOST_OF_KIND])


def _is_page(route: PageRoute) -> bool:
    is_open = route.who not in {Access.ANYONE, Access.ENTERING, Access.SIGNED_IN}
    return is_open and route.method == "GET" and "{" not in route.path and not route.path.endswith(".csv")


def _helpful(context: RequestContext, words: str) -> Iterator[Hit]:
    """Finds explained words, and operations of the API."""
    for key, word in WORDS.items():
        name, meaning = context.say(word.name), context.say(word.meaning)
        if _fits(words, name):
            yield Hit(f"/app/help#{key}", name, meaning, "circle-question-mark")
    for operation in OPERATIONS:
        if _fits(words, operation.summary, operation.name, operation.path):
            address = f"{operation.method} {operation.path}"
            yield Hit(f"/docs#{operation.name}", operation.summary, address, "book-open")


def _order(context: RequestContext, order: ListedOrder) -> Hit:
    more = (order.gift, state_of_order(context, order).word, order.external_reference, _day(context, order.created_at))
    return Hit(f"/app/orders/{order.reference}", headline(context, order), _joined(more), "package")


def _recipient(context: RequestContext, found: FoundRecipient) -> Hit:
    more = (found.email if found.name else None, found.order.gift, _day(context, found.order.created_at))
    return Hit(f"/app/orders/{found.order.reference}", found.name or found.email, _joined(more), "user-round")


def _contact(context: RequestContext, contact: Contact) -> Hit:
    more = (contact.email if contact.name else None, None if contact.is_active else context.say("Has left"))
    return Hit(f"/app/contacts/{contact.id}", contact.name or contact.email, _joined(more), "contact")


def _template(context: RequestContext, template: Template) -> Hit:
    worth = context.language.amount(template.value_minor, template.currency)
    title = template.name or template.gift_name
    return Hit(f"/app/templates/{template.id}", title, _joined((template.gift_name, worth)), "layout-template")


def _joined(parts: Iterable[str | None]) -> str:
    return " · ".join(part for part in parts if part)


def _day(context: RequestContext, at: datetime) -> str:
    return context.language.short_day(at.astimezone(context.zone))


def _fits(words: str, *texts: str | None) -> bool:
    """Returns whether each of `words` is the start of a word in the texts, ignoring case and accents. An empty search matches everything."""
    stored = [word for one in texts if one for word in _WORD.findall(folded(one))]
    typed = _WORD.findall(folded(words))
    return all(any(one.startswith(word) for one in stored) for word in typed) if typed else not words
