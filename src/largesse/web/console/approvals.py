"""Sends that wait for approval: the list, and the page of one, on which approvers approve or decline it."""

from typing import Annotated

import msgspec
from starlette.responses import Response

from largesse.approvals import service
from largesse.approvals.model import APPROVED, DECLINED, EXPIRED, WAITING, WITHDRAWN, ApprovalRequest
from largesse.approvals.service import SeenRequest
from largesse.base.errors import InsufficientBalance, InvalidRequest, NotFound, Problem, Unauthorized
from largesse.base.i18n.languages import text
from largesse.campaigns.store import read_list
from largesse.customers.members import list_members
from largesse.customers.roles import RIGHTS, Right
from largesse.db.pool import Connection
from largesse.drafts.model import Draft
from largesse.drafts.service import send_approved
from largesse.drafts.store import find_draft
from largesse.ledger.store import list_seen_accounts
from largesse.orders.history import list_acts
from largesse.orders.lookup import find_order
from largesse.orders.options import Options
from largesse.orders.order import Gift
from largesse.orders.recipients import Recipient
from largesse.web.console.attention import AttentionItem
from largesse.web.console.automations import waiting_for_approval
from largesse.web.console.context import RequestContext
from largesse.web.console.form import CHANGED, Choice, Text
from largesse.web.console.order_words import Happening, happening_of
from largesse.web.console.send.opening import person_as_caller
from largesse.web.console.send.review import campaign_of
from largesse.web.console.words import StateNames

_SHOWN = 10  # how many recipients the page shows until the reader opens the rest
_PATH = "/app/approvals/"
_STATES = StateNames(
    {
        WAITING: ("waiting", text("Waiting")),
        APPROVED: ("waiting", text("Approved, but not sent")),
        DECLINED: ("bad", text("Declined")),
        WITHDRAWN: ("still", text("Withdrawn")),
        EXPIRED: ("still", text("Not decided in time")),
        "sent": ("good", text("Approved and sent")),
        "unasked": ("good", text("Sent")),  # its rules ended before anybody decided
        "changed": ("still", text("Changed since")),
    }
)
_ENDED = text("This send no longer waits for approval: it was approved, declined or changed meanwhile.")
_CHANGED = text("This send changed after approval was requested. Its sender has to request approval again.")
_AGAIN = text("You approved this send before. Your answer was not changed.")
_SENT = text("Approved. The order was placed.")
_MORE = text("You approved it. Somebody else has to approve it too.")
_DECLINED = text("Declined. Nothing was sent or charged.")
_NO_BALANCE = text("Approved, but the order was not placed: the account's balance is too low.")
_NO_PERSON = text("Approved, but the order was not placed: the sender may not send any more.")
_OTHER_PRICE = text("Not approved: the price changed after approval was requested. Review it again.")
_ASK_AGAIN = text("The price changed. Request approval again if you still want to send it.")
_NOT_PLACED = text("Approved, but the order was not placed. The sender sees why, and can send it.")


class DecisionForm(msgspec.Struct):
    """An approver's decision, with a note. `again` declines a send whose price changed, and asks the sender to request approval again."""

    decision: Annotated[str, Choice(("approve", "decline", "again"))]
    note: Annotated[str, Text(service.MOST_NOTE, required=False, lines=True)]


async def show(context: RequestContext) -> Response:
    """Shows the sends that the person may decide about, and their own."""
    async with context.database.connection(context.person.scope) as connection:
        seen = await service.list_seen(context.actor, connection)
        members = await list_members(connection, context.person.customer_id)
        automations = await waiting_for_approval(context, connection)
    waiting = [one for one in seen if one.may_decide]
    return context.page(
        "approvals.html",
        waiting=waiting,
        others=[one for one in seen if not one.may_decide],
        names={one.id: one.name for one in members},
        automations=automations,
        state_of=lambda request: _state(context, request),
        may_set=context.person.may(Right.SETTINGS),
        may_send=context.person.may(Right.SEND),
    )


async def one(context: RequestContext) -> Response:
    """Shows a send with the form to approve or decline it. Raises NotFound."""
    return await _shown(context, await _find(context))


async def answer(context: RequestContext) -> Response:
    """Approves or declines a send. Sends it once enough people have approved. Raises NotFound."""
    found = await _find(context)
    form = context.form.read(DecisionForm)
    if context.form.errors:
        return await _shown(context, found)
    approves = form.decision == "approve"
    if approves and found.may_decide and await _has_other_price(context, found.request):
        return context.see(_PATH + found.request.id, context.say(_OTHER_PRICE))
    seen_round = context.form.number("round")
    note = form.note or (context.say(_ASK_AGAIN) if form.decision == "again" else "")
    try:
        request = await service.decide(context.actor, found.request.id, note, seen_round=seen_round, approves=approves)
    except service.OwnRequest:
        return context.trouble(403, context.say("Nobody approves their own send."))
    except service.AlreadyDecided:
        return context.see(_PATH + found.request.id, context.say(_AGAIN))
    except service.RequestEnded:
        return context.see(_PATH + found.request.id, context.say(_ENDED))
    except service.RequestChanged:
        said = _CHANGED if found.request.round == seen_round else CHANGED
        return context.see(_PATH + found.request.id, context.say(said))
    said = _MORE if request.state == WAITING else _DECLINED
    if request.state == APPROVED:
        said = await _send(context, request)
    return context.see(_PATH + request.id, context.say(said))


async def take_back(context: RequestContext) -> Response:
    """Withdraws the person's own request. Raises NotFound."""
    request_id = context.request.path_params["send"]
    try:
        await service.withdraw(context.actor, request_id)
    except service.RequestEnded:
        return context.see(_PATH + request_id, context.say(_ENDED))
    return context.see(
        f"/app/send/{request_id}/review", context.say("You withdrew the request. Nobody can approve it now.")
    )


