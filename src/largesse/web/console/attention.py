"""Items on the home page that need attention, each with an action."""

from collections.abc import Sequence
from datetime import timedelta
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from largesse.automations.store import list_automations
from largesse.base import clock
from largesse.customers.roles import Right
from largesse.db.pool import Connection
from largesse.fulfilment.parcels import list_orders_back
from largesse.ledger.store import SeenAccount
from largesse.ledger.top_ups import list_top_ups
from largesse.reports.filters import OrderFilter, add_up
from largesse.reports.sums import OrderState
from largesse.reports.usage import count_setup_problems, list_failing_webhooks
from largesse.templates.service import MOST_TEMPLATES
from largesse.templates.store import list_templates
from largesse.web.console.context import RequestContext
from largesse.web.console.send.opening import caller_and_catalogue, is_sendable

UNCLAIMED_DAYS = 30
_UNUSED_DAYS = 90
_EACH = 3  # the most accounts, and the most webhooks, with an item of their own; one item counts the others


class AttentionItem(msgspec.Struct, frozen=True):
    """Something that needs attention, with details and the action that its row offers. `kind` is `bad`, `waiting` or `still`."""

    icon: str
    kind: str
    said: str
    more: str
    action: str
    path: str


async def of_orders(
    context: RequestContext, connection: Connection, orders: OrderFilter, bounced: int, waiting: int
) -> list[AttentionItem]:
    """Returns the items for orders: those with bounced mail, and those that stay unclaimed.

    `bounced` and `waiting` are the numbers of orders in these states.
    """
    items = []
    if bounced:
        said = context.ngettext(
            "%(count)s order has mail that bounced", "%(count)s orders have mail that bounced", bounced
        )
        more, act = (
            context.say("The gifts go out again once the addresses are correct."),
            context.say("Correct addresses"),
        )
        items.append(AttentionItem("mail-warning", "waiting", said, more, act, "/app/orders?state=bounced"))
    until = clock.now().date() - timedelta(days=UNCLAIMED_DAYS)
    # Adding up a month is much quicker than adding up all that came before.
    recent = replace(orders, states=(OrderState.WAITING,), since=until + timedelta(days=1))
    late = waiting - sum(one.sums.orders for one in await add_up(connection, recent, only=("orders",)))
    if late > 0:
        said = context.ngettext("%(count)s order has unclaimed gifts", "%(count)s orders have unclaimed gifts", late)
        more, path = context.say("For more than %(days)s days.", days=UNCLAIMED_DAYS), "/app/orders?state=waiting"
        items.append(
            AttentionItem("hourglass", "still", said, more, context.say("See the orders"), f"{path}&until={until}")
        )
    return items


async def of_parcels(context: RequestContext, connection: Connection) -> list[AttentionItem]:
    """Returns the item for orders with parcels that came back lately; none if the person sees no orders."""
    person = context.person
    if not person.may(Right.SEE_ORDERS):
        return []
    own = person.if_only_own(Right.SEE_ORDERS)
    found = await list_orders_back(connection, context.customer, user_id=own, within=timedelta(days=UNCLAIMED_DAYS))
    if not found:
        return []
    said = context.ngettext(
        "%(count)s order has a parcel that came back", "%(count)s orders have parcels that came back", len(found)
    )
    more = context.say("The recipient sees it on the page of the gift, and is told to ask the sender.")
    path = f"/app/orders/{found[0]}"
    return [AttentionItem("package", "bad", said, more, context.say("See the newest"), path)]


