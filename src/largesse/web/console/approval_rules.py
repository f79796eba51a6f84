"""Approval rules: a send that matches one waits for approval. Administrators set and end them."""

from collections.abc import Collection

from starlette.responses import Response

from largesse.approvals import service
from largesse.approvals.model import MOST_DAYS, ROLES, ApprovalRule, rules_short_of
from largesse.approvals.store import list_rules
from largesse.base.errors import InvalidRequest, NotFound
from largesse.base.i18n.languages import text
from largesse.base.text import has_words, search_words
from largesse.catalogue.products import Filters
from largesse.customers.customer_store import list_currencies
from largesse.customers.members import MOST_PEOPLE, list_members
from largesse.ledger.accounts import MOST_ACCOUNTS
from largesse.ledger.store import list_seen_accounts
from largesse.web.console.context import RequestContext, typed_amount
from largesse.web.console.people import ROLE_NAMES
from largesse.web.console.send.opening import caller_and_catalogue
from largesse.web.console.words import Names

# The page offers this many products, and collections, besides the selected ones. A search finds others.
MOST_OFFERED = 200
# More than a rule may have, so that the page can say beside the form that it is too many.
MOST_FIELDS = 2 * MOST_ACCOUNTS + 2 * MOST_PEOPLE + 4 * MOST_OFFERED
_ANYBODY = "anybody"
_WHO = Names({_ANYBODY: text("Everybody who sends"), "member": text("Members"), "admin": text("Administrators")})
_CHOSEN = ("account", "product", "collection", "approver")
_NEEDED = {"1": text("One person"), "2": text("Two people")}


async def show(context: RequestContext) -> Response:
    """Shows the rules and the form that sets one."""
    if "name" in context.form_of_address:  # the form was sent as a search for more gifts
        context.form = context.form_of_address
    async with context.database.connection(context.person.scope) as connection:
        rules = await list_rules(connection, context.customer)
        members = await list_members(connection, context.person.customer_id)
        accounts = await list_seen_accounts(connection, context.customer, user_id=None)
        currencies = await list_currencies(connection, context.person.customer_id)
    chosen = {field: set(context.form.numbers(field)) for field in _CHOSEN}
    products, collections = await _gifts(context)
    known = await _known(context, chosen["product"].union(*(one.product_ids for one in rules)))
    names = {f"person-{one.id}": one.name for one in members} | {f"account-{one.id}": one.name for one in accounts}
    names |= {f"product-{number}": name for number, name in known[0].items()}
    names |= {f"collection-{number}": name for number, name in known[1].items()}
    return context.page(
        "approval_rules.html",
        rules=rules,
        short_of=rules_short_of(rules, {one.id: one.role for one in members if one.is_active}),
        names=names,
        offered={
            "account": [(one.id, one.name, one.currency) for one in accounts if not one.is_closed],
            "product": _boxes(products, known[0], chosen["product"]),
            "collection": _boxes(collections, known[1], chosen["collection"]),
            "approver": [(one.id, one.name, context.say(ROLE_NAMES[one.role])) for one in members if one.is_active],
        },
        has_more=max(len(products), len(collections)) > MOST_OFFERED,
        keyword=_keyword(context),
        who=Names({role: context.say(_WHO[role]) for role in (_ANYBODY, *ROLES)}),
        needed=[(number, context.say(name)) for number, name in _NEEDED.items()],
        currencies=[(one, one) for one in currencies],
        currency=next((one.currency for one in accounts), ""),
        chosen={field: set(map(str, numbers)) for field, numbers in chosen.items()},
        most_name=service.MOST_NAME,
        most_days=MOST_DAYS,
        most_offered=MOST_OFFERED,
    )


