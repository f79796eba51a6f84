"""The page after a send: the reference, the progress of the mail, and the codes of a batch."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import wraps
from typing import Any

from starlette.responses import Response

from largesse.base.errors import NotFound
from largesse.base.i18n.languages import text
from largesse.base.money import to_number
from largesse.campaigns.store import find_by_order
from largesse.customers.authenticator import Caller
from largesse.customers.roles import Right
from largesse.db.pool import Row
from largesse.drafts.model import DraftContent
from largesse.ledger.store import list_funding_accounts
from largesse.mail.recipients import count_by_state
from largesse.orders.acts import read_receipt
from largesse.orders.claim_by_store import read_claim_by
from largesse.orders.lookup import find_order
from largesse.orders.order import SendResponse, is_of_campaign
from largesse.templates.service import MAX_NAME, MOST_TEMPLATES, TooManyTemplates, create_template
from largesse.templates.store import TemplateContent
from largesse.web.console.context import RequestContext
from largesse.web.console.order_acts import code_sheet
from largesse.web.console.send.message import offered_wrappings
from largesse.web.console.send.opening import person_as_caller
from largesse.web.console.send.preview import brand_of

# How long the sender of a batch gets its codes here. Later they need step-up, on the order's page.
CODES_FOR = timedelta(hours=1)
# The columns of an order that a template copies.
_COPIED = (
    "product_id", "collection_id", "value_minor", "currency", "country", "wrapping_key", "from_name", "message",
    "expiry_after_days",
)  # fmt: skip
_PLACED = text("This send was placed in another window. What you typed was not saved.")
_LATE = text("The codes are an hour old: read them again on the page of the order.")


async def show(context: RequestContext) -> Response:
    """Shows the order that was placed, and what happens next. Raises NotFound for somebody else's order."""
    caller = await person_as_caller(context)
    order = await _order(context, caller)
    if is_of_campaign(order):
        campaign = await context.read(find_by_order, order["customer_id"], order["reference"])
        return context.see("/app/campaigns" if campaign is None else f"/app/campaigns/{campaign[0]}")
    return await _shown(context, caller, order)


def or_order(page: Callable[[RequestContext], Awaitable[Any]]) -> Callable[[RequestContext], Awaitable[Any]]:
    """Wraps a page or form of a draft: once the draft was sent, it leads to the order. Raises NotFound for somebody else's."""

    @wraps(page)
    async def shown(context: RequestContext) -> Any:
        try:
            return await page(context)
        except NotFound:
            order = await _order(context, await person_as_caller(context))
            said = context.say(_PLACED) if context.request.method == "POST" else None
            return context.see(f"/app/send/{order['reference']}/sent", said)

    return shown


async def save_template(context: RequestContext) -> Response:
    """Saves the order as a template under the typed name. Raises NotFound."""
    caller, form = await person_as_caller(context), context.form
    order = await _order(context, caller)
    name = form.text("name", MAX_NAME)
    snapshot = await context.services.catalogue.of(caller)
    gift = snapshot.product(
        order["product_id"] or 0, order["country"], caller.principal.customer_id
    ) or snapshot.collection(order["collection_id"] or 0, caller.principal.customer_id)
    if gift is None:
        form.error("name", context.say("The gift cannot be sent any more. Choose another."))
    if form.errors or gift is None:
        return await _shown(context, caller, order)
    content = TemplateContent(name=name, gift_name=gift.name, **{member: order[member] for member in _COPIED})
    try:
        await create_template(context.actor, content, of_order=True)
    except TooManyTemplates:
        form.error("name", context.say("Your company has %(most)s templates. Remove one first.", most=MOST_TEMPLATES))
        return await _shown(context, caller, order)
    said = context.say("Saved as the template %(name)s.", name=name)
    return context.see(f"/app/send/{order['reference']}/sent", said)


async def _shown(context: RequestContext, caller: Caller, order: Row) -> Response:
    async with context.database.connection(caller.principal.scope) as connection:
        counts = await count_by_state(connection, order["customer_id"], order["id"])
        accounts = await list_funding_accounts(connection, caller.principal)
        claim_by = await read_claim_by(connection, (order["customer_id"], order["id"]))
    return context.page(
        "send/sent.html",
        may_keep=context.person.may(Right.TEMPLATES),
        most_name=MAX_NAME,
        order=order,
        claim_by=claim_by,
        present=next((one.drawn for one in await offered_wrappings(context) if one.key == order["wrapping_key"]), None),
        account_name=next((one.name for one in accounts if one.id == order["account_id"]), None),
        now=caller.now,
        sent=sum(counts.get(state, 0) for state in ("sent", "captured")),
        bounced=counts.get("bounced", 0),
        waiting=order["recipient_count"] - sum(counts.get(s, 0) for s in ("sent", "captured", "bounced")),
        has_codes=_is_fresh(caller, order),
    )


async def codes(context: RequestContext) -> Response:
    """Shows the codes as a page to print. Records each reading."""
    caller = await person_as_caller(context)
    order = await _order(context, caller)
    receipt = await _codes(context, caller, order)
    if receipt is None:
        return context.trouble(403, context.say(_LATE))
    return await code_sheet(context, order["from_name"], receipt.codes, await brand_of(context))


async def codes_file(context: RequestContext) -> Response:
    """Sends the codes as a CSV file. Records each reading.

    PINs have a hyphen, which claim pages ignore: a spreadsheet reads `012345` as a number and drops the zero.
    """
    caller = await person_as_caller(context)
    receipt = await _codes(context, caller, await _order(context, caller))
    if receipt is None:
        return context.trouble(403, context.say(_LATE))
    rows = [(one.code, f"{one.pin[:3]}-{one.pin[3:]}", one.redemption_url) for one in receipt.codes]
    return await context.csv(f"codes-{receipt.reference}.csv", ("code", "pin", "link"), rows)


async def again(context: RequestContext) -> Response:
    """Starts a new draft with the same gift and message, for other recipients."""
    caller = await person_as_caller(context)
    order = await _order(context, caller)
    is_template = order["template_id"] is not None
    snapshot = await context.services.catalogue.of(caller)
    product = snapshot.product(order["product_id"] or 0, order["country"], caller.principal.customer_id)
    is_implied = is_template or (product is not None and not product.is_digital)
    content = DraftContent(
        product_id=None if is_template else order["product_id"],
        collection_id=None if is_template else order["collection_id"],
        template_id=order["template_id"],
        country=order["country"],
        value=None if is_implied else to_number(order["value_minor"], order["currency"]),
        wrapping_key=order["wrapping_key"],
        from_name=order["from_name"],
        message=order["message"],
        account_id=order["account_id"],
    )
    draft = await context.services.drafts.begin(context.actor, caller.now, content)
    return context.see(f"/app/send/{draft.id}/recipients")


async def _order(context: RequestContext, caller: Caller) -> Row:
    """Returns the person's own order of the path. Raises NotFound for any other."""
    order = await context.read(find_order, caller.principal, context.request.path_params["draft"])
    if order["user_id"] != caller.principal.user_id:
        raise NotFound("There is no order with that reference.")
    return order


async def _codes(context: RequestContext, caller: Caller, order: Row) -> SendResponse | None:
    """Returns the codes of the order; None after CODES_FOR."""
    if not _is_fresh(caller, order):
        return None
    services = context.services
    public_url = services.settings.public_url_of(order["environment"])
    return await read_receipt(context.actor, caller.principal, services.vault, public_url, order["reference"])


def _is_fresh(caller: Caller, order: Row) -> bool:
    return bool(caller.now - order["created_at"] < CODES_FOR)
