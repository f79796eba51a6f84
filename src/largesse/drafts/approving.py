"""Requests approval of drafts, and sends approved ones.

A draft is quoted when its approval is requested, and the quote is stored with the request. Only the quoted send, at that price, can be sent.
"""

from datetime import timedelta

import msgspec

from largesse.approvals import store as approvals
from largesse.approvals.model import MOST_DAYS, WAITING, ApprovalRequest, Excess
from largesse.approvals.service import submit
from largesse.base.errors import InvalidRequest, QuoteChanged
from largesse.customers.actor import Actor
from largesse.customers.authenticator import Caller, person_calls
from largesse.customers.roles import Right
from largesse.db.pool import Database
from largesse.db.scope import for_customer
from largesse.db.statements import read_now
from largesse.drafts import store
from largesse.drafts.service import DraftService, Placed
from largesse.orders.quoter import Quote

# A quote holds as long as a draft is stored after its last change. A decision takes at most MOST_DAYS of that time.
QUOTE_HOLDS = timedelta(days=MOST_DAYS + 4)


async def ask_approval(
    drafts: DraftService, database: Database, caller: Caller, actor: Actor, draft_id: str
) -> ApprovalRequest:
    """Requests approval of the person's draft, and returns the request.

    Raises NotFound, NobodyMayApprove, QuoteChanged if the draft changes at the same moment, and InvalidRequest if it needs no approval. Also
    raises as `DraftService.quote` does.
    """
    async with database.connection(caller.principal.scope) as connection:
        draft = await store.read_draft(connection, caller.principal, draft_id)
    # Fixes the defaults, which count from now, as an approval is for one date and its reminders.
    claim_by, reminder_days = draft.claim_by(caller), draft.reminder_days(caller)
    content = msgspec.structs.replace(draft.content, claim_by=claim_by, has_claim_by=True, reminder_days=reminder_days)
    draft = msgspec.structs.replace(draft, content=content)
    checked = await drafts.rows.checked(caller.principal, draft)
    drafts.require_ready(draft, checked)
    quote = await drafts.quote(caller, draft, checked, holds=QUOTE_HOLDS)
    gift_name = await drafts.gift_name(caller, draft)
    if not quote.rules:
        raise InvalidRequest("The send needs no approval.")
    principal = caller.principal
    async with actor.transaction(Right.SEND) as transaction:
        connection = transaction.connection
        locked = await store.read_draft(connection, actor, draft_id, lock=True)
        if locked.changed_at != draft.changed_at:
            raise QuoteChanged("The draft was changed meanwhile.")
        # After this, the draft is stored for two weeks from now.
        await store.save_draft(connection, actor, draft_id, content)
        now = await read_now(connection)
        expires_at = now + timedelta(days=min(rule.expires_days for rule in quote.rules))
        # After either of these times, it cannot be placed.
        last = (None if content.code_quantity is not None else content.send_at, claim_by)
        expires_at = min([expires_at, *(at for at in last if at is not None)])
        assert principal.user_id is not None, "a person"
        request = ApprovalRequest(
            customer_id=principal.customer_id,
            environment=principal.environment,
            id=draft_id,
            round=1,
            user_id=principal.user_id,
            state=WAITING,
            rule_ids=frozenset(rule.id for rule in quote.rules),
            quote=quote.token,
            digest=quote.digest,
            total_minor=quote.total_minor,
            currency=quote.currency,
            gift_name=gift_name,
            code_count=quote.code_count,
            draft_changed_at=(await store.read_draft(connection, actor, draft_id)).changed_at,
            asked_at=now,
            expires_at=expires_at,
            ended_at=None,
            is_sent=False,
            excesses=excesses(quote),
        )
        await submit(transaction, request, quote.rules)
    return request


def excesses(quote: Quote) -> tuple[Excess, ...]:
    """Returns the budgets that a quoted send exceeds."""
    gift_minor = quote.total_minor // quote.code_count
    found = []
    for one in quote.budgets:
        most = one.budget.per_gift_minor
        if most is not None and gift_minor > most:
            found.append(Excess("per_gift", most, one.budget.name))
        if one.before_minor is not None and quote.total_minor > one.before_minor:
            found.append(Excess("over", quote.total_minor - one.before_minor, one.budget.name))
    return tuple(found)


async def send_approved(drafts: DraftService, database: Database, request: ApprovalRequest) -> Placed:
    """Places the order of an approved request, as its person. A repeat returns the order of the first call.

    Raises Unauthorized for a person who may no longer send, and raises as `DraftService.send` does.
    """
    async with database.connection(for_customer(request.customer_id, request.environment)) as connection:
        current = await approvals.find_request(connection, (request.customer_id, request.environment), request.id)
        caller = await person_calls(
            connection,
            user_id=request.user_id,
            customer_id=request.customer_id,
            environment=request.environment,
            session_id=None,
        )
    if current is None or current.state != "approved":
        raise InvalidRequest("The send is not approved.")
    return await drafts.send(caller, request.id, current.quote)
