"""Everything once more with its price, and the button that sends."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from starlette.responses import Response

from largesse.base.errors import (
    FieldError,
    InsufficientBalance,
    InvalidRequest,
    NotFound,
    Problem,
    QuoteChanged,
    QuoteExpired,
    ReferenceUsed,
)
from largesse.base.i18n.templates import text
from largesse.customers.customers import confirmed_above
from largesse.drafts.checking import Checked
from largesse.drafts.model import PriceLines, price_lines
from largesse.ledger.accounts import list_funding_accounts
from largesse.orders.order import Order
from largesse.orders.quoter import Quote
from largesse.web.console.context import Visit
from largesse.web.console.send.opening import Open, chosen, open_draft, person_as_caller, step

# What keeps a send from being placed, by the member that it is about: the step to mend it in, and what to do there.
_MEND = {
    "product_id": ("gift", text("The gift cannot be sent any more. Choose another.")),
    "collection_id": ("gift", text("The gift cannot be sent any more. Choose another.")),
    "template_id": ("gift", text("The gift cannot be sent any more. Choose another.")),
    "country": ("gift", text("The gift cannot be sent any more. Choose another.")),
    "value": ("gift", text("The gift cannot be sent for this amount any more.")),
    "recipients": ("recipients", text("Say who it is for, and mend the rows that are wrong.")),
    "code_quantity": ("recipients", text("Say who it is for, and mend the rows that are wrong.")),
    "wrapping_key": ("message", text("The wrapping cannot be used.")),
    "from_name": ("message", text("The sender's name cannot be used.")),
    "message": ("message", text("The message cannot be used.")),
    "send_at": ("delivery", text("The time it was to be sent at is over. Choose a later one.")),
    "account_id": ("delivery", text("Choose the account that pays.")),
    "external_reference": ("delivery", text("Another order has your reference. Choose another.")),
}
_DRY = text("The account does not hold enough for this. Choose another, or top it up.")
_CHANGED = text("The price or the draft has changed since you saw it. Nothing was charged: look again.")
_EXPIRED = text("This page was open for a while. Nothing was charged: look once more, and send.")
_NO_LONGER = text("It cannot be sent as it stands. Nothing was charged.")


async def show(visit: Visit) -> Response:
    """The review; of a draft that was sent, what became of it."""
    try:
        opened = await open_draft(visit)
    except NotFound:
        return visit.see(f"/app/send/{visit.request.path_params['draft']}/sent")
    return await _show(visit, opened)


async def place(visit: Visit) -> Response:
    """Sends it, once; what keeps it from being sent is said, and nothing is charged. Raises NotFound, NotProved."""
    caller = await person_as_caller(visit)
    draft_id = visit.request.path_params["draft"]
    try:
        placed = await visit.services.drafts.send(
            caller, draft_id, visit.form["quote"] or None, check=await _check(visit)
        )
    except QuoteExpired:
        said = _EXPIRED
    except QuoteChanged:
        said = _CHANGED
    except (InvalidRequest, InsufficientBalance, ReferenceUsed):
        said = _NO_LONGER
    else:
        return visit.see(f"/app/send/{placed.reference}/sent")
    return await _show(visit, await open_draft(visit), said=said, status=409)


async def _check(visit: Visit) -> Callable[[Order], None]:
    """Returns what raises NotProved for an order of more than the amount above which its sender confirms who they are."""
    async with visit.database.connection(visit.person.scope) as connection:
        amounts = await confirmed_above(connection, visit.person.customer_id)

    def check(order: Order) -> None:
        if order.total_minor > amounts.get(order.currency, order.total_minor):
            visit.require_proof()

    return check


async def _show(visit: Visit, opened: Open, *, said: str | None = None, status: int = 200) -> Response:
    principal = opened.caller.principal
    gift = await chosen(visit, opened)
    checked = await visit.services.drafts.recipients(principal, opened.draft)
    quote, lines, to_mend = await _price(visit, opened, checked)
    async with visit.database.connection(principal.scope) as connection:
        accounts = await list_funding_accounts(connection, principal)
    return await step(
        visit,
        opened,
        "review",
        status=status,
        chosen=gift,
        checked=checked,
        quote=quote,
        lines=lines,
        to_mend=to_mend,
        said=visit.say(said) if said else None,
        account=next((one for one in accounts if one.id == opened.content.account_id), None),
    )


async def _price(
    visit: Visit, opened: Open, checked: Checked
) -> tuple[Quote | None, PriceLines | None, list[tuple[str, str]]]:
    """The quote and its lines, or all that keeps the draft from being sent: the step to mend it in, and what to do there."""
    to_mend: dict[str, str] = {}
    if opened.content.choice is None:
        to_mend["gift"] = visit.say(_MEND["product_id"][1])
    if opened.content.code_quantity is None and not checked.can_be_sent:
        to_mend["recipients"] = visit.say(_MEND["recipients"][1])
    if to_mend:
        return None, None, list(to_mend.items())
    try:
        quote = await visit.services.drafts.quote(opened.caller, opened.draft, checked)
    except (InvalidRequest, InsufficientBalance, ReferenceUsed) as problem:
        for error in problem.errors or _as_errors(problem):
            name, what = _MEND.get(error.pointer.split("/")[1], ("gift", _NO_LONGER))
            is_dry = name == "delivery" and isinstance(problem, InsufficientBalance)
            to_mend.setdefault(name, visit.say(_DRY if is_dry else what))
        return None, None, list(to_mend.items())
    gift = await chosen(visit, opened)
    assert gift is not None, "what was quoted can be sent"
    return quote, price_lines(quote, gift.product, gift.gift.country), []


def _as_errors(problem: Problem) -> Sequence[FieldError]:
    """What a problem is about that names no member."""
    field = "external_reference" if isinstance(problem, ReferenceUsed) else "account_id"
    return (FieldError(f"#/{field}", problem.detail),)
