"""The review step of a send: a summary with the price, and the button that sends."""

from collections.abc import Callable, Sequence

from starlette.responses import Response

from largesse.approvals.model import APPROVED, ApprovalRequest
from largesse.approvals.service import NobodyMayApprove
from largesse.approvals.store import find_request
from largesse.base import errors
from largesse.base.errors import FieldError, NotFound, Problem
from largesse.base.i18n.languages import text
from largesse.campaigns.model import Campaign
from largesse.campaigns.store import count_list, find_by_order, find_campaign
from largesse.customers.customer_store import confirmed_above
from largesse.customers.principal import Principal
from largesse.db.pool import Connection
from largesse.drafts.checking import Checked
from largesse.drafts.model import PriceLines, price_lines
from largesse.drafts.service import ask_approval, excesses
from largesse.ledger.store import list_funding_accounts
from largesse.mail.people.automation_words import MOST_FOR_A_GIFT
from largesse.orders.order import Order
from largesse.orders.quoter import Quote
from largesse.web.console.context import RequestContext
from largesse.web.console.send.opening import Open, chosen, open_draft, person_as_caller, step

# Errors that prevent a send, by the member with the error: the step in which to fix it, and what to do there.
_MEND = {
    "product_id": ("gift", text("The gift cannot be sent any more. Choose another.")),
    "collection_id": ("gift", text("The gift cannot be sent any more. Choose another.")),
    "template_id": ("gift", text("The gift cannot be sent any more. Choose another.")),
    "country": ("gift", text("The gift cannot be sent any more. Choose another.")),
    "value": ("gift", text("The gift cannot be sent for this amount any more.")),
    "recipients": ("recipients", text("Add recipients, and fix the rows with errors.")),
    "code_quantity": ("recipients", text("Add recipients, and fix the rows with errors.")),
    "wrapping_key": ("message", text("The wrapping cannot be used.")),
    "from_name": ("message", text("The sender's name cannot be used.")),
    "message": ("message", text("The message cannot be used.")),
    "send_at": ("delivery", text("The time to send it has passed. Choose a later one.")),
    "claim_by": (
        "delivery",
        text("The claim-by date is over before the gifts leave, or too far away. Choose another."),
    ),
    "reminder_days": ("delivery", text("The last reminder would leave after the claim-by date.")),
    "account_id": ("delivery", text("Choose the account that pays.")),
    "external_reference": ("delivery", text("Another order has your reference. Choose another.")),
}
_DRY = text("The account's balance is too low. Choose another account, or top it up.")
_CHANGED = text("The price or the draft has changed since you saw it. Nothing was charged: review it again.")
_EXPIRED = text("This page was open for a while. Nothing was charged: review it again, and send.")
_NEEDS_APPROVAL = text("This send needs approval. Nothing was charged: ask for it below.")
_NOBODY = text("Not enough people may approve it: nobody approves their own send. Ask an administrator.")
_NO_LONGER = text("It cannot be sent yet. Nothing was charged.")


async def show(context: RequestContext) -> Response:
    """Shows the review; for a draft that was sent, the order."""
    try:
        opened = await open_draft(context, of_campaign=True)
    except NotFound:
        return context.see(f"/app/send/{context.request.path_params['draft']}/sent")
    return await _show(context, opened)


async def place(context: RequestContext) -> Response:
    """Sends the draft, once. If it cannot be sent, shows why, and charges nothing. Raises NotFound, NotProved."""
    caller = await person_as_caller(context)
    draft_id = context.request.path_params["draft"]
    try:
        placed = await context.services.drafts.send(
            caller, draft_id, context.form["quote"] or None, check=await _check(context)
        )
    except errors.QuoteExpired:
        said = _EXPIRED
    except errors.ApprovalRequired:
        said = _NEEDS_APPROVAL
    except errors.QuoteChanged:
        said = _CHANGED
    except (errors.InvalidRequest, errors.InsufficientBalance, errors.ReferenceUsed, errors.BudgetExceeded):
        said = _NO_LONGER
    else:
        return context.see(f"/app/send/{placed.reference}/sent")
    return await _show(context, await open_draft(context, of_campaign=True), said=said)


async def ask(context: RequestContext) -> Response:
    """Requests approval, or shows why that is not possible. Raises NotFound."""
    caller = await person_as_caller(context)
    services, draft_id = context.services, context.request.path_params["draft"]
    try:
        request = await ask_approval(services.drafts, services.database, caller, context.actor, draft_id)
    except NobodyMayApprove:
        said = _NOBODY
    except errors.QuoteChanged:
        said = _CHANGED
    except (errors.InvalidRequest, errors.InsufficientBalance, errors.ReferenceUsed, errors.BudgetExceeded):
        said = _NO_LONGER
    else:
        return context.see(f"/app/approvals/{request.id}", context.say("Approval was asked for."))
    return await _show(context, await open_draft(context, of_campaign=True), said=said)