async def create(context: RequestContext) -> Response:
    """Sets a rule."""
    form = context.form
    chosen = {field: frozenset(form.numbers(field)) for field in _CHOSEN}
    products, collections = await _known(context, chosen["product"])
    async with context.database.connection(context.person.scope) as connection:
        currencies = await list_currencies(connection, context.person.customer_id)
        accounts = await list_seen_accounts(connection, context.customer, user_id=None)
    name = form.text("name", service.MOST_NAME)
    role, needed = form.choice("role", _WHO), form.choice("needed", _NEEDED)
    currency, above_minor = form.choice("currency", currencies), None
    if form["above"].strip() and currency in currencies:
        above_minor = typed_amount(context, "above", currency)
    days = form.number("days", MOST_DAYS)
    if not days:
        form.error("days", context.say("Type a number of days from 1 to %(most)s.", most=MOST_DAYS))
    offered = {"account": {one.id for one in accounts}, "product": set(products), "collection": set(collections)}
    for field, numbers in chosen.items():
        if len(numbers) > service.MOST_CHOSEN:
            form.error(field, context.say("Choose at most %(most)s.", most=service.MOST_CHOSEN))
        if not numbers <= offered.get(field, numbers):
            form.error(field, context.say("Choose one of the options."))
    if form.errors:
        return await show(context)
    rule = ApprovalRule(
        customer_id=context.person.customer_id,
        id=0,
        environment=context.person.environment,
        name=name,
        role=None if role == _ANYBODY else role,
        currency=None if above_minor is None else currency,
        above_minor=above_minor,
        beyond_budget=form["beyond_budget"] == "yes",
        account_ids=chosen["account"],
        product_ids=chosen["product"],
        collection_ids=chosen["collection"],
        approver_ids=chosen["approver"],
        needed=int(needed),
        expires_days=days or 1,
    )
    try:
        await service.create_rule(context.actor, rule)
    except (InvalidRequest, NotFound) as refusal:
        form.error(*_mistake(context, refusal))
        return await show(context)
    said = context.say("The rule %(name)s was set. It applies from the next send.", name=name)
    return context.see("/app/approvals/rules", said)


async def end(context: RequestContext) -> Response:
    """Ends a rule. Raises NotFound."""
    name = await service.end_rule(context.actor, context.number("rule"))
    said = context.say("The rule %(name)s has ended. What waits for it goes on waiting.", name=name)
    return context.see("/app/approvals/rules", said)


def _mistake(context: RequestContext, refusal: InvalidRequest | NotFound) -> tuple[str, str]:
    """Returns the field that caused a rule to be refused, and what is wrong with it."""
    match refusal:
        case service.RuleNameTaken():
            return "name", context.say("Another rule has this name.")
        case service.TooManyRules():
            return "name", context.say("Your company has %(most)s rules. End one first.", most=service.MOST_RULES)
        case service.NobodyMayApprove():
            return "approver", context.say("Choose more people: not enough of them may approve.")
        case NotFound():
            return "approver", context.say("Choose people who belong to your company.")
    return "name", context.say("Choose one of the options.")


def _keyword(context: RequestContext) -> str:
    return context.form["q"].strip()[:100]


async def _gifts(context: RequestContext) -> tuple[dict[int, str], dict[int, str]]:
    """Returns products and collections that a rule can name, by id, with the searched words in their names.

    There may be more than the page offers, if there are more than `MOST_OFFERED`.
    """
    _, snapshot = await caller_and_catalogue(context)
    catalogue, customer_id, keyword = context.services.catalogue, context.person.customer_id, _keyword(context)
    products: dict[int, str] = {}
    for country in snapshot.countries(customer_id):
        wanted = customer_id, Filters(country, keyword=keyword or None)
        await catalogue.prepare(snapshot, *wanted)
        products |= {one.id: one.name for one in snapshot.products(*wanted)[: MOST_OFFERED + 1]}
    words = search_words(keyword)
    collections = snapshot.collections(customer_id)
    return products, {one.id: one.name for one in collections if has_words(one.name, words)}


async def _known(context: RequestContext, product_ids: Collection[int]) -> tuple[dict[int, str], dict[int, str]]:
    """Returns the names of those products that the customer can send in any country, and of all its collections, by id."""
    _, snapshot = await caller_and_catalogue(context)
    customer_id = context.person.customer_id
    found = (
        snapshot.product(one, country, customer_id)
        for country in snapshot.countries(customer_id)
        for one in product_ids
    )
    products = {one.id: one.name for one in found if one is not None}
    return products, {one.id: one.name for one in snapshot.collections(customer_id)}


def _boxes(found: dict[int, str], known: dict[int, str], chosen: Collection[int]) -> list[tuple[int, str, str]]:
    """Returns the selected gifts, then others that were found, both sorted by name."""
    others = {one: name for one, name in found.items() if one not in chosen}
    selected = {one: known[one] for one in chosen if one in known}
    return [(one, name, "") for one, name in [*_by_name(selected), *_by_name(others)[:MOST_OFFERED]]]


def _by_name(gifts: dict[int, str]) -> list[tuple[int, str]]:
    return sorted(gifts.items(), key=lambda one: (one[1].lower(), one[0]))