async def of_lost_gifts(context: RequestContext) -> list[AttentionItem]:
    """Returns the item for running automations whose gift cannot be sent; none if the person may not see automations."""
    if not context.person.may(Right.CONTACTS):
        return []
    running = [one for one in await context.read(list_automations, context.customer) if one.paused_at is None]
    if not running:
        return []
    _, snapshot = await caller_and_catalogue(context)
    templates = await context.read(list_templates, context.principal, offset=0, limit=MOST_TEMPLATES)
    sent = {one.id for one in templates if is_sendable(snapshot, context.person.customer_id, one)}
    lost = [one.id for one in running if one.template_id not in sent]
    if not lost:
        return []
    said = context.ngettext(
        "%(count)s automation cannot send its gift any more",
        "%(count)s automations cannot send their gift any more",
        len(lost),
    )
    more = context.say("The gift of the template is gone, or has another price now. Save the template again.")
    path = f"/app/automations/{lost[0]}"
    return [AttentionItem("calendar-heart", "bad", said, more, context.say("See the automation"), path)]


def of_accounts(context: RequestContext, accounts: Sequence[SeenAccount]) -> list[AttentionItem]:
    """Returns the items for accounts with a low balance."""
    low = [account for account in accounts if account.is_low]
    may_top_up = context.person.may(Right.MOVE_FUNDS)
    items = []
    for account in low[:_EACH]:
        below, left = (
            context.language.amount(minor, account.currency)
            for minor in (account.below_minor or 0, account.balance_minor)
        )
        path = f"/app/funding/top-ups/new?account={account.id}" if may_top_up else f"/app/funding/{account.id}"
        said = context.say("%(name)s is below %(amount)s", name=account.name, amount=below)
        act = context.say("Top up") if may_top_up else context.say("See the statement")
        items.append(AttentionItem("wallet", "waiting", said, context.say("%(left)s left.", left=left), act, path))
    if more := len(low[_EACH:]):
        said = context.ngettext(
            "%(count)s more account has a low balance", "%(count)s more accounts have a low balance", more
        )
        items.append(AttentionItem("wallet", "waiting", said, "", context.say("See the accounts"), "/app/funding"))
    return items


async def of_setup(context: RequestContext, connection: Connection) -> list[AttentionItem]:
    """Returns the items for failing webhooks and unused API keys; none if the person may not change them."""
    person, items = context.person, []
    if not person.may(Right.SETTINGS):
        return []
    failing, unused = await count_setup_problems(connection, context.customer, unused_days=_UNUSED_DAYS)
    if failing:
        see = context.say("See the deliveries")
        for one in await list_failing_webhooks(connection, context.customer, limit=_EACH):
            host = context.say("%(host)s does not accept deliveries.", host=urlsplit(one.target_url).hostname or "")
            path = f"/app/webhooks/{one.id}"
            items.append(AttentionItem("webhook", "bad", context.say("A webhook fails"), host, see, path))
        if more := failing - len(items):
            said = context.ngettext("%(count)s more webhook fails", "%(count)s more webhooks fail", more)
            items.append(AttentionItem("webhook", "bad", said, "", context.say("See the webhooks"), "/app/webhooks"))
    if unused:
        said = context.ngettext("%(count)s API key is unused", "%(count)s API keys are unused", unused)
        more_said = context.say("For more than %(days)s days. Delete what you do not need.", days=_UNUSED_DAYS)
        items.append(AttentionItem("key-round", "still", said, more_said, context.say("Review the keys"), "/app/keys"))
    return items


async def of_top_ups(
    context: RequestContext, connection: Connection, accounts: Sequence[SeenAccount]
) -> list[AttentionItem]:
    """Returns the item for top-ups of these accounts that wait for their transfer."""
    person, seen = context.person, {account.id for account in accounts}
    if not seen or not person.may(Right.MOVE_FUNDS):
        return []
    waiting = await list_top_ups(connection, context.customer, waiting=True)
    found = [top_up for top_up in waiting if top_up.account_id in seen]
    if not found:
        return []
    path = "/app/funding/top-ups" if len(found) > 1 else f"/app/funding/top-ups/{found[0].reference}"
    said = context.ngettext(
        "%(count)s top-up waits for its transfer", "%(count)s top-ups wait for their transfer", len(found)
    )
    more = context.say("The balance grows once the money arrives.")
    return [AttentionItem("landmark", "still", said, more, context.say("See how to pay"), path)]