async def of_approvals(context: RequestContext, connection: Connection) -> list[AttentionItem]:
    """Returns items for the sends that wait for the person's decision, for those that too few people may still approve, and for
    the person's own that were approved but not sent."""
    seen = await service.list_seen(context.actor, connection)
    items = []
    if count := sum(one.may_decide for one in seen):
        said = context.ngettext(
            "%(count)s send waits for your approval", "%(count)s sends wait for your approval", count
        )
        more = context.say("Nothing is sent or charged before that.")
        items.append(AttentionItem("stamp", "waiting", said, more, context.say("Decide"), "/app/approvals"))
    for one in seen:
        request = one.request
        is_own = request.user_id == context.person.user_id
        if one.has_too_few and (is_own or context.person.may(Right.SETTINGS)):
            said = context.say("Too few people may approve the send of %(gift)s", gift=request.gift_name)
            more = context.say("An administrator has to end the rule. Then its sender can send it.")
            items.append(AttentionItem("stamp", "bad", said, more, context.say("See the send"), _PATH + request.id))
        if is_own and request.state == APPROVED and not request.is_sent and request.has_draft:
            said = context.say("Your send of %(gift)s is approved, but not sent", gift=request.gift_name)
            path = f"/app/send/{request.id}/review"
            items.append(AttentionItem("stamp", "waiting", said, "", context.say("See why it was not sent"), path))
    return items


async def _send(context: RequestContext, request: ApprovalRequest) -> str:
    """Sends an approved request, and returns the notice. If it cannot be sent now, the sender can send it later."""
    try:
        await send_approved(context.services.drafts, context.services.database, request)
    except InsufficientBalance:
        return _NO_BALANCE
    except (Unauthorized, NotFound):
        return _NO_PERSON
    except (InvalidRequest, Problem):
        return _NOT_PLACED
    return _SENT


async def _find(context: RequestContext) -> SeenRequest:
    async with context.database.connection(context.person.scope) as connection:
        return await service.read_request(context.actor, connection, context.request.path_params["send"])


async def _priced(context: RequestContext, draft: Draft) -> tuple[Gift, Options] | None:
    """Returns the draft's gift at today's price, and its options, completed from its template; None if it can no longer be sent."""
    try:
        return await context.services.drafts.gift(await person_as_caller(context), draft)
    except InvalidRequest:
        return None


async def _has_other_price(context: RequestContext, request: ApprovalRequest) -> bool:
    """Returns whether the draft of a request now has another price, so that its order would be refused."""
    draft = await context.read(find_draft, request, request.id)
    priced = None if draft is None else await _priced(context, draft)
    return priced is not None and _total(priced[0], request) != request.total_minor


async def _corrections(context: RequestContext, connection: Connection, request: ApprovalRequest) -> list[Happening]:
    """Returns the corrections of recipients' addresses after the send was approved, newest first."""
    if not request.is_sent:
        return []
    order = await find_order(connection, context.principal, request.id)
    acts = await list_acts(connection, request.customer_id, order["id"])
    return [happening_of(context, act) for act in acts if act.act == "correct"]


def _total(gift: Gift, request: ApprovalRequest) -> int:
    return gift.unit_cost_minor * request.code_count


def _state(context: RequestContext, request: ApprovalRequest, *, is_changed: bool = False) -> tuple[str, str]:
    name = "changed" if is_changed else request.state
    if request.is_sent:
        name = "sent" if request.state == APPROVED else "unasked"
    kind, said = _STATES[name]
    return kind, context.say(said)


async def _shown(context: RequestContext, found: SeenRequest) -> Response:
    request, person = found.request, context.person
    async with context.database.connection(person.scope) as connection:
        draft = await find_draft(connection, request, request.id)
        answers = await service.list_answers(connection, request, found.rules)
        members = {one.id: one for one in await list_members(connection, person.customer_id)}
        campaign, listed = await campaign_of(connection, context.principal, request.id)
        invited = await read_list(connection, campaign, listed) if campaign and listed else []
        accounts = await list_seen_accounts(connection, context.customer, user_id=None)
        corrections = await _corrections(context, connection, request)
    is_changed = not request.is_sent and (draft is None or draft.changed_at != request.draft_changed_at)
    content = None if draft is None or is_changed else draft.content
    sender = members[request.user_id]
    checked = None
    if draft is not None and content is not None and content.code_quantity is None:
        checked = await context.services.drafts.rows.checked(context.principal, draft)
    recipients = [Recipient(mailbox) for mailbox in invited] if checked is None else checked.recipients
    priced = None if draft is None or content is None else await _priced(context, draft)
    total_now = _total(priced[0], request) if priced and request.is_waiting else request.total_minor
    return context.page(
        "approval.html",
        request=request,
        rules=found.rules,
        may_decide=found.may_decide and not is_changed,
        is_own=request.user_id == person.user_id,
        sender_may=sender.is_active and sender.role in RIGHTS[Right.SEND],
        is_changed=is_changed,
        has_too_few=found.has_too_few,
        has_draft=draft is not None,
        state_shown=_state(context, request, is_changed=is_changed and request.is_waiting),
        content=content,
        options=priced[1] if priced else None,
        total_now=total_now,
        campaign=campaign,
        listed=listed,
        recipients=recipients,
        most_shown=_SHOWN,
        account=next((one.name for one in accounts if content and one.id == content.account_id), None),
        answers=answers,
        corrections=corrections,
        has_decided=found.has_decided,
        names={one.id: one.name for one in members.values()},
    )