async def _check(context: RequestContext) -> Callable[[Order], None]:
    """Returns a check of an order. It raises NotProved above the customer's amount if the sender has not confirmed who they are."""
    amounts = await context.read(confirmed_above, context.person.customer_id)

    def check(order: Order) -> None:
        if order.total_minor > amounts.get(order.currency, order.total_minor):
            context.require_proof()

    return check


async def _show(context: RequestContext, opened: Open, *, said: str | None = None) -> Response:
    principal = opened.caller.principal
    gift = await chosen(context, opened)
    checked = await context.services.drafts.rows.checked(principal, opened.draft)
    quote, lines, to_mend = await _price(context, opened, checked)
    async with context.database.connection(principal.scope) as connection:
        accounts = await list_funding_accounts(connection, principal)
        campaign, listed = await campaign_of(connection, principal, opened.draft.id)
        request = await find_request(connection, principal.place, opened.draft.id)
    return await step(
        context,
        opened,
        "review",
        status=409 if said else None,
        chosen=gift,
        campaign=campaign,
        listed=listed,
        checked=checked,
        quote=quote,
        lines=lines,
        to_mend=to_mend,
        request=request,
        excesses=excesses(quote) if quote else (),
        approval=_approval(opened, quote, request),
        said=context.say(said) if said else None,
        claim_by=opened.draft.claim_by(opened.caller),
        reminder_days=opened.draft.reminder_days(opened.caller),
        account=next((one for one in accounts if one.id == opened.content.account_id), None),
    )


async def campaign_of(connection: Connection, principal: Principal, draft_id: str) -> tuple[Campaign | None, int]:
    """Returns the campaign whose gifts the draft will reserve, and how many addresses it lists."""
    found = await find_by_order(connection, principal.customer_id, draft_id)
    if found is None:
        return None, 0
    campaign = await find_campaign(connection, principal.place, found[0])
    return campaign, 0 if campaign.domains else await count_list(connection, campaign)


def _approval(opened: Open, quote: Quote | None, request: ApprovalRequest | None) -> str | None:
    """Returns the state of the approval that the send needs: `needed`, `waiting`, `approved` or `changed`; None if it needs none."""
    if quote is None or not quote.rules:
        return None
    if request is None or not (request.is_waiting or request.state == APPROVED):
        return "needed"
    is_same = (quote.digest, quote.total_minor) == (request.digest, request.total_minor)
    if request.is_waiting:
        return "waiting" if is_same and opened.draft.changed_at == request.draft_changed_at else "changed"
    return "approved" if is_same and {rule.id for rule in quote.rules} <= request.rule_ids else "changed"


async def _price(
    context: RequestContext, opened: Open, checked: Checked
) -> tuple[Quote | None, PriceLines | None, list[tuple[str, str]]]:
    """Returns the quote and its lines, or all that prevents the send: the step in which to fix it, and what to do there."""
    to_mend: dict[str, str] = {}
    if opened.content.choice is None:
        to_mend["gift"] = context.say(_MEND["product_id"][1])
    if opened.content.code_quantity is None and not checked.can_be_sent(leaves_out=opened.content.leaves_out):
        to_mend["recipients"] = context.say(_MEND["recipients"][1])
    if to_mend:
        return None, None, list(to_mend.items())
    try:
        quote = await context.services.drafts.quote(opened.caller, opened.draft, checked)
    except errors.BudgetExceeded as refusal:
        return None, None, [("gift", _beyond(context, refusal))]
    except (errors.InvalidRequest, errors.InsufficientBalance, errors.ReferenceUsed) as problem:
        for error in problem.errors or _as_errors(problem):
            name, what = _MEND.get(error.pointer.split("/")[1], ("gift", _NO_LONGER))
            is_dry = name == "delivery" and isinstance(problem, errors.InsufficientBalance)
            to_mend.setdefault(name, context.say(_DRY if is_dry else what))
        return None, None, list(to_mend.items())
    gift = await chosen(context, opened)
    assert gift is not None, "what was quoted can be sent"
    return quote, price_lines(quote, gift.product, gift.gift.country), []


def _beyond(context: RequestContext, refusal: errors.BudgetExceeded) -> str:
    """Returns which budget an order exceeds, and what the budget still allows."""
    if refusal.per_gift_minor is not None:
        most = context.language.amount(refusal.per_gift_minor, refusal.currency)
        return context.say(MOST_FOR_A_GIFT, name=refusal.budget, most=most)
    left = context.language.amount(refusal.left_minor or 0, refusal.currency)
    return context.say(
        "The budget %(name)s has %(left)s left. Send less, or ask an administrator for more.",
        name=refusal.budget,
        left=left,
    )


def _as_errors(problem: Problem) -> Sequence[FieldError]:
    """Returns an error for a problem that names no field: the customer's reference if it is used, otherwise the account."""
    field = "external_reference" if isinstance(problem, errors.ReferenceUsed) else "account_id"
    return (FieldError(f"#/{field}", problem.detail),)
